"""JSON parsing that refuses a number which cannot be kept exactly."""

from __future__ import annotations

import re
from typing import Any

import orjson

__all__ = ["InexactNumberError", "parse_json"]

# Strings match first, so that the digits inside them are skipped.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<number>-?(?:0|[1-9][0-9]*))(?P<rest>\.[0-9]+|[eE][+-]?[0-9]+)*'
)
_LONG = re.compile("[0-9]{19}")
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_DIGITS = len(str(_HIGHEST))


class InexactNumberError(orjson.JSONDecodeError):
    """JSON with a number that no value can hold exactly."""


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        InexactNumberError: An integer has more than 64 bits, or the text is a single number
            larger than any float.
        orjson.JSONDecodeError: The text is not JSON.
    """
    text = content if isinstance(content, str) else content.decode()
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        token = _TOKEN.fullmatch(text.strip())
        if token and token["number"]:
            raise InexactNumberError("the number is larger than any float", text, 0) from None
        raise
    # orjson silently turns a larger integer into a float.
    if _LONG.search(text):
        _check_integers(text)
    return value


def _check_integers(text: str) -> None:
    for token in _TOKEN.finditer(text):
        digits = token["number"]
        if digits is None or token["rest"] is not None:
            continue
        if len(digits) > _DIGITS + 1 or not _LOWEST <= int(digits) <= _HIGHEST:
            shown = digits if len(digits) < 2 * _DIGITS else f"{digits[:_DIGITS]}..."
            raise InexactNumberError(f"{shown} has more than 64 bits", text, token.start())
