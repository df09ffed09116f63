from __future__ import annotations

import shutil

import numpy as np
import pytest

from locus_memory.errors import ConfigurationError, ModelUnavailableError
from locus_memory.retrieval.embedders import (
    Embedder,
    FastEmbedEmbedder,
    LocalEmbedder,
    get_embedder,
)
from locus_memory.retrieval.embedders.models.files import find_model

pytest.importorskip("fastembed")

TEXTS = ["Caroline went to the adoption agency.", "They camped by the lake."]


@pytest.fixture
def folder(real_model, tmp_path):
    """The carried model, laid out as fastembed wants it."""
    source = find_model("bge-small-en-v1.5").folder
    special = find_model("answerai-colbert-small-v1").folder / "special_tokens_map.json"
    shutil.copytree(source, tmp_path / "model")
    shutil.copy(special, tmp_path / "model")
    (tmp_path / "model" / "model.onnx").rename(tmp_path / "model" / "model_optimized.onnx")
    return tmp_path / "model"


async def test_it_makes_the_same_vectors_of_the_same_files(folder):
    theirs, ours = FastEmbedEmbedder(folder=folder, threads=1), LocalEmbedder()
    assert isinstance(theirs, Embedder)
    assert (theirs.name, theirs.dimension) == (ours.name, ours.dimension)
    for kind in ("document", "query"):
        for text in TEXTS:
            [fetched] = await theirs.embed([text], kind=kind)
            [local] = await ours.embed([text], kind=kind)
            assert np.dot(fetched, local) == pytest.approx(1, abs=1e-3)
    bare = FastEmbedEmbedder(folder=folder, query_prefix="")
    assert await bare.embed(TEXTS[:1], kind="query") == await theirs.embed(TEXTS[:1])
    assert await theirs.embed([]) == []


async def test_a_model_that_is_not_there(tmp_path):
    embedder = FastEmbedEmbedder(cache_dir=tmp_path, local_files_only=True)
    with pytest.raises(ModelUnavailableError, match=r"^fastembed: "):
        await embedder.embed(TEXTS)


def test_an_unknown_model_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"unknown model 'x'\. Known: BAAI/bge-base-en"):
        FastEmbedEmbedder("x")


def test_the_model_of_many_languages_has_a_name():
    embedder = get_embedder("multilingual", local_files_only=True)
    assert embedder.name == "paraphrase-multilingual-MiniLM-L12-v2"
    assert embedder.dimension == 384
