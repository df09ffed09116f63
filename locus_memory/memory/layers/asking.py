"""The answer of a model to a task of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from locus_memory.chat.asking import ask
from locus_memory.chat.base import ChatModel
from locus_memory.chat.usage import report_usage
from locus_memory.errors import ModelAnswerError
from locus_memory.messages import Message

__all__ = ["text_answer"]


async def text_answer(
    model: ChatModel,
    prompt: Sequence[Message],
    purpose: Literal["gate", "reflection", "tending"],
    *,
    seconds: float | None = 60.0,
) -> str:
    """Return the text of a model's answer, and report its tokens.

    Args:
        model: The model.
        prompt: The prompt.
        purpose: What the answer is for, in the report.
        seconds: How long the model may take; `None`: any time.

    Raises:
        ModelAnswerError: The answer has no text.
        TimeoutError: The model took longer.
        Exception: Any error of the model.
    """
    async with asyncio.timeout(seconds):
        answer = await ask(model, prompt)
    report_usage(answer, purpose)
    if answer.content is None:
        raise ModelAnswerError("the model did not answer with a text")
    return answer.content
