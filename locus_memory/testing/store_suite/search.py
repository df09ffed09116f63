"""The store suite: the newest items, and text search."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any
from unicodedata import normalize

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, StoreCapabilityError
from locus_memory.store.base import BaseStore
from locus_memory.store.text import query_prefix, query_words, stem, tokens
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import (
    NOT_TEXT,
    PROPERTY,
    StoreSuite,
    fill,
    goes_by_writes,
    need,
    refused,
)

__all__ = ["NewestTests", "TextSearchTests"]

NS = ("notes",)

WORDLESS = [
    *(
        "",
        " ",
        '"',
        "*",
        "'",
        "''",
        "?",
        "(",
        ")",
        "()",
        "%",
        "_",
        "\x00",
        "\\",
        "-",
        "#",
        "…",
        "🦊",
    ),
]
PUNCTUATED = [
    *(
        "c++",
        "what's up?",
        "foo-bar",
        "a AND",
        "AND",
        "OR NOT",
        "NEAR(",
        "NEAR(a b, 2)",
        "a*",
        "^a",
    ),
    *('"open', 'a"b', "(a", "a)", "-a", "+a", "a:b", "title:fox", "{a b}", "a OR", "a\x00b", "a\\"),
    *("@tag", "%a%", "[a]", "~1", "a~", "'; DROP TABLE items; --", "$where", "a & b | !c"),
]

FOLDED = [
    *(
        "ÅNGSTRÖM",
        "ΆΛΦΆ",
        "ЁЛКИЙ",
        "ᲥᲐᲠᲗᲣᲚᲘ",
        "ꭰꮳ",
        "𞤀𞤁𞤂",
        "שָׁלוֹם",
        "كَتَبَ",
        "ガギ",
        "한국",
        "ﬁn",
        "Ⅷ",
    ),
]
"""Words that differ in case or accents, or that Unicode can write in several ways."""


SHORTEST = 3
PREFIXED = st.lists(
    st.text("abginrsyéжд9", min_size=1, max_size=9), min_size=1, max_size=6, unique=True
)
"""Words, of letters that make many endings of English."""

LANGUAGES = """
running boats naïve CAFÉ 2023 42nd 😀 x_y ich und die Kinder spielen Häuser Straße perché pommes
我喜欢喝茶 东京 茶 東京で寿司 ラーメン 한국어 मैं दिल्ली में रहता हूँ أسكن القاهرة في
Я живу Москве книги ёлка
""".split()  # noqa: SIM905 - as a list, it would be thirty lines
"""Words of many languages, some of which tell the language of a text."""


class NewestTests(StoreSuite):
    """`search` without a query."""

    async def test_compacting_changes_nothing_that_is_seen(self, store: BaseStore) -> None:
        for key in ("a", "b", "c"):
            await store.put(NS, key, f"fox {key}")
        await store.put(NS, "a", "hound")
        await store.delete(NS, "b")
        query = "fox" if store.capabilities.search else None
        before = await store.scan(NS), await store.search(NS, query)
        await store.compact()
        assert (await store.scan(NS), await store.search(NS, query)) == before

    async def test_the_order_of_writes_rules_and_not_the_clock(
        self, store: BaseStore, clock: FakeClock
    ) -> None:
        if not goes_by_writes(store):
            pytest.skip(f"{type(store).__name__} uses the default search")
        await store.put(NS, "first", 1)
        await store.put(NS, "second", 1)
        clock.set(clock() - 3600)
        await store.put(NS, "third", 1)
        await store.put_batch([(NS, "fourth", 1), (NS, "fifth", 1)])
        await store.put(NS, "first", 2)
        keys = [item.key for item in await store.search(NS)]
        assert keys == ["first", "fifth", "fourth", "third", "second"]

    async def test_the_newest_come_first_across_namespaces(
        self, store: BaseStore, clock: FakeClock
    ) -> None:
        need(store, "list_namespaces")
        for key in ("1", "2", "3", "4"):
            await store.put((*NS, "odd" if key in "13" else "even"), key, key)
            clock.advance(0 if goes_by_writes(store) else 1)
        assert [i.key for i in await store.search(NS, recursive=True)] == ["4", "3", "2", "1"]
        assert [i.key for i in await store.search(NS, None, 2, offset=1, recursive=True)] == [
            *("3", "2")
        ]

    async def test_pages_of_the_newest_are_exact(self, store: BaseStore) -> None:
        await fill(store, NS, [f"{n:03}" for n in range(25)])
        pages = [await store.search(NS, limit=10, offset=offset) for offset in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        keys = [item.key for page in pages for item in page]
        # Written at one moment: only a store that orders by writes knows which is newer.
        assert keys == [f"{n:03}" for n in newest_first(store, range(25))]
        assert keys == [item.key for item in await store.search(NS, limit=100)]
        assert await store.search(NS, limit=0) == []


class TextSearchTests(StoreSuite):
    """`search` with a query."""

    @pytest_asyncio.fixture
    async def text_store(self, store: BaseStore) -> AsyncIterator[BaseStore]:
        """The store, if it supports text search."""
        need(store, "search")
        yield store

    async def keys(self, store: BaseStore, query: str, **options: Any) -> list[str]:
        """Return the keys that a query finds in the namespace of these tests, sorted."""
        return sorted(item.key for item in await store.search(NS, query, **options))

    async def finds(self, store: BaseStore, **expected: list[str]) -> None:
        """Assert which keys each of some words finds."""
        found = {word: await self.keys(store, word) for word in expected}
        assert found == expected

    async def test_it_finds_the_items_with_a_word(self, text_store: BaseStore) -> None:
        await text_store.put(NS, "a", {"text": "the quick brown fox", "n": 1}, {"m": 1})
        await text_store.put(NS, "b", ["a lazy", {"deep": ["dog"]}])
        await text_store.put(NS, "c", "nothing of the kind")
        await text_store.put(("elsewhere",), "d", "fox and dog")
        await text_store.put((*NS, "below"), "e", "fox and dog")
        await self.finds(text_store, fox=["a"], dog=["b"], zebra=[])
        [item] = await text_store.search(NS, "fox")
        assert item.value == {"text": "the quick brown fox", "n": 1}
        assert (item.namespace, item.metadata, item.version) == (NS, {"m": 1}, 1)

    @pytest.mark.parametrize("word", FOLDED, ids=ascii)
    async def test_every_script_is_folded(self, text_store: BaseStore, word: str) -> None:
        forms = [word, word.lower(), *(normalize(form, word) for form in ("NFC", "NFD", "NFKD"))]
        for form in forms:
            await text_store.put(NS, "k", f"before {form}, after")
            for query in forms:
                assert await self.keys(text_store, query) == ["k"]

    async def test_accents_do_not_matter(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, "a", "un café"), (NS, "b", "one cafe"), (NS, "c", "cafe\u0301 noir")]
        )
        for query in ("café", "cafe", "CAFÉ", "cafe\u0301"):
            assert await self.keys(text_store, query) == ["a", "b", "c"]

    async def test_english_words_are_stemmed(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, "a", "she runs daily"), (NS, "b", "two connections"), (NS, "c", "happy ponies")]
        )
        await self.finds(text_store, running=["a"], connected=["b"], pony=["c"])

    @pytest.mark.parametrize("seed", [1, 2])
    async def test_words_of_any_language_find_what_has_one_of_their_stems(
        self, text_store: BaseStore, seed: int
    ) -> None:
        chance = random.Random(seed)  # noqa: S311 - any choice will do
        texts = {f"{n}": " ".join(chance.choices(LANGUAGES, k=4)) for n in range(30)}
        await text_store.put_batch([(NS, key, text) for key, text in texts.items()])
        await text_store.put(NS, "0", texts["0"])
        for _ in range(20):
            query = " ".join(chance.choices(LANGUAGES, k=chance.randint(1, 3)))
            stems = set(map(stem, query_words(query)))
            expected = [key for key, text in texts.items() if not stems.isdisjoint(tokens(text))]
            found = await text_store.search(NS, query, 30)
            assert {item.key for item in found} == set(expected), query

    async def test_stop_words_find_nothing_by_themselves(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, "a", "the cat sat"), (NS, "b", "what is it to you, and where did the day go")]
        )
        assert await self.keys(text_store, "where is the cat?") == ["a"]
        assert await self.keys(text_store, "What did the cat do?") == ["a"]

    async def test_a_query_of_stop_words_alone_is_not_emptied(self, text_store: BaseStore) -> None:
        await text_store.put_batch([(NS, "a", "the who"), (NS, "b", "a fox")])
        assert await self.keys(text_store, "The Who") == ["a"]

    @given(words=PREFIXED, data=st.data())
    @PROPERTY
    async def test_a_prefix_finds_the_words_that_begin_with_it(
        self, text_store: BaseStore, words: list[str], data: st.DataObject
    ) -> None:
        space = self.fresh()
        await text_store.put_batch([(space, f"{n}", f"x {word}") for n, word in enumerate(words)])
        word = data.draw(st.sampled_from(words))
        prefix = word[: data.draw(st.integers(1, len(word)))]
        query = f" {prefix.upper()}* "
        if not query_prefix(query):
            assert len(prefix) < SHORTEST
        elif not text_store.capabilities.prefix_search:
            await refused(StoreCapabilityError, text_store.search(space, query))
        else:
            found = {item.key for item in await text_store.search(space, query, 99)}
            start = stem(query_prefix(query))
            assert found == {
                f"{n}"
                for n, word in enumerate(words)
                if any(each.startswith(start) for each in tokens(f"x {word}"))
            }

    @pytest.mark.parametrize("query", [*PUNCTUATED, *WORDLESS])
    async def test_punctuation_is_never_an_error(self, text_store: BaseStore, query: str) -> None:
        await text_store.put_batch(
            [(NS, "a", "plain words"), (NS, "b", f"we said {query} and left")]
        )
        found = await self.keys(text_store, query)
        assert found == [] if query in WORDLESS else "b" in found

    @pytest.mark.parametrize("bad", NOT_TEXT, ids=ascii)
    async def test_a_query_is_text(self, text_store: BaseStore, bad: Any) -> None:
        await text_store.put(NS, "k", "a b")
        await refused(
            InvalidArgumentError, text_store.search(NS, bad), text_store.search(("empty",), bad)
        )

    @PROPERTY
    @given(query=st.text(max_size=20), texts=st.lists(st.text(max_size=20), max_size=3))
    async def test_any_query_over_any_text(
        self, text_store: BaseStore, query: str, texts: list[str]
    ) -> None:
        namespace = self.fresh()
        await text_store.put_batch([(namespace, str(n), text) for n, text in enumerate(texts)])
        await text_store.put(namespace, "certain", f"walrus {query} walrus")
        found = await text_store.search(namespace, f"{query} walrus")
        assert "certain" in [item.key for item in found]

    async def test_a_query_of_very_many_words_is_answered(self, text_store: BaseStore) -> None:
        await text_store.put(NS, "a", "the first fox")
        await text_store.put(NS, "b", "a zebra")
        query = " ".join(["fox", *(f"w{number:x}" for number in range(300_000))])
        assert "a" in [item.key for item in await text_store.search(NS, query)]

    async def test_key_names_do_not_match(self, text_store: BaseStore) -> None:
        await text_store.put(NS, "zebra", {"zebra": {"zebra": "fox"}}, {"zebra": "zebra"})
        await self.finds(text_store, zebra=[], fox=["zebra"])

    async def test_scripts_without_spaces(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, "ja", "来週東京タワーに行きます"), (NS, "ko", "한국어 문장"), (NS, "en", "fox")]
        )
        await self.finds(text_store, 東京=["ja"], タワー=["ja"], 한국어=["ko"])

    async def test_text_replaces_what_the_value_says(self, text_store: BaseStore) -> None:
        await text_store.put(NS, "a", "alpha", text="beta")
        await self.finds(text_store, alpha=[], beta=["a"])
        assert await text_store.get(NS, "a") == "alpha"
        await text_store.put(NS, "a", "alpha", text="")
        assert await self.keys(text_store, "alpha beta") == []
        await text_store.put(NS, "a", "alpha")
        await self.finds(text_store, alpha=["a"], beta=[])

    async def test_what_is_gone_is_not_found(self, text_store: BaseStore) -> None:
        await text_store.put_batch([(NS, "a", "fox"), (NS, "b", "fox"), (NS, "c", "fox")])
        await text_store.put(NS, "a", "wolf")
        await text_store.delete(NS, "b")
        await self.finds(text_store, fox=["c"], wolf=["a"])
        await text_store.clear_namespace(NS)
        assert await self.keys(text_store, "fox wolf") == []
        await text_store.put(NS, "b", "owl")
        assert await self.keys(text_store, "fox wolf owl") == ["b"]

    async def test_the_best_comes_first(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, f"common-{n}", "a memory of an ordinary day") for n in range(20)]
        )
        await text_store.put(NS, "best", "a memory of a zebra")
        await text_store.put_batch([(NS, f"more-{n}", "another memory") for n in range(20)])
        found = await text_store.search(NS, "memory zebra", 50)
        assert found[0].key == "best"
        assert len(found) == 41
        assert descending(found_scores(found))

    async def test_pages_of_a_query_are_exact(self, text_store: BaseStore) -> None:
        await text_store.put_batch(
            [(NS, f"{n:02}", "fox " * (n % 7 + 1) + "day " * (n % 5)) for n in range(25)]
        )
        await text_store.put_batch([(NS, f"other-{n}", "day") for n in range(25)])
        everything = [item.key for item in await text_store.search(NS, "fox", 100)]
        assert len(set(everything)) == 25
        pages = [await text_store.search(NS, "fox", 10, offset=n) for n in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert [item.key for page in pages for item in page] == everything
        assert await text_store.search(NS, "fox", 0) == []

    async def test_a_filter_beside_a_query_loses_no_match(self, text_store: BaseStore) -> None:
        await text_store.put(NS, "wanted", "a fox among many other words here", {"n": 500})
        await text_store.put_batch([(NS, f"{n:03}", "fox", {"n": n}) for n in range(500)])
        await text_store.put(NS, "wordless", "dog", {"n": 500})
        assert await self.keys(text_store, "fox", limit=5, filter={"n": 500}) == ["wanted"]
        some = await text_store.search(NS, "fox", 7, filter={"n": {"$lt": 20}}, offset=14)
        assert len(some) == 6

    async def test_recursive_search_ranks_across_namespaces(self, text_store: BaseStore) -> None:
        need(text_store, "list_namespaces")
        await text_store.put(NS, "a", "fox")
        await text_store.put((*NS, "x"), "b", "fox fox zebra")
        await text_store.put((*NS, "x", "y"), "c", "fox")
        await text_store.put(("notes2",), "d", "fox zebra")
        found = await text_store.search(NS, "fox zebra", recursive=True)
        assert found[0].key == "b"
        assert sorted(item.key for item in found) == ["a", "b", "c"]
        assert found[0].namespace == (*NS, "x")
        assert descending(found_scores(found))
        assert [item.key for item in await text_store.search(NS, "fox zebra")] == ["a"]


def newest_first(store: BaseStore, numbers: Sequence[int]) -> Sequence[int]:
    """Return the order in which a store lists items written in order, at one moment."""
    return numbers[::-1] if goes_by_writes(store) else numbers


def found_scores(items: Sequence[Any]) -> list[float]:
    """Return the scores of a search, all of them set."""
    scores = [item.score for item in items]
    assert None not in scores
    return scores


def descending(numbers: Sequence[float]) -> bool:
    """Whether no number is greater than the one before it."""
    return all(one >= other for one, other in itertools.pairwise(numbers))
