"""Calls of a model, with tools and streaming if it supports them."""

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

__all__ = ["ask", "called", "check_model", "is_model", "takes_tools"]


def check_model(model: object) -> None:
    """Check that the model can be called.

    Raises:
        ConfigurationError: It is a name, a class or another object that cannot be called.
    """
    if isinstance(model, type):
        raise ConfigurationError(
            f"a model is an async function or an object, not the class {model.__name__} itself"
        )
    if isinstance(model, str):
        raise ConfigurationError(
            "a model is an async function or an object, not a string:"
            " locus_memory.chat.get_model makes one of a string"
        )
    if not callable(model):
        raise ConfigurationError(
            f"a model is an async function from messages to a message, not {type(model).__name__}"
        )


def is_model(value: object) -> bool:
    """Whether an object declares that it is a model, and no other function of messages.

    It streams, accepts the keyword `tools`, or is annotated to return a `Message`.
    """
    if callable(getattr(type(value), "stream", None)):
        return callable(value)
    try:
        declared = inspect.signature(value)  # type: ignore[arg-type] # it refuses others
    except (TypeError, ValueError):
        return False
    return "tools" in declared.parameters or declared.return_annotation in {Message, "Message"}


async def called(model: Callable[..., Any], messages: Sequence[Any], **keywords: Any) -> Any:
    """Return the model's answer.

    Raises:
        ModelAnswerError: The model is not an async function.
    """
    answer = model(messages, **keywords)
    if not inspect.isawaitable(answer):
        raise ModelAnswerError(
            f"the model is not an async function, it returned {type(answer).__name__}:"
            " define it with async def"
        )
    return await answer


def takes_tools(model: Callable[..., Any]) -> bool:
    """Whether the model accepts the keyword `tools`; assumed if it hides its signature."""
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
    """Return a model's answer to the conversation, in a form that can be saved; see `storable`.

    An answer without content becomes an empty text.

    Args:
        model: A `ChatModel`, a `ToolModel` or a `StreamingModel`.
        messages: The conversation, oldest first.
        tools: The tools that it may call.
        on_text: Called with each piece of the text, if the model streams.

    Raises:
        ModelAnswerError: The answer is not an assistant message, or the model is not async.
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
    """Pass the pieces of text to `on_text`, and return the message that ends the stream."""
    answer = None
    async with AsyncExitStack() as stack:
        if isinstance(pieces, AsyncGenerator):
            # Otherwise its connection stays open until garbage collection.
            await stack.enter_async_context(aclosing(pieces))
        async for piece in pieces:
            if isinstance(piece, Message):
                answer = piece
            elif piece:
                on_text(piece)
    return answer
