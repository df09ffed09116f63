"""The table of errors covers the classes of the driver, and quotes no value."""

from __future__ import annotations

import oracledb
import pytest
from oracledb import errors as driver

from locus_memory.backends.oracle.connection.driver_errors import (
    TABLE,
    is_lost,
    is_readable_again,
    is_repeatable,
    translate,
)
from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)


def server_error(code, text="it failed: 'a secret'"):
    detail = driver._Error(f"ORA-{code:05}: {text}", code=code)
    return detail.exc_type(detail)


def kinds(base):
    return [base, *(each for kind in base.__subclasses__() for each in kinds(kind))]


@pytest.mark.parametrize("kind", [*kinds(oracledb.Error), oracledb.Warning])
def test_every_class_of_the_driver_is_translated(kind):
    found = translate(kind(driver._Error("DPY-5012: odd")), "oracle db")
    assert isinstance(found, LocusMemoryError)
    assert str(found).startswith("oracle db")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, BackendError),
        (60, BackendUnavailableError),
        (942, BackendCorruptError),
        (1555, BackendUnavailableError),
        (51815, BackendUnavailableError),
        (51928, BackendWriteError),
        (1017, ConfigurationError),
        (1033, BackendUnavailableError),
        (1653, BackendWriteError),
        (3113, BackendUnavailableError),
        (12541, BackendUnavailableError),
        (16000, BackendWriteError),
        (28000, ConfigurationError),
        (600, BackendUnavailableError),
    ],
)
def test_a_code_of_the_server_has_its_class(code, kind):
    assert type(translate(server_error(code), "oracle db")) is kind


@pytest.mark.parametrize("code", sorted(code for code in TABLE.codes if code.startswith("DPY")))
def test_each_code_of_the_driver_is_one(code):
    number = int(code[4:])
    known = {
        value
        for name, value in vars(driver).items()
        if name.startswith("ERR_") and isinstance(value, int)
    }
    assert number in known


def test_a_pool_that_is_closed():
    found = translate(oracledb.InterfaceError(driver._Error("DPY-1002: pool")), "db")
    assert type(found) is BackendClosedError


@pytest.mark.parametrize("code", [1, 1400, 2291, 1722])
def test_what_quotes_a_value_is_not_quoted(code):
    found = translate(server_error(code), "oracle db")
    assert "secret" not in str(found)
    assert found.__cause__ is None
    assert f"ORA-{code:05}" in str(found)


@pytest.mark.parametrize("code", [1555, 51815])
def test_a_query_whose_data_was_overwritten_runs_again(code):
    error = server_error(code)
    assert is_readable_again(error)
    assert not is_lost(error)
    assert not is_repeatable(error)
