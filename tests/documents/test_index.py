"""Indexes by name, fused indexes, embedders of others, and retrievers."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    UnknownProviderError,
    get_checkpointer,
)
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import (
    ChunkConfig,
    ContextConfig,
    DocumentIndex,
    HybridOptions,
    RetrievalResult,
    documents_from_config,
    fuse,
    get_documents,
    inject_context,
    list_document_indexes,
    register_document_index,
    registry,
)
from locus_memory.documents.fusion import fused
from locus_memory.retrieval.embedders import as_embedder
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeEmbedder

needs_langchain = pytest.mark.skipif(
    not find_spec("langchain_core"), reason="needs langchain-core, which comes with LangGraph"
)


@pytest.fixture
def names(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


class Theirs:
    """An embedder as other libraries have it."""

    def embed(self, texts):
        return np.array([[len(text), 1.0, 2.0] for text in texts])

    def dim(self):
        return 3


async def test_an_embedder_of_another_library():
    embedder = as_embedder(Theirs())
    assert embedder.dimension == 3
    assert "Theirs" in embedder.name
    assert await embedder.embed(["ab"], kind="query") == [[2.0, 1.0, 2.0]]
    async with get_documents("memory", kind="dense", embedder=Theirs()) as index:
        await index.store("A plum.")
        assert len(await index.retrieve("plum")) == 1
    with pytest.raises(ConfigurationError):
        as_embedder(5)


@pytest.mark.parametrize(("old", "new"), [("sqlite", "text"), ("faiss", "dense")])
def test_old_names_still_work(old, new):
    with pytest.warns(DeprecationWarning, match=f"'{old}' is now '{new}'"):
        index = get_documents("memory", kind=old, embedder=FakeEmbedder())
    assert index.kind == new


def test_kinds_are_registered(names):
    @register_document_index("mine")
    def mine(where, *, size=1):
        return (where, size)

    assert get_documents("sqlite:x", kind="mine", size=2) == ("sqlite:x", 2)
    register_document_index("other", lambda where: "other")
    assert get_documents(kind="other") == "other"
    assert list_document_indexes() == [
        *("bm25", "dense", "hybrid", "late", "mine", "other", "text")
    ]
    with pytest.raises(UnknownProviderError, match="Known: bm25, dense"):
        get_documents("memory", kind="none")
    for name, factory in (("a b", mine), ("a", 5)):
        with pytest.raises(ConfigurationError):
            register_document_index(name, factory)


def test_options_are_checked():
    with pytest.raises(ConfigurationError, match="'dense' needs an embedder"):
        DocumentIndex("memory", kind="dense")
    with pytest.raises(ConfigurationError, match="one of text"):
        DocumentIndex("memory", kind="other")
    for options in ({"fusion": "x"}, {"k": -1}, {"depth": 0}, {"sparse_weight": "1"}):
        with pytest.raises(ConfigurationError):
            HybridOptions(**options)
    with pytest.raises(ConfigurationError, match="retrieve"):
        fuse(5, 6)


RANKINGS = st.lists(st.integers(0, 20), unique=True, max_size=12)


@pytest.mark.slow
@given(RANKINGS, RANKINGS, st.integers(1, 12), st.floats(0, 3), st.floats(0, 3))
def test_the_classic_fusion_is_its_formula(sparse, dense, top_k, one, two):
    def results(ranking):
        return [RetrievalResult(str(n), 0.5, source=str(n)) for n in ranking]

    options = HybridOptions(fusion="rrf", sparse_weight=one, dense_weight=two)
    scores = {
        name: sum(
            weight / (60 + ranking.index(name) + 1)
            for weight, ranking in ((one, sparse), (two, dense))
            if name in ranking
        )
        for name in {*sparse, *dense}
    }
    found = fused(results(sparse), results(dense), top_k, options)
    expected = sorted(scores.values(), reverse=True)[:top_k]
    assert [scores[int(each.content)] for each in found] == pytest.approx(expected)
    assert len({each.content for each in found}) == len(found)


async def test_two_indexes_are_one():
    embedder = FakeEmbedder()
    async with (
        get_documents("memory", kind="text") as sparse,
        get_documents("memory", kind="dense", embedder=embedder) as dense,
        get_documents("memory", embedder=embedder, hybrid=HybridOptions.classic()) as both,
    ):
        for index in (sparse, dense, both):
            for text in ("A plum grows here.", "A pear grows there.", "The kettle boils."):
                await index.store(text, source=text)
        for options in (HybridOptions(), HybridOptions.classic()):
            found = await fuse(sparse, dense, options=options).retrieve("plum", top_k=2)
            assert found[0].content == "A plum grows here."
            assert len(found) == 2
        own = await both.retrieve("plum", top_k=2)
        assert [each.content for each in own] == [each.content for each in found]


async def test_documents_without_a_source_are_known_by_their_content():
    """The same text in two indexes comes once, with the ranks of both."""
    embedder = FakeEmbedder()
    async with (
        get_documents("memory", kind="text") as sparse,
        get_documents("memory", kind="dense", embedder=embedder) as dense,
    ):
        for text in ("The plum.", "Ein Pflaumenbaum steht hier.", "梅の木があります。"):
            await sparse.store(f"{text} It grows here.")
            await dense.store(f"{text} It grows here.")
        await dense.store("Another plum grows.", source="a")
        await sparse.store("Another plum grows.", source="b")
        for options in (HybridOptions(), HybridOptions.classic()):
            found = await fuse(sparse, dense, options=options).retrieve("plum grows", top_k=10)
            texts = [each.content for each in found if not each.source]
            assert len(texts) == len(set(texts)) == 3
            assert sorted(each.source for each in found if each.source) == ["a", "b"]


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=4), st.booleans())
async def test_what_is_stored_in_a_fused_index_is_in_both_under_one_id(texts, shared):
    """It makes no difference whether both indexes are in one store."""
    async with InMemoryStore() as one, InMemoryStore() as two:
        sparse = DocumentIndex(one, kind="text")
        dense = DocumentIndex(one if shared else two, kind="dense", embedder=FakeEmbedder())
        both = fuse(sparse, dense)
        names = [await both.store(f"plum {text}", source="s", metadata={}) for text in texts]
        assert len(set(names)) == len(names)
        for index in (sparse, dense, both):
            found = await index.retrieve("plum", top_k=9)
            assert {each.doc_id for each in found} <= set(names)
        assert await both.delete(names[0])
        assert not await both.delete(names[0])
        for index in (sparse, dense, both):
            assert names[0] not in {each.doc_id for each in await index.retrieve("plum", top_k=9)}
        assert await both.clear() == (len(names) - 1) * (1 if shared else 2)
        assert await both.clear() == 0


class Broken(StoreWrapper):
    async def put_batch(self, items):
        raise BackendUnavailableError("down")


async def test_what_one_index_cannot_store_is_in_neither():
    sparse = DocumentIndex(InMemoryStore(), kind="text")
    both = fuse(sparse, DocumentIndex(Broken(InMemoryStore()), kind="text"))
    with pytest.raises(BackendUnavailableError):
        await both.store("A plum.")
    assert await sparse.sources() == []


class Late(StoreWrapper):
    """Its connection breaks once what was sent has arrived."""

    async def put_batch(self, items):
        await super().put_batch(items)
        raise BackendUnavailableError("late")


class Kept(StoreWrapper):
    async def delete_batch(self, names):
        raise BackendUnavailableError("kept")


async def test_what_one_index_stored_though_it_failed_is_in_neither():
    stores = InMemoryStore(), InMemoryStore()
    sparse, dense = (DocumentIndex(each, kind="text") for each in stores)
    with pytest.raises(BackendUnavailableError, match="late"):
        await fuse(sparse, DocumentIndex(Late(stores[1]), kind="text")).store("A plum.")
    assert await sparse.sources() == await dense.sources() == []
    assert await sparse.retrieve("plum") == await dense.retrieve("plum") == []
    kept = DocumentIndex(Kept(stores[0]), kind="text")
    with pytest.raises(BackendUnavailableError, match="down"):
        await fuse(kept, DocumentIndex(Broken(stores[1]), kind="text")).store("A plum.")


class Foreign:
    async def retrieve(self, query, *, top_k=5, min_score=None, filter=None):  # noqa: A002
        return []


async def test_an_index_of_another_system_is_not_written():
    for pair in ((Foreign(), DocumentIndex("memory")), (DocumentIndex("memory"), Foreign())):
        both = fuse(*pair)
        for call in (both.store("A plum."), both.delete("p"), both.clear()):
            with pytest.raises(ConfigurationError, match="DocumentIndex"):
                await call


@pytest.mark.parametrize("name", ["", "p-1", "s/" + "0" * 32, "p-" + "0" * 33, "P-" + "0" * 32])
async def test_no_piece_has_another_id(name):
    async with get_documents("memory") as index:
        with pytest.raises(InvalidArgumentError, match="doc_id"):
            await index.store("A plum.", doc_id=name)


@needs_langchain
async def test_a_retriever_of_langchain():
    async with get_documents("memory") as index:
        await index.store("A plum grows here.", source="a", metadata={"team": "red"})
        await index.store("A plum grows there.", source="b", metadata={"team": "blue"})
        retriever = index.as_retriever(top_k=3, min_score=0.2, filter={"team": "red"})
        [found] = await retriever.ainvoke("plum")
    assert found.page_content == "A plum grows here."
    assert found.metadata["source"] == "a"
    assert 0.2 <= found.metadata["score"] <= 1


@needs_langchain
def test_a_retriever_from_synchronous_code():
    index = get_documents("memory")
    retriever = index.as_retriever()
    assert retriever.invoke("plum") == []


async def test_it_is_kept_on_disk(tmp_path):
    where = f"sqlite:{tmp_path / 'kb.db'}"
    async with get_documents(where) as index:
        await index.store("A plum grows here.")
    async with get_documents(where) as index:
        assert len(await index.retrieve("plum")) == 1


async def test_a_text_without_a_source_replaces_no_other():
    """Not even the same text with other metadata."""
    async with get_documents("memory") as index:
        for team in ("sales", "support"):
            await index.add("A plum grows.", metadata={"team": team})
        found = await index.retrieve("plum")
        assert sorted(each.metadata["team"] for each in found) == ["sales", "support"]
        again = await index.add("A plum grows.", metadata={"team": "sales"})
        assert (again.unchanged, len(await index.sources())) == (1, 2)


async def test_the_best_hundred_are_reranked_by_late_interaction():
    class Lengths:
        """A reranker that notes what it sees."""

        name = "lengths"

        def __init__(self):
            self.seen = []

        async def rerank(self, query, texts):
            self.seen.append(len(texts))
            return [0.0] * len(texts)

    for kind, count in (("late", 100), ("hybrid", 50)):
        reranker = Lengths()
        index = DocumentIndex("memory", kind=kind, embedder=FakeEmbedder(), reranker=reranker)
        async with index:
            for number in range(130):
                await index.store(f"plum number {number}")
            assert len(await index.retrieve("plum", top_k=5)) == 5
        assert reranker.seen == [count]


TOML = """
[tool.locus_memory.documents]
url = "sqlite:${KB_PATH}"
kind = "text"
chunk_size = 100
chunk_overlap = 10
top_k = 3
min_score = 0.3
"""


async def test_settings_are_read_from_the_nearest_file(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("KB_PATH", str(tmp_path / "kb.db"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    with pytest.raises(KeyError):
        documents_from_config()
    (tmp_path / "pyproject.toml").write_text(TOML, "utf-8")
    index, context = documents_from_config()
    async with index:
        await index.store("A plum.")
        assert (index.kind, index.chunking) == (
            "text",
            ChunkConfig(chunk_size=100, chunk_overlap=10),
        )
        assert context == ContextConfig(top_k=3, min_score=0.3)
    assert (tmp_path / "kb.db").exists()


async def test_settings_by_the_names_of_openjarvis():
    table = {
        "context_from_memory": False,
        "default_backend": "text",
        "context_top_k": 4,
        "context_min_score": 0.1,
        "context_max_tokens": 99,
        "chunk_size": 64,
        "chunk_overlap": 8,
    }
    index, context = documents_from_config({"documents": table})
    assert context == ContextConfig(enabled=False, top_k=4, min_score=0.1, max_context_tokens=99)
    assert (index.kind, index.chunking.chunk_size) == ("text", 64)


async def test_a_table_may_name_a_profile():
    """Its own settings win, and the other ones of the profile remain."""
    table = {"kind": "text", "options": "openjarvis", "chunk_size": 99}
    index, _ = documents_from_config({"documents": table})
    assert index.chunking == ChunkConfig(unit="words", chunk_size=99)
    assert index._hybrid == HybridOptions.classic()


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"options": "unknown"}, ConfigurationError),
        ({"chunking": {"chunk_size": 9}}, ConfigurationError),
        ({"url": "postgresql://u:secret@h/db"}, ConfigurationError),
        ({"url": "sqlite"}, None),
        ({"kind": "unknown"}, UnknownProviderError),
        ({"chunk_size": 0}, ConfigurationError),
        ({"min_score": 7}, InvalidArgumentError),
        ({"chunk_seize": 9}, TypeError),
        ("text", ConfigurationError),
    ],
)
def test_settings_that_are_wrong(table, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if error is None:
        documents_from_config({"tool": {"locus_memory": {"documents": table}}})
        return
    with pytest.raises(error) as refused:
        documents_from_config({"documents": table})
    assert "secret@" not in str(refused.value)


async def test_the_profile_of_openjarvis():
    """Words are counted, both searches are fused by ranks, and a score of 0.1 is enough."""
    async with get_documents("memory", options="openjarvis", kind="text") as index:
        assert index.chunking == ChunkConfig(unit="words")
        assert index._hybrid == HybridOptions.classic()
        await index.store("Invoices are paid on the fifteenth.")
        query = "Which invoices of the boat and of the house and of the office do I pay?"
        assert await inject_context(query, [], index) == []
        assert len(await inject_context(query, [], index, config="openjarvis")) == 1
    own = ChunkConfig(chunk_size=9, chunk_overlap=0)
    assert get_documents("memory", options="openjarvis", chunking=own).chunking == own
    with pytest.raises(ConfigurationError, match="openjarvis"):
        get_documents("memory", options="locus")


async def test_the_profile_of_the_locus_sdk():
    async with get_checkpointer("memory", options="locus") as checkpointer:
        assert checkpointer.max_chain_depth == 5
        for n in range(8):
            await checkpointer.save({"n": n, "text": "x" * 500}, "t")
        assert len(await checkpointer.storage.retrieve_chain("t")) <= 6
    async with get_checkpointer("memory", options="locus", max_chain_depth=9) as checkpointer:
        assert checkpointer.max_chain_depth == 9
    with pytest.raises(ConfigurationError, match="locus"):
        get_checkpointer("memory", options="openjarvis")
