from __future__ import annotations

import asyncio
import math

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidFilterError,
    StoreCapabilityError,
)
from locus_memory.events import subscribe
from locus_memory.retrieval.embedders.marks import MARK, mark_of
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.turns import Turn, index_turns
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import EncryptingStore, encrypting
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeEmbedder

PLACE = ("talks",)
SAID = ["I adopted a grey cat", "How lovely", "The ferry was late", "We ate soup by the harbour"]


@pytest.fixture(params=["memory", "sqlite", "file"])
async def store(request, tmp_path):
    makers = {
        "memory": InMemoryStore,
        "sqlite": lambda: SQLiteStore(":memory:"),
        "file": lambda: SQLiteStore(tmp_path / "store.db"),
    }
    async with makers[request.param]() as made:
        yield made


@pytest.fixture
def events():
    seen = []
    stop = subscribe(seen.append)
    yield seen
    stop()


@pytest.fixture
def embedder():
    return FakeEmbedder()


async def talk(store, embedder=None, texts=SAID, place=PLACE):
    turns = [Turn(text=text, speaker="Ana", id=str(number)) for number, text in enumerate(texts)]
    await store.put_batch(await index_turns(place, turns, embedder, words=0))


def texts(result):
    return [hit.text for hit in result]


class Lame(StoreWrapper):
    """A store without some of its abilities."""

    def __init__(self, store, **lacking):
        super().__init__(store)
        self.lacking = lacking

    @property
    def capabilities(self):
        return StoreCapabilities(**{"search": True, "semantic_search": True, **self.lacking})


class Broken:
    name = "broken"
    dimension = 64

    async def embed(self, texts, *, kind):
        raise OSError("no network")

    async def rerank(self, query, texts):
        raise OSError("no network")


class Backwards:
    """A reranker that likes what the search does not."""

    name = "backwards"

    async def rerank(self, query, texts):
        self.seen = texts
        return list(range(len(texts)))


async def test_both_searches_find(store, embedder):
    await talk(store, embedder)
    result = await HybridSearch(store, embedder).search(
        PLACE, "what cat did she adopt", explain=True
    )
    assert result.mode == "hybrid"
    assert result[0].text == "Ana: I adopted a grey cat"
    assert (result[0].parts.text_rank, result[0].parts.vector_rank) == (1, 1)
    assert result[0].item.score == result[0].score
    assert len(result) == 4
    assert result[1].parts.text_rank is None


async def test_what_a_caller_changes_is_its_own(store, embedder):
    await talk(store, embedder)
    search = HybridSearch(store, embedder)
    first = await search.search(PLACE, "what cat did she adopt")
    found = first[0].item
    found.value["text"] = "I adopted a dog"
    found.metadata.clear()
    again = (await search.search(PLACE, "what cat did she adopt"))[0]
    assert again.text == first[0].text == "Ana: I adopted a grey cat"
    assert again.item.value["text"] == "I adopted a grey cat"
    assert again.item.metadata["speaker"] == "Ana"


async def test_a_change_is_seen_at_once(store, embedder):
    await talk(store, embedder)
    search = HybridSearch(store, embedder)
    (old, *_) = await search.search(PLACE, "what cat did she adopt")
    changed = {**old.item.value, "text": "I adopted a black cat"}
    await store.put(PLACE, old.item.key, changed, old.item.metadata)
    (new, *_) = await search.search(PLACE, "what cat did she adopt")
    assert (new.text, new.item.version) == ("Ana: I adopted a black cat", old.item.version + 1)


async def test_what_a_subclass_leaves_out_stays_out(store, embedder):
    await talk(store, embedder)

    class Discreet(type(store)):
        async def search(self, *arguments, **options):
            found = await super().search(*arguments, **options)
            return [each for each in found if "cat" not in each.value["text"]]

    store.__class__ = Discreet
    result = await HybridSearch(store).search(PLACE, "the cat and the ferry")
    assert texts(result) == ["Ana: The ferry was late"]


