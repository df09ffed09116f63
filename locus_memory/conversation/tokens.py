"""Counts of the tokens of texts and conversations: an upper estimate, or your own tokenizer."""

from __future__ import annotations

import inspect
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final, Protocol, cast

from locus_memory.errors import InvalidArgumentError

__all__ = [
    "TokenCounter",
    "as_token_counter",
    "count_tokens",
    "estimate_tokens",
    "expected_tokens",
    "is_accented",
    "message_tokens",
    "weigh",
]

_TOKENS_PER_MESSAGE = 3
_TOKENS_PER_NAME = 1


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens of the text."""
        ...


_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_OTHERS = re.compile("[^\x00-\x7f\xe0]+")
_NOT_ASCII = re.compile("[^\x00-\x7f]+")


def _classes(kinds: Mapping[bytes, str]) -> bytes:
    """Return a table for `bytes.translate`: the class of each character; a space for the rest."""
    classes = {ord(char): kind[0] for kind, chars in kinds.items() for char in chars}
    return bytes(classes.get(code, 32) for code in range(256))


_BYTES = "".join(map(chr, range(256)))
_CASES = _classes({b"A": ascii_uppercase, b"a": ascii_lowercase, b"e": "\xe0"})
_LOWER = _classes({b"a": "ae"})
_UPPER = _classes({b"A": "A"})
_DIGITS = _classes({b"0": digits})
_SPACED = _classes({b"_": " ", b"0": digits})
_MARKS = _classes({b".": re.sub(r"[\t\n\r A-Za-z0-9\x80-\xff]", "", _BYTES)})
_INDENTS = _classes({b"_": " ", b"t": "\t"})
_NEWLINES = _classes({b"n": "\r\n"})

_ACCENTED_SHARE = 100
"""A text with at least one accented letter in this many characters is not English."""

_SCRIPTS = (
    (0x0000, 0.0),  # counted as words, digits, marks and whitespace
    (0x0080, 2.8),  # all without their own line: emoji, symbols, rare scripts
    (0x00C0, 1.05),  # accented Latin letters, on top of their word
    (0x0250, 2.8),
    (0x0370, 1.15),  # Greek
    (0x0400, 0.76),  # Cyrillic
    (0x0530, 2.25),  # Armenian
    (0x0590, 1.28),  # Hebrew
    (0x0600, 0.96),  # Arabic
    (0x0780, 2.8),
    (0x0900, 1.35),  # Devanagari
    (0x0980, 2.06),  # the other scripts of India
    (0x0E00, 1.0),  # Thai
    (0x0E80, 2.8),
    (0x10A0, 2.22),  # Georgian
    (0x1100, 2.8),
    (0x1E00, 1.05),  # Vietnamese letters, on top of their word
    (0x1F00, 2.8),
    (0x3000, 1.05),  # kana and CJK punctuation
    (0x3100, 2.8),
    (0x4E00, 1.7),  # Han
    (0xA000, 2.8),
    (0xAC00, 1.45),  # Hangul
    (0xD7A4, 2.8),
)
"""The tokens per character, from a code point on."""

_ENGLISH_SHARE, _FOREIGN_SHARE, _SCRIPT_SHARE = 0.76, 0.58, 0.5
"""The expected tokens as shares of the upper estimates of English words, of those of languages with
accented letters, and of other scripts; measured with o200k_base on conversations."""

_SHORT: Final = 500
"""The most characters of a text whose count is kept."""

_STARTS = [start for start, _ in _SCRIPTS]


@cache
def _rate(char: str) -> float:
    """Return the tokens of a character, looked up once for each."""
    return _SCRIPTS[bisect_right(_STARTS, ord(char)) - 1][1]


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text, without a tokenizer.

    The text is split into words, digits, marks and whitespace, roughly as the tokenizers of OpenAI
    split it, and other scripts into characters. The count of each piece was fitted on paragraphs to
    be at least the larger of the counts of cl100k_base and o200k_base: English, 27 other languages,
    code, JSON, logs, URLs, hex and base64. Of 9,396 paragraphs, 10 were estimated too low, by at
    most 7%. The estimate for English prose is 10% to 30% too high; `docs/conversation.md` has the
    errors of each kind. The estimate for a few words may be off by more.
    """
    return _short(text) if len(text) <= _SHORT else _estimate(text)


def _estimate(text: str) -> int:
    return math.ceil(weigh(text))


def weigh(text: str, *, foreign: bool = False) -> float:
    """Return the estimate of `estimate_tokens` before it is rounded up.

    The weights of pieces that were cut at spaces add up to nearly the weight of the whole.

    Args:
        text: The text.
        foreign: Whether the text around a piece is of another language than English; the letters of
            the piece itself may not show it.
    """
    words = _foreign_words(text) if foreign else _words(text)
    return words + _marks(text) + _others(text)


def expected_tokens(text: str) -> int:
    """Return about as many tokens as o200k_base has for a text, without a tokenizer.

    It is for a budget that is to be used, where `estimate_tokens` is for a limit that must hold:
    of English lines, the sum is within a tenth, and of Chinese ones within a quarter.
    """
    return _short_expected(text) if len(text) <= _SHORT else _expect(text)


def _expect(text: str) -> int:
    share = _FOREIGN_SHARE if is_accented(text) else _ENGLISH_SHARE
    return math.ceil(share * (_words(text) + _marks(text)) + _SCRIPT_SHARE * _others(text))


