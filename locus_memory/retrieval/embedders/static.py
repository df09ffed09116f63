"""An embedder that looks up its vectors in a table of tokens, with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from locus_memory._internal.offload import in_thread
from locus_memory._internal.providers.drivers import require
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.models.transformer import EXTRA, read_tokenizer

__all__ = ["StaticEmbedder"]

_TABLE: Final = "model.safetensors"
_TOKENIZER: Final = "tokenizer.json"
_NAMES: Final = ("embeddings", "embedding.weight")
_TYPES: Final = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I8": "i1",
    "I32": "<i4",
    "I64": "<i8",
}
_HEADER: Final = 8
_MAX_TOKENS: Final = 512


class StaticEmbedder:
    """An embedder that returns the mean of a text's token vectors: thousands of texts per second.

    The folder has the layout of Model2Vec (https://github.com/MinishLab/model2vec): the table in
    `model.safetensors`, beside `tokenizer.json`. A text without a known token gets a vector without
    meaning.

    Args:
        path: The folder.
        name: The name of the table in the marks of its vectors; by default the folder's name.

    Attributes:
        name: The name of the table.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: There is no such table, or no tokenizer beside it.
        MissingDriverError: tokenizers is not installed.
    """

    def __init__(self, path: str | Path, *, name: str | None = None) -> None:
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        folder = Path(path).expanduser()
        tensors = _read_tensors(folder / _TABLE)
        table: Any = next((tensors[each] for each in _NAMES if each in tensors), None)
        if table is None or table.ndim != 2:  # noqa: PLR2004 - tokens by dimensions
            raise ConfigurationError(f"{folder / _TABLE} holds no table of embeddings")
        self._table: Any = table
        self._rows: Any = tensors.get("mapping", np.arange(len(table)))
        self._weights: Any = tensors.get("weights", np.ones(len(self._rows), np.float32))
        require("tokenizers", EXTRA, needed_by="StaticEmbedder")
        try:
            self._tokenizer = read_tokenizer(folder / _TOKENIZER, _MAX_TOKENS)
        # tokenizers has no error class of its own.
        except Exception as error:
            raise ConfigurationError(f"static: no tokenizer in {folder}: {error}") from error
        self._unknown: object = getattr(self._tokenizer.model, "unk_token", None)
        self.name = name or folder.resolve().name
        self.dimension = int(table.shape[1])

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.name!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of unit length, shape `(dimension,)`, for each text."""
        del kind
        return await in_thread(lambda: [self._vector(text) for text in texts])

    def _vector(self, text: str) -> list[float]:
        import numpy as np  # noqa: PLC0415 - as above

        whole = text.encode(errors="ignore").decode()
        found = self._tokenizer.encode(whole, add_special_tokens=False)
        told = zip(found.ids, found.tokens, strict=True)
        ids = np.asarray([n for n, token in told if token != self._unknown], dtype=np.intp)
        vector = self._weights[ids] @ self._table[self._rows[ids]].astype(np.float32)
        length = float(np.linalg.norm(vector))
        if not length:
            return [self.dimension**-0.5] * self.dimension
        unit: list[float] = (vector / length).tolist()
        return unit


def _read_tensors(path: Path) -> dict[str, Any]:
    """Return the arrays of a safetensors file, by name.

    Source: https://github.com/huggingface/safetensors, "Format": the length of a JSON header
    in 8 bytes, the header with type, shape and place of each tensor, and the tensors.
    """
    import numpy as np  # noqa: PLC0415 - as above

    try:
        content = path.read_bytes()
        start = _HEADER + int.from_bytes(content[:_HEADER], "little")
        header = orjson.loads(content[_HEADER:start])
        header.pop("__metadata__", None)
        return {
            name: np.frombuffer(
                content[start + each["data_offsets"][0] : start + each["data_offsets"][1]],
                dtype=_TYPES[each["dtype"]],
            ).reshape(each["shape"])
            for name, each in header.items()
        }
    except OSError as error:
        raise ConfigurationError(f"static: no table at {path}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"{path} is not a table that can be read") from error
