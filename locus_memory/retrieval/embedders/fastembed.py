"""The models of `fastembed`, downloaded once over the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

from locus_memory._internal.offload import in_thread
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, ModelUnavailableError

__all__ = ["FastEmbedEmbedder", "open_multilingual"]

_DEFAULT: Final = "BAAI/bge-small-en-v1.5"
_MULTILINGUAL: Final = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
_PREFIXES: Final = {"bge": "Represent this sentence for searching relevant passages: "}


def open_multilingual(model: str = _MULTILINGUAL, **options: Any) -> FastEmbedEmbedder:
    """Return an embedder with a model of about 50 languages, one vector space for all of them.

    Args:
        model: Its name in fastembed; by default the small one of sentence-transformers, of 384
            dimensions, under the licence Apache-2.0.
        **options: As for `FastEmbedEmbedder`.

    Raises:
        ConfigurationError: fastembed does not know the model.
        MissingDriverError: fastembed is not installed.
    """
    return FastEmbedEmbedder(model, **options)


class FastEmbedEmbedder:
    """An embedder with a model of fastembed, which runs in a worker thread.

    The model is loaded on first use: from fastembed's cache, or else downloaded. Without a network,
    the download fails after fastembed has tried for about 40 seconds.

    Args:
        model: Its name in fastembed, such as `BAAI/bge-small-en-v1.5`.
        name: The name of the model in the marks of its vectors; by default `model` without the
            owner.
        query_prefix: The prefix of queries. `None`: that of fastembed or, for the English bge
            models, for which fastembed has none, that of their authors.
        folder: The folder of the model's files, so that nothing is downloaded.
        cache_dir: The folder of downloaded models; by default fastembed's own.
        threads: How many cores it uses; by default all.
        local_files_only: Never use the network: a missing file raises an error at once.

    Attributes:
        name: The name of the model.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: fastembed does not know the model.
        MissingDriverError: fastembed is not installed.
    """

    def __init__(
        self,
        model: str = _DEFAULT,
        *,
        name: str | None = None,
        query_prefix: str | None = None,
        folder: str | Path | None = None,
        cache_dir: str | Path | None = None,
        threads: int | None = None,
        local_files_only: bool = False,
    ) -> None:
        self._class: Any = require("fastembed", "fastembed").TextEmbedding
        known = {each["model"]: each["dim"] for each in self._class.list_supported_models()}
        if model not in known:
            raise ConfigurationError(
                f"fastembed: unknown model {quote(model)}. Known: {', '.join(sorted(known))}"
            )
        self.name = name or model.rpartition("/")[2]
        self.dimension = int(known[model])
        self._prefix = query_prefix
        if query_prefix is None and model.startswith("BAAI/bge-") and "-en" in model:
            self._prefix = _PREFIXES["bge"]
        self._model = model
        settings = {
            "specific_model_path": None if folder is None else str(folder),
            "cache_dir": None if cache_dir is None else str(cache_dir),
            "threads": threads,
            "local_files_only": local_files_only or None,
        }
        self._options = {key: value for key, value in settings.items() if value is not None}
        self._lock = Lock()
        self._loaded: Any = None

    def __repr__(self) -> str:
        return f"FastEmbedEmbedder({self._model!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order.

        Raises:
            ModelUnavailableError: The model cannot be loaded or fetched.
        """
        return await in_thread(self._embed, list(texts), kind)

    def _embed(self, texts: list[str], kind: str) -> list[list[float]]:
        model = self._load()
        if kind == "document":
            vectors = model.passage_embed(texts)
        elif self._prefix is None:
            vectors = model.query_embed(texts)
        else:
            vectors = model.embed([self._prefix + text for text in texts])
        return [vector.tolist() for vector in vectors]

    def _load(self) -> Any:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = self._class(self._model, **self._options)
                # Its hub, its runtime and its files raise errors of many classes.
                except Exception as error:
                    raise ModelUnavailableError(f"fastembed: {error}") from error
            return self._loaded
