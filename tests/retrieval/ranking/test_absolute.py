from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.retrieval.embedders.scale import Scale, known_scale, register_scale, scale_of
from locus_memory.retrieval.ranking.absolute import (
    Nearness,
    check_min_score,
    rarities,
    relevance,
    relevances,
    word_shares,
)
from locus_memory.retrieval.ranking.absolute import shares_of as passage_shares
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
WORDS = "abcdefgh"
shares = st.floats(0, 1)
parts = st.none() | shares
sets = st.lists(st.sets(st.sampled_from(WORDS)), min_size=1, max_size=60)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True)


def matches(words, documents):
    return [[word in each for each in documents] for word in words]


def shares_of(words, documents):
    return word_shares(matches(words, documents))


def passage(text, **fields):
    return Fields().read(StoreItem(("n",), "k", {"text": text, **fields}, {}, NOW, NOW))


def test_the_formulas():
    assert relevance(0.8, 0.2) == pytest.approx(0.7 * 0.8 + 0.3 * 0.5)
    assert relevance(0.4, None) == 0.4
    assert relevance(None, 0.4) == 0.4
    assert relevance(None, None) == 0
    few, many = ["a", "ab", ""], ["a"] * 30 + ["b"] * 10
    assert rarities(matches("abc", few)) == pytest.approx([1, math.log(4), math.log(7)])
    expected = [math.log(1 + 4 / 3), math.log(5), math.log(81)]
    assert rarities(matches("abc", many)) == pytest.approx(expected)
    assert shares_of("ab", few)[0] == pytest.approx(1 / (1 + math.log(4)))


@pytest.mark.parametrize("many", [19, 20])
def test_a_word_of_all_documents_weighs_1_among_few(many):
    assert rarities([[True] * many]) == pytest.approx([1.0 if many < 20 else math.log(2)])


@pytest.mark.slow
@given(parts, parts)
def test_a_relevance_is_from_0_to_1(text, dense):
    assert 0 <= relevance(text, dense) <= 1


@pytest.mark.slow
@given(shares, shares, shares, st.booleans())
def test_a_better_part_never_lowers_the_relevance(one, other, part, of_text):
    low, high = sorted((one, other))
    worse, better = ((low, part), (high, part)) if of_text else ((part, low), (part, high))
    assert relevance(*worse) <= relevance(*better)


@pytest.mark.slow
@given(queries, sets, st.data())
def test_one_more_word_of_the_query_never_lowers_a_share(query, found, data):
    place = data.draw(st.integers(0, len(found) - 1))
    word = data.draw(st.sampled_from(query))
    before = shares_of(query, found)[place]
    found[place] = found[place] | {word}
    after = shares_of(query, found)[place]
    assert 0 <= before <= after + 1e-12
    assert after <= 1


@pytest.mark.slow
@given(queries, sets)
def test_all_words_are_the_whole_and_none_is_nothing(query, found):
    both = shares_of(query, [*found, set(query), set()])
    assert both[-2:] == [pytest.approx(1), 0]
    assert all(0 <= each <= 1 for each in both)


@pytest.mark.slow
@given(queries, sets, st.randoms())
def test_the_order_of_documents_does_not_matter(query, found, random):
    order = random.sample(range(len(found)), len(found))
    mixed = shares_of(query, [found[each] for each in order])
    assert mixed == [shares_of(query, found)[each] for each in order]


def test_a_rare_word_counts_more_than_a_common_one():
    found = [{"ada"} for _ in range(40)] + [{"blood"}]
    common, *_, rare = shares_of(["ada", "blood"], found)
    assert common < 0.2
    assert rare > 0.8


@given(st.integers(1, 300))
def test_a_word_that_no_document_has_weighs_more_than_the_rarest_one(many):
    one, *_ = shares_of(["ocean", "smallest"], [{"ocean"}] + [{"ship"}] * (many - 1))
    assert 0.3 < one < 0.5


def test_the_words_of_speaker_and_title_count():
    found = [
        passage("Likes green tea"),
        passage("Green tea", speaker="Ada"),
        passage("Green", title="About teas"),
        passage("Nothing"),
    ]
    assert relevances(
        passage_shares(read_query("green tea Ada"), found), [None] * 4
    ) == pytest.approx([2 / 3, 1, 2 / 3, 0], abs=0.2)
    assert relevances(passage_shares(read_query("Ada"), found), [None] * 4) == [0, 1, 0, 0]


def test_without_words_the_cosine_decides_and_without_both_nothing():
    assert relevances(passage_shares(read_query("?"), [passage("?")] * 2), [0.4, None]) == [0.4, 0]


def test_an_item_that_the_vector_search_left_out_is_at_most_as_near_as_its_last_hit():
    scale, known = Scale(unrelated=0.4, paraphrase=0.8), {(("n",), "a"): 0.6}
    assert Nearness(scale, known).of((("n",), "a")) == pytest.approx(0.5)
    assert Nearness(scale, known).of((("n",), "b")) is None
    assert Nearness(scale, known, beyond=0.5).of((("n",), "b")) == pytest.approx(0.25)


@given(st.floats(), st.floats(-20, 20), st.floats(0.001, 20))
def test_a_scale_stays_from_0_to_1(score, zero, span):
    assert 0 <= Scale(unrelated=zero, paraphrase=zero + span).place(score) <= 1


def test_a_scale_has_two_points():
    scale = Scale(unrelated=-11, paraphrase=5)
    assert [scale.place(each) for each in (-20, -11, -3, 5, 9)] == [0, 0, 0.5, 1, 1]
    assert scale.place(math.nan) == 0


@pytest.mark.parametrize("points", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), ("0", 1)])
def test_points_that_are_no_scale_are_refused(points):
    with pytest.raises(ConfigurationError):
        Scale(unrelated=points[0], paraphrase=points[1])


def test_models_have_their_own_scales():
    assert scale_of("BAAI/bge-small-en-v1.5") == scale_of("BGE-small-en-v1.5")
    assert scale_of("bge-small-en-v1.5").unrelated > 0.3
    assert scale_of("never measured") == Scale(unrelated=0.3, paraphrase=0.8)
    assert known_scale("ms-marco-MiniLM-L-12-v2").unrelated < 0
    assert known_scale("never measured") is None


def test_a_caller_may_set_a_scale():
    restore = register_scale("mine", unrelated=0.1, paraphrase=0.5)
    assert scale_of("me/Mine").place(0.3) == pytest.approx(0.5)
    restore()
    assert scale_of("mine") == scale_of("never measured")
    assert known_scale("mine") is None


def test_the_last_scale_wins_and_a_built_in_one_comes_back():
    name = "bge-small-en-v1.5"
    built_in = scale_of(name)
    undo_first = register_scale(name, unrelated=0.1, paraphrase=1)
    undo_second = register_scale(name, unrelated=0.2, paraphrase=1)
    undo_first()
    assert scale_of(name).unrelated == 0.2
    undo_second()
    assert scale_of(name) is built_in


@pytest.mark.parametrize("least", [-0.1, 1.1, math.nan, math.inf, True, "0.5", [], 10**400])
def test_a_lowest_score_is_from_0_to_1(least):
    with pytest.raises(InvalidArgumentError, match="min_score is a number from 0 to 1"):
        check_min_score(least)


def test_a_lowest_score_that_is_one():
    assert [check_min_score(each) for each in (None, 0, 0.5, 1)] == [None, 0, 0.5, 1]
