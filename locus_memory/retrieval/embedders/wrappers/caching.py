"""A wrapper that embeds each text once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Literal

from typing_extensions import override

from locus_memory._internal.recent import RecentlyUsed
from locus_memory._internal.running.cache_counts import counts_of
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.wrappers.base import EmbedderWrapper

__all__ = ["CachingEmbedder"]

_DIGEST = 16

_COUNTS: Final = counts_of("embedder")


class CachingEmbedder(EmbedderWrapper):
    """A wrapper that caches the vectors of the last texts, by a hash of their content.

    The vectors are kept and returned in float32, the precision of stores. A text that occurs
    several times in one call is embedded once.

    Args:
        embedder: The inner embedder.
        max_size: How many vectors are cached; 10,000 of 384 dimensions take 16 MB.

    Raises:
        InvalidArgumentError: A size below 1.
    """

    def __init__(self, embedder: Embedder, *, max_size: int = 10_000) -> None:
        super().__init__(embedder)
        if max_size < 1:
            raise InvalidArgumentError(f"max_size is at least 1, not {max_size}")
        self._vectors = RecentlyUsed[Any](max_size)

    @override
    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        keys = [_key(text, kind) for text in texts]
        found = {key: last for key in keys if (last := self._vectors.get(key)) is not None}
        for key in found:
            self._vectors.touch(key)
        _COUNTS.hits += len(found)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        _COUNTS.misses += len(missing)
        if missing:
            vectors = await self.inner.embed(list(missing.values()), kind=kind)
            made = [np.asarray(vector, dtype=np.float32) for vector in vectors]
            found.update(zip(missing, made, strict=True))
            for key in missing:
                self._vectors.put(key, found[key])
        return [found[key].tolist() for key in keys]


def _key(text: str, kind: str) -> bytes:
    content = f"{kind}\n{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
