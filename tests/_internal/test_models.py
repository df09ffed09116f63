"""What every table of models, embedders, rerankers and conversation managers does with a string."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from locus_memory._internal.providers.models import ModelRow, ModelTable
from locus_memory.errors import ConfigurationError, UnknownOptionError, UnknownProviderError


class Thing:
    """What the table makes; its main argument may be left out."""

    def __init__(self, size=1, *, loud=False):
        self.size, self.loud = size, loud


class Own(Thing):
    pass


class Bare(Thing):
    def __init__(self):
        super().__init__()


@pytest.fixture
def table():
    rows = {
        "thing": ModelRow(f"{__name__}:Thing", "size", is_number=True),
        "bare": ModelRow(f"{__name__}:Bare"),
    }
    return ModelTable[Thing]("thing", Thing, rows, group="some.things")


@pytest.fixture
def installed(monkeypatch):
    """Installs entry points: a function of names and their targets."""

    def install(**targets):
        found = [EntryPoint(name, target, "some.things") for name, target in targets.items()]
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda *, group: found if group == "some.things" else [],
        )

    return install


def test_a_string_has_a_name_and_a_main_argument(table):
    assert (table.make("THING:7", {"loud": True}).size, table.make("thing", {}).size) == (7, 1)
    assert table.make("thing", {"size": 3}).size == 3
    assert table.names() == ["bare", "thing"]


@pytest.mark.parametrize(
    ("where", "options", "error", "message"),
    [
        ("thin", {}, UnknownProviderError, "did you mean 'thing'. Known: bare, own, text, thing"),
        ("thing:x", {}, ConfigurationError, "size is a number, as in 'thing:20', not 'x'"),
        ("thing:7", {"size": 7}, ConfigurationError, "'size' is given twice"),
        ("thing", {"quiet": 1}, UnknownOptionError, "unknown option 'quiet'. Known: loud, size"),
        ("bare:1", {}, ConfigurationError, "write just 'bare'"),
        ("own:1", {}, ConfigurationError, "own: takes no hint, write just 'own'"),
        ("text", {}, ConfigurationError, "text: made a str, not a Thing"),
    ],
)
def test_what_is_refused(table, where, options, error, message):
    table.register("own", Bare)
    table.register("text", lambda hint: f"{hint}")
    with pytest.raises(error, match=message):
        table.make(where, options)


def test_your_own_comes_before_a_built_in_one(table):
    unregister = table.register("THING", Own)
    assert type(table.make("thing:3", {"loud": True})) is Own
    assert table.make("thing:3", {}).size == "3"
    unregister()
    unregister()
    assert type(table.make("thing", {})) is Thing


@pytest.mark.parametrize("name", ["", "a b", "a:b", 5])
def test_a_bad_name_is_refused(table, name):
    with pytest.raises(ConfigurationError):
        table.register(name, Own)


def test_a_plugin_is_found_after_the_built_in_ones(table, installed):
    installed(Theirs=f"{__name__}:Own", thing=f"{__name__}:Own")
    assert table.names() == ["bare", "theirs", "thing"]
    assert (table.make("theirs:big", {"loud": True}).size, type(table.make("thing", {}))) == (
        "big",
        Thing,
    )


@pytest.mark.parametrize("target", ["no_such_module:make", "sys:maxsize"])
def test_a_plugin_that_is_broken_is_named(table, installed, target):
    installed(theirs=target)
    with pytest.raises(ConfigurationError, match=f"theirs: its plugin '{target}'"):
        table.make("theirs", {})


def test_a_table_has_no_plugins_by_default():
    assert ModelTable("thing", Thing, {}).names() == []