def is_accented(text: str) -> bool:
    """Return whether its accented letters show that a text is of another language than English."""
    return not text.isascii() and len(_ACCENTED.findall(text)) * _ACCENTED_SHARE > len(text)


# A line of memory, a prompt or a tool is counted again and again.
_short: Final = lru_cache(maxsize=8192)(_estimate)
_short_expected: Final = lru_cache(maxsize=8192)(_expect)


def _words(text: str) -> float:
    """Count words; those of other languages than English are split into shorter pieces.

    A line in another language is recognised by its accented letters, or by those of the whole
    text.
    """
    if text.isascii() or not _ACCENTED.search(text):
        return _english_words(text)
    if is_accented(text):
        return _foreign_words(text)
    return sum(
        (_foreign_words if _ACCENTED.search(line) else _english_words)(line)
        for line in text.splitlines()
    )


def _others(text: str) -> float:
    """Count the characters of other scripts."""
    return 0 if text.isascii() else sum(map(_rate, "".join(_NOT_ASCII.findall(text))))


def _english_words(text: str) -> float:
    lengths = _word_lengths(text)
    return 1.08 * len(lengths) + 0.45 * _beyond(lengths, 6) + 0.9 * _beyond(lengths, 12)


def _foreign_words(text: str) -> float:
    lengths = _word_lengths(text)
    return 1.08 * len(lengths) + 0.62 * _beyond(lengths, 4)


def _word_lengths(text: str) -> list[int]:
    """Return the lengths of runs of lowercase letters, each with a capital before it."""
    cases = _as_bytes(text).translate(_CASES)
    return _runs(cases.replace(b"Aa", b" aa").replace(b"Ae", b" ae"), _LOWER)


def _marks(text: str) -> float:
    """Count capitals, digits, punctuation, control characters and whitespace."""
    data = _as_bytes(text)
    # Without those that begin a word.
    capitals = _runs(data.translate(_CASES).replace(b"Aa", b" a"), _UPPER)
    marks = _runs(data, _MARKS)
    return (
        2.05 * len(capitals)
        + 0.15 * sum(capitals)
        + 1.13 * sum([-(-length // 3) for length in _runs(data, _DIGITS)])
        + data.translate(_SPACED).count(b"_0")
        + _gaps(_indents(data))
        + _gaps(_runs(data, _NEWLINES))
        + 0.68 * len(marks)
        + 0.16 * sum(marks)
        + 0.54 * _beyond(marks, 4)
    )


def _indents(data: bytes) -> list[int]:
    """Return the lengths of runs of spaces and tabs, without single spaces."""
    if b"  " not in data and b"\t" not in data:
        return []
    return [len(run) for run in data.translate(_INDENTS).split() if run != b"_"]


def _as_bytes(text: str) -> bytes:
    """Return a text with a byte for each ASCII character and for each accented letter.

    Each run of other characters becomes one byte. `bytes.translate` and `split` find runs in a
    fraction of the time of regular expressions.
    """
    if text.isascii():
        return text.encode()
    return _OTHERS.sub("\x80", _ACCENTED.sub("\xe0", text)).encode("latin-1")


def _runs(data: bytes, classes: bytes) -> list[int]:
    """Return the lengths of the runs of characters that have a class."""
    return list(map(len, data.translate(classes).split()))


def _gaps(lengths: list[int]) -> float:
    return 1.15 * len(lengths) + 0.06 * sum(lengths)


def _beyond(lengths: list[int], limit: int) -> int:
    return sum([length - limit for length in lengths if length > limit])


def as_token_counter(counter: object | None) -> TokenCounter:
    """Return a token counter.

    Args:
        counter: `None` for `estimate_tokens`; a function from a text to a number; or a
            tokenizer with `encode(text)`, such as tiktoken's `Encoding` or the `Tokenizer` of
            the `tokenizers` package. Text that looks like a special token is counted as text if
            the tokenizer has an option for it.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if counter is None:
        return estimate_tokens
    encode = getattr(counter, "encode", None)
    # A string has an `encode` too, but here it can only be a name.
    if callable(encode) and not isinstance(counter, str):
        return _encoding_counter(encode)
    if callable(counter):
        return cast("TokenCounter", counter)
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
    """Return the number of tokens of messages, each with its overhead.

    Args:
        messages: Messages of any class with the attributes of `locus_memory.Message`.
        counter: See `as_token_counter`.
    """
    count = as_token_counter(counter)
    return sum(message_tokens(message, count) for message in messages)


def message_tokens(message: Any, counter: TokenCounter) -> int:
    """Return the number of tokens of a message: content, name, tool calls as JSON, and overhead.

    The overhead is 3 tokens per message and 1 for a name, from "Counting tokens for chat
    completions API calls":
    https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken
    """
    total = _TOKENS_PER_MESSAGE
    if content := getattr(message, "content", None):
        total += counter(content if isinstance(content, str) else _as_json(content))
    if name := getattr(message, "name", None):
        total += _TOKENS_PER_NAME + counter(name)
    if calls := getattr(message, "tool_calls", None):
        told = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls]
        total += counter(_as_json(told))
    if call_id := getattr(message, "tool_call_id", None):
        total += counter(call_id)
    return total


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError):
        return str(value)
