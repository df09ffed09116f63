from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders import Embedder, StaticEmbedder, get_embedder
from locus_memory.retrieval.embedders.models.wordpiece import WordPiece

VOCABULARY = [
    *"abcdefghijklmnopqrstuvwxyz0123456789!?.,'-_@#$€中文éß",
    *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789中ß"),
    "the",
    "##ing",
    "play",
    "##er",
    "cafe",
]
TOKENS = {token: index for index, token in enumerate(VOCABULARY)}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The playing", ["the", "play", "##ing"]),
        ("THE café!", ["the", "cafe", "!"]),
        ("don't", ["d", "##o", "##n", "'", "t"]),
        ("中文", ["中", "文"]),
        ("the\u00a0the\u200bre", ["the", "the", "##r", "##e"]),
        ("the Ω player", ["the", "play", "##er"]),
        ("a" * 101 + " b", ["b"]),
        ("", []),
    ],
)
def test_words_are_split_as_bert_does(text, tokens):
    assert WordPiece(TOKENS).ids(text) == [TOKENS[token] for token in tokens]


# BERT's characters of China begin at U+2B820 there, and 256 characters later in this library.
LATE = "".join(map(chr, range(0x2B820, 0x2B920)))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=LATE), max_size=40))
def test_the_reference_splits_alike(text):
    tokenizers = pytest.importorskip("tokenizers")
    reference = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({**TOKENS, "[UNK]": 10_000}, unk_token="[UNK]")
    )
    reference.normalizer = tokenizers.normalizers.BertNormalizer()
    reference.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    expected = [each for each in reference.encode(text).ids if each != 10_000]
    assert WordPiece(TOKENS).ids(text) == expected


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


@pytest.mark.parametrize("change", [{"kind": "Unigram"}, {"lowercase": False}])
def test_tokens_of_another_kind_are_refused(write_table, change):
    folder = write_table({"embeddings": np.ones((11, 2), np.float32)}, **change)
    with pytest.raises(ConfigurationError, match="use 'model2vec:"):
        StaticEmbedder(folder)


def test_a_tokenizer_that_is_none_is_refused(table):
    (table / "tokenizer.json").write_text(json.dumps({"model": None}))
    with pytest.raises(ConfigurationError, match="not a tokenizer that can be read"):
        StaticEmbedder(table)
    (table / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match="no tokenizer at"):
        StaticEmbedder(table)
