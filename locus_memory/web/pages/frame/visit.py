"""A visit of a page: what a page is given, what it answers with, and the routes of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Asked
from locus_memory.web.pages.frame.failures import fail
from locus_memory.web.pages.frame.fields import read_fields
from locus_memory.web.pages.frame.links import link_of
from locus_memory.web.pages.frame.rendering import render, say
from locus_memory.web.questions.data import Data
from locus_memory.web.security.sessions import Sessions

__all__ = ["FORM_TOKEN", "Group", "Visit", "get", "post"]

FORM_TOKEN: Final = "form_token"  # noqa: S105 - the name of a field
_FORM: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 1_000

_Model = TypeVar("_Model", bound=Asked)
_Fields = ImmutableMultiDict[str, Any]


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a page.

    Attributes:
        request: The request.
        form: The fields of a form that was posted, its token checked; empty for a `GET`.
    """

    request: Request
    form: _Fields = field(default_factory=_Fields)

    @property
    def data(self) -> Data:
        """The data that the functions of `locus_memory.web.questions` ask."""
        data: Data = self.request.app.state.data
        return data

    @property
    def fields(self) -> _Fields:
        """The fields of the form that was posted; for a `GET`, the parameters of the query."""
        return self.form if self.request.method == "POST" else self.request.query_params

    def text(self, name: str) -> str | None:
        """Return one field as the user wrote it; `None`: it is missing or empty."""
        found = self.fields.get(name)
        return found.replace("\r\n", "\n") if isinstance(found, str) and found else None

    def asked(self, model: type[_Model], **fixed: Any) -> _Model:
        """Return a request of the functions, from the fields that have the names of its own.

        Args:
            model: The class of the request. An empty field counts as missing.
            fixed: Fields that do not come from the browser.

        Raises:
            ValidationError: A field is missing or invalid.
        """
        return read_fields(model, self.fields, fixed)

    def link(self, path: str, **parameters: Any) -> str:
        """Return the address of a page, as in templates."""
        return link_of(self.request, path, **parameters)

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page: a template of `locus_memory/web/templates`, filled with values."""
        return render(self.request, template, status=status, **values)

    def go(self, path: str, said: str | None = None, /, **parameters: Any) -> Response:
        """Return an answer that leads to a page after a form has done its work.

        Args:
            path: The path of the page.
            said: One sentence that the page shows once.
            parameters: Its parameters.
        """
        answer = RedirectResponse(self.link(path, **parameters), status_code=303)
        if said is not None:
            say(self.request, answer, said)
        return answer


Show = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of pages.

    Attributes:
        path: The path of its first page.
        title: Its title in the navigation.
        routes: Its routes, made by `get` and `post`.
    """

    path: str
    title: str
    routes: tuple[BaseRoute, ...]


def get(path: str, show: Show) -> Route:
    """Return the route of a page that is looked at; it changes nothing."""

    async def answer(request: Request) -> Response:
        return await show(Visit(request))

    return Route(path, _guarded(answer), methods=["GET"], name=f"GET {path}")


def post(path: str, act: Show) -> Route:
    """Return the route of a form; `act` runs only if the form has the token of the session."""

    async def answer(request: Request) -> Response:
        return await act(Visit(request, await _posted(request)))

    return Route(path, _guarded(answer), methods=["POST"], name=f"POST {path}")


def _guarded(answer: Callable[[Request], Awaitable[Response]]) -> Any:
    """Return an endpoint whose errors become pages."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:  # noqa: BLE001 - the table of errors knows each of them
            return fail(request, error)

    return endpoint


async def _posted(request: Request) -> _Fields:
    """Return the fields of a form; this is the one place where its token is checked.

    Raises:
        RefusalError: It is no form of this browser's session.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise RefusalError(415, "a form of this page sends its fields in another way")
    try:
        form = await request.form(max_fields=_MOST_FIELDS)
    except HTTPException:
        raise RefusalError(400, "the form cannot be read") from None
    sessions: Sessions = request.app.state.sessions
    if not sessions.accepts(sessions.read(request), str(form.get(FORM_TOKEN, ""))):
        raise RefusalError(
            403, "the form is too old, or another page sent it: load the page once more, and retry"
        )
    return form
