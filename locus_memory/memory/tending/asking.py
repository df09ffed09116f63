"""The answer of a model to a task of a consolidation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from locus_memory.chat.asking import called
from locus_memory.chat.base import ChatModel
from locus_memory.chat.usage import report_usage
from locus_memory.errors import ModelAnswerError
from locus_memory.messages import Message

__all__ = ["TIMEOUT", "text_answer"]

TIMEOUT: Final = 60.0
"""The seconds that a model may take for an answer."""


async def text_answer(model: ChatModel, prompt: Sequence[Message]) -> str:
    """Return the text of a model's answer.

    Raises:
        ModelAnswerError: The answer has no text.
        TimeoutError: The model took longer than `TIMEOUT` seconds.
        Exception: Any error of the model.
    """
    async with asyncio.timeout(TIMEOUT):
        answer = await called(model, prompt)
    content: object = getattr(answer, "content", None)
    if not isinstance(content, str):
        raise ModelAnswerError("the model did not answer with a text")
    report_usage(answer, "tending")
    return content