async def test_both_searches_run_at_once_and_once_each(store, embedder):
    await talk(store, embedder)
    started = []
    both = asyncio.Event()

    class Watched(StoreWrapper):
        async def meet(self, name):
            started.append(name)
            if len(started) == 2:
                both.set()
            await both.wait()

        async def search(self, *arguments, **options):
            await self.meet("text")
            return await super().search(*arguments, **options)

        async def search_by_embedding(self, *arguments, **options):
            await self.meet("vector")
            return await super().search_by_embedding(*arguments, **options)

    async with asyncio.timeout(60):
        await HybridSearch(Watched(store), embedder).search(PLACE, "cat")
    assert sorted(started) == ["text", "vector"]


async def test_without_an_embedder_words_must_do_and_it_says_so_once(store, events):
    await talk(store)
    search = HybridSearch(store)
    for _ in range(2):
        result = await search.search(PLACE, "ferry")
        assert result.mode == "text"
        assert texts(result) == ["Ana: The ferry was late"]
    assert [event.name for event in events].count("retrieval.degraded") == 1


@pytest.mark.parametrize(("lacking", "mode"), [("semantic_search", "text"), ("search", "vector")])
async def test_a_store_that_lacks_one_search_is_searched_by_the_other(
    store, embedder, events, lacking, mode
):
    await talk(store, embedder)
    result = await HybridSearch(Lame(store, **{lacking: False}), embedder).search(PLACE, "ferry")
    assert result.mode == mode
    assert result[0].text == "Ana: The ferry was late"
    assert events[-1].attributes["mode"] == mode


async def test_more_encrypted_items_than_are_searched_for_words_are_searched_by_meaning(
    store, embedder, events, monkeypatch
):
    vault = EncryptingStore(store, {"k": b"k" * 32}, active="k")
    await talk(vault, embedder)
    assert (await HybridSearch(vault, embedder).search(PLACE, "ferry")).mode == "hybrid"
    monkeypatch.setattr(encrypting, "MOST_SEARCHED", 1)
    result = await HybridSearch(vault, embedder).search(PLACE, "ferry")
    assert result.mode == "vector"
    assert result[0].text == "Ana: The ferry was late"
    assert events[-1].attributes["reason"] == "too many items"
    for search in (HybridSearch(vault), HybridSearch(vault, Broken())):
        with pytest.raises(StoreCapabilityError, match="narrow the namespace"):
            await search.search(PLACE, "ferry")


async def test_a_store_that_cannot_search_is_refused(store, embedder):
    with pytest.raises(StoreCapabilityError):
        await HybridSearch(Lame(store, search=False)).search(PLACE, "ferry")


async def test_a_failing_embedder_is_survived_and_reported(store, events):
    await talk(store)
    result = await HybridSearch(store, Broken()).search(PLACE, "ferry")
    assert (result.mode, len(result)) == ("text", 1)
    assert isinstance(events[-1].error, OSError)


async def test_a_failing_embedder_raises_where_words_cannot_do(store):
    with pytest.raises(OSError, match="no network"):
        await HybridSearch(Lame(store, search=False), Broken()).search(PLACE, "ferry")


class Other(FakeEmbedder):
    """Another model."""

    def __init__(self, dimension=64):
        super().__init__(dimension)
        self.name = f"other-{dimension}"


@pytest.mark.parametrize("dimension", [64, 8])
async def test_vectors_of_another_model_are_an_error_that_names_both(store, embedder, dimension):
    await talk(store, embedder)
    other = Other(dimension)
    for place, recursive in ((PLACE, False), (PLACE[:1], True), ([("a",), PLACE], False)):
        with pytest.raises(ConfigurationError, match=rf"fake-64 .*other-{dimension}.*reembed"):
            await HybridSearch(store, other).search(place, "ferry", recursive=recursive)
    assert len(await HybridSearch(store, other).search(("elsewhere",), "ferry")) == 0


async def test_vectors_of_unknown_origin_are_left_to_the_store(store, embedder):
    await store.put_with_embedding(PLACE, "a", "the ferry", [1.0] * 8)
    with pytest.raises(InvalidEmbeddingError):
        await HybridSearch(store, embedder).search(PLACE, "ferry")
    assert len(await HybridSearch(store, FakeEmbedder(8)).search(PLACE, "ferry")) == 1


