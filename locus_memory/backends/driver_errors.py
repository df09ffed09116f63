"""The translation of a driver's errors, by a table in each backend.

A backend has one `ErrorTable`, or one each for the client and the server. Only the words of a
message, and the errors that quote secrets, need code of its own. `repeated` is for a call whose
error may pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from locus_memory.errors import BackendError, LocusMemoryError

__all__ = ["DriverErrors", "ErrorTable", "Kind", "repeated"]

Kind = type[LocusMemoryError]
T = TypeVar("T")

_ATTEMPTS: Final = 6
"""How often a call is tried."""

_PAUSE: Final = 0.01
"""Seconds before the second attempt, on average half of it; doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTable:
    """The table from a driver's errors to those of the library.

    The code decides first, then the words of the message, then the class. An error that is in no
    table is a plain `BackendError`.

    Attributes:
        codes: By the code of the server or the driver.
        phrases: By words of the message; the first match.
        classes: By class; a class stands for its subclasses that are not in the table.
        remedies: The remedy of a code, which ends the message.
    """

    codes: Mapping[str, Kind] = field(default_factory=dict)
    phrases: Mapping[str, Kind] = field(default_factory=dict)
    classes: Mapping[type[BaseException], Kind] = field(default_factory=dict)
    remedies: Mapping[str, str] = field(default_factory=dict)

    def kind(self, error: BaseException, *codes: str) -> Kind:
        """Return the class of the library's error.

        Args:
            error: The driver's.
            codes: Its codes, the most exact first.
        """
        for code in codes:
            if code in self.codes:
                return self.codes[code]
        text = str(error)
        for phrase, kind in self.phrases.items():
            if phrase in text:
                return kind
        bases = (base for base in type(error).__mro__ if base in self.classes)
        return self.classes.get(next(bases, BaseException), BackendError)

    def describe(self, error: BaseException, message: str, *codes: str) -> LocusMemoryError:
        """Return the library's error with a message, and with the remedy if there is one.

        Args:
            error: The driver's.
            message: The text of the error.
            codes: As for `kind`.
        """
        remedies = (f"; {self.remedies[code]}" for code in codes if code in self.remedies)
        return self.kind(error, *codes)(message + next(remedies, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverErrors:
    """The translation of the errors of one driver.

    Attributes:
        raised: The classes of the driver's errors.
        describe: Returns the library's error for a driver's error and the name of the database in
            messages; or the same error, if it shows a mistake of the library.
        quotes: Whether an error quotes data or a secret. Such an error is not even the cause,
            because a traceback shows the cause.
    """

    raised: tuple[type[BaseException], ...]
    describe: Callable[[BaseException, str], BaseException]
    quotes: Callable[[BaseException], bool] = lambda _: False

    def translate(self, error: BaseException, place: str) -> BaseException:
        """Return the library's error for `error`, or `error` itself if it is another one."""
        # Some of the library's errors are an `OSError` as well, as some of a driver's are.
        if isinstance(error, LocusMemoryError) or not isinstance(error, self.raised):
            return error
        described = self.describe(error, place)
        if described is not error and not self.quotes(error):
            described.__cause__ = error
        return described

    @contextlib.contextmanager
    def translated(self, place: str) -> Generator[None]:
        """Raise the driver's errors as the library's own, naming the database."""
        try:
            yield
        except self.raised as error:
            described = self.translate(error, place)
            if described is error:
                raise
            raise described from described.__cause__


async def repeated(
    work: Callable[[], Awaitable[T]], may_repeat: Callable[[BaseException], bool]
) -> T:
    """Return the result of `work`, which is called again, after a pause, if its error allows that.

    Args:
        work: Called up to six times.
        may_repeat: Whether an error may pass, and nothing was done that must not be done twice.
    """
    for attempt in range(_ATTEMPTS - 1):
        try:
            return await work()
        except Exception as error:
            if not may_repeat(error):
                raise
        await asyncio.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311 - no secret
    return await work()
