from __future__ import annotations

import json

import numpy as np
import pytest

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders import Embedder, StaticEmbedder, get_embedder

pytest.importorskip("tokenizers")


async def test_a_vector_is_the_mean_of_its_tokens(table):
    embedder = StaticEmbedder(table)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("tiny-table", 5)
    the, cat, cats, both = await embedder.embed(["the", "cat", "cats", "The cat"], kind="query")
    assert np.linalg.norm(the) == pytest.approx(1)
    assert cats != cat
    raw = np.random.default_rng(7).normal(size=(11, 5)).astype(np.float32)
    expected = raw[2] + raw[3]
    assert both == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


async def test_an_unknown_text_has_a_vector_too(table):
    for vector in await StaticEmbedder(table).embed(["", "Ω", " \n"]):
        assert np.linalg.norm(vector) == pytest.approx(1)
    assert await StaticEmbedder(table).embed([]) == []


async def test_quantised_and_weighted_tables(write_table):
    rng = np.random.default_rng(3)
    rows = rng.integers(-127, 127, size=(4, 6)).astype(np.int8)
    mapping = np.array([0, 0, 1, 2, 3, 1, 2, 3, 0, 1, 2])
    weights = rng.random(11).astype(np.float32)
    folder = write_table({"embeddings": rows, "mapping": mapping, "weights": weights})
    [vector] = await get_embedder(f"static:{folder}").embed(["cats"])
    expected = rows[2].astype(float) * weights[3] + rows[1].astype(float) * weights[5]
    assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    half = write_table({"embeddings": rows.astype(np.float16)[mapping]})
    assert len((await StaticEmbedder(half, name="half").embed(["cat"]))[0]) == 6


async def test_model2vec_makes_the_same_of_the_table(table):
    pytest.importorskip("model2vec")
    theirs = get_embedder(f"model2vec:{table}")
    assert (theirs.name, theirs.dimension) == ("tiny-table", 5)
    texts = ["the cats play", "playing dogs!", "CAFÉ 中 nothing"]
    ours = await StaticEmbedder(table).embed(texts)
    assert np.array(await theirs.embed(texts)) == pytest.approx(np.array(ours), abs=1e-5)


def test_what_is_no_table_is_refused(tmp_path, table, write_table):
    with pytest.raises(ConfigurationError, match="no table at"):
        StaticEmbedder(tmp_path / "nowhere")
    (table / "model.safetensors").write_bytes(b"short")
    with pytest.raises(ConfigurationError, match="not a table that can be read"):
        StaticEmbedder(table)
    with pytest.raises(ConfigurationError, match="no table of embeddings"):
        StaticEmbedder(write_table({"other": np.zeros((2, 2), np.float32)}))


async def test_words_are_split_as_the_table_says(write_table):
    rows = np.eye(11, dtype=np.float32)
    embedder = StaticEmbedder(write_table({"embeddings": rows}))
    [one, other] = await embedder.embed(["THE caf\u00e9\u00a0\u4e2d!", "the \ud800\u03a9 playing"])
    assert np.flatnonzero(one).tolist() == [2, 8, 9, 10]
    assert np.flatnonzero(other).tolist() == [2, 6, 7]


async def test_a_long_text_is_cut(table):
    embedder = StaticEmbedder(table)
    long, short = await embedder.embed(["cat " * 600 + "dog " * 600, "cat"])
    assert long == pytest.approx(short, abs=1e-4)


def test_a_tokenizer_that_is_none_is_refused(table):
    (table / "tokenizer.json").write_text(json.dumps({"model": None}))
    with pytest.raises(ConfigurationError, match="no tokenizer in"):
        StaticEmbedder(table)
    (table / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match="no tokenizer in"):
        StaticEmbedder(table)