async def test_a_mark_is_stored_and_not_seen(store, embedder):
    await talk(store, embedder)
    marks = [mark_of(item.metadata) for item in await store.scan(PLACE)]
    assert [mark.source for mark in marks] == [f"Ana: {said}" for said in SAID]
    assert all(mark.made_by(embedder) for mark in marks)
    for hit in await HybridSearch(store, embedder).search(PLACE, "ferry"):
        assert MARK not in hit.item.metadata
        assert hit.item.metadata["speaker"] == "Ana"


async def test_an_outage_is_never_an_empty_result(store, embedder):
    class Down(StoreWrapper):
        async def search(self, *arguments, **options):
            raise BackendUnavailableError("down")

    with pytest.raises(BackendUnavailableError):
        await HybridSearch(Down(store), embedder).search(PLACE, "ferry")


async def test_a_cancelled_search_is_cancelled(store, embedder):
    class Slow(StoreWrapper):
        async def search(self, *arguments, **options):
            await asyncio.Event().wait()

    task = asyncio.create_task(HybridSearch(Slow(store), embedder).search(PLACE, "ferry"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_reranker_sees_the_best_with_their_speaker(store, embedder):
    await talk(store, embedder)
    plain = await HybridSearch(store, embedder).search(PLACE, "grey cat")
    reranker = Backwards()
    options = SearchOptions(rerank_weight=100, rerank_depth=2)
    search = HybridSearch(store, embedder, reranker=reranker, options=options)
    result = await search.search(PLACE, "grey cat", explain=True)
    assert result.reranked
    assert reranker.seen == texts(plain)[:2]
    assert texts(result) == [*texts(plain)[1::-1], *texts(plain)[2:]]
    assert [hit.parts.rerank for hit in result] == [1, 0, None, None]


@pytest.mark.parametrize("reranker", [Broken(), type("Short", (Backwards,), {})()])
async def test_a_failing_reranker_is_survived_and_reported(store, events, reranker, monkeypatch):
    if isinstance(reranker, Backwards):

        async def short(query, texts):
            return []

        monkeypatch.setattr(reranker, "rerank", short)
    await talk(store)
    result = await HybridSearch(store, reranker=reranker).search(PLACE, "ferry")
    assert (len(result), result.reranked) == (1, False)
    assert events[-1].name == "retrieval.rerank_failed"


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, None, "high"])
async def test_a_score_that_is_no_number_is_survived_and_reported(
    store, embedder, events, monkeypatch, wrong
):
    async def odd(_, found):
        return [wrong, *map(float, range(1, len(found)))]

    await talk(store, embedder)
    plain = await HybridSearch(store, embedder).search(PLACE, "ferry")
    reranker = Backwards()
    monkeypatch.setattr(reranker, "rerank", odd)
    result = await HybridSearch(store, embedder, reranker=reranker).search(PLACE, "ferry")
    assert [(hit.item.key, hit.score) for hit in result] == [
        (hit.item.key, hit.score) for hit in plain
    ]
    assert not result.reranked
    assert events[-1].name == "retrieval.rerank_failed"


async def test_pages_fit_together(store, embedder):
    await talk(store, embedder, [f"note {number} about tea {number % 7}" for number in range(25)])
    search = HybridSearch(store, embedder, options=SearchOptions(depth=4))
    whole = await search.search(PLACE, "tea 3", 100)
    assert len({hit.item.key for hit in whole}) == len(whole) == 25
    paged = [
        hit
        for offset in range(0, 27, 3)
        for hit in await search.search(PLACE, "tea 3", 3, offset=offset)
    ]
    assert texts(paged) == texts(whole)
    scores = [hit.score for hit in whole]
    assert scores == sorted(scores, reverse=True)


async def test_filters_and_scopes_hold_for_both_searches(store, embedder):
    await talk(store, embedder)
    await talk(store, embedder, ["The ferry sank"], (*PLACE, "old"))
    search = HybridSearch(store, embedder)
    only = await search.search(PLACE, "ferry", filter={"turn": "2"})
    assert texts(only) == ["Ana: The ferry was late"]
    everywhere = await search.search(PLACE, "ferry", recursive=True)
    assert len(everywhere) == 5
    with pytest.raises(InvalidFilterError):
        await search.search(PLACE, "ferry", filter={"turn": {"$like": "2"}})


@pytest.mark.parametrize("query", ["", "  ", "?!"])
async def test_a_query_without_words_is_no_error(store, embedder, query):
    await talk(store)
    assert len(await HybridSearch(store).search(PLACE, query)) == 0


