"""An endpoint: a function that asks the backend, as a route of FastAPI.

FastAPI reads the parameters, and describes the route in the OpenAPI document. Here is what it does
not do: a body is read strictly, an answer has its tag, and an error is an answer of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from inspect import Signature, getdoc, signature
from typing import Annotated, Any, Final, get_origin, get_type_hints

from fastapi import Depends, Header, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from typing_extensions import override

from locus_memory.web.errors import RefusalError, error_response
from locus_memory.web.matching import Match
from locus_memory.web.models import Answer, Asked, ErrorAnswer

__all__ = ["PREFIX", "Operation"]

PREFIX: Final = "/api/v1"

_JSON: Final = "application/json"
_ERROR: Final = {"model": ErrorAnswer, "description": "An error"}
_BROKEN: Final = {
    "description": "An error",
    "content": {_JSON: {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
}
_LOST: Final = {"model": ErrorAnswer, "description": "A conditional write lost"}
_FILES: Final = StaticFiles()
"""Knows when a client has an answer already."""


async def _data(request: Request) -> Any:
    return request.app.state.data


async def _match(
    if_match: Annotated[
        str | SkipJsonSchema[None],
        Header(
            alias="If-Match",
            description="The ETag that the stored version must have, or *: there must be one.",
        ),
    ] = None,
    if_none_match: Annotated[
        str | SkipJsonSchema[None],
        Header(alias="If-None-Match", description="*: nothing may be stored yet."),
    ] = None,
) -> Match:
    return Match.of(if_match, if_none_match)


class Operation(APIRoute):
    """An endpoint of the API.

    Args:
        method: The method: one of `GET` and `DELETE` with parameters, or of `POST` and `PUT` with
            a JSON body.
        path: The path below `/api/v1`.
        ask: An async function of `Data` and a model; with a third parameter, of a `Match` too. It
            returns a model, or a response.
        status: The status code of success.
    """

    def __init__(
        self, method: str, path: str, ask: Callable[..., Awaitable[Any]], status: int = 200
    ) -> None:
        hints = get_type_hints(ask, include_extras=True)
        answer = hints.pop("return")
        self.asked: type[Asked] = hints["asked"]
        self.method = method
        self.in_query = method in ("GET", "DELETE")
        self.is_conditional = "match" in hints

        @wraps(ask)
        async def endpoint(**given: Any) -> Response:
            found = await ask(**given)
            return _document(found, status) if isinstance(found, Answer) else found

        hints["data"] = Annotated[Any, Depends(_data)]
        if self.in_query:
            hints["asked"] = Annotated[self.asked, Query()]
        if self.is_conditional:
            hints["match"] = Annotated[Match, Depends(_match)]
        parameters = [
            each.replace(annotation=hints[name]) for name, each in signature(ask).parameters.items()
        ]
        endpoint.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        is_model = issubclass(answer, Answer)
        super().__init__(
            PREFIX + path,
            endpoint,
            methods=[method],
            status_code=status,
            tags=[path.split("/")[1]],
            summary=(getdoc(ask) or "").partition("\n")[0],
            description=getdoc(ask),
            operation_id=str(getattr(ask, "__name__", "")),
            response_description="Success",
            response_model=answer if is_model else None,
            **({} if is_model else {"response_class": answer}),
            responses={
                **({412: _LOST} if self.is_conditional else {}),
                "default": _ERROR if is_model else _BROKEN,
            },
        )

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request; an error becomes an answer as well."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                await self._check(request)
                response = await handle(request)
            except Exception as error:  # noqa: BLE001 - the table of errors knows each of them
                return error_response(error)
            if request.method != "GET" or "etag" not in response.headers:
                return response
            if _FILES.is_not_modified(response.headers, request.headers):
                return NotModifiedResponse(response.headers)
            return response

        return answer

    async def _check(self, request: Request) -> None:
        """Check what FastAPI would let pass.

        Raises:
            RefusalError: A condition that nobody checks would be a lost update; a form of a foreign
                page cannot send JSON; a parameter is in the wrong place, or there twice.
            ValidationError: The body is not JSON, or a field is unknown or invalid.
        """
        headers, query = request.headers, request.query_params
        if "if-match" in headers and not self.is_conditional:
            raise RefusalError(400, "this request cannot be conditional: leave out If-Match")
        if self.in_query:
            repeated = {name for name in query if len(query.getlist(name)) > 1}
            fields = self.asked.model_fields.items()
            single = {name for name, field in fields if get_origin(field.annotation) is not tuple}
            if repeated & single:
                raise RefusalError(422, "a parameter that is no list is given once")
            return
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise RefusalError(415, f"the body is JSON: send Content-Type: {_JSON}")
        if query:
            raise RefusalError(422, "the parameters of this request are in its body")
        self.asked.model_validate_json(await request.body(), strict=True)


def _document(answer: Answer, status: int) -> Response:
    headers = {} if answer.etag is None else {"ETag": answer.etag}
    # The model itself writes integers of any size.
    return Response(BaseModel.model_dump_json(answer), status, headers, media_type=_JSON)
