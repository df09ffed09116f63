"""The static files, read once and served with tags: the style, the scripts and the icon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from locus_memory.web.errors import RefusalError
from locus_memory.web.front import STATIC

__all__ = ["ROUTES", "address_of"]

_TYPES: Final = {
    "pages.css": "text/css; charset=utf-8",
    "pages.js": "text/javascript; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "vendor/htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that are served, with their types; no other path leads to a file."""


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    digest: str


def address_of(name: str) -> str:
    """Return the path of a file, which changes with its content.

    Raises:
        KeyError: There is no such file.
    """
    return f"{STATIC}{_file(name).digest}/{name}"


@cache
def _file(name: str) -> _File:
    if name not in _TYPES:
        raise KeyError(name)
    content = files("locus_memory.web").joinpath("static", name).read_bytes()
    return _File(content, sha256(content).hexdigest()[:16])


async def _serve(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _TYPES:
        raise RefusalError(404, "there is no such file")
    found = _file(name)
    tag = f'"{found.digest}"'
    is_same = request.path_params["digest"] == found.digest
    # The address of a file that has changed since is another one.
    caching = "public, max-age=31536000, immutable" if is_same else "no-cache"
    headers = {"ETag": tag, "Cache-Control": caching}
    if tag in map(str.strip, request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=_TYPES[name])


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(STATIC + "{digest}/{name:path}", _serve),)
