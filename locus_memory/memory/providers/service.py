"""The shared part of the adapters for memory services: an HTTP API, time limits and retries."""

from __future__ import annotations

import asyncio
import copy
import os
import re
from http import HTTPStatus
from typing import Any, ClassVar, Final, Self, TypeVar
from urllib.parse import quote as percent_encoded

from pydantic import BaseModel, ValidationError
from typing_extensions import override

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory._internal.running.retrying import Patience
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    InvalidKeyError,
)
from locus_memory.events import emit
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.options import check_number, check_whole
from locus_memory.memory.providers.base import BaseMemoryProvider
from locus_memory.store.item import check_identifier, check_limit

__all__ = ["ServiceProvider", "path_part"]

_ADDRESS: Final = re.compile(
    r"(?i)https?://([^/?#\s]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?([/?#]|$)"
)
"""The beginning of the address of a server."""

_LONGEST_WAIT: Final = 0.5
"""The seconds between two attempts; a run waits a few seconds for all of them."""

_NOTHING: Final = b"{}"

_Answer = TypeVar("_Answer", bound=BaseModel)


def path_part(value: object, what: str) -> str:
    """Return an identifier as one part of the path of a URL; `what` names it in the error.

    Raises:
        InvalidKeyError: It is no identifier, or it would lead to another path.
    """
    name = check_identifier(value, what)
    if name in (".", ".."):
        raise InvalidKeyError(f"{what} is part of a path, and {quote(name)} leads out of it")
    return percent_encoded(name, safe="")


class ServiceProvider(BaseMemoryProvider):
    """A provider over the HTTP API of a service, with a time limit and retries for each request.

    A subclass says what the service is called and where it is. Its environment variables begin
    with its name in upper case.

    Args:
        api_key: By default the variable `<NAME>_API_KEY`. The cloud needs one.
        api_url: The server; by default the variable `<NAME>_API_URL`, else the cloud.
        user_id: The user of runs without a user.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the service is overloaded or unreachable.

    Raises:
        ConfigurationError: No key for the cloud, or an option that cannot work.
        MissingDriverError: The package `httpx` is not installed.
    """

    _name: ClassVar[str]
    _cloud: ClassVar[str]
    _scheme: ClassVar[str] = "Bearer"

    def __init__(
        self,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
        user_id: str | None = None,
        timeout: float = 10.0,
        attempts: int = 3,
    ) -> None:
        check_number(timeout=timeout)
        check_whole(1, attempts=attempts)
        httpx = require("httpx", self._name)
        key, url = self._given(api_key, "KEY"), self._given(api_url, "URL") or self._cloud
        if not _ADDRESS.match(url):
            # Not shown: it may hold a password.
            raise ConfigurationError(f"{self._name}: its address is a URL such as {self._cloud}")
        if not key and url.startswith(self._cloud):
            raise ConfigurationError(f"{self._name}: pass api_key= or set {self._variable('KEY')}")
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(
                f"{self._name}: the key is not one line of ASCII: check {self._variable('KEY')}"
            )
        headers = {"Accept": "application/json"}
        if key:
            headers["Authorization"] = f"{self._scheme} {key}"
        self._client: Any = httpx.AsyncClient(base_url=url, headers=headers, timeout=None)
        self._failures: Any = (httpx.HTTPError, httpx.InvalidURL, OSError)
        self._user = user_id
        self._timeout = timeout
        passing = (BackendUnavailableError,)
        self._patience = Patience(attempts, _LONGEST_WAIT, passing, asyncio.sleep)

    def for_user(self, user_id: str) -> Self:
        """Return this provider for a user; it shares the connections."""
        view = copy.copy(self)
        view._user = check_identifier(user_id, "a user id")  # noqa: SLF001 - it is one of us
        return view

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the five best facts, one a line."""
        told = [" ".join(each.content.split()) for each in await self.search(query)]
        return "\n".join(f"- {each}" for each in told if each)

    @override
    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        """Return the facts that match, the best first.

        Raises:
            ConfigurationError: The service needs a user, and there is none, or it refused the key.
            BackendError: The service failed.
        """
        if not query.strip() or not check_limit(limit):
            return []
        return (await self._found(query.strip(), limit))[:limit]

    async def _found(self, query: str, limit: int) -> list[MemorySearchResult]:
        """Return the answer of the service to a question that has words."""
        raise NotImplementedError

    @override
    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _request(
        self, method: str, path: str, kind: type[_Answer], body: dict[str, Any] | None = None
    ) -> _Answer:
        """Return the answer to a request; an empty one if there is nothing at a path that is read.

        Args:
            method: The HTTP method.
            path: The path below the address of the service.
            kind: The form of the answer.
            body: The JSON to send; `None`: the path is read or deleted.

        Raises:
            BackendUnavailableError: No answer in time, overloaded or down, at the last attempt.
            BackendError: The service refused the request, or its answer cannot be read.
            ConfigurationError: It refused the key.
        """
        content: bytes = await self._patience.retrying(self._report)(self._sent, method, path, body)
        try:
            return kind.model_validate_json(content)
        except ValidationError:
            # Its text quotes the answer.
            raise BackendError(f"{self._name}: the answer of the service cannot be read") from None

    async def _sent(self, method: str, path: str, body: dict[str, Any] | None) -> bytes:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._client.request(method, path, json=body)
        except self._failures as error:
            # The cause holds the request, and with it the key.
            raise BackendUnavailableError(
                f"{self._name}: the service cannot be reached: {type(error).__name__}"
            ) from None
        if answer.status_code == HTTPStatus.NOT_FOUND and body is None:
            return _NOTHING
        # A redirection, too: nothing was written.
        if not HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(answer.status_code)
        content: bytes = answer.content
        return content or (_NOTHING if method == "DELETE" else b"")

    def _refusal(self, status: int) -> Exception:
        """Return the error of a failure; the body of the answer may quote what was sent."""
        told = f"{self._name}: HTTP {status}"
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return BackendUnavailableError(f"{told}: overloaded or down")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return ConfigurationError(f"{told}: the key was refused: check {self._variable('KEY')}")
        return BackendError(f"{told}: the request was refused")

    def _report(self, error: BaseException | None, attempt: int) -> None:
        emit("memory.provider_retried", error=error, provider=self._name, attempt=attempt)

    @property
    def _user_id(self) -> str:
        """The user, for a service whose every request has one."""
        if self._user is None:
            raise ConfigurationError(
                f"{self._name}: every request has a user, and this run names none: pass user_id="
            )
        return self._user

    def _variable(self, what: str) -> str:
        return f"{self._name.upper()}_API_{what}"

    def _given(self, argument: str | None, what: str) -> str:
        """Return an argument, or else the value of its variable, without outer spaces."""
        return (argument or os.environ.get(self._variable(what)) or "").strip()
