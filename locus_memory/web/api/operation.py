"""An endpoint: a function that asks the backend, bound to a method and a path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import getdoc, signature
from typing import Any, Final, cast, get_origin, get_type_hints

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from locus_memory.web.errors import RefusalError, error_response
from locus_memory.web.matching import Match
from locus_memory.web.models import Answer, Asked

__all__ = ["Operation"]

_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_IN_QUERY: Final = frozenset(("GET", "DELETE"))


@dataclass(frozen=True)
class Operation:
    """An endpoint of the API.

    Attributes:
        method: The method: one of `GET` and `DELETE` with parameters, or of `POST` and `PUT` with
            a JSON body.
        path: The path below `/api/v1`.
        ask: An async function of `Data` and a model; with a third parameter, of a `Match` too. It
            returns a model, or the lines of a stream.
        status: The status code of success.
    """

    method: str
    path: str
    ask: Callable[..., Awaitable[Any]]
    status: int = 200

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(getattr(self.ask, "__name__", ""))

    @property
    def summary(self) -> str:
        """The first line of the function's description."""
        return (getdoc(self.ask) or "").partition("\n")[0]

    @property
    def in_query(self) -> bool:
        """Whether its parameters are in the query, and not in a body."""
        return self.method in _IN_QUERY

    @cached_property
    def asked(self) -> type[Asked]:
        """The model of its parameters or its body."""
        name = list(signature(self.ask).parameters)[1]
        return cast("type[Asked]", get_type_hints(self.ask)[name])

    @cached_property
    def answer(self) -> type[Answer] | None:
        """The model of its answer; `None`: it is a stream of lines."""
        returned = get_type_hints(self.ask)["return"]
        return None if get_origin(returned) is AsyncIterator else returned

    @cached_property
    def is_conditional(self) -> bool:
        """Whether `If-Match` makes it a compare-and-swap."""
        return Match in get_type_hints(self.ask).values()

    @cached_property
    def lists(self) -> frozenset[str]:
        """The parameters that may be repeated."""
        fields = self.asked.model_fields.items()
        return frozenset(name for name, field in fields if get_origin(field.annotation) is tuple)

    async def answered(self, request: Request) -> Response:
        """Return the answer to a request; an error becomes an answer as well."""
        try:
            asked = self._from_query(request) if self.in_query else await self._from_body(request)
            result = await self.ask(request.app.state.data, asked, *_condition(self, request))
            if isinstance(result, Answer):
                return _document(result, self.status, request)
            return await _stream(result)
        except Exception as error:  # noqa: BLE001 - the table of errors knows each of them
            return error_response(error)

    def _from_query(self, request: Request) -> Asked:
        """Return the parameters of the query.

        Raises:
            RefusalError: A parameter is there twice.
            ValidationError: A parameter is unknown or invalid.
        """
        values: dict[str, Any] = {}
        for name in request.query_params:
            given = request.query_params.getlist(name)
            if name in self.lists:
                values[name] = given
            elif len(given) == 1:
                values[name] = given[0]
            else:
                raise RefusalError(422, "a parameter that is no list is given once")
        return self.asked.model_validate(values)

    async def _from_body(self, request: Request) -> Asked:
        """Return the body.

        Raises:
            RefusalError: It is not marked as JSON.
            ValidationError: It is not JSON, or a field is unknown or invalid.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            # A form of a foreign page cannot send this type.
            raise RefusalError(415, f"the body is JSON: send Content-Type: {_JSON}")
        if request.query_params:
            raise RefusalError(422, "the parameters of this request are in its body")
        return self.asked.model_validate_json(await request.body(), strict=True)


def _condition(operation: Operation, request: Request) -> tuple[Match, ...]:
    headers = request.headers
    if operation.is_conditional:
        return (Match.of(headers.get("if-match"), headers.get("if-none-match")),)
    if "if-match" in headers:
        # A condition that nobody checks would be a lost update.
        raise RefusalError(400, "this request cannot be conditional: leave out If-Match")
    return ()


def _document(answer: Answer, status: int, request: Request) -> Response:
    headers: dict[str, str] = {}
    if answer.etag is not None:
        headers["ETag"] = answer.etag
        known = request.headers.get("if-none-match", "")
        if request.method in ("GET", "HEAD") and answer.etag in map(str.strip, known.split(",")):
            return Response(status_code=304, headers=headers)
    # The model itself writes integers of any size.
    body = BaseModel.model_dump_json(answer)
    return Response(body, status, headers, media_type=_JSON)


async def _stream(lines: AsyncIterator[bytes]) -> Response:
    """Return a stream; an error before its first line is an answer of its own."""
    first = await anext(lines, None)

    async def rest() -> AsyncIterator[bytes]:
        if first is None:
            return
        yield first
        try:
            async for line in lines:
                yield line
        except Exception as error:  # noqa: BLE001 - too late for a status code
            # The last line of a stream that broke off can be taken for nothing else.
            yield bytes(error_response(error).body) + b"\n"

    return StreamingResponse(rest(), media_type=_LINES)
