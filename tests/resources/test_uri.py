"""URIs: parsing is exact, and two paths never meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, InvalidMemoryURI
from locus_memory.resources.uri import MemoryURI, as_uri

segments = st.text(min_size=1, max_size=30).filter(lambda text: text not in (".", ".."))
paths = st.lists(segments, max_size=6).map(tuple)
uris = st.builds(MemoryURI, paths, st.booleans())


@pytest.mark.slow
@given(uris)
def test_the_text_of_a_uri_gives_it_back(uri):
    assert MemoryURI.parse(str(uri)) == uri


@pytest.mark.slow
@given(paths, paths)
def test_two_paths_never_have_the_same_text(one, other):
    assert (str(MemoryURI(one)) == str(MemoryURI(other))) == (one == other)


@pytest.mark.slow
@given(uris)
def test_the_canonical_text_is_plain_ascii_and_stays(uri):
    text = str(uri)
    assert text.isascii()
    assert text.isprintable()
    assert str(MemoryURI.parse(text)) == text


@given(st.text(max_size=60))
def test_any_text_is_a_uri_or_refused(text):
    try:
        uri = MemoryURI.parse(f"memory://{text}")
    except InvalidMemoryURI:
        return
    assert MemoryURI.parse(str(uri)) == uri
    assert not {"", ".", ".."} & set(uri.segments)


@pytest.mark.slow
@given(uris, segments)
def test_a_child_is_within_its_parent(uri, name):
    child = uri.child(name)
    assert child.parent == uri.as_folder
    assert child.name == name
    assert child.is_within(uri)
    assert not uri.is_within(child)


def test_three_slashes_are_two():
    assert MemoryURI.parse("memory:///a/b") == MemoryURI.parse("memory://a/b")
    assert MemoryURI.parse("memory://a/b").segments == ("a", "b")
    assert MemoryURI.parse("MEMORY://a%2fb").segments == ("a/b",)
    assert str(MemoryURI(("a/b", "é"))) == "memory://a%2Fb/%C3%A9"


def test_the_root_is_a_folder_and_within_itself():
    assert str(MemoryURI.parse("memory:///")) == "memory://"
    assert MemoryURI().is_folder
    assert MemoryURI().parent == MemoryURI()
    assert MemoryURI().name == ""


@pytest.mark.parametrize(
    "text",
    [
        *("", "a/b", "/a", "http://a", "memory:a", "memory:/a", "viking://a"),
        *("memory:////a", "memory://a//b", "memory://a//", "memory://."),
        *("memory://a/..", "memory://a/%2e%2E", "memory://%", "memory://a%2", "memory://%zz"),
        *("memory://%ff", "memory://\ud800", "memory://" + "a" * 1001),
        "memory://" + "/".join("a" * 65),
        None,
        5,
    ],
)
def test_what_is_no_uri_is_refused(text):
    with pytest.raises(InvalidMemoryURI):
        as_uri(text)
    assert issubclass(InvalidMemoryURI, InvalidArgumentError)


def test_a_segment_is_one_text():
    for name in ("", ".", "..", "\udfff", 5):
        with pytest.raises(InvalidMemoryURI):
            MemoryURI((name,))
    assert MemoryURI().child("a/../b\x00").segments == ("a/../b\x00",)
