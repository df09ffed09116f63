"""The rules as values, and the tables that they are read from."""

from __future__ import annotations

from datetime import timedelta

import pytest

from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    InvalidFilterError,
    InvalidNamespaceError,
)
from locus_memory.presets import retention_tables
from locus_memory.retention import ItemRule, ThreadRule, read_rules


def test_tables_become_rules():
    tables = [
        {"namespace": ["users", "*"], "keep_last": 3, "older_than": "1.5h"},
        {"metadata": {"kind": "trial"}, "idle_for": "2w", "prefix": "t"},
        {},
    ]
    assert read_rules(tables) == [
        ItemRule(namespace=("users", "*"), keep_last=3, older_than=timedelta(minutes=90)),
        ThreadRule(metadata={"kind": "trial"}, idle_for=timedelta(weeks=2), prefix="t"),
        ThreadRule(),
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"keep": 3}, "rules\\[0\\]: unknown field 'keep'; known: metadata, "),
        ({"older_than": "soon"}, "older_than is a timedelta, or in a file a text such as '30d'"),
        ({"older_than": "9" * 400 + "d"}, "older_than is a timedelta"),
        ({"idle_for": 30}, "idle_for is a timedelta"),
        ({"keep_last": 0}, "keep_last is a number of at least 1, not 0"),
        ({"keep_last": True}, "keep_last is a number of at least 1, not True"),
        ({"keep_threads": -1}, "keep_threads is a number of at least 0"),
        ({"prefix": 7}, "prefix is a text"),
        ({"metadata": {"a": {"$nope": 1}}}, "nope"),
        ({"namespace": "users"}, "namespace"),
        ({"namespace": []}, "namespace"),
        ({"namespace": ["locus_memory", "x"]}, "does not begin with 'locus_memory'"),
        ({"namespace": ["*", "x"]}, "does not begin with '\\*'"),
        ("text", "a rule is a table"),
    ],
)
def test_a_table_that_is_no_rule_is_refused(table, message):
    with pytest.raises(ConfigurationError, match=message):
        read_rules([table])


def test_a_rule_that_is_not_valid_is_refused():
    for error, arguments in (
        (InvalidArgumentError, {"older_than": timedelta(-1)}),
        (InvalidFilterError, {"metadata": {"$or": 3}}),
    ):
        with pytest.raises(error):
            ThreadRule(**arguments)
    with pytest.raises(InvalidNamespaceError):
        ItemRule(namespace=["a"])


def test_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert retention_tables() == ("", [])
    file = tmp_path / "pyproject.toml"
    file.write_text('[[tool.locus_memory.retention]]\nnamespace = ["a"]\nkeep_last = 1\n')
    assert retention_tables() == (str(file), [{"namespace": ["a"], "keep_last": 1}])
    file.write_text("[tool.locus_memory]\nretention = 3\n")
    with pytest.raises(ConfigurationError, match="retention is a list of tables"):
        retention_tables()
