"""The names of words in RediSearch: ASCII letters and digits only.

So its own rules for words, case, numbers and operators do not apply, and no text is ever
parsed as the syntax of a query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Namespace
from locus_memory.store.text import tokens

__all__ = ["label", "labels", "name_of", "names_in"]

_LONGEST: Final = 64
_DIGEST: Final = 16
_LABEL: Final = 8
"""Bytes of a label; hits are checked by their keys, so two equal labels do no harm."""


def name_of(stem: str) -> str:
    """Return the name of a stem, which no other stem has."""
    name = "x" + stem if stem.isascii() and stem.isalnum() else "u" + stem.encode().hex()
    if len(name) <= _LONGEST:
        return name
    return "d" + hashlib.blake2b(stem.encode(), digest_size=_DIGEST).hexdigest()


def names_in(text: str) -> bytes:
    """Return the names of the stems of a text, with repeats; empty: no words."""
    return " ".join(map(name_of, tokens(text))).encode()


@lru_cache(maxsize=4096)
def label(namespace: Namespace, *, recursive: bool) -> str:
    """Return the label of a namespace's items, or of those and its descendants' items."""
    digest = hashlib.blake2b(encode_namespace(namespace).encode(), digest_size=_LABEL)
    return ("r" if recursive else "x") + digest.hexdigest()


@lru_cache(maxsize=1024)
def labels(namespace: Namespace) -> str:
    """Return the labels of an item: those of its namespace alone, and of it and each ancestor."""
    above: Iterable[Namespace] = (namespace[:end] for end in range(1, len(namespace) + 1))
    return ",".join([label(namespace, recursive=False), *(label(n, recursive=True) for n in above)])
