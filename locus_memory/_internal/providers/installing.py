"""The command that installs an extra of this package."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

__all__ = ["install_command"]

_DISTRIBUTION: Final = "locus-memory"


def install_command(extra: str) -> str:
    """Return the command that installs an extra from the source of this package.

    The source is the clone, the file or the repository that pip recorded, else a package index.

    Source: the record `direct_url.json`, which holds no password,
    https://packaging.python.org/specifications/direct-url/.
    """
    try:
        record = distribution(_DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    origin: dict[str, Any] = json.loads(record or "{}")
    option = "--editable " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {option}{shlex.quote(_requirement(origin, extra))}"


def _requirement(origin: dict[str, Any], extra: str) -> str:
    """Return pip's requirement for an extra from a source; the name if the source is gone."""
    named = f"{_DISTRIBUTION}[{extra}]"
    url = urlsplit(origin.get("url", ""))
    if url.scheme == "file":
        path = Path(url2pathname(url.path))
        return f"{path}[{extra}]" if path.exists() else named
    if "vcs_info" in origin:
        source = origin["vcs_info"]
        revision = source.get("requested_revision") or source["commit_id"]
        return f"{named} @ {source['vcs']}+{url.geturl()}@{revision}"
    return f"{named} @ {url.geturl()}" if url.scheme else named
