from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.dataset import load_sample, parse_dataset, read_dataset

QUESTIONS = [
    {"question": "Who?", "category": 1, "evidence": ["D1:1; D1:2", "D9:9"]},
    {"question": "Whence?", "category": 5, "evidence": ["D1:1"]},
    {"question": "Why?", "category": 2, "evidence": []},
]
LOCOMO = [
    {
        "sample_id": "c1",
        "qa": QUESTIONS,
        "conversation": {
            "speaker_a": "Ana",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "later"}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "hi", "blip_caption": "a boat"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "ho"},
            ],
            "session_1_date_time": "some day",
        },
    }
]
PLAIN = [
    {
        "id": "c1",
        "questions": QUESTIONS,
        "sessions": [
            {
                "date_time": "some day",
                "turns": [
                    {"speaker": "Ana", "id": "D1:1", "text": "hi", "image_caption": "a boat"},
                    {"speaker": "Bo", "id": "D1:2", "text": "ho"},
                ],
            },
            {
                "date_time": "1:56 pm on 8 May, 2023",
                "turns": [{"speaker": "Bo", "id": "D2:1", "text": "later"}],
            },
        ],
    }
]


def test_both_formats_say_the_same(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(LOCOMO))
    (conversation,) = read_dataset(path)
    (plain,) = parse_dataset(PLAIN)
    assert plain == conversation


def test_what_is_there_is_read():
    (conversation,) = parse_dataset(LOCOMO)
    (question,) = conversation.questions
    assert (question.category, question.evidence) == ("multi-hop", ("D1:1", "D1:2"))
    first, second = conversation.sessions
    assert first.turns[0].spoken == "Ana: hi [a boat]"
    assert first.turns[0].said_at is None
    assert second.turns[0].said_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_turns_with_the_same_id_are_all_kept_and_are_no_evidence():
    said = [{"speaker": "Ana", "id": each, "text": each} for each in ("1", "2", "1")]
    asked = [{"question": "?", "category": 1, "evidence": [each]} for each in ("1", "2")]
    entry = {"id": "c", "sessions": [{"turns": said}, {"turns": said[:1]}], "questions": asked}
    (found,) = parse_dataset([entry])
    names = [turn.id for each in found.sessions for turn in each.turns]
    assert names == ["1 (1)", "2", "1 (3)", "1 (4)"]
    assert sorted(each.evidence for each in found.asked) == [(), ("2",)]


def ours(questions=(), sessions=()):
    turns = [{"id": "D1:1", "speaker": "Ada", "text": "I keep bees."}]
    sessions = [*sessions] or [{"turns": turns}]
    return {"id": "c", "sessions": sessions, "questions": [*questions]}


@pytest.mark.parametrize("evidence", ["D1:1", ["D1:1"], ["D1:1; D9:9"]])
def test_evidence_is_a_text_or_a_list(evidence):
    asked = {"question": "Who?", "category": 4, "answer": "Ada", "evidence": evidence}
    (found,) = parse_dataset([ours([asked])])
    assert [each.evidence for each in found.questions] == [("D1:1",)]


@pytest.mark.parametrize("answer", ["", " \n", [], ["", None, "\u3000"], None])
def test_an_empty_answer_is_none(answer):
    asked = {"question": "Who?", "category": 4, "answer": answer}
    (found,) = parse_dataset([ours([asked])])
    assert [each.expected for each in found.asked] == [()]


@pytest.mark.parametrize("told", ["false", "no", 0.5, [], {}])
def test_whether_to_abstain_is_true_or_false(told):
    asked = {"question": "Who?", "category": 4, "answer": "x", "abstain": told}
    with pytest.raises(InvalidArgumentError, match="abstain"):
        parse_dataset([ours([asked])])


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_a_session_without_a_date_stays_behind_the_one_before_it(days, undated):
    sessions = [
        {
            "turns": [{"id": str(place), "speaker": "Ada", "text": "x"}],
            **({} if place in undated else {"date_time": f"2023-05-0{day + 1}"}),
        }
        for place, day in enumerate(days)
    ]
    (found,) = parse_dataset([ours(sessions=sessions)])
    order = [int(session.turns[0].id) for session in found.sessions]
    dated = [days[place] for place in order if place not in undated]
    assert dated == sorted(dated)
    for place in undated - {0}:
        assert order[order.index(place) - 1] == place - 1


@pytest.mark.parametrize("content", ["{", "{}", "[]", "[1]", '[{"id": 1}]', '[{"id": 1, "qa": 2}]'])
def test_what_is_no_data_set_is_refused_by_name(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError, match=r"other\.json"):
        read_dataset(path)


def test_the_sample_is_whole():
    sample = load_sample()
    assert sum(len(each.questions) for each in sample) >= 40
    for conversation in sample:
        turns = [turn for session in conversation.sessions for turn in session.turns]
        assert 60 <= len(turns) <= 100
        assert all(turn.said_at for turn in turns)
        assert len({turn.id for turn in turns}) == len(turns)
        assert all(each.expected for each in conversation.questions)
        assert all(each.asked_at == turns[-1].said_at for each in conversation.asked)
        assert [each.abstain for each in conversation.others] == [True, True]
