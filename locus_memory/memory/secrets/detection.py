"""Detection of secrets in texts that may be remembered.

The rules cover what people paste and say: keys of known shapes, numbers with a check digit, long
random tokens, and passwords stated in prose in about twenty languages. In doubt, a sentence counts
as secret: leaving it out costs little. The rules are not a scanner: they do not find a password
that looks like an ordinary word, in a sentence that does not name it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from locus_memory._internal.lazy import compiled_later
from locus_memory._internal.neutral import neutralise
from locus_memory._internal.offload import aside
from locus_memory.memory.secrets.numbers import find_number
from locus_memory.memory.secrets.prose import find_stated, hints_at_secret, requests_secret
from locus_memory.store.words.normal_forms import normalized

__all__ = [
    "WITHHELD",
    "answers_in",
    "asks_at_end",
    "asks_for_secret",
    "find_secret",
    "mentions_secret",
    "secrets_in",
]

# Secrets of known shapes, each with its kind. Case counts.
_SHAPES: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("private key", r"-{3} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY"),
        ("private key", r"AGE-SECRET-KEY-1[A-Z0-9]{20}"),
        ("api key", r"(?<![A-Za-z0-9])(?:sk|rk)[-_][A-Za-z0-9_-]{16}"),
        ("api key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AIDA)[A-Z0-9]{16}"),
        ("api key", r"(?<![A-Za-z0-9])AIza[\w-]{30}"),
        ("api key", r"(?<![A-Za-z0-9])SG\.[\w-]{16,40}\.[\w-]{16}"),
        ("api key", r"(?<![A-Za-z0-9])(?:gsk|whsec|tvly|pplx|re|key|nvapi)[-_][A-Za-z0-9]{24}"),
        ("token", r"(?<![A-Za-z0-9])gh[opusr]_[A-Za-z0-9]{20}"),
        ("token", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20}"),
        ("token", r"(?<![A-Za-z0-9])gl[a-z]{2,6}-[\w-]{16}"),
        ("token", r"(?<![A-Za-z0-9])(?:xox[a-z]|xapp)-[\w-]{10}"),
        ("token", r"(?<![A-Za-z0-9])(?:hf|npm|shp[a-z]{2}|dop_v1|dckr_pat)_[A-Za-z0-9_-]{20}"),
        ("token", r"(?<![A-Za-z0-9])pypi-[\w-]{20}"),
        ("token", r"(?<![A-Za-z0-9])ya29\.[\w-]{20}"),
        ("token", r"(?<![\w-])(?=[\w-]*+\.[\w-]{8,}+\.)[\w-]*(?<![A-Za-z0-9])eyJ[\w-]{8}"),
        ("token", r"(?<!\d)\d{8,10}:[\w-]{35}(?![\w-])"),
        ("token", r"(?i:\bbearer\s+[\w.~+/=-]{16})"),
        ("password", r"(?i:\bbasic\s+[A-Za-z0-9+/]{8,}={1,2})"),
        ("token", r"(?i:hooks\.slack\.com/services/\w+/\w+/\w)"),
        ("token", r"(?i:discord(?:app)?\.com/api/webhooks/\d+/\w)"),
        ("password", r"(?i:[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:[^\s/@]{1,200}@)"),
        ("token", r"(?i:[?&#][a-z_-]{0,20}(?:token|key|secret|passwd|password)=[^\s&#]{6})"),
        ("token", r"(?i:[?&#](?:pwd|sig|signature)=[^\s&#]{6})"),
    )
)

# The verb "is" of Italian and Portuguese, which means "and" without its accent.
_ACCENTED_VERB: Final = compiled_later(re.compile, "(?<!\\w)[eE][\u0300\u0301](?!\\w)")
_APOSTROPHE: Final = str.maketrans("\u2018\u2019\u02bc", "'''")
_ACCENTS: Final = compiled_later(re.compile, "[\u0300-\u036f]+")
_DIGIT: Final = compiled_later(re.compile, r"[^\D0-9]")
# Greek and Cyrillic letters that look like Latin ones, in a word that looks Latin.
_LOOK_ALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u0501\u051d\u03bf\u03b1\u03c1\u03bd"
    "\u0410\u0415\u041e\u0420\u0421\u0425\u0406\u0408\u0405\u041a\u041c\u0422\u0412\u041d\u0391\u0395",
    "aeopcxyijsdwoapvAEOPCXIJSKMTBHAE",
)

_URL: Final = compiled_later(re.compile, r"(?i)\b[a-z][a-z0-9+.-]{1,20}://\S+|\bwww\.\S+")
_UUID: Final = compiled_later(
    re.compile, r"(?i)(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"
)
_TOKEN: Final = compiled_later(re.compile, r"[A-Za-z0-9+/_=~-]{20,}")
_RUN: Final = compiled_later(re.compile, r"\d+|[A-Z]+|[a-z]+")
_HEX: Final = compiled_later(re.compile, r"(?i:[0-9a-f]+)")
# Sizes of a UUID without dashes or MD5, of SHA-1 and git, and of SHA-256: names, not secrets.
_DIGESTS: Final = frozenset({32, 40, 64})
_LONGEST_END = 10_000
_LONGEST_REQUEST = 500
_MIN_DIGITS = 2
# The share of steps from one character to the next that change between lower case, upper case and
# digit: about two thirds in a random token, under a quarter in CamelCase2026 names.
_MIN_CHANGES = 0.33


def find_secret(text: str) -> str | None:
    """Return the kind of secret that a text holds, or `None`.

    The kinds: `"password"`, `"pin"`, `"code"`, `"api key"`, `"token"`, `"private key"`,
    `"card number"`, `"bank account"`, `"social security number"`.

    Letters are compared by their looks: full width, styled, accented or interrupted by
    invisible characters or line breaks, they are the same. UUIDs, dates, digests such as git's,
    telephone numbers and links are not secrets.

    The time grows with the length: at most a few microseconds per character. Of a text of
    more than 20,000 characters, only the first and the last 10,000 are read.
    """
    if len(text) > 2 * _LONGEST_END:
        text = f"{text[:_LONGEST_END]}\n\n{text[-_LONGEST_END:]}"
    return _kind_in(text)


# A run asks twice: for the transcript, and for the record of what it saw.
@lru_cache(maxsize=64)
def _kind_in(text: str) -> str | None:
    for view in _views(text):
        kind = _find(view)
        if kind is not None:
            return kind
    return None


def asks_for_secret(text: str) -> bool:
    """Return whether the end of a text asks for a secret, so that the answer may be one.

    A question names a password, a PIN, a code, a key or a card, or is one that banks ask for
    security ("What is your mother's maiden name?"); or the last sentence orders to give it. Of a
    text of more than 500 characters, only the last 500 are read.
    """
    return _asks(text[-_LONGEST_REQUEST:])


@lru_cache(maxsize=64)
def _asks(end: str) -> bool:
    return any(map(requests_secret, _views(end)))


def mentions_secret(text: str) -> bool:
    """Return whether a text has a word for a secret or for logging in, with a secret or without.

    Besides the words for passwords, PINs and codes that `find_secret` knows, these are the
    English ones for credentials, tokens, keys to an API, wireless networks and logging in.
    """
    return any(map(hints_at_secret, _views(text)))


def _find(view: str) -> str | None:
    for kind, shape in _SHAPES:
        if shape.search(view):
            return kind
    return find_number(view) or find_stated(view.casefold()) or _random_token(view)


def _views(text: str) -> Iterator[str]:
    """Yield the readings of a text: as it looks, without line breaks, without look-alikes."""
    looks = _fold(text)
    yield looks
    joined = "".join(map(str.strip, text.splitlines()))
    if len(joined) != len(text):
        yield _fold(joined)
    latin = looks.translate(_LOOK_ALIKES)
    if latin != looks:
        yield latin


def _fold(text: str) -> str:
    line = neutralise(text)
    if line.isascii():
        return line
    spread = normalized("NFKD", line.translate(_APOSTROPHE))
    bare = _ACCENTS.sub("", _ACCENTED_VERB.sub("est", spread))
    # Again, because the folded characters may be spaces and joined letters.
    folded = normalized("NFKC", bare)
    return _DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), folded)


def _random_token(view: str) -> str | None:
    rest = _UUID.sub(" ", _URL.sub(" ", view))
    return "token" if any(map(_is_random, _TOKEN.findall(rest))) else None


def _is_random(token: str) -> bool:
    characters = [character for character in token if character.isalnum()]
    if _HEX.fullmatch(token) and len(token) in _DIGESTS:
        return False
    if sum(map(str.isdigit, characters)) < _MIN_DIGITS:
        return False
    changes = len(_RUN.findall("".join(characters))) - 1
    return changes >= _MIN_CHANGES * len(characters)


WITHHELD: Final = "[an answer that is not shown]"
"""What an extractor is shown in place of such an answer."""

_TELLING: Final = 4
"""The characters from which a word with a digit gives an answer away."""

_Said = tuple[str, str]
"""The role and the text of a message."""


def answers_in(said: Iterable[_Said], *, asked: bool = False) -> list[bool]:
    """Return for each message whether it answers a request for a secret, or repeats an answer.

    The answers are the messages of the user after a request of the assistant, up to the
    assistant's next message.

    Args:
        said: The messages, oldest first.
        asked: Whether the assistant's last message before them is such a request.
    """
    found: list[bool] = []
    answers: set[str] = set()
    for role, text in said:
        folded = text.casefold().strip()
        if role == "user" and asked and folded:
            answers.add(folded)
            answers.update(
                each
                for each in folded.split()
                if len(each) >= _TELLING and any(map(str.isdigit, each))
            )
        found.append(any(each in folded for each in answers))
        if role == "assistant" and folded:
            asked = asks_for_secret(text)
    return found


def asks_at_end(said: Iterable[_Said], *, asked: bool = False) -> bool:
    """Return whether the assistant's last message requests a secret; without one, `asked`."""
    texts = [text for role, text in said if role == "assistant" and text.strip()]
    return asks_for_secret(texts[-1]) if texts else asked


async def secrets_in(said: Sequence[_Said], *, asked: bool = False) -> list[str | None]:
    """Return the kind of secret that each message may hold, see `find_secret`, or `"answer"`.

    Args:
        said: As for `answers_in`.
        asked: Likewise.
    """

    def search() -> list[str | None]:
        told = zip(said, answers_in(said, asked=asked), strict=True)
        return [find_secret(text) or ("answer" if hides else None) for (_, text), hides in told]

    return await aside(sum(len(text) for _, text in said), search)
