"""Numbers that are secrets: cards, bank accounts and United States social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, takewhile
from typing import Final

from locus_memory._internal.lazy import compiled_later

__all__ = ["find_number", "passes_luhn"]

_CARD_DIGITS = range(13, 20)
# The first digit names the issuer of a card (ISO/IEC 7812): 3 to 6 are banks and travel, 2 is new.
_CARD_STARTS = "23456"
# Printed in groups of 4, or of 4, 6 and 5: a card begins with 4, and none of its groups is short.
_FIRST_GROUP, _SHORTEST_GROUP = 4, 3
_MOST_GROUPS = 6
_DATE: Final = compiled_later(
    re.compile, r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"
)
_UUID: Final = compiled_later(re.compile, r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# MD5, SHA-1 and SHA-256; no account number has so many characters, all of them hexadecimal.
_DIGEST: Final = compiled_later(
    re.compile, r"(?i)(?<![a-z0-9])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})(?![a-z0-9])"
)
_DIGITS: Final = compiled_later(
    re.compile, r"(?<![\w+.])\d+(?:[ ._/\u2010-\u2015-]{1,3}\d+)*(?!\w)"
)
_GROUP: Final = compiled_later(re.compile, r"\d+")

_SSN: Final = compiled_later(
    re.compile, r"(?<![\w+-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d\d\1(?!0000)\d{4}(?![\w-])"
)

_IBAN: Final = compiled_later(re.compile, r"(?i)(?<![a-z0-9])[a-z]{2}\d\d(?:[ -]?[a-z0-9]){11,60}")
# The length of an IBAN per country: SWIFT's IBAN registry, ISO 13616.
_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}
_IBAN_MODULUS = 97


def find_number(text: str) -> str | None:
    """Return the kind of secret number that a folded text holds, or `None`."""
    if _SSN.search(text):
        return "social security number"
    named = _DIGEST.sub(" ", _UUID.sub(" ", text))
    if any(map(_is_card, _card_candidates(_DATE.sub(" ", named)))):
        return "card number"
    return "bank account" if any(map(_is_iban, _IBAN.findall(named))) else None


def passes_luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of Luhn's algorithm (ISO/IEC 7812-1)."""
    total = 0
    for place, character in enumerate(reversed(digits)):
        digit = int(character) * (1 + place % 2)
        total += digit - 9 if digit > 9 else digit  # noqa: PLR2004 - the sum of its digits
    return total % 10 == 0


def _is_card(digits: str) -> bool:
    return len(digits) in _CARD_DIGITS and digits[0] in _CARD_STARTS and passes_luhn(digits)


def _card_candidates(text: str) -> Iterator[str]:
    """Yield runs of digits: each whole row, and neighbouring groups in the form of cards."""
    for row in _DIGITS.findall(text):
        groups = _GROUP.findall(row)
        yield "".join(groups)
        yield from groups
        for start, group in enumerate(groups):
            if len(group) == _FIRST_GROUP:
                near = groups[start : start + _MOST_GROUPS]
                yield from accumulate(takewhile(lambda each: len(each) >= _SHORTEST_GROUP, near))


def _is_iban(candidate: str) -> bool:
    letters = re.sub("[ -]", "", candidate).upper()
    # A candidate may include the next words; the length for its country tells where it ends.
    number = letters[: _IBAN_LENGTHS.get(letters[:2], 0)]
    if len(number) != _IBAN_LENGTHS.get(letters[:2]):
        return False
    rearranged = number[4:] + number[:4]
    return int("".join(str(int(letter, 36)) for letter in rearranged)) % _IBAN_MODULUS == 1