@pytest.mark.parametrize("query", [None, 5, b"tea"])
async def test_a_query_that_is_no_string_is_refused(store, query):
    with pytest.raises(InvalidArgumentError):
        await HybridSearch(store).search(PLACE, query)


async def test_a_limit_of_nothing_finds_nothing(store, embedder):
    await talk(store, embedder)
    assert list(await HybridSearch(store, embedder).search(PLACE, "ferry", 0)) == []


async def test_a_result_is_packed(store, embedder):
    await talk(store, embedder)
    result = await HybridSearch(store, embedder).search(PLACE, "ferry")
    assert texts(result.pack(24, counter=len).items) == ["Ana: The ferry was late"]
    assert texts(result[:1]) == texts(result)[:1]


@pytest.fixture
async def rooms(store, embedder):
    """Return two namespaces with notes of one kind in both."""
    rooms = [("users", "ana"), ("users", "bo")]
    for number, room in enumerate(rooms):
        notes = [f"note {each} about tea {each % 7}" for each in range(number, 24, 2)]
        await talk(store, embedder, notes, room)
    return rooms


async def test_several_namespaces_are_searched_as_one(store, embedder, rooms):
    search = HybridSearch(store, embedder)
    both = await search.search(rooms, "tea 3", 100)
    tree = await search.search(("users",), "tea 3", 100, recursive=True)
    assert sorted(texts(both)) == sorted(texts(tree))
    assert {hit.item.namespace for hit in both[:4]} == set(rooms)
    for room in rooms:
        alone = await search.search([room], "tea 3", 100)
        assert texts(alone) == texts(await search.search(room, "tea 3", 100))


async def test_pages_of_several_namespaces_fit_together(store, embedder, rooms):
    search = HybridSearch(store, embedder, options=SearchOptions(depth=4))
    whole = await search.search(rooms, "tea 3", 100)
    assert len({(hit.item.namespace, hit.item.key) for hit in whole}) == len(whole) == 24
    pages = [await search.search(rooms, "tea 3", 5, offset=each) for each in range(0, 27, 5)]
    assert [text for page in pages for text in texts(page)] == texts(whole)


async def test_namespaces_that_overlap_give_each_item_once(store, embedder, rooms):
    search = HybridSearch(store, embedder)
    places = [("users",), rooms[0], rooms[0]]
    found = await search.search(places, "tea 3", 100, recursive=True)
    assert len({(hit.item.namespace, hit.item.key) for hit in found}) == len(found) == 24


@pytest.mark.parametrize("places", [[], ["users", "ana"], [("users",), ()], "users", [["users"]]])
async def test_what_is_no_list_of_namespaces_is_refused(store, places):
    with pytest.raises(InvalidArgumentError):
        await HybridSearch(store).search(places, "tea")


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
async def test_a_way_of_searching_can_be_chosen(store, embedder, events, mode):
    await talk(store, embedder)
    search = HybridSearch(store, embedder)
    result = await search.search(PLACE, "ferry", mode=mode, explain=True)
    assert result.mode == mode
    assert result[0].text == "Ana: The ferry was late"
    assert any(hit.parts.text_rank for hit in result) == (mode != "vector")
    assert any(hit.parts.vector_rank for hit in result) == (mode != "text")
    assert events == []


async def test_text_alone_needs_no_embedder_and_is_no_loss(store, events):
    await talk(store)
    assert (await HybridSearch(store).search(PLACE, "ferry", mode="text")).mode == "text"
    assert events == []


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
async def test_a_way_that_cannot_be_had_is_refused_with_a_remedy(store, embedder, mode):
    await talk(store)
    with pytest.raises(InvalidArgumentError, match=r"needs an embedder.*mode='text'"):
        await HybridSearch(store).search(PLACE, "ferry", mode=mode)
    blind = HybridSearch(Lame(store, semantic_search=False), embedder)
    with pytest.raises(StoreCapabilityError, match=r"semantic_search.*mode='text'"):
        await blind.search(PLACE, "ferry", mode=mode)
    with pytest.raises(OSError, match="no network"):
        await HybridSearch(store, Broken()).search(PLACE, "ferry", mode=mode)


