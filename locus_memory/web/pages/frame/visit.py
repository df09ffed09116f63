"""A visit of a page: what a page is given, what it answers with, and the routes of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_origin, get_type_hints

from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from locus_memory.inspection.names import naming_nearest
from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Asked
from locus_memory.web.pages.frame.failures import fail
from locus_memory.web.pages.frame.links import link_of
from locus_memory.web.pages.frame.rendering import render, say
from locus_memory.web.questions.data import Data
from locus_memory.web.security.sessions import Sessions

__all__ = ["FORM_TOKEN", "Group", "Visit", "done", "get", "post", "shown"]

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
        found = _as_written(self.fields.get(name))
        return found if isinstance(found, str) and found else None

    def asked(self, model: type[_Model], **fixed: Any) -> _Model:
        """Return a request of the functions, from the fields that have the names of its own.

        Args:
            model: The class of the request. An empty field counts as missing.
            fixed: Fields that do not come from the browser.

        Raises:
            ValidationError: A field is missing or invalid.
        """
        given: dict[str, Any] = {}
        for name, each in model.model_fields.items():
            found = [_as_written(value) for value in self.fields.getlist(name) if value != ""]
            if found:
                given[name] = tuple(found) if get_origin(each.annotation) is tuple else found[-1]
        return model.model_validate({**given, **fixed})

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


def _as_written(value: Any) -> Any:
    """Return a text with the line ends that its writer sees: a browser sends others."""
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


Show = Callable[[Any], Awaitable[Response]]
Ask = Callable[[Any, Any], Awaitable[Any]]
Told = tuple[str, str, dict[str, Any]]


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


def get(path: str, show: Show, kind: type[Visit] = Visit) -> Route:
    """Return the route of a page that is looked at; it changes nothing.

    Args:
        path: The path of the page.
        show: Takes the visit, and returns the page.
        kind: The class of the visit.
    """

    async def answer(request: Request) -> Response:
        return await show(kind(request))

    return Route(path, _guarded(answer), methods=["GET"], name=f"GET {path}")


def post(path: str, act: Show, kind: type[Visit] = Visit) -> Route:
    """Return the route of a form; `act` runs only if the form has the token of the session."""

    async def answer(request: Request) -> Response:
        return await act(kind(request, await _posted(request)))

    return Route(path, _guarded(answer), methods=["POST"], name=f"POST {path}")


def shown(
    path: str, ask: Ask, template: str, name: str, kind: type[Visit] = Visit, **fixed: Any
) -> Route:
    """Return the route of a page that shows the answer to one question.

    Args:
        path: The path of the page.
        ask: The question, of `locus_memory.web.questions`.
        template: The template, which gets the request as `asked`.
        name: The name of the answer in the template.
        kind: The class of the visit.
        fixed: Fields of the request that do not come from the browser.
    """

    async def show(visit: Visit) -> Response:
        asked = visit.asked(_request_of(ask), **fixed)
        return visit.render(template, asked=asked, **{name: await ask(visit.data, asked)})

    return get(path, show, kind)


def done(
    path: str, ask: Ask, told: Callable[[Any, Any], Told], kind: type[Visit] = Visit, **fixed: Any
) -> Route:
    """Return the route of a form that does one thing, and leads to a page.

    Args:
        path: The path of the form.
        ask: What is done, of `locus_memory.web.questions`.
        told: Takes the answer and the request; returns the path of the next page, the sentence that
            it shows once, and its parameters.
        kind: The class of the visit.
        fixed: Fields of the request that do not come from the browser.
    """

    async def act(visit: Visit) -> Response:
        asked = visit.asked(_request_of(ask), **fixed)
        to, said, parameters = told(await ask(visit.data, asked), asked)
        return visit.go(to, said, **parameters)

    return post(path, act, kind)


def _request_of(ask: Ask) -> type[Asked]:
    request: type[Asked] = get_type_hints(ask)["asked"]
    return request


def _guarded(answer: Callable[[Request], Awaitable[Response]]) -> Any:
    """Return an endpoint whose errors become pages."""

    async def endpoint(request: Request) -> Response:
        try:
            async with naming_nearest(request.app.state.data.backend):
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
    except RefusalError:
        # It is too large.
        raise
    except HTTPException:
        raise RefusalError(400, "the form cannot be read") from None
    sessions: Sessions = request.app.state.sessions
    if not sessions.accepts(sessions.read(request), str(form.get(FORM_TOKEN, ""))):
        raise RefusalError(
            403, "the form is too old, or another page sent it: load the page once more, and retry"
        )
    return form
