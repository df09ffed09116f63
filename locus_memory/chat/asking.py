"""Asking a model, whatever it can do: tools and streaming where it has them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from locus_memory._internal.quoting import quote
from locus_memory.chat.base import StreamingModel, ToolSpec
from locus_memory.chat.storable import storable
from locus_memory.errors import ConfigurationError, ModelAnswerError
from locus_memory.messages import Message, Role

__all__ = ["ask", "called", "check_model", "takes_tools"]


def check_model(model: object) -> None:
    """Raise unless the model can be called.

    Raises:
        ConfigurationError: It is a name, a class or something else.
    """
    if isinstance(model, type):
        raise ConfigurationError(
            f"a model is an async function or an object, not the class {model.__name__} itself"
        )
    if not callable(model):
        raise ConfigurationError(
            f"a model is an async function from messages to a message, not {type(model).__name__}"
        )


async def called(model: Callable[..., Any], messages: Sequence[Any], **keywords: Any) -> Any:
    """Return what the model answers.

    Raises:
        ModelAnswerError: It is no async function.
    """
    answer = model(messages, **keywords)
    if not inspect.isawaitable(answer):
        raise ModelAnswerError(
            f"the model is no async function, it returned {type(answer).__name__}:"
            " define it with async def"
        )
    return await answer


def takes_tools(model: Callable[..., Any]) -> bool:
    """Whether the model takes the keyword `tools`; one that hides its signature is believed."""
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(
        each.kind == each.VAR_KEYWORD
        or (each.name == "tools" and each.kind not in {each.POSITIONAL_ONLY, each.VAR_POSITIONAL})
        for each in parameters
    )


async def ask(
    model: Any,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    *,
    on_text: Callable[[str], None] | None = None,
) -> Message:
    """Return a model's answer to the conversation, as one that can be saved; see `storable`.

    An answer without anything is an empty text.

    Args:
        model: A `ChatModel`, a `ToolModel` or a `StreamingModel`.
        messages: The conversation, oldest first.
        tools: What it may call.
        on_text: Called with each piece of the text, where the model streams.

    Raises:
        ModelAnswerError: The answer is no assistant message, or the model is not async.
    """
    keywords: dict[str, Any] = {"tools": tools} if tools else {}
    answer: object = None
    if on_text is not None and isinstance(model, StreamingModel):
        answer = await _last(model.stream(messages, **keywords), on_text)
    else:
        answer = await called(model, messages, **keywords)
    if not isinstance(answer, Message):
        raise ModelAnswerError(
            f"the model answered with {type(answer).__name__}, not with a Message:"
            " return Message.assistant(...)"
        )
    if answer.role != Role.ASSISTANT:
        raise ModelAnswerError(
            f"the model answered as {quote(answer.role.value)}, not as 'assistant'"
        )
    if answer.content is None and not answer.tool_calls:
        answer = answer.model_copy(update={"content": ""})
    return storable(answer)


async def _last(
    pieces: AsyncIterator[str | Message], on_text: Callable[[str], None]
) -> Message | None:
    """Hand on the pieces of text, and return the message that ends them."""
    answer = None
    async with AsyncExitStack() as stack:
        if isinstance(pieces, AsyncGenerator):
            # Else the connection behind it would stay open until the garbage is collected.
            await stack.enter_async_context(aclosing(pieces))
        async for piece in pieces:
            if isinstance(piece, Message):
                answer = piece
            elif piece:
                on_text(piece)
    return answer