@pytest.mark.parametrize("mode", ["text", "hybrid"])
async def test_a_store_without_text_search_is_refused_where_text_is_asked_for(
    store, embedder, mode
):
    with pytest.raises(StoreCapabilityError, match=r"search.*mode='vector'"):
        await HybridSearch(Lame(store, search=False), embedder).search(PLACE, "x", mode=mode)


async def test_an_unknown_way_is_refused(store):
    with pytest.raises(InvalidArgumentError, match="hybrid, text, vector"):
        await HybridSearch(store).search(PLACE, "x", mode="words")


async def test_a_pasted_document_is_searched_with_both_its_ends(store, embedder):
    await talk(store, embedder)
    asked = []

    class Watched(StoreWrapper):
        async def search(self, namespace, query=None, *arguments, **options):
            asked.append(query)
            return await super().search(namespace, query, *arguments, **options)

    class Listening(FakeEmbedder):
        async def embed(self, texts, *, kind):
            asked.extend(texts)
            return await super().embed(texts, kind=kind)

        async def rerank(self, query, texts):
            asked.append(query)
            return [0.0] * len(texts)

    pasted = f"Was the ferry late? {'lorem ipsum dolor ' * 300_000} Or did we eat soup?"
    search = HybridSearch(Watched(store), Listening(), reranker=Listening())
    found = texts(await search.search(PLACE, pasted))
    assert set(found[:2]) == {"Ana: The ferry was late", "Ana: We ate soup by the harbour"}
    # Of each end four passages and the rest of one, by words and by meaning; then the reranker.
    assert len(asked) <= 2 * 10 + 1
    assert max(map(len, asked)) < 2100


STORY = "We walked along the canal for hours and talked about nothing at all. " * 20
CODE = "for (let i = 0; i < rows.length; i++) { total += rows[i].price; }\n" * 30


@pytest.mark.parametrize("before", [STORY, CODE], ids=["story", "code"])
@pytest.mark.parametrize("after", [STORY, CODE, ""], ids=["story", "code", "nothing"])
@pytest.mark.parametrize("nearness", [FakeEmbedder(), None], ids=["vectors", "words"])
async def test_a_request_within_a_long_message_is_not_hidden(store, nearness, before, after):
    others = [f"The price of row {n} is a total of {n}, we talked about rows" for n in range(40)]
    await talk(store, nearness, [*SAID, *others])
    found = await HybridSearch(store, nearness).search(
        PLACE, f"{before}Which cat did I adopt?\n{after}"
    )
    assert texts(found)[0] == "Ana: I adopted a grey cat"
    assert found[0].relevance == found[0].score == max(hit.relevance for hit in found)


@pytest.mark.parametrize("least", [None, 0.1])
async def test_pages_of_a_long_message_fit_together(store, embedder, least):
    await talk(store, embedder, [f"note {number} about tea {number % 7}" for number in range(25)])
    search = HybridSearch(store, embedder, options=SearchOptions(depth=4))
    message = f"{STORY}Is there tea 3?\n{STORY}Or a note about tea 5?"
    whole = await search.search(PLACE, message, 100, min_score=least)
    assert len({hit.item.key for hit in whole}) == len(whole) >= 20
    paged = [
        hit
        for offset in range(0, 27, 3)
        for hit in await search.search(PLACE, message, 3, offset=offset, min_score=least)
    ]
    assert texts(paged) == texts(whole)
    scores = [hit.score for hit in whole]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("filler", "wanted"),
    [
        (" ".join(f"magnificent{number}" for number in range(40)), "The cat sat."),
        (
            "我昨天和朋友们在城里看了一整天的电影然后回家睡觉，今天早上又去公园散步并且买了新鲜面包",  # noqa: RUF001 - Chinese
            "猫喜欢吃鱼",
        ),
        (
            "昨日は友達と町で一日中映画を見てから家に帰って寝ました、今朝は公園を散歩してパンも買いました",
            "猫は魚が好き",
        ),
        (
            " ".join(
                f"{first}{second}나무" for first in "가나다라마바" for second in "사아자차카타파"
            ),
            "고양이는 물고기",
        ),
        (
            " ".join(f"{first}{second}มมม" for first in "กขคงจฉ" for second in "ชซดตถทน"),
            "แมวชอบปลา",
        ),
    ],
)
async def test_the_words_at_the_end_of_a_long_message_count(store, filler, wanted):
    await store.put(PLACE, "wanted", {"text": wanted})
    await store.put(PLACE, "other", {"text": "zebra"})
    found = await HybridSearch(store).search(PLACE, f"{filler} {wanted}")
    assert texts(found)[:1] == [wanted]


