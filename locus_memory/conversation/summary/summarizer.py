"""Calls of the caller's `summarize_fn`, sync or async, from sync and async code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

from locus_memory._internal.bridge import shared_bridge
from locus_memory._internal.offload import call
from locus_memory._internal.resource import Resource
from locus_memory.conversation.summary.text import cleaned
from locus_memory.errors import InvalidArgumentError

__all__ = ["SummarizeFunction", "as_summarizer", "summarize", "summarize_async"]

SummarizeFunction = Callable[[list[Any]], str | Awaitable[str]]
"""Returns a summary of messages; a function or a callable object, sync or async."""


def as_summarizer(given: object | None) -> tuple[SummarizeFunction | None, Resource | None]:
    """Return the function of the argument `summarize_fn`, and the model that the caller closes.

    Raises:
        ConfigurationError: It is no function, model or string of a model.
    """
    if given is None:
        return None, None
    # By name: the models import this package.
    chat: Any = import_module("locus_memory.chat.summarizing")
    made: tuple[SummarizeFunction | None, Resource | None] = chat.as_summarizer(given)
    return made


def summarize(function: SummarizeFunction, messages: Sequence[Any]) -> str:
    """Return the summary; an async function runs to its end in the event loop of another thread.

    It is the same loop for all of them, since the client of a model is bound to one.

    Raises:
        InvalidArgumentError: The function returned no text, or blank text.
    """
    result = function(list(messages))
    if not inspect.isawaitable(result):
        return _checked(result)
    # What calls this may run in the loop of the faces, which would wait for itself.
    try:
        return _checked(shared_bridge("summaries").run(result, inside_loop=True))
    except CancelledError:
        raise asyncio.CancelledError from None


async def summarize_async(function: SummarizeFunction, messages: Sequence[Any]) -> str:
    """Return the summary; a sync function runs in a worker thread.

    Raises:
        InvalidArgumentError: The function returned no text, or blank text.
    """
    return _checked(await call(function, list(messages)))


def _checked(result: Any) -> str:
    if not isinstance(result, str):
        raise InvalidArgumentError(f"summarize_fn returned {type(result).__name__}, not a text")
    # A text without visible characters is not a summary.
    if not cleaned(result):
        raise InvalidArgumentError("summarize_fn returned a blank text")
    return result
