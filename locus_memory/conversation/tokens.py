"""How many tokens a text or a conversation is: an upper estimate, or your tokenizer's count."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from locus_memory.errors import InvalidArgumentError

__all__ = ["TokenCounter", "as_token_counter", "count_tokens", "estimate_tokens", "message_tokens"]

_TOKENS_PER_MESSAGE = 3
_TOKENS_PER_NAME = 1


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return how many tokens the text is."""
        ...


_PIECE = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>[0-9]{1,3})|(?P<space>[ \t]+|[\r\n]+)"
    r"|(?P<mark>[!-/:-@\[-`{-~]+)|(?P<rest>.)",
    re.DOTALL,
)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text is, rather too many than too few."""
    return sum(_piece_tokens(found) for found in _PIECE.finditer(text))


def _piece_tokens(found: re.Match[str]) -> int:
    length = found.end() - found.start()
    if found.lastgroup == "word":
        return 1 + length // 8
    if found.lastgroup == "mark":
        return (length + 1) // 2
    if found.lastgroup == "rest":
        return 2
    return 0 if found.group() == " " else 1


def as_token_counter(counter: object | None) -> TokenCounter:
    """Return a token counter.

    Args:
        counter: `None` for `estimate_tokens`; a function from a text to a number; or a
            tokenizer with `encode(text)`, such as tiktoken's `Encoding` or the `Tokenizer` of
            the `tokenizers` package. Text that looks like a special token is counted as text
            where the tokenizer has a choice.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if counter is None:
        return estimate_tokens
    encode = getattr(counter, "encode", None)
    if callable(encode):
        return _encoding_counter(encode)
    if callable(counter):
        return counter
    raise InvalidArgumentError(
        f"a token counter is a function or has encode(text), not {type(counter).__name__}"
    )


def _encoding_counter(encode: Callable[..., Any]) -> TokenCounter:
    options = {"disallowed_special": ()} if _takes(encode, "disallowed_special") else {}

    def count(text: str, /) -> int:
        encoded = encode(text, **options)
        return len(getattr(encoded, "ids", encoded))

    return count


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def count_tokens(messages: Iterable[Any], counter: object | None = None) -> int:
    """Return how many tokens messages are, each with its overhead.

    Args:
        messages: Messages of any kind that have `role`, `content` and the like.
        counter: See `as_token_counter`.
    """
    count = as_token_counter(counter)
    return sum(message_tokens(message, count) for message in messages)


def message_tokens(message: Any, counter: TokenCounter) -> int:
    """Return how many tokens a message is: content, name, tool calls as JSON, and overhead.

    The overhead is 3 tokens a message and 1 for a name, from "Counting tokens for chat
    completions API calls":
    https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken
    """
    total = _TOKENS_PER_MESSAGE
    if content := getattr(message, "content", None):
        total += counter(content if isinstance(content, str) else _as_json(content))
    if name := getattr(message, "name", None):
        total += _TOKENS_PER_NAME + counter(name)
    if calls := getattr(message, "tool_calls", None):
        total += counter(_as_json([_call_document(call) for call in calls]))
    if call_id := getattr(message, "tool_call_id", None):
        total += counter(call_id)
    return total


def _call_document(call: Any) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
