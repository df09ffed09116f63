from __future__ import annotations

import asyncio
import sys

import pytest

from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    MissingDriverError,
    UnknownProviderError,
)
from locus_memory.retrieval import rerankers
from locus_memory.retrieval.embedders.models import files as files_module
from locus_memory.retrieval.embedders.models.catalogue import CARRIED
from locus_memory.retrieval.embedders.models.files import find_model
from locus_memory.retrieval.rerankers import (
    CrossEncoderReranker,
    LateInteractionReranker,
    Reranker,
    get_reranker,
    list_rerankers,
    register_reranker,
)

QUERY = "Where did Melanie sleep outdoors?"
TEXTS = [
    "Caroline: I went to the adoption agency yesterday.",
    "Melanie: We camped in a tent by the lake last weekend.",
    "Bob bought a red bicycle.",
]
BOTH = {
    "cross-encoder": (CrossEncoderReranker, "ms-marco-MiniLM-L-12-v2"),
    "late-interaction": (LateInteractionReranker, "answerai-colbert-small-v1"),
}


@pytest.fixture
def real_model():
    """Skip the test where there is no model, or nothing to run it."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    if not all(map(find_model, CARRIED)):
        pytest.skip("the models are not here: locus-memory models fetch all")


@pytest.fixture(params=BOTH)
async def reranker(real_model, request):
    async with get_reranker(request.param) as made:
        yield made


async def test_the_best_match_scores_highest(reranker):
    assert isinstance(reranker, Reranker)
    scores = await reranker.rerank(QUERY, TEXTS)
    assert scores.index(max(scores)) == 1
    assert await reranker.rerank(QUERY, TEXTS[::-1]) == scores[::-1]
    assert await reranker.rerank(QUERY, []) == []


async def test_a_score_depends_on_its_text_alone(reranker):
    scores = await reranker.rerank(QUERY, [*TEXTS, " ".join(TEXTS * 9), "", TEXTS[1]])
    assert scores[5] == scores[1]
    assert await reranker.rerank(QUERY, TEXTS[1:2]) == [scores[1]]
    await reranker.close()
    assert await reranker.rerank(QUERY, TEXTS) == scores[:3]


async def test_any_text_can_be_scored(reranker):
    scores = await reranker.rerank("", ["", "\x00", "word " * 3000, "😀"])
    assert all(isinstance(score, float) for score in scores)


def test_one_reranker_serves_several_loops(real_model):
    reranker = LateInteractionReranker()
    first = asyncio.run(reranker.rerank(QUERY, TEXTS))
    assert asyncio.run(reranker.rerank(QUERY, TEXTS)) == first


@pytest.mark.parametrize("cache_size", [0, 2, 1000])
async def test_remembered_texts_score_the_same(real_model, cache_size):
    reranker = LateInteractionReranker(cache_size=cache_size)
    first = await reranker.rerank(QUERY, TEXTS)
    assert await reranker.rerank(QUERY, TEXTS) == first
    assert len(reranker._cache) == min(cache_size, 3)
    await reranker.close()
    assert len(reranker._cache) == 0


@pytest.mark.parametrize("name", BOTH)
def test_names_and_folders(real_model, name):
    made_by, model = BOTH[name]
    assert repr(get_reranker(name)) == f"{made_by.__name__}({model!r})"
    folder = find_model(model).folder
    assert get_reranker(f"{name}:{folder}").name == folder.name
    assert made_by(folder, name="mine", threads=1).name == "mine"


@pytest.mark.parametrize("name", BOTH)
def test_where_to_get_the_model_is_said(monkeypatch, tmp_path, name):
    monkeypatch.setattr(files_module, "find_spec", lambda _name: None)
    monkeypatch.setenv("LOCUS_MEMORY_MODELS", str(tmp_path / "models"))
    with pytest.raises(ConfigurationError, match=f"^{name}: .* locus-memory models fetch {name};"):
        get_reranker(name)
    with pytest.raises(ConfigurationError, match="holds tokenizer"):
        get_reranker(f"{name}:{tmp_path}")


def test_the_missing_library_is_named(real_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingDriverError, match=r"'local' extra: pip install .*\[local\]'$"):
        get_reranker("cross-encoder")


def test_a_negative_cache_is_refused():
    with pytest.raises(InvalidArgumentError, match="cache_size is at least 0"):
        LateInteractionReranker(cache_size=-1)


def test_a_reranker_of_ones_own():
    class Shortest:
        name = "shortest"

        async def rerank(self, query, texts):
            return [-len(text) for text in texts]

    unregister = register_reranker("shortest", lambda _hint: Shortest())
    assert get_reranker("shortest").name == "shortest"
    unregister()
    assert list_rerankers() == ["cross-encoder", "late-interaction"]
    with pytest.raises(UnknownProviderError, match="unknown reranker 'shortest'"):
        get_reranker("shortest")


def test_every_name_is_there():
    for name in rerankers.__all__:
        assert getattr(rerankers, name)
    assert dir(rerankers) == rerankers.__all__ == sorted(rerankers.__all__)
