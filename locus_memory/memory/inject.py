"""Rendering memories into one fenced block of data, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from locus_memory.conversation.factory import changed, new_message
from locus_memory.conversation.roles import (
    BLOCK_CLOSE,
    BLOCK_MARK,
    BLOCK_OPENING,
    STABLE_OPENING,
    is_memory_block,
    role_of,
    split_block,
)
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, message_tokens
from locus_memory.memory.models import Memory
from locus_memory.memory.reading.lines import Line, fact_line, fitting, grouped, passage_of
from locus_memory.messages import Message

__all__ = [
    "Placement",
    "blocks_of",
    "inject",
    "placed",
    "render_block",
    "strip",
    "with_tail",
]

Placement = Literal["system", "user"]
"""The place of a block: after the system prompt, or in front of the latest message of the user."""


def render_block(
    memories: Sequence[Memory],
    *,
    token_budget: int = 1000,
    token_counter: TokenCounter | None = None,
) -> str | None:
    """Return the fenced block that shows memories to a model, or `None` without memories.

    The block has an opening line, a line that explains it, the lines of the memories as in the
    block of an `LLMMemoryManager`, and a closing line. Every text is neutralised, see
    `locus_memory._internal.neutral.neutralise`.

    Memories are added in order while they fit. A memory that is too long is left out, and later
    ones may still fit. Only if none fits, the beginning of the first one is shown.

    Args:
        memories: Best first.
        token_budget: The most tokens of the block as a message, with its fence and overhead.
        token_counter: Counts tokens; `None` estimates them.
    """
    count = as_token_counter(token_counter)
    lines = [line for memory in memories if (line := fact_line(memory)).text]
    chosen, _ = fitting(lines, token_budget - _tokens((), count), count, None)
    if not chosen:
        chosen = [line._replace(text=passage_of(line.text, count)) for line in lines[:1]]
    while chosen and _tokens(chosen, count) > token_budget:
        # A heading that stands twice, or a tokenizer that needs more where lines meet.
        chosen.pop()
    return _block(chosen) if chosen else None


def _block(lines: Iterable[Line]) -> str:
    return BLOCK_OPENING + "".join(f"{text}\n" for text in grouped(lines, None)) + BLOCK_CLOSE


def _tokens(lines: Iterable[Line], count: TokenCounter) -> int:
    return message_tokens(Message.system(_block(lines)), count)


def inject(
    messages: Sequence[Any],
    block: str | None,
    placement: Placement = "system",
    *,
    stable: str | None = None,
) -> list[Any]:
    """Return the messages with `block` in place of any earlier block.

    With `"system"`, the block is a system message after the leading system messages. With
    `"user"`, it stands before the text of the user's latest message, so that all messages before
    that one are the same in the next request. If that message has no text but parts, the block is
    a message of the user before it; without a message of the user, it is a system message.
    Unchanged messages are the same objects as before.

    Args:
        messages: Messages of one class, of this library or another; oldest first.
        block: The text that `render_block` returned; `None` only deletes the earlier block.
        placement: The place of the block.
        stable: A further block, which stands after the leading system messages wherever the other
            one does.
    """
    kept, leading = strip(messages), [stable, block]
    users = [place for place, message in enumerate(kept) if role_of(message) == "user"]
    if block is not None and placement == "user" and users:
        last = users[-1]
        kept[last : last + 1] = _before(kept[last], block)
        leading = [stable]
    others = (place for place, message in enumerate(kept) if role_of(message) != "system")
    place = next(others, len(kept))
    kept[place:place] = [_block_message(messages, each) for each in leading if each is not None]
    return kept


def strip(messages: Sequence[Any]) -> list[Any]:
    """Return the messages without the blocks of memories that `inject` added."""
    return [_without_block(each) for each in messages if not is_memory_block(each)]


def placed(messages: Sequence[Any], placement: Placement) -> list[Any]:
    """Return the messages with their block of memories, if there is one, at another place.

    A stable block stays in the system prompt.
    """
    stable, block = blocks_of(messages)
    if block is None:
        return list(messages)
    return inject(messages, block, placement, stable=stable)


def with_tail(messages: Sequence[Any], added: str) -> tuple[Any, ...]:
    """Return the messages with more lines in the block before the user's latest message.

    Where there is no such block yet, they are all of it; a stable block stays as it is.
    """
    stable, block = blocks_of(messages)
    begun = BLOCK_OPENING if block is None else block.removesuffix(BLOCK_CLOSE)
    return tuple(inject(messages, f"{begun}{added}{BLOCK_CLOSE}", "user", stable=stable))


def blocks_of(messages: Sequence[Any]) -> tuple[str | None, str | None]:
    """Return the stable block of the messages, and the last other one, which may change."""
    contents = [message.content for message in messages if is_memory_block(message)]
    blocks = [each for each in contents if isinstance(each, str)]
    stable = next((each for each in blocks if each.startswith(STABLE_OPENING)), None)
    others = [each for each in blocks if each != stable]
    others += [found[0] for message in messages if (found := split_block(message)) is not None]
    return stable, others[-1] if others else None


def _without_block(message: Any) -> Any:
    """Return a message without the block at its start; the same object if it has none."""
    found = split_block(message)
    return message if found is None else changed(message, content=found[1])


def _before(message: Any, block: str) -> list[Any]:
    """Return a user's message that begins with a block, or the block and the message."""
    content = message.content
    if not isinstance(content, str):
        return [_new(message, "user", block), message]
    return [changed(message, content=f"{block}\n\n{content}")]


def _block_message(messages: Sequence[Any], block: str) -> Any:
    """Return the message of `block`: the existing one, or a new one of the same class."""
    for message in messages:
        mark = getattr(message, "metadata", {BLOCK_MARK: True}) or {}
        if mark.get(BLOCK_MARK) and role_of(message) == "system" and message.content == block:
            return message
    return _new(messages[0] if messages else Message.system(block), "system", block)


def _new(sample: Any, role: str, block: str) -> Any:
    mark = {"metadata": {BLOCK_MARK: True}} if hasattr(sample, "metadata") else {}
    return new_message(sample, role=role, content=block, **mark)