async def test_the_parts_make_the_score_on_every_page(store, embedder):
    """Also where the score of a later window is lowered."""
    await talk(store, embedder, [f"tea {'and tea ' * (n % 5)}{n}" for n in range(30)])
    search = HybridSearch(store, embedder, options=SearchOptions(depth=4))
    hits = (await search.search(PLACE, "tea 3, tea 20 or tea 29", 30, explain=True)).hits
    assert any(hit.parts.capped for hit in hits)
    assert any("later window" in hit.parts.describe() for hit in hits)
    assert [hit.parts.score for hit in hits] == pytest.approx([hit.score for hit in hits])


async def test_the_parts_make_the_score_of_a_long_message(store, embedder):
    await talk(store, embedder, [f"note {number} about tea {number % 7}" for number in range(25)])
    await store.put(PLACE, "new", "note 31", {"supersedes": "old"})
    await store.put(PLACE, "old", "is there note 31 about tea 3?")
    search = HybridSearch(store, embedder, options=SearchOptions(depth=4))
    message = f"{STORY}Is there note 31 about tea 3?\n{STORY}Or a note about tea 5?"
    hits = (await search.search(PLACE, message, 30, explain=True)).hits
    assert any(hit.parts.capped for hit in hits)
    assert "best sentence" in hits[0].parts.describe()
    assert [hit.parts.score for hit in hits] == pytest.approx([hit.score for hit in hits])


@pytest.mark.parametrize("before", ["", STORY])
async def test_what_supersedes_stands_above_in_long_messages_too(store, before):
    await store.put(PLACE, "old", "Ana lives in the town of Bergen")
    await store.put(PLACE, "other", "Bo lives in a town")
    await store.put(PLACE, "new", "Ana moved to a village, no town", {"supersedes": "old"})
    query = f"{before}Ana lives in which town, Bergen?"
    plain = await HybridSearch(store).search(PLACE, query, explain=True)
    new, old = plain[:2]
    assert [new.item.key, old.item.key] == ["new", "old"]
    assert new.parts.succession > 0
    assert old.parts.superseded_by == "new"
    assert new.score == old.score
    assert new.relevance == old.relevance
    assert [hit.parts.score for hit in plain] == pytest.approx([hit.score for hit in plain])


async def test_what_supersedes_stands_above_what_was_superseded(store, embedder):
    await store.put(PLACE, "old", "Ana lives in the town of Bergen")
    await store.put(PLACE, "other", "Bo lives in a town")
    await store.put(PLACE, "new", "Ana moved to a village, no town", {"supersedes": "old"})
    query = "Ana lives in which town, Bergen?"
    reranker = Backwards()
    for search in (HybridSearch(store), HybridSearch(store, reranker=reranker)):
        result = await search.search(PLACE, query, explain=True)
        keys = [hit.item.key for hit in result]
        assert keys.index("new") == keys.index("old") - 1
        parts = {hit.item.key: hit.parts for hit in result}
        assert parts["old"].superseded_by == "new"
        assert parts["new"].superseded_by is None
        scores = [hit.score for hit in result]
        assert scores == sorted(scores, reverse=True)
    plain = await HybridSearch(store).search(PLACE, query, explain=True)
    assert plain[0].item.key == "new"
    assert plain[0].parts.succession > 0
    assert plain[0].parts.score == pytest.approx(plain[0].score)
    assert "supersedes a better one" in plain[0].parts.describe()
    assert "superseded by new" in plain[1].parts.describe()


@pytest.mark.parametrize("query", ["mull*", "*mull*", "int* mull", "mull**"])
async def test_a_star_in_a_message_is_punctuation(query):
    """A correction such as "their*" finds what it would without the star, on every store."""
    async with InMemoryStore() as store:
        await store.put(("a",), "k", "a mulligan")
        await store.put(("a",), "m", "a mull of sand")
        hits = await HybridSearch(store).search(("a",), query)
        assert [hit.item.key for hit in hits] == ["m"]
