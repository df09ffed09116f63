"""The name of a project: its repository, wherever in it a session runs."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final

__all__ = ["project_of", "root_of"]

_LARGEST: Final = 2**20


def root_of(folder: Path) -> Path:
    """Return the root of the working tree that a folder is in, or else the folder."""
    place = Path(os.path.realpath(folder))
    return next((each for each in (place, *place.parents) if os.path.lexists(each / ".git")), place)


def project_of(folder: Path, *, by_remote: bool = False) -> str:
    """Return the name of the project of a folder, as a user of the store.

    Args:
        folder: A folder; its project is the working tree that it is in, or else the folder.
        by_remote: Whether worktrees, and clones of the same remote `origin`, are one project.
    """
    root = root_of(folder)
    identity, name = str(root), root.name
    if by_remote and os.path.lexists(root / ".git"):
        common = _common_folder(root / ".git")
        identity = _remote_of(common) or str(common)
        name = re.split(r"[/:]", identity.removesuffix("/.git"))[-1]
    mark = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    # The bytes of a name need not be UTF-8, and a user is text.
    whole = name.encode("utf-8", "replace").decode()
    return f"project:{whole[:40]}-{mark}"


def _common_folder(place: Path) -> Path:
    """Return the folder of a repository that all its worktrees share.

    Of a worktree, `.git` is a file that names its folder, and `commondir` in that one the shared
    one: https://git-scm.com/docs/gitrepository-layout
    """
    if place.is_dir():
        return place
    try:
        own = place.parent / _text_of(place).removeprefix("gitdir:").strip()
        return Path(os.path.realpath(own / _text_of(own / "commondir").strip()))
    except (OSError, ValueError):
        return place


def _remote_of(common: Path) -> str:
    """Return host and path of the remote `origin`, however its URL is written; else nothing."""
    from configparser import ConfigParser, Error  # noqa: PLC0415 - a hook must be quick

    config = ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string(_text_of(common / "config"))
    except (OSError, ValueError, Error):
        return ""
    url = config.get('remote "origin"', "url", fallback="").strip()
    host, slash, path = re.sub(r"\A[a-z+]{2,10}://", "", url).partition("/")
    # A password may have an `@` in it.
    bare = f"{host.rpartition('@')[2]}{slash}{path}".removesuffix("/").removesuffix(".git")
    return re.sub(r"\A([^/:]{1,255}):(?:\d{1,5}/)?", r"\1/", bare).lower()


def _text_of(path: Path) -> str:
    """Return the text of a file of a repository, which anybody may have written.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not UTF-8, or no path.
    """
    if not path.is_file():
        # A pipe would be waited for, and a device may have no end.
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(_LARGEST).decode()
