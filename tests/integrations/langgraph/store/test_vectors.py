"""LangGraph's store over ours: searches by meaning."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from hashlib import blake2b

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp, SearchOp

from locus_memory import ConfigurationError, InvalidEmbeddingError, forget, get_store, open_backend
from locus_memory.errors import BackendWriteError
from locus_memory.integrations.langgraph.items.notes import name_write
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeClock, FakeEmbedder

LETTERS = "abcdefgh"


def letters(texts):
    """How often each letter is in a text: a vector of meaning that a test can reckon with."""
    return [[float(text.count(letter)) for letter in LETTERS] for text in texts]


def cosine(left, right):
    [x], [y] = letters([left]), letters([right])
    lengths = sum(a * a for a in x) * sum(b * b for b in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / lengths**0.5


class WithoutVectors(StoreWrapper):
    """A store on a server that has none, such as a PostgreSQL without pgvector."""

    @property
    def capabilities(self):
        return replace(super().capabilities, semantic_search=False)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
async def ours(request, tmp_path, clock):
    options = {}
    if request.param == "sqlite":
        options = {"path": tmp_path / "a.db"}
    elif request.param == "postgresql":
        url = request.getfixturevalue("postgresql_server").url
        options = {"database": url, "schema": request.getfixturevalue("schema_of")(tmp_path)}
    elif request.param == "redis":
        mark = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        options = {"url": request.getfixturevalue("redis_server").url, "key_prefix": mark}
    async with get_store(request.param, clock=clock, **options) as made:
        yield made


def over(ours, *fields, embed=letters, **options):
    index = {"dims": len(LETTERS), "embed": embed, "fields": list(fields) or None}
    return LocusStore(ours, index=index, **options)


async def names(store, query, *prefix, **options):
    return [item.key for item in await store.asearch(prefix, query=query, **options)]


async def further_vectors(ours):
    return await ours.search((FURTHER_VECTORS,), None, 1000, recursive=True)


class TestOneText:
    async def test_the_nearest_comes_first(self, ours):
        """The score is the cosine, and what others put there with a vector is found too."""
        store = over(ours, "text")
        await store.aput(("u", "1"), "a", {"text": "aab"})
        await store.aput(("u", "2"), "b", {"text": "b"})
        await store.aput(("ux",), "c", {"text": "ab"})
        await store.aput(("u", "1"), "none", {"other": "a"})
        await ours.put_with_embedding(("u", "3"), "d", "a value", letters(["bbbba"])[0])
        hits = await store.asearch(("u",), query="ab")
        assert [hit.key for hit in hits] == ["a", "d", "b"]
        assert hits[0].score == pytest.approx(cosine("aab", "ab"), abs=1e-5)
        assert await names(store, "ab", limit=2) == ["c", "a"]
        assert await names(store, "ab", "u", offset=1, limit=1) == ["d"]
        assert await further_vectors(ours) == []

    async def test_opposites_have_a_negative_score(self, ours):
        store = LocusStore(
            ours, index={"embed": lambda texts: [[float(text), 1.0] for text in texts]}
        )
        await store.aput(("u",), "k", {"n": "-3"}, index=["n"])
        [hit] = await store.asearch(("u",), query="3")
        assert hit.score == pytest.approx(-0.8, abs=1e-5)

    async def test_the_whole_value_by_default(self, ours):
        store = over(ours)
        await store.abatch(
            [PutOp(("u",), "k", {"x": {"y": "ccc"}}), PutOp(("u",), "l", {"z": "d"})]
        )
        assert await names(store, "c", "u") == ["k", "l"]
        await store.aput(("u",), "k", {"x": "d"}, index=["$"])
        await store.aput(("u",), "l", {"x": "c", "y": "d"}, index=["x"])
        assert await names(store, "c", "u") == ["l", "k"]

    @pytest.mark.parametrize("index", [False, ["other"]])
    async def test_a_put_drops_the_vector_of_what_was_there(self, ours, index):
        store = over(ours, "text", "more[*]")
        await store.aput(("u",), "k", {"text": "a", "more": ["b", "c"]})
        await store.aput(("u",), "k", {"text": "a", "more": ["b", "c"]}, index=index)
        assert [await names(store, query) for query in "abc"] == [[], [], []]
        assert await further_vectors(ours) == []
        assert (await store.aget(("u",), "k")).value["text"] == "a"
        assert await names(store, None) == ["k"]

    async def test_without_an_index_a_put_drops_vectors_too(self, ours):
        """What is left of them is not found, and goes with the next search."""
        await over(ours, "text", "more").aput(("u",), "k", {"text": "a", "more": "b"})
        await LocusStore(ours).aput(("u",), "k", {"text": "a", "more": "b"})
        assert await names(over(ours), "b") == []

    async def test_texts_without_a_direction_have_no_vector(self, ours):
        """A blank text is not embedded, and a vector of zeros is like nothing."""
        store = over(ours, "text")
        await store.abatch(
            [PutOp(("u",), str(n), {"text": t}) for n, t in enumerate(["", "z", "a"])]
        )
        assert await names(store, "a") == ["2"]
        assert await names(store, "z") == []

    async def test_a_filter_loses_nothing(self, ours):
        """However many nearer items do not match, whether or not the database can filter."""
        store = over(ours, "text")
        ops = [PutOp(("u",), f"near{n}", {"text": "a", "x": {"y": [0]}}) for n in range(150)]
        ops += [
            PutOp(("u",), f"far{n}", {"text": "ab" + n * "b", "x": {"y": [1]}}) for n in range(9)
        ]
        await store.abatch(ops)
        expected = [f"far{n}" for n in range(9)]
        assert await names(store, "a", "u", filter={"x": {"y": [1]}}) == expected
        assert await names(store, "a", "u", filter={"x": {"y": {"$ne": [0]}}}) == expected
        assert await names(store, "a", filter={"x.y": [1]}, limit=4, offset=3) == expected[3:7]


class TestSeveralTexts:
    async def test_the_best_text_counts(self, ours):
        """An item is found once, wherever one of its texts is near."""
        store = over(ours, "title", "parts[*].text", "last[-1]")
        value = {"title": "a", "parts": [{"text": "b"}, {"text": "c"}, {}], "last": ["e", "d"]}
        await store.aput(("u", "x"), "many", value)
        await store.aput(("u", "y"), "one", {"title": "abcd"})
        await store.aput(("v",), "other", {"title": "cd", "parts": [{"text": "c"}]})
        for query in "abcd":
            hits = await store.asearch(("u",), query=query)
            assert [hit.key for hit in hits] == ["many", "one"]
            assert hits[0].score == pytest.approx(1, abs=1e-5)
            assert hits[0].value == value
        assert await names(store, "c", "v") == ["other"]
        assert sorted((await names(store, "c"))[:2]) == ["many", "other"]

    async def test_they_are_seen_nowhere_else(self, ours):
        store = over(ours, "$", "t[*]")
        await store.aput(("u", "x"), "k", {"t": ["a", "b", "c"]})
        assert len(await further_vectors(ours)) == 4
        assert await store.alist_namespaces() == [("u", "x")]
        assert await store.alist_namespaces(suffix=("x",)) == [("u", "x")]
        assert await store.alist_namespaces(prefix=("*",), max_depth=1) == [("u",)]
        assert [hit.key for hit in await store.asearch(())] == ["k"]
        assert [item.key for item in await ours.search(("u",), None, recursive=True)] == ["k"]
        assert await names(LocusStore(ours), "a") == ["k"]
        assert await ours.search((FURTHER_VECTORS,), "k", recursive=True) == []
        assert await ours.clear_namespace(("u",), recursive=True) == 1

    async def test_they_go_with_their_item(self, ours):
        store = over(ours, "t[*]")
        await store.abatch([PutOp(("u",), key, {"t": ["a", "b", "c"]}) for key in "xy"])
        await store.aput(("u",), "x", {"t": ["d", "e"]})
        assert len(await further_vectors(ours)) == 5
        assert await names(store, "b", limit=1) == ["y"]
        assert await names(store, "e", limit=1) == ["x"]
        await store.aput(("u",), "x", {"t": ["g"]})
        await store.adelete(("u",), "y")
        assert await further_vectors(ours) == []
        assert await names(store, "b") == ["x"]

    @pytest.mark.parametrize("done", ["clear", "delete", "put", "copy"])
    async def test_what_others_do_to_an_item_counts_at_once(self, ours, done):
        """Vectors that they leave behind are not found, and the next search removes them."""
        store = over(ours, "t[*]")
        await store.aput(("u",), "k", {"t": ["a", "b", "c"]})
        await store.aput(("u",), "l", {"t": ["ah"]})
        item = await ours.get_item(("u",), "k")
        if done == "clear":
            await ours.clear_namespace(("u",))
        elif done == "delete":
            await ours.delete(("u",), "k")
        elif done == "put":
            await ours.put(("u",), "k", item.value)
        else:
            await ours.put(("u",), "k", {"t": ["changed"]}, item.metadata)
        assert await names(store, "b") == ([] if done == "clear" else ["l"])
        assert [item.key for item in await further_vectors(ours)] == (
            ["of:k"] if done in ("put", "copy") else []
        )

    async def test_numbers_may_come_back_in_another_form(self, ours):
        """What a database makes of `1.0` is equal to it, so its vectors are up to date."""
        store = over(ours, "t[*]")
        await store.aput(("u",), "k", {"t": ["a", "b"], "n": [1.0, 1e20, -0.0, 0.1, 7, True]})
        [hit] = await store.asearch(("u",), query="b")
        assert hit.score == pytest.approx(1, abs=1e-5)
        assert name_write({"n": 1.0})[24:] == name_write({"n": 1})[24:]
        assert name_write({"n": 1})[24:] != name_write({"n": True})[24:]

    async def test_what_is_being_put_is_not_taken_for_left_behind(self, tmp_path):
        """Vectors come before their item; a search in between leaves them alone."""
        async with get_store(f"sqlite:{tmp_path / 'a.db'}") as ours:

            class Watched(StoreWrapper):
                async def put_batch(self, items):
                    done = await super().put_batch(items)
                    await names(over(ours, "t[*]"), "b")
                    return done

            await over(ours, "t[*]").aput(("u",), "other", {"t": ["ab"]})
            await over(Watched(ours), "t[*]").aput(("u",), "k", {"t": ["a", "b"]})
            assert await names(over(ours, "t[*]"), "b", limit=1) == ["k"]

    async def test_a_put_that_fails_halfway_changes_nothing_that_is_found(self, ours):
        class Failing(StoreWrapper):
            async def put_batch(self, items):
                listed = list(items)
                if listed[0].namespace[0] != FURTHER_VECTORS:
                    raise BackendWriteError("disk full")
                return await super().put_batch(listed)

        await over(ours, "t[*]").aput(("u",), "k", {"t": ["a", "b"]})
        with pytest.raises(BackendWriteError):
            await over(Failing(ours), "t[*]").aput(("u",), "k", {"t": ["c", "d"]})
        store = over(ours, "t[*]")
        [hit] = await store.asearch(("u",), query="d")
        assert (hit.value, hit.score) == ({"t": ["a", "b"]}, pytest.approx(0))

    @pytest.mark.slow
    async def test_pages_are_exact(self, ours):
        """Every page is what sorting all items by their best text gives."""
        chance = random.Random(7)
        store = over(ours, "t[*]")
        values = {
            f"{n:03}": {
                "t": ["".join(chance.choices(LETTERS, k=6)) for _ in range(chance.randrange(6))],
                "n": n,
                "deep": {"even": n % 2 == 0},
            }
            for n in range(80)
        }
        await store.abatch(
            [PutOp(("u", str(n % 4)), *each) for n, each in enumerate(values.items())]
        )
        conditions = [
            (None, lambda _: True),
            ({"n": {"$lt": 30}}, lambda value: value["n"] < 30),
            ({"deep": {"even": {"$ne": False}}}, lambda value: value["deep"]["even"]),
        ]
        for condition, holds in conditions:
            for query in ("abc", "d"):
                best = {
                    key: max(cosine(query, text) for text in value["t"])
                    for key, value in values.items()
                    if value["t"] and holds(value)
                }
                pages = await store.abatch(
                    [SearchOp(("u",), condition, 7, at, query) for at in range(0, 91, 7)]
                )
                hits = [hit for page in pages for hit in page]
                assert sorted(hit.key for hit in hits) == sorted(best)
                assert [len(page) for page in pages[:-1]] == [
                    min(7, max(0, len(best) - at)) for at in range(0, 84, 7)
                ]
                scores = [hit.score for hit in hits]
                assert scores == pytest.approx(sorted(best.values(), reverse=True), abs=1e-5)
                assert scores == pytest.approx([best[hit.key] for hit in hits], abs=1e-5)

    async def test_a_ttl_holds_for_all_of_them(self, ours, clock):
        store = over(ours, "t[*]", ttl={"default_ttl": 1})
        await store.aput(("u",), "k", {"t": ["a", "b", "c"]})
        for _ in range(3):
            clock.advance(50)
            [hit] = await store.asearch(("u",), query="c")
            assert hit.score == pytest.approx(1, abs=1e-5)
        clock.advance(61)
        assert await names(store, "c") == []
        assert await further_vectors(ours) == []

    async def test_any_key_and_namespace(self, ours):
        store = over(ours, "t[*]")
        where = [("of:", "x"), ("of:x",), ("a:b", "\x1f*")]
        keys = ["of:x", "x", ":0", "\x00"]
        await store.abatch([PutOp(n, k, {"t": [n[0], k, "a", "b"]}) for n in where for k in keys])
        assert len(await names(store, "b", limit=100)) == 12
        assert len(await names(store, "b", "of:", "x")) == 4
        for namespace in where:
            for key in keys:
                await store.adelete(namespace, key)
        assert await ours.list_namespaces() == []


class TestEmbedding:
    async def test_a_batch_is_one_call(self, ours):
        """Each distinct text of it is embedded once."""
        embedder = FakeEmbedder(8)
        store = over(ours, "t[*]", embed=embedder)
        ops = [PutOp(("u",), str(n), {"t": ["tea", f"cup {n}", "tea"]}) for n in range(5)]
        await store.abatch([*ops, PutOp(("u",), "0", {"t": ["tea"]})])
        assert embedder.calls == [5]
        await store.abatch([SearchOp(("u",), query=q) for q in ("tea", "cup", "tea")])
        assert embedder.calls == [5, 2]

    async def test_every_kind_of_embedder(self):
        class Model(Embeddings):
            def embed_documents(self, texts):
                return letters(texts)

            def embed_query(self, text):
                return letters([text])[0]

        async def aletters(texts):
            await asyncio.sleep(0)
            return letters(texts)

        for embed in (letters, aletters, Model(), FakeEmbedder(8)):
            async with LocusStore("memory", index={"dims": 8, "embed": embed}) as store:
                await store.aput(("u",), "k", {"t": "tea"})
                assert await names(store, "tea") == ["k"]

    def test_an_asynchronous_embedder_in_a_blocking_program(self):
        async def aletters(texts):
            await asyncio.sleep(0)
            return letters(texts)

        with LocusStore("memory", index={"dims": 8, "embed": aletters}) as store:
            store.put(("u",), "k", {"t": "abc"})
            assert [hit.key for hit in store.search((), query="abc")] == ["k"]

    async def test_vectors_of_another_length_are_refused(self):
        async with LocusStore("memory", index={"dims": 7, "embed": letters}) as store:
            with pytest.raises(InvalidEmbeddingError):
                await store.aput(("u",), "k", {"t": "abc"})
            assert await store.aget(("u",), "k") is None

    async def test_too_few_vectors_are_refused(self):
        async with LocusStore("memory", index={"embed": lambda _: [[1.0]]}) as store:
            with pytest.raises(InvalidEmbeddingError):
                await store.abatch([PutOp(("u",), key, {"t": key}) for key in "ab"])
            assert await store.asearch(()) == []

    async def test_a_query_that_has_no_vector_fails_alone(self, ours):
        """Other calls of the turn search, read and write; a single query is embedded once."""
        asked = []

        def choosy(texts):
            asked.append(list(texts))
            if "überlang" in texts:
                raise TimeoutError
            return letters(texts)

        store = over(ours, "text", embed=choosy)
        await store.aput(("u",), "k", {"text": "aab"})
        answers = await asyncio.gather(
            store.asearch(("u",), query="überlang"),
            store.asearch(("u",), query="ab"),
            store.aget(("u",), "k"),
            store.aput(("u",), "new", {"text": "b"}),
            return_exceptions=True,
        )
        assert isinstance(answers[0], TimeoutError)
        assert [hit.key for hit in answers[1]] == ["k"]
        assert answers[2].value == {"text": "aab"}
        assert answers[3] is None
        asked.clear()
        answers = await asyncio.gather(
            store.asearch(("u",), query="überlang"),
            store.aget(("u",), "new"),
            return_exceptions=True,
        )
        assert isinstance(answers[0], TimeoutError)
        assert answers[1].value == {"text": "b"}
        assert asked == [["überlang"]]

    async def test_an_embedder_that_fails(self):
        """Its error is the caller's, and nothing is written."""

        def broken(texts):
            raise TimeoutError

        async with LocusStore("memory", index={"embed": broken}) as store:
            with pytest.raises(TimeoutError):
                await store.aput(("u",), "k", {"t": "abc"})
            assert await store.aget(("u",), "k") is None

    async def test_what_cannot_work(self, tmp_path):
        for index in ({"dims": 8}, {"dims": 9, "embed": FakeEmbedder(8)}):
            with pytest.raises(ConfigurationError):
                LocusStore("memory", index=index)
        held = get_store("memory", embedding_dimension=3)
        with pytest.raises(ConfigurationError):
            over(held)

    async def test_a_store_without_vectors(self):
        """It says so when it opens, and at its first use."""
        store = over(WithoutVectors(get_store("memory")))
        with pytest.raises(ConfigurationError, match="semantic"):
            await store.aopen()
        with pytest.raises(ConfigurationError, match="semantic"):
            await store.aput(("u",), "k", {})
        await store._store.close()

    async def test_vectors_of_others_in_another_dimension(self, ours):
        """Neither side minds the other, and below a root of theirs the mistake is named."""
        store = over(ours, "t")
        await store.aput(("u",), "k", {"t": "abc"})
        await ours.put_with_embedding(("theirs",), "k", 1, [1.0, 2.0, 3.0])
        assert await names(store, "abc") == ["k"]
        with pytest.raises(InvalidEmbeddingError):
            await names(store, "abc", "theirs")


async def test_what_a_user_forgets_has_no_vectors_left():
    async with open_backend("memory") as backend:
        index = {"dims": 64, "embed": FakeEmbedder(64), "fields": ["a", "b"]}
        async with LocusStore(backend, index=index) as store:
            for user in ("ada", "bob"):
                await store.aput(("users", user), "k", {"a": "tea", "b": "milk"})
        await forget(backend, user_id="ada")
        left = await backend.store.search((FURTHER_VECTORS,), None, recursive=True)
        assert {item.namespace[1:] for item in left} == {("users", "bob")}
