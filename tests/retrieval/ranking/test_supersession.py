from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.supersession import prefer_successors
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def note(key, namespace=("n",), **links):
    return StoreItem(namespace, key, key, links, NOW, NOW, score=1.0)


def order(*items, **options):
    return [items[each.place] for each in prefer_successors(items, **options)]


@pytest.mark.parametrize(
    "links",
    [
        ({"superseded_by": "new"}, {}),
        ({}, {"supersedes": "old"}),
        ({}, {"supersedes": ["gone", "old"]}),
        ({"superseded_by": "new"}, {"supersedes": "old"}),
    ],
)
def test_a_key_links_within_a_namespace(links):
    old, other, new = note("old", **links[0]), note("other"), note("new", **links[1])
    assert order(old, other, new) == [new, old, other]
    assert order(new, other, old) == [new, other, old]
    elsewhere = note("new", ("m",), **links[1])
    assert order(old, other, elsewhere) == [old, other, elsewhere]


def test_where_each_stands_is_told():
    items = [note("a", superseded_by="b"), note("x"), note("b", superseded_by="c"), note("c")]
    assert prefer_successors(items) == [
        (3, 0, None),
        (2, 0, 3),
        (0, None, 2),
        (1, None, None),
    ]


def test_one_that_is_not_there_breaks_no_chain():
    items = [note("a", superseded_by="b"), note("c", supersedes="b")]
    assert order(*items) == items[::-1]


def test_fields_say_where_the_links_are():
    items = [note("a"), note("b", replaces="a")]
    assert order(*items) == items
    assert order(*items, fields=Fields(supersedes=("replaces",))) == items[::-1]


@pytest.mark.parametrize(
    "link",
    [None, 5, True, "", [], [[["b"]]], {}, {"type": 1, "key": []}, [None, {"key": 2}]],
)
def test_what_is_no_link_changes_nothing(link):
    items = [note("a", superseded_by=link), note("b"), note("c", supersedes=link)]
    assert order(*items) == items


def test_what_goes_round_in_a_circle_stays_as_it_was():
    items = [note("a", superseded_by="b"), note("b", superseded_by=["a", "b"])]
    assert order(*items) == items
    # What supersedes a part of it still stands above all of it.
    assert order(*items, note("c", supersedes="b")) == [note("c", supersedes="b"), *items]


KEYS = "abcdefgh"
LINKS = st.dictionaries(
    st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=3), max_size=8
)
RANKINGS = st.permutations(KEYS).flatmap(lambda keys: st.integers(0, 8).map(lambda n: keys[:n]))


def reach(start, links):
    found, waiting = set(), [start]
    while waiting:
        new = set(links.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(RANKINGS, LINKS, st.booleans())
def test_nothing_is_lost_and_successors_stand_above(keys, links, forward):
    there = {key: [each for each in newer if each in keys] for key, newer in links.items()}
    if forward:
        items = [note(key, superseded_by=there.get(key, [])) for key in keys]
    else:
        items = [
            note(key, supersedes=[old for old in keys if key in there.get(old, [])]) for key in keys
        ]
    now = [item.key for item in order(*items)]
    assert sorted(now) == sorted(keys)
    for place, old in enumerate(now):
        for new in reach(old, {key: there.get(key, []) for key in keys}):
            assert old in reach(new, there) or now.index(new) < place
    linked = {key for key in keys if there.get(key)} | {
        new for old in keys for new in there.get(old, [])
    }
    free = [key for key in keys if key not in linked]
    assert [key for key in now if key in free] == free


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(min_size=1), unique=True))
def test_without_links_nothing_moves(keys):
    assert prefer_successors([note(key) for key in keys]) == [
        (place, None, None) for place in range(len(keys))
    ]


def test_a_memory_links_to_another_by_type_and_key():
    old = note("user:town")
    new = note("user:home", supersedes={"type": "user", "key": "town", "sequence": 3})
    own = note("user:job", supersedes={"type": "user", "key": "job", "sequence": 1})
    assert order(old, own, new) == [new, old, own]


def test_a_long_chain_takes_no_time():
    chain = [note(f"{number}", superseded_by=f"{number + 1}") for number in range(500)]
    assert order(*chain) == chain[::-1]
