"""What the application needs to know of its pages; it runs without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

__all__ = ["LOGIN", "LOGOUT", "STATIC", "Pages", "path_of"]

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
STATIC: Final = "/static/"
_API: Final = "/api/"


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of an application.

    Attributes:
        routes: Their routes.
        menu: The paths and titles of the navigation, in order.
        fail: Returns the page for an error.
    """

    routes: tuple[BaseRoute, ...]
    menu: tuple[tuple[str, str], ...]
    fail: Callable[[Request, Exception], Response]

    @staticmethod
    def is_open(path: str) -> bool:
        """Return whether a path needs no token: nothing of the database is behind it."""
        return path == LOGIN or path.startswith(STATIC)

    @staticmethod
    def is_harmless(path: str) -> bool:
        """Return whether a form on this path changes nothing in the database."""
        return path in (LOGIN, LOGOUT)

    @staticmethod
    def has(path: str) -> bool:
        """Return whether an answer on this path is a page, and not JSON."""
        return not path.startswith(_API)


def path_of(scope: Scope) -> str:
    """Return the path of a request below the place where the application is mounted."""
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
