from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.memory import LLMMemoryManager, Memory, MemoryType
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.supersession import prefer_successors
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
OWNER = ("users", "ana")


def note(key, namespace=("n",), **links):
    return StoreItem(namespace, key, key, links, NOW, NOW, score=1.0)


def past(number, key="town", owner=OWNER, change="update", by=None):
    link = {"type": "user", "key": key, "change": change}
    return version(
        f"{number:012}",
        (*owner, "history", "user", key),
        key,
        sequence=number,
        superseded_by=link if by is None else link | {"sequence": by},
    )


def current(number, key="town", owner=OWNER, supersedes=None):
    links = {}
    if supersedes is not None:
        links = {"supersedes": {"type": "user", "key": key, "sequence": supersedes}}
    return version(f"user:{key}", (*owner, "current"), key, sequence=number, **links)


def version(name, namespace, key, **metadata):
    value = {"type": "user", "key": key, "content": "x", "metadata": metadata}
    return StoreItem(namespace, name, value, {}, NOW, NOW, score=1.0)


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


def test_versions_of_a_memory_follow_the_current_one():
    first, second, now = past(1, by=2), past(2, by=3), current(3, supersedes=2)
    other = note("other")
    assert order(first, second, other, now) == [now, second, first, other]
    # Whether or not those between were found.
    assert order(first, other, now) == [now, first, other]
    assert order(first, other, current(9, supersedes=8)) == [current(9, supersedes=8), first, other]


@pytest.mark.parametrize("change", ["delete", "evict", "undo"])
def test_what_was_removed_follows_what_was_written_again(change):
    gone, now = past(1, change=change), current(2)
    assert order(gone, now) == [now, gone]


def test_what_was_taken_back_follows_what_was_brought_back():
    undone, now = past(2, change="undo", by=1), current(1)
    assert order(undone, now) == [now, undone]


@pytest.mark.parametrize(
    "now",
    [
        current(2, owner=("users", "bo"), supersedes=1),
        current(2, owner=("users",), supersedes=1),
        current(2, key="name", supersedes=1),
    ],
)
def test_versions_of_other_owners_and_keys_never_meet(now):
    old = past(1, by=2)
    assert order(old, now) == [old, now]


def test_a_name_that_is_like_a_place_is_no_trap():
    for key in ("current", "history"):
        old, now = past(1, key=key, by=2), current(2, key=key, supersedes=1)
        assert order(old, now) == [now, old]


def test_one_that_is_not_there_breaks_no_chain():
    items = [note("a", superseded_by="b"), note("c", supersedes="b")]
    assert order(*items) == items[::-1]


async def test_what_a_memory_manager_writes_is_understood():
    store = InMemoryStore()
    manager = LLMMemoryManager(store)
    for content in ("Ana lives in the town of Bergen", "Ana moved to a village"):
        await manager.save([Memory(MemoryType.USER, "home", content)])
    await manager.save([Memory(MemoryType.USER, "other", "Bo lives in a town")])
    # A manager keeps past versions out of text search; somebody who wants them puts them there.
    for namespace in await store.list_namespaces(manager.namespace):
        await store.put_batch(
            (namespace, item.key, item.value) for item in await store.scan(namespace)
        )
    query = "Ana lives in which town, Bergen?"
    search = HybridSearch(store)
    result = await search.search(manager.namespace, query, recursive=True, explain=True)
    assert [hit.text for hit in result][:2] == [
        "Ana moved to a village",
        "Ana lives in the town of Bergen",
    ]
    assert result[1].parts.superseded_by == "user:home"


def test_fields_say_where_the_links_are():
    items = [note("a"), note("b", replaces="a")]
    assert order(*items) == items
    assert order(*items, fields=Fields(supersedes=("replaces",))) == items[::-1]


@pytest.mark.parametrize(
    "link",
    [None, 5, True, "", [], [[["b"]]], {}, {"type": 1, "key": []}, [None, {"key": 2}]],
)
def test_what_is_no_link_changes_nothing(link):
    items = [note("a", superseded_by=link), note("b"), past(1), note("c", supersedes=link)]
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


@settings(deadline=None, max_examples=100)
@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)))
def test_a_history_is_in_its_order(numbers, missing):
    chain = [past(number, by=number + 1) for number in range(1, 8)] + [current(8, supersedes=7)]
    items = [chain[number - 1] for number in numbers if number not in missing or number == 8]
    found = order(*items)
    assert len(found) == len(items)
    assert found[0] == chain[-1]


def test_a_long_history_takes_no_time():
    chain = [past(number, by=number + 1) for number in range(1, 500)]
    found = order(*chain, current(500, supersedes=499))
    assert [item.value["metadata"]["sequence"] for item in found] == [*range(500, 0, -1)]
