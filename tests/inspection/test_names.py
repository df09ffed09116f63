from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.cli.options.common import parse_age
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import find_reference, format_namespace, parse_namespace
from locus_memory.registry import get_checkpointer

LABELS = st.lists(st.text(min_size=1), min_size=1).map(tuple)


@pytest.mark.slow
@given(LABELS)
@settings(deadline=None, max_examples=200)
def test_every_namespace_can_be_written(labels):
    assert parse_namespace(format_namespace(labels)) == labels
    assert parse_namespace(json.dumps(list(labels))) == labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("users", ("users",)),
        ("users/alice/memories", ("users", "alice", "memories")),
        (r"a\/b", ("a\\", "b")),
        ('["a/b", "c"]', ("a/b", "c")),
        ('["[x]"]', ("[x]",)),
    ],
)
def test_how_namespaces_are_written(text, labels):
    assert parse_namespace(text) == labels


@pytest.mark.parametrize("text", ["", "/", "a//b", "/a", "a/", "[]", "[1]", '[""]', "[oops"])
def test_what_is_no_namespace(text):
    with pytest.raises(UsageError):
        parse_namespace(text)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90s", timedelta(seconds=90)),
        ("45m", timedelta(minutes=45)),
        ("1.5h", timedelta(hours=1.5)),
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_ages(text, age):
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1 d", "1y", "9" * 30 + "w"])
def test_what_is_no_age(text):
    with pytest.raises(UsageError):
        parse_age(text)


async def test_references():
    checkpointer = get_checkpointer("memory", state_type=None)
    for name in ("one", "two", "2"):
        await checkpointer.save({}, "a@b", name)
    await checkpointer.save({}, "a", "x@y")

    assert await find_reference(checkpointer, "a@b") == ("a@b", "2")
    assert await find_reference(checkpointer, "a@b@one") == ("a@b", "one")
    assert await find_reference(checkpointer, "a@b@1") == ("a@b", "one")
    assert await find_reference(checkpointer, "a@b@2") == ("a@b", "2"), "an id comes first"
    assert await find_reference(checkpointer, "a@b@-1") == ("a@b", "2")
    assert await find_reference(checkpointer, "a@b@-3") == ("a@b", "one")
    assert await find_reference(checkpointer, "a") == ("a", "x@y")
    for missing in ("a@b@4", "a@b@-4", "a@b@0", "a@b@", "@", "a@nope", "nope", "nope@1"):
        with pytest.raises(CheckpointNotFoundError):
            await find_reference(checkpointer, missing)
