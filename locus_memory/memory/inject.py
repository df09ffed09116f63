"""Rendering memories into one fenced block of data, within a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.roles import (
    BLOCK_CLOSE,
    BLOCK_MARK,
    BLOCK_OPENING,
    is_memory_block,
    role_of,
)
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, message_tokens
from locus_memory.memory.models import Memory, is_of_tool
from locus_memory.messages import Message

__all__ = ["BLOCK_MARK", "inject", "neutralise", "render_block", "strip"]

_CUT: Final = "..."
_SHORTEST_CUT = 20
# No token of any language has more characters: a longer text never fits and is not counted.
_CHARACTERS_A_TOKEN = 8


def render_block(
    memories: Sequence[Memory],
    *,
    token_budget: int = 1000,
    token_counter: TokenCounter | None = None,
) -> str | None:
    """Return the fenced block that shows memories to a model, or `None` without memories.

    The block has an opening line, a line that explains it, one line per memory, such as
    `- user: Ada lives in Berlin. [since 2026-03-01]`, and a closing line. The line of a memory
    from a tool's output begins `- reference (told by a tool): ...`. Every text is neutralised,
    see `neutralise`.

    Memories are added in order while they fit. A memory that is too long is left out, and later
    ones may still fit. Only if none fits, the first one is cut, and ends in `...`.
    A memory longer than 8 characters per token of the budget is too long without being counted.

    Args:
        memories: Best first.
        token_budget: The most tokens of the block as a message, with its fence and overhead.
        token_counter: Counts tokens; `None` estimates them.
    """
    count = as_token_counter(token_counter)
    longest = token_budget * _CHARACTERS_A_TOKEN
    lines = [line for memory in memories if (line := _line(memory, longest))]
    if not lines or token_budget < 1:
        return None
    if sum(map(len, lines)) <= longest and _fits(lines, token_budget, count):
        return _block(lines)
    chosen = _choose(lines, token_budget, count) or _cut(lines[0], token_budget, count)
    return _block(chosen) if chosen else None


def inject(messages: Sequence[Any], block: str | None) -> list[Any]:
    """Return the messages with `block` in place of any earlier block.

    The block is a system message after the leading system messages. Unchanged messages are the
    same objects as before.

    Args:
        messages: Messages of one class, of this library or another; oldest first.
        block: The text that `render_block` returned; `None` only deletes the earlier block.
    """
    kept = strip(messages)
    if block is None:
        return kept
    place = next((n for n, message in enumerate(kept) if role_of(message) != "system"), len(kept))
    return [*kept[:place], _block_message(messages, block), *kept[place:]]


def strip(messages: Sequence[Any]) -> list[Any]:
    """Return the messages without the blocks of memories that `inject` added."""
    return [message for message in messages if not is_memory_block(message)]


def _block_message(messages: Sequence[Any], block: str) -> Any:
    """Return the message of `block`: the existing one, or a new one of the same class."""
    for message in messages:
        mark = getattr(message, "metadata", {BLOCK_MARK: True}) or {}
        if mark.get(BLOCK_MARK) and role_of(message) == "system" and message.content == block:
            return message
    sample: Any = messages[0] if messages else Message.system(block)
    mark = {"metadata": {BLOCK_MARK: True}} if hasattr(sample, "metadata") else {}
    return type(sample)(role="system", content=block, **mark)


def _line(memory: Memory, longest: int) -> str:
    content = neutralise(memory.content[:longest])
    if not content:
        return ""
    if len(memory.content) > longest:
        content += _CUT
    day = _day(memory.metadata.get("valid_from"))
    # Before the content, so that it stays if the line is cut.
    told = " (told by a tool)" if is_of_tool(memory) else ""
    return f"- {memory.type.value}{told}: {content}" + (f" [since {day}]" if day else "")


def _day(moment: object) -> str | None:
    """Return the day of an ISO 8601 moment, in the same form; `None` if it is not a moment."""
    if not isinstance(moment, str):
        return None
    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed.astimezone(UTC) if parsed.tzinfo else parsed).date().isoformat()
    except (ValueError, OverflowError):
        return None


def _block(lines: Sequence[str]) -> str:
    return BLOCK_OPENING + "".join(f"{line}\n" for line in lines) + BLOCK_CLOSE


def _fits(lines: Sequence[str], budget: int, count: TokenCounter) -> bool:
    return message_tokens(Message.system(_block(lines)), count) <= budget


def _choose(lines: Sequence[str], budget: int, count: TokenCounter) -> list[str]:
    """Return the lines that fit, in order.

    Each line is counted once, alone. The whole is counted at the end, since a tokenizer may
    need one more token where two lines meet.
    """
    chosen: list[str] = []
    left = budget - message_tokens(Message.system(_block(())), count)
    for line in lines:
        if len(line) > left * _CHARACTERS_A_TOKEN:
            continue
        cost = count(f"{line}\n")
        if cost <= left:
            chosen.append(line)
            left -= cost
    while chosen and not _fits(chosen, budget, count):
        chosen.pop()
    return chosen


def _cut(line: str, budget: int, count: TokenCounter) -> list[str]:
    """Return the longest beginning of the line that fits, as one line; none if it is too short."""
    low, high = _SHORTEST_CUT, len(line)
    best: list[str] = []
    while low <= high:
        middle = (low + high) // 2
        shortened = [line[:middle].rstrip() + _CUT]
        if _fits(shortened, budget, count):
            best, low = shortened, middle + 1
        else:
            high = middle - 1
    return best
