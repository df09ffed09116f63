"""The static files, with addresses that change with their content: style, scripts and icon."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from typing_extensions import override

from locus_memory.web.front import STATIC

__all__ = ["ROUTES", "address_of"]

_SERVED: Final = ("pages.css", "pages.js", "theme.js", "vendor/htmx.min.js", "icon.svg")
"""The files that are served; no other path leads to a file."""


def address_of(name: str) -> str:
    """Return the path of a file, which changes with its content."""
    return f"{STATIC}{_digest(name)}/{name}"


@cache
def _digest(name: str) -> str:
    content = files("locus_memory.web").joinpath("static", name).read_bytes()
    return sha256(content).hexdigest()[:16]


class _Files(StaticFiles):
    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in _SERVED:
            raise HTTPException(404)
        answer = await super().get_response(path, scope)
        is_same = scope["path_params"]["digest"] == _digest(path)
        # The address of a file that has changed since is another one.
        caching = "public, max-age=31536000, immutable" if is_same else "no-cache"
        answer.headers["Cache-Control"] = caching
        return answer


_FILES: Final = _Files(packages=[("locus_memory.web", "static")])
ROUTES: Final[tuple[BaseRoute, ...]] = (Mount(STATIC + "{digest}", _FILES),)
