"""The names of the objects: injective, in the order of what they name, and short enough.

An object name has at most 1,024 bytes (https://docs.oracle.com/iaas/Content/Object/Tasks/
managingobjects.htm#namerequirements). Lists are in the order of the names. So a text is written
in letters, digits, `.` and `~`, which need no escape in a URL and have the same order in each
character set:

| byte of the text in UTF-8 | in the name |
|---|---|
| `0` to `9`, `a` to `z` | itself |
| below `0` | `.` and two hexadecimal digits |
| `A` to `Z`, and the others between `9` and `a` | `A` and one letter or digit |
| above `z` | `~` and two hexadecimal digits |

No code is the start of another, and codes have the order of their bytes, so names have the order of
the texts. A namespace is its labels, each with `-` at the end, and one more `-`; a name without an
end is never the start of another namespace.

A text whose code is longer than `MOST` is cut there, and `-` and the SHA-256 of the whole follow.
Such names have the order of their first `MOST` characters only. Those that begin alike are a
cluster, which a reader sorts by the true names; each object holds its own.

| object | name below the prefix |
|---|---|
| item | `items/<namespace>/<key>` |
| newest state of a thread | `threads/<thread>` |
| payloads, or heads, of older checkpoints | `packs/<thread>/<random>` |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from secrets import token_hex
from typing import Final

from locus_memory.store.item import Namespace

__all__ = [
    "FORMAT",
    "MOST",
    "Names",
    "NamesInOrder",
    "decode_labels",
    "decode_name",
    "encode_labels",
    "encode_name",
    "fit",
    "is_cut",
]

FORMAT: Final = 1
"""The format of the objects; a reader refuses newer ones."""

MOST: Final = 400
"""The longest code of a text that is in a name unchanged, in characters."""

_END: Final = "-"
_AFTER_END: Final = "."
_AFTER_SLASH: Final = "0"


def _code(byte: int) -> str:
    character = chr(byte)
    if character in "0123456789" or "a" <= character <= "z":
        return character
    if byte < ord("0"):
        return f".{byte:02x}"
    if byte > ord("z"):
        return f"~{byte:02x}"
    if character < "A":
        return f"A{byte - ord('9') - 1}"
    return f"A{character}" if character <= "Z" else f"A{chr(byte - ord('Z') - 1 + ord('a'))}"


_CODES: Final = [_code(byte) for byte in range(256)]
_BYTES: Final = {code: byte for byte, code in enumerate(_CODES)}
_EACH: Final = re.compile(r"[.~]..|A.|.", re.DOTALL)


@lru_cache(maxsize=4096)
def encode_name(text: str) -> str:
    """Return the code of a text."""
    return "".join(_CODES[byte] for byte in text.encode())


def decode_name(code: str) -> str | None:
    """Return the text of a code; `None`: it is no code."""
    try:
        return bytes(_BYTES[each] for each in _EACH.findall(code)).decode()
    except (KeyError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=1024)
def encode_labels(labels: Namespace) -> str:
    """Return the code that begins the codes of a namespace and of all its descendants."""
    return "".join(encode_name(label) + _END for label in labels)


@lru_cache(maxsize=1024)
def decode_labels(segment: str) -> Namespace | None:
    """Return the namespace of its part of a name; `None`: it is cut, or no namespace."""
    if is_cut(segment) or not segment.endswith(_END * 2):
        return None
    labels = [decode_name(each) for each in segment[:-2].split(_END)]
    return tuple(each for each in labels if each) if all(labels) else None


def fit(code: str) -> str:
    """Return the part of a name for a code, cut if it is long."""
    if len(code) <= MOST:
        return code
    return f"{code[:MOST]}{_END}{sha256(code.encode()).hexdigest()}"


def is_cut(segment: str) -> bool:
    """Whether a part of a name does not hold the whole code."""
    return len(segment) > MOST


@dataclass(frozen=True, slots=True)
class NamesInOrder:
    """The names of a list, by the bounds that the service applies.

    Attributes:
        prefix: The start of all names.
        start: The first possible name, or `None`.
        stop: The first name behind the last possible one, or `None`.
    """

    prefix: str
    start: str | None = None
    stop: str | None = None

    @classmethod
    def of(
        cls, folder: str, prefix: str | None, after: str | None, *, descending: bool = False
    ) -> NamesInOrder:
        """Return the names of texts in a folder; cut names need a second look.

        Args:
            folder: The start of the names.
            prefix: The start of the texts.
            after: The cursor; only texts that follow it in the chosen order.
            descending: Whether that is the order from the last text to the first.
        """
        code = encode_name(prefix or "")
        whole = folder + (code if len(code) <= MOST else code[:MOST] + _END)
        if after is None:
            return cls(whole)
        last = encode_name(after)
        if len(last) > MOST:
            # All of its cluster, which has no other order.
            cluster = folder + last[:MOST] + _END
            bound = cluster[:-1] + _AFTER_END if descending else cluster
        else:
            # No name is between a name and the same name with the lowest character behind it.
            bound = folder + last + ("" if descending else "!")
        return cls(whole, None, bound) if descending else cls(whole, bound)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the objects below a prefix.

    Attributes:
        prefix: The prefix, with `/` at its end.
    """

    prefix: str

    @property
    def items(self) -> str:
        """The folder of all items."""
        return f"{self.prefix}items/"

    @property
    def threads(self) -> str:
        """The folder of all threads."""
        return f"{self.prefix}threads/"

    @property
    def packs(self) -> str:
        """The folder of all packs."""
        return f"{self.prefix}packs/"

    def space(self, namespace: Namespace) -> str:
        """Return the folder of the items of a namespace."""
        return f"{self.items}{fit(encode_labels(namespace) + _END)}/"

    def item(self, namespace: Namespace, key: str) -> str:
        """Return the name of an item."""
        return self.space(namespace) + fit(encode_name(key))

    def below(self, labels: Namespace) -> str:
        """Return the start of the names of a namespace and of all its descendants.

        If the code is cut, other namespaces begin so as well.
        """
        return self.items + encode_labels(labels)[:MOST]

    def beyond(self, labels: Namespace) -> str | None:
        """Return the first name behind a namespace and all its descendants; `None`: unknown."""
        code = encode_labels(labels)
        return self.items + code[:-1] + _AFTER_END if 0 < len(code) <= MOST else None

    def beyond_space(self, segment: str) -> str:
        """Return the first name behind one namespace, by its part of the name."""
        return f"{self.items}{segment}{_AFTER_SLASH}"

    def parts(self, name: str) -> tuple[str, str] | None:
        """Return the parts of an item's name for namespace and key; `None`: it is no item's."""
        segment, _, key = name[len(self.items) :].partition("/")
        is_ours = is_cut(segment) or segment.endswith(_END * 2)
        return (segment, key) if is_ours and key and "/" not in key else None

    def thread(self, thread_id: str) -> str:
        """Return the name of the newest state of a thread."""
        return self.threads + fit(encode_name(thread_id))

    def pack(self, thread_id: str) -> str:
        """Return a new name of a pack, which no other pack ever has."""
        return f"{self.packs}{fit(encode_name(thread_id))}/{token_hex(16)}"

    def thread_of_pack(self, name: str) -> str:
        """Return the name of the newest state of the thread of a pack."""
        return self.threads + name[len(self.packs) :].partition("/")[0]
