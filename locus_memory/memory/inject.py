"""Rendering memories into one fenced block of data, within a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.factory import changed, new_message
from locus_memory.conversation.roles import (
    BLOCK_BEFORE,
    BLOCK_CLOSE,
    BLOCK_MARK,
    BLOCK_OPENING,
    STABLE_OPENING,
    is_memory_block,
    may_have_block,
    role_of,
    split_block,
)
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, message_tokens
from locus_memory.memory.models import Memory, MemoryType, teller
from locus_memory.messages import Message

__all__ = [
    "BLOCK_MARK",
    "Placement",
    "blocks_of",
    "fitting",
    "inject",
    "memory_line",
    "neutralise",
    "placed",
    "render_block",
    "strip",
    "with_tail",
]

Placement = Literal["system", "user"]
"""The place of a block: after the system prompt, or in front of the latest message of the user."""

_CUT: Final = "..."
_SHORTEST_CUT = 20
_SHORT: Final = 500
# No token of any language has more characters: a longer text never fits and is not counted.
_CHARACTERS_A_TOKEN = 8
# A shorter line shows nothing: its mark and its end take more.
_FEWEST_TOKENS = 3


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
    lines = [line for memory in memories if (line := memory_line(memory, longest))]
    if not lines or token_budget < 1:
        return None
    if sum(map(len, lines)) <= longest and _fits(lines, token_budget, count):
        return _block(lines)
    left = token_budget - _fence_tokens(count)
    chosen = [lines[place] for place in fitting(lines, left, count)[0]]
    while chosen and not _fits(chosen, token_budget, count):
        chosen.pop()
    chosen = chosen or _cut(lines[0], token_budget, count)
    return _block(chosen) if chosen else None


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
    kept = strip(messages)
    if stable is not None:
        place = _after_system(kept)
        kept[place:place] = [_block_message(messages, stable)]
    if block is None:
        return kept
    if placement == "user":
        users = [place for place, message in enumerate(kept) if role_of(message) == "user"]
        if users:
            return [*kept[: users[-1]], *_before(kept[users[-1]], block), *kept[users[-1] + 1 :]]
    place = _after_system(kept)
    return [*kept[:place], _block_message(messages, block), *kept[place:]]


def _after_system(messages: Sequence[Any]) -> int:
    """Return the place after the leading system messages."""
    places = (n for n, message in enumerate(messages) if role_of(message) != "system")
    return next(places, len(messages))


def strip(messages: Sequence[Any]) -> list[Any]:
    """Return the messages without the blocks of memories that `inject` added."""
    kept: list[Any] = []
    for message in messages:
        if not may_have_block(message):
            kept.append(message)
        elif not is_memory_block(message):
            kept.append(_without_block(message))
    return kept


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
    if found is None:
        return message
    metadata = getattr(message, "metadata", None) or {}
    if BLOCK_MARK not in metadata:
        return changed(message, content=found[1])
    own = {name: value for name, value in metadata.items() if name != BLOCK_MARK}
    return changed(message, content=found[1], metadata=own)


def _before(message: Any, block: str) -> list[Any]:
    """Return a user's message that begins with a block, or the block and the message."""
    content = message.content
    has_metadata = hasattr(message, "metadata")
    if not isinstance(content, str):
        mark = {"metadata": {BLOCK_MARK: True}} if has_metadata else {}
        return [new_message(message, role="user", content=block, **mark), message]
    text = f"{block}\n\n{content}"
    if not has_metadata:
        return [changed(message, content=text)]
    metadata = {**(message.metadata or {}), BLOCK_MARK: BLOCK_BEFORE}
    return [changed(message, content=text, metadata=metadata)]


def _block_message(messages: Sequence[Any], block: str) -> Any:
    """Return the message of `block`: the existing one, or a new one of the same class."""
    for message in messages:
        mark = getattr(message, "metadata", {BLOCK_MARK: True}) or {}
        if mark.get(BLOCK_MARK) and role_of(message) == "system" and message.content == block:
            return message
    sample: Any = messages[0] if messages else Message.system(block)
    mark = {"metadata": {BLOCK_MARK: True}} if hasattr(sample, "metadata") else {}
    return type(sample)(role="system", content=block, **mark)


def memory_line(memory: Memory, longest: int) -> str:
    """Return the one line that shows a memory, with at most `longest` characters of its content.

    It is empty if the content has no visible character.
    """
    content, moment = memory.content, memory.metadata.get("valid_from")
    since = moment if isinstance(moment, str) else None
    if len(content) <= min(longest, _SHORT):
        # It is not cut, so that the line is the same for every limit.
        return _short_line(memory.type, content, since, _SHORT, teller(memory))
    return _line(memory.type, content, since, longest, teller(memory))


def _line(kind: MemoryType, said: str, since: str | None, longest: int, told: str) -> str:
    content = neutralise(said[:longest])
    if not content:
        return ""
    if len(said) > longest:
        content += _CUT
    day = None if since is None else _day(since)
    # Before the content, so that it stays if the line is cut.
    told = f" ({told})" if told else ""
    return f"- {kind.value}{told}: {content}" + (f" [since {day}]" if day else "")


# The facts of a scope are shown again and again; of a large scope, there are thousands.
_short_line: Final = lru_cache(maxsize=8192)(_line)


def _day(moment: str) -> str | None:
    """Return the day of an ISO 8601 moment, in the same form; `None` if it is not a moment."""
    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed.astimezone(UTC) if parsed.tzinfo else parsed).date().isoformat()
    except (ValueError, OverflowError):
        return None


def _block(lines: Sequence[str]) -> str:
    return BLOCK_OPENING + "".join(f"{line}\n" for line in lines) + BLOCK_CLOSE


def _fits(lines: Sequence[str], budget: int, count: TokenCounter) -> bool:
    return message_tokens(Message.system(_block(lines)), count) <= budget


def _fence_tokens(count: TokenCounter) -> int:
    """Return the tokens of a block without lines."""
    return message_tokens(Message.system(_block(())), count)


def fitting(lines: Sequence[str], budget: int, count: TokenCounter) -> tuple[list[int], int]:
    """Return the positions of the lines that fit, in order, and their tokens.

    Each line is counted once, alone. A tokenizer may need one more token where two lines meet.
    """
    chosen: list[int] = []
    left = budget
    for place, line in enumerate(lines):
        if left < _FEWEST_TOKENS:
            break
        if len(line) > left * _CHARACTERS_A_TOKEN:
            continue
        cost = count(f"{line}\n")
        if cost <= left:
            chosen.append(place)
            left -= cost
    return chosen, budget - left


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
