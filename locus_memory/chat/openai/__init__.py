"""A chat model on any endpoint with the OpenAI chat API: OpenAI, vLLM, Ollama, llama.cpp.

The protocol is pure code (`wire.py`). One table translates the errors of the `openai` package. The
client is created in one place, which embedders use too.

Read `model.py` first, then `wire.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.chat.openai.model import OpenAIChat
else:
    __getattr__, __dir__ = lazy_names(__name__, {"OpenAIChat": "model"})

__all__ = ["OpenAIChat"]
