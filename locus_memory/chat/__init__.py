"""Chat models: the protocol of a model, and the models that ship with the library.

A model is an async callable from messages to a message. `asking.py` is the one place that calls a
model, with or without tools, streaming and counts of tokens.

Read `base.py` first, then `asking.py`; `registry.py` makes models of strings, and `summarizing.py`
asks one for a summary. `scripted.py` needs no endpoint, `openai/` needs one with OpenAI's protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.chat.base import ChatModel, StreamingModel, ToolModel, ToolSpec
    from locus_memory.chat.openai.model import OpenAIChat
    from locus_memory.chat.registry import get_model, list_models, register_model
    from locus_memory.chat.scripted import ScriptedModel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ChatModel": "base",
            "OpenAIChat": "openai.model",
            "ScriptedModel": "scripted",
            "StreamingModel": "base",
            "ToolModel": "base",
            "ToolSpec": "base",
            "get_model": "registry",
            "list_models": "registry",
            "register_model": "registry",
        },
    )

__all__ = [
    "ChatModel",
    "OpenAIChat",
    "ScriptedModel",
    "StreamingModel",
    "ToolModel",
    "ToolSpec",
    "get_model",
    "list_models",
    "register_model",
]
