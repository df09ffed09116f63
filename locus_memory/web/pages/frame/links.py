"""Addresses of pages. Names may hold any character, so they are parameters."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

__all__ = ["is_own_path", "link_of"]


def link_of(request: Request, path: str, /, **parameters: Any) -> str:
    """Return the address of a page of this application.

    Args:
        request: The present request, which knows where the application is mounted.
        path: A path, such as `/threads`.
        parameters: The parameters. `None` and empty ones are left out; a list, such as a
            namespace, becomes a repeated parameter.
    """
    given = {
        name: "true" if value is True else value
        for name, value in parameters.items()
        if value not in (None, "", False, (), [])
    }
    root = str(request.scope.get("root_path", ""))
    query = urlencode(given, doseq=True)
    return f"{root}{path}?{query}" if query else root + path


def is_own_path(path: str) -> bool:
    """Return whether a path stays on this server, whatever a browser makes of it."""
    return path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
