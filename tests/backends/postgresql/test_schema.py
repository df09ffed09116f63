"""Names, and the tables they are given to."""

from __future__ import annotations

import re

import pytest

from locus_memory.backends.postgresql.schema import FUNCTIONS, MIGRATIONS, Names
from locus_memory.errors import ConfigurationError

STATEMENTS = [text for groups in MIGRATIONS.values() for group in groups for text in group]
STATEMENTS += FUNCTIONS.values()


def test_every_name_is_quoted_and_has_its_schema():
    names = Names("MiXed", "pre_")
    assert names.fill("SELECT * FROM {items}") == 'SELECT * FROM "MiXed"."pre_items"'
    assert names.fill("{index:items_by_key} {schema}") == '"pre_items_by_key" "MiXed"'


def test_the_schema_of_the_extension_may_be_anything():
    names = Names(vector_schema='ex"tensions')
    assert names.fill("$1::{vector}.vector") == '$1::"ex""tensions".vector'


@pytest.mark.parametrize("text", ["'{}'::jsonb", "'{\"a\": 1}'", "{A}", "{a b}", "{1}"])
def test_other_braces_are_left_alone(text):
    assert Names().fill(text) == text


@pytest.mark.parametrize("value", ["", "a b", 'a"b', "a-b", "1a", "é", "a\0", "a;b", "pg_x"])
@pytest.mark.parametrize("option", ["schema", "prefix"])
def test_what_is_no_plain_identifier_is_refused(option, value):
    with pytest.raises(ConfigurationError, match="letters, digits and underscores"):
        Names(**{option: value}).check()


@pytest.mark.parametrize("names", [Names(schema="a" * 64), Names(prefix="a" * 31)])
def test_what_is_too_long_is_refused(names):
    with pytest.raises(ConfigurationError, match="at most"):
        names.check()


def test_no_name_is_ever_cut():
    names = Names(schema="s" * 63, prefix="p" * 30)
    names.check()
    for statement in STATEMENTS:
        assert all(len(name) <= 63 for name in re.findall(r'"(\w+)"', names.fill(statement)))


def test_two_places_do_not_share_a_lock():
    locks = {Names(*place).lock for place in (("a", "b_"), ("a", "c_"), ("b", "b_"), ("a_b", "_"))}
    assert len(locks) == 4
    assert all(-(2**63) <= lock < 2**63 for lock in locks)
