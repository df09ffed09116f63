"""The static tables of `model2vec`, with any tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from locus_memory._internal.offload import in_thread
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Model2VecEmbedder"]


class Model2VecEmbedder:
    """An embedder with a `model2vec.StaticModel`, which runs in a worker thread.

    Args:
        model: A folder, or a name on the Hugging Face hub, such as
            `minishlab/potion-retrieval-32M`. It is read or downloaded immediately.
        name: The name of the model in the marks of its vectors; by default the last part of
            `model`.

    Attributes:
        name: The name of the model.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: There is no such model, or no network to download it.
        MissingDriverError: model2vec is not installed.
    """

    def __init__(self, model: str | Path, *, name: str | None = None) -> None:
        static_model: Any = require("model2vec", "model2vec").StaticModel
        try:
            # A model in the cache is not downloaded again.
            self._model: Any = static_model.from_pretrained(model, force_download=False)
        # Its hub and its files raise errors of many classes.
        except Exception as error:
            raise ConfigurationError(
                f"model2vec: cannot read {quote(str(model))}: {error}"
            ) from error
        self.name = name or Path(model).name
        self.dimension = int(self._model.dim)

    def __repr__(self) -> str:
        return f"Model2VecEmbedder({self.name!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of shape `(dimension,)` for each text; zeros for one without tokens."""
        del kind
        vectors = await in_thread(self._model.encode, list(texts), use_multiprocessing=False)
        return [vector.tolist() for vector in vectors]
