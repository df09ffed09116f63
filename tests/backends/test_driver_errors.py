from __future__ import annotations

import pytest

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)

TABLE = ErrorTable(
    codes={"IO": BackendUnavailableError, "IO_WRITE": BackendWriteError},
    phrases={"malformed": BackendCorruptError},
    classes={ConnectionError: BackendUnavailableError, ConnectionRefusedError: ConfigurationError},
    remedies={"IO_WRITE": "make room"},
)


class DriverError(Exception):
    pass


def described(error, place):
    return error if "bug" in str(error) else TABLE.describe(error, f"{place}: failed")


ERRORS = DriverErrors(
    raised=(DriverError, OSError),
    describe=described,
    quotes=lambda error: "secret" in str(error),
)


class TestTable:
    @pytest.mark.parametrize(
        ("error", "codes", "kind"),
        [
            (DriverError("malformed"), ("IO_WRITE", "IO"), BackendWriteError),
            (DriverError("malformed"), ("IO_READ", "IO"), BackendUnavailableError),
            (DriverError("malformed"), ("OTHER",), BackendCorruptError),
            (ConnectionResetError("malformed"), (), BackendCorruptError),
            (ConnectionResetError(), (), BackendUnavailableError),
            (ConnectionRefusedError(), (), ConfigurationError),
            (DriverError(), ("OTHER",), BackendError),
        ],
    )
    def test_the_most_exact_that_is_known_decides(self, error, codes, kind):
        assert TABLE.kind(error, *codes) is kind

    def test_a_remedy_ends_the_message(self):
        assert str(TABLE.describe(DriverError(), "db", "IO_WRITE", "IO")) == "db; make room"
        assert str(TABLE.describe(DriverError(), "db", "IO")) == "db"


class TestTranslated:
    def test_the_drivers_error_is_the_cause(self):
        error = DriverError("x")
        with pytest.raises(BackendError, match=r"^db: failed$") as raised, ERRORS.translated("db"):
            raise error
        assert raised.value.__cause__ is error

    def test_an_error_that_quotes_is_not_even_the_cause(self):
        with pytest.raises(BackendError) as raised, ERRORS.translated("db"):
            raise DriverError("secret")
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__

    @pytest.mark.parametrize(
        "error", [DriverError("bug"), BackendUnavailableError("ours"), LookupError("theirs")]
    )
    def test_what_is_no_outage_of_the_driver_is_raised_as_it_is(self, error):
        with pytest.raises(type(error)) as raised, ERRORS.translated("db"):
            raise error
        assert raised.value is error
        assert ERRORS.translate(error, "db") is error
