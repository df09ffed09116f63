"""A driver's errors made the library's own: what the tables of all backends have in common.

A backend has one `ErrorTable`, or one for each side, and says itself only what no table can: the
words of a message, and which errors quote what must not be read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from locus_memory.errors import BackendError, LocusMemoryError

__all__ = ["DriverErrors", "ErrorTable", "Kind"]

Kind = type[LocusMemoryError]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTable:
    """Which error of the library stands for which of a driver's.

    A code decides first, then what the message says, then the class. An error that is in none
    of the tables is a plain `BackendError`.

    Attributes:
        codes: By the server's or the driver's own code.
        phrases: By words of the message; the first that fits.
        classes: By class; a class counts for those derived from it that are not here.
        remedies: By code, what helps; it ends the message.
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
        """Return the library's error with a message, and the remedy if there is one.

        Args:
            error: The driver's.
            message: What is said of it.
            codes: As for `kind`.
        """
        remedies = (f"; {self.remedies[code]}" for code in codes if code in self.remedies)
        return self.kind(error, *codes)(message + next(remedies, ""))


def _quotes_nothing(error: BaseException) -> bool:
    del error
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverErrors:
    """How the errors of one driver become the library's.

    Attributes:
        raised: The classes of all that the driver raises.
        describe: Returns the library's error for one of these, given how messages call the
            database; or the same error, if it says that the library is wrong.
        quotes: Whether an error quotes data or a secret. Then it is not passed on even as the
            cause, for a traceback shows that.
    """

    raised: tuple[type[BaseException], ...]
    describe: Callable[[BaseException, str], BaseException]
    quotes: Callable[[BaseException], bool] = _quotes_nothing

    def translate(self, error: BaseException, place: str) -> BaseException:
        """Return the library's error for `error`, or `error` itself if it is not the driver's."""
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
