from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory._internal.sameness import is_plain, same
from locus_memory.checkpoint.delta import apply, diff, stays_plain
from locus_memory.errors import CheckpointError

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, -0.0, 1.0, 2.5])
    | st.text("ab\x00é", max_size=3)
    | st.text("ab ", min_size=30, max_size=60)
)
KEYS = st.sampled_from(["a", "b", "~", "=", ""])
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
EXACT = settings(max_examples=200, deadline=None)


def stored(delta: Any) -> Any:
    """Return a delta as it comes back from a database."""
    return orjson.loads(orjson.dumps(delta))


def check(old: Any, new: Any) -> Any:
    before = orjson.dumps([old, new])
    delta = diff(old, new)
    assert same(apply(old, stored(delta)), new)
    assert orjson.dumps([old, new]) == before
    return delta


@pytest.mark.slow
@EXACT
@given(DOCUMENTS, DOCUMENTS)
def test_any_pair(old, new):
    check(old, new)


@pytest.mark.slow
@EXACT
@given(DOCUMENTS, DOCUMENTS)
def test_a_plain_document_is_compared_as_exactly(old, new):
    if is_plain(old):
        delta = stored(diff(old, new, plain=True))
        assert same(apply(old, delta), new)
        assert not stays_plain(delta) or is_plain(new)


@pytest.mark.slow
@EXACT
@given(st.dictionaries(KEYS, DOCUMENTS), st.dictionaries(KEYS, DOCUMENTS))
def test_a_document_of_texts_is_compared_as_exactly(old, new):
    texts = [key for key, value in old.items() if is_plain(value, in_list=True)]
    delta = stored(diff(old, new, texts=texts))
    assert same(apply(old, delta), new)


@pytest.mark.parametrize(
    ("document", "plain"),
    [
        ({"n": 1, "m": [{"content": "x", "more": None}], "o": {"p": True}}, True),
        ({"m": [{"n": 1}]}, False),
        ([[[True]]], False),
        ([{"a": {"b": [1.5]}}], False),
        (1, True),
    ],
)
def test_what_is_plain(document, plain):
    assert is_plain(document) is plain
    assert stays_plain(["=", document]) is plain


@pytest.mark.slow
@EXACT
@given(st.lists(DOCUMENTS, max_size=12), st.data())
def test_an_edited_list(old, data):
    new = copy.deepcopy(old)
    for _ in range(data.draw(st.integers(0, 4))):
        index = data.draw(st.integers(0, len(new)))
        new[index : index + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(DOCUMENTS, max_size=2)
        )
    check(old, new)


@pytest.mark.slow
@EXACT
@given(st.text(min_size=33), st.text(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_an_edited_string(old, added, start, dropped):
    check(old, old[:start] + added + old[start + dropped :])


@pytest.mark.slow
@EXACT
@given(DOCUMENTS, DOCUMENTS)
def test_a_delta_with_its_result_gives_the_same(old, new):
    assert same(apply(old, stored(diff(old, new)), new), new)


def test_an_edited_string_is_that_of_the_result():
    """A later comparison with a long text of the caller's finds the same object."""
    text = "a text that is long enough to be spliced"
    old: Any = {"m": ["kept", {"n": 1}, "anchor", {"n": 1, "text": text}]}
    new: Any = copy.deepcopy(old)
    new["m"][1:2] = ["more elements", "of the list"]
    new["m"][-1]["text"] += ", and that grew"
    applied = apply(old, stored(diff(old, new)), new)
    assert applied == new
    assert applied["m"][-1]["text"] is new["m"][-1]["text"]


def test_the_same_is_none():
    document = {"a": [1, {"b": "text"}], "c": None}
    assert diff(document, copy.deepcopy(document)) is None


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (1, 1.0), (0, False), (0.0, -0.0), (None, False), ("", None)]
)
def test_types_are_told_apart(old, new):
    assert check([old], [new]) is not None
    assert check({"k": {"v": old}}, {"k": {"v": new}}) is not None
    assert not same([old], [new])


def messages(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"message {index} " * 40} for index in range(count)]


def size(delta: Any) -> int:
    return len(orjson.dumps(delta))


def test_a_list_that_grew_costs_what_was_added():
    old, new = messages(200), messages(202)
    added = size(new[200:])
    assert size(check({"messages": old, "n": 1}, {"messages": new, "n": 2})) < added + 60


def test_a_window_that_moved_costs_what_was_added():
    all_ = messages(202)
    assert size(check(all_[:200], all_[2:])) < size(all_[200:]) + 30


def test_an_insertion_and_an_edit_cost_themselves():
    old = messages(100)
    new = copy.deepcopy(old)
    new.insert(10, {"role": "system", "content": "in between"})
    new[60]["content"] += "and more"
    del new[80:83]
    assert size(check(old, new)) < 200


def test_a_string_that_grew_costs_what_was_added():
    old = "streamed text " * 300
    assert size(check(old, old + "goes on")) < 40
    assert size(check(old, old[:2000] + "X" + old[2001:])) < 40


def test_moved_elements_are_not_written_again():
    old = messages(60)
    new = [*old[30:], *old[:30]]
    assert size(check(old, new)) < size(old[:30]) + 60


def test_a_delta_for_another_document_is_refused():
    wrong = [
        (diff({"a": [1, 2, 3]}, {"a": [1, 2, 3, 4]}), {"a": "text"}),
        (diff(list(range(9)), list(range(10))), [1, 2]),
        (diff("a" * 50, "a" * 49 + "b"), "short"),
        (["?", 1], {}),
        ({"not": "a delta"}, {}),
        ([], {}),
    ]
    for delta, document in wrong:
        with pytest.raises(CheckpointError):
            apply(document, delta)


@given(
    st.dictionaries(st.text("abc", max_size=2), st.text("xy", max_size=2), max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["edit", "drop", "add", "last"]))),
)
def test_an_edited_mapping_of_texts_is_exact(old, edits):
    old = {key: {"content": text, "more": [text]} for key, text in old.items()}
    new = copy.deepcopy(old)
    for place, edit in edits:
        name = [*new, "new"][min(place, len(new))]
        if edit == "add":
            new[f"{name}+{place}"] = {"content": "added", "more": []}
        elif edit == "edit" and name in new:
            new[name]["more"].append("edited")
        elif name in new:
            moved = new.pop(name)
            if edit == "last":
                new[name] = moved
    delta = stored(diff({"m": old}, {"m": new}, texts={"m"}))
    assert same(apply({"m": old}, delta), {"m": new})
    assert (delta is None) == (old == new)
