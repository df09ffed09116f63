"""The files of a model: in a folder, fetched, or in an installed package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.models.catalogue import CARRIED, models_folder

__all__ = ["ModelFiles", "files_of", "find_model", "model_files"]

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
    """The two files that a transformer needs.

    Attributes:
        folder: The folder of the files.
        model: The network, in ONNX form.
        tokenizer: The file that `tokenizers` reads.
    """

    folder: Path
    model: Path
    tokenizer: Path


def model_files(folder: str | Path) -> ModelFiles:
    """Return the files of the model in a folder.

    Raises:
        ConfigurationError: They do not exist.
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
    """Return the files of a known model; `None`: it is not on this machine.

    It may have been fetched, or an installed package may contain it. The package is found without
    an import: only its files are used.

    Raises:
        ConfigurationError: A part of it is missing.
    """
    fetched = models_folder() / name
    return model_files(fetched) if fetched.is_dir() else _in_package(name)


def _in_package(name: str) -> ModelFiles | None:
    model = CARRIED[name]
    spec = find_spec(model.package.name)
    for root in (spec and spec.submodule_search_locations) or ():
        folder = Path(root) / model.inside
        if folder.is_dir():
            return model_files(folder)
    return None


def files_of(name: str, folder: str | Path | None) -> ModelFiles:
    """Return the files of the model in a folder, or those of a known model.

    Args:
        name: The known model.
        folder: The folder of the files; `None`: the place of the known model.

    Raises:
        ConfigurationError: They are not on this machine, or a part of them is missing.
    """
    if folder is not None:
        return model_files(folder)
    files = find_model(name)
    if files is None:
        used_as = CARRIED[name].used_as
        raise ConfigurationError(
            f"{used_as}: {name} is not on this machine. To get it, run: "
            f"locus-memory models fetch {used_as}; or name a folder that holds it: "
            f"'{used_as}:/path/to/folder'"
        )
    return files
