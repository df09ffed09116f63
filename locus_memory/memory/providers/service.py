"""The shared part of the adapters for memory services: keys, time limits, retries and errors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from locus_memory.errors import BackendError, BackendUnavailableError, ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.options import check_seconds, check_whole

__all__ = ["Service", "choice", "lines", "service_key", "service_url"]

_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_NO_ACCESS: Final = (401, 403)
_FIRST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 2.0


class Service:
    """Calls of a service, each with a time limit and retries.

    Args:
        name: The name of the provider, for messages.
        variable: The environment variable of its key, for messages.
        timeout: The seconds that one attempt may take.
        attempts: How often a call is tried if the service is overloaded or cannot be reached.

    Raises:
        ConfigurationError: A negative time, or fewer than 1 attempt.
    """

    def __init__(self, name: str, variable: str, *, timeout: float, attempts: int) -> None:
        check_seconds(timeout=timeout)
        check_whole(1, attempts=attempts)
        self.name = name
        self.timeout = timeout
        self._variable = variable
        self._attempts = attempts

    async def call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a call, which raises the errors of `refusal` and `unreachable`.

        Raises:
            BackendUnavailableError: No answer in time, overloaded or down, at the last attempt.
            BackendError: The service refused the request.
            ConfigurationError: It refused the key.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            retry=retry_if_exception_type(BackendUnavailableError),
            before_sleep=self._report,
            reraise=True,
        )
        return await retrying(self._once, work)

    async def _once(self, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(self.timeout):
                return await work()
        except TimeoutError:
            raise BackendUnavailableError(
                f"{self.name}: no answer within {self.timeout:g} seconds"
            ) from None

    def refusal(self, status: int) -> Exception:
        """Return the error of an answer with an HTTP status that means a failure.

        The body of the answer is not shown: it may quote what was sent.
        """
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            return BackendUnavailableError(f"{self.name}: HTTP {status}: overloaded or down")
        if status in _NO_ACCESS:
            return ConfigurationError(
                f"{self.name}: HTTP {status}: the key was refused: check {self._variable}"
            )
        return BackendError(f"{self.name}: HTTP {status}: the request was refused")

    def unreachable(self, error: BaseException) -> BackendUnavailableError:
        """Return the error of a failed connection; the text of the cause is not shown."""
        return BackendUnavailableError(
            f"{self.name}: the service cannot be reached: {type(error).__name__}"
        )

    def invalid(self) -> BackendError:
        """Return the error of an answer that does not follow the protocol."""
        return BackendError(f"{self.name}: the answer of the service cannot be read")

    def _report(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        emit(
            "memory.provider_retried",
            error=error,
            provider=self.name,
            attempt=state.attempt_number,
        )


def service_url(name: str, given: str | None, variable: str, default: str) -> str:
    """Return the address of a service: the given one, the environment's or the default.

    Raises:
        ConfigurationError: It is not an address.
    """
    url = given or os.environ.get(variable) or default
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # Not shown: it may hold a password.
        raise ConfigurationError(f"{name}: its address is a URL such as {default}")
    return url.rstrip("/")


def service_key(name: str, given: str | None, variable: str, *, needed: bool) -> str | None:
    """Return the key of a service: the given one, or the environment's, without outer spaces.

    Raises:
        ConfigurationError: It is needed and missing, or it cannot be sent in a header.
    """
    key = (given or os.environ.get(variable) or "").strip()
    if not key and needed:
        raise ConfigurationError(f"{name}: pass api_key= or set {variable}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(f"{name}: the key is not one line of ASCII: check {variable}")
    return key or None


def choice(name: str, option: str, value: str, known: tuple[str, ...]) -> str:
    """Return an option that has one of these values.

    Raises:
        ConfigurationError: It has another one.
    """
    if value not in known:
        raise ConfigurationError(f"{name}: {option} is one of {', '.join(known)}")
    return value


def lines(contents: list[str]) -> str:
    """Return facts as a list, one a line, for `prefetch`."""
    return "\n".join(f"- {' '.join(each.split())}" for each in contents if each.strip())
