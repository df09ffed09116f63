from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.dataset import parse_dataset, read_dataset


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), "utf-8")
    return path


LOCOMO = {
    "sample_id": "conv-1",
    "qa": [
        {"question": "Where?", "answer": "Oslo", "category": 4, "evidence": ["D1:1"]},
        {"question": "How many?", "answer": 3, "category": 1, "evidence": ["D1:1; D2:1"]},
        {
            "question": "What did Bo lose?",
            "adversarial_answer": "a hat",
            "category": 5,
            "evidence": ["D2:1"],
        },
    ],
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "Oslo", "img_url": ["x"]}],
        "session_2_date_time": "9:00 am on 9 May, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "blip_caption": "three hats"}],
        "session_3_date_time": "9:00 am on 10 May, 2023",
    },
    "event_summary": {},
}
LONG_MEM_EVAL = {
    "question_id": "gpt4_93f6_abs",
    "question_type": "temporal-reasoning",
    "question": "How long?",
    "answer": 7,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["b", "a", "c"],
    "haystack_dates": [
        "2023/05/21 (Sun) 02:21",
        "2023/05/20 (Sat) 10:58",
        "2023/05/22 (Mon) 00:00",
    ],
    "haystack_sessions": [
        [{"role": "user", "content": "later", "has_answer": True}],
        [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "", "has_answer": False},
        ],
        [],
    ],
    "answer_session_ids": ["b"],
}
REALTALK = {
    "name": {"speaker_1": "Emi", "speaker_2": "Élise"},
    "session_1": [
        {
            "clean_text": "Ça va?",
            "speaker": "Emi",
            "date_time": "29.12.2023, 22:42:04",
            "img_file": [],
            "dia_id": "D1:1",
        }
    ],
    "events_session_1": {"agent_a": []},
    "session_1_date_time": "29.12.2023, 22:42:04",
    "qa": [{"question": "When?", "answer": "29 Dec", "evidence": ["D1:1"], "category": 2}],
}
PERSON = {
    "name": "艾米",
    "summary": {},
    "history": {"2023-04-27": [{"query": "你好", "response": "你好!"}], "2023-04-28": []},
}
BEAM_CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "content": "I'm Darryl ->-> 1,2",
                },
                {"role": "assistant", "id": 1, "content": "Hi"},
            ],
            [{"role": "user", "id": 2, "content": "a ->-> b"}],
        ],
    },
    {
        "turns": [
            [{"role": "user", "id": 3, "time_anchor": "April-02-2024", "content": "x ->-> 2, 10"}]
        ]
    },
]
BEAM_ASKED = {
    "abstention": [{"question": "What agenda?", "ideal_response": "none told", "rubric": ["n"]}],
    "knowledge_update": [
        {
            "question": "How many?",
            "answer": "1,350",
            "source_chat_ids": {"original_info": [0], "updated_info": [3, 99]},
        }
    ],
    "instruction_following": [
        {"question": "When?", "expected_compliance": "Month Day", "source_chat_ids": [2]}
    ],
    "summarization": [{"question": "Sum?", "ideal_summary": "all", "source_chat_ids": [1]}],
}


def test_locomo():
    (conversation,) = parse_dataset([LOCOMO])
    assert conversation.id == "conv-1"
    assert [each.expected for each in conversation.asked] == [("Oslo",), ("3",), ()]
    assert [each.id for each in conversation.asked] == ["1", "2", "3"]
    assert [each.abstain for each in conversation.asked] == [False, False, True]
    assert conversation.questions[1].evidence == ("D1:1", "D2:1")
    assert conversation.others[0].category == "adversarial"
    assert {each.asked_at for each in conversation.asked} == {datetime(2023, 5, 9, 9, tzinfo=UTC)}
    assert conversation.sessions[1].turns[0].spoken == "Bo: [three hats]"


def test_long_mem_eval():
    answered = {**LONG_MEM_EVAL, "question_id": "gpt4_93f6"}
    withheld, plain = parse_dataset([LONG_MEM_EVAL, answered])
    assert withheld.questions == ()
    (question,) = withheld.others
    assert (question.id, question.abstain, question.expected) == ("gpt4_93f6_abs", True, ("7",))
    assert question.category == "temporal-reasoning"
    assert question.asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    (question,) = plain.questions
    assert question.evidence == ("D1:1",)
    first, second = plain.sessions
    assert [turn.spoken for turn in first.turns] == ["user: first", "assistant: "]
    assert second.turns[0].id == "D1:1"
    assert second.turns[0].said_at == datetime(2023, 5, 21, 2, 21, tzinfo=UTC)


def test_realtalk_as_a_file_and_as_a_folder(tmp_path):
    one = write(tmp_path / "Chat_10_Emi_Elise.json", REALTALK)
    write(tmp_path / "Chat_2_A_B.json", REALTALK)
    (conversation,) = read_dataset(one)
    assert conversation.id == "Chat_10_Emi_Elise"
    assert conversation.sessions[0].turns[0].spoken == "Emi: Ça va?"
    assert conversation.questions[0].category == "temporal"
    moment = datetime(2023, 12, 29, 22, 42, 4, tzinfo=UTC)
    assert conversation.questions[0].asked_at == moment
    assert [each.id for each in read_dataset(tmp_path)] == ["Chat_10_Emi_Elise", "Chat_2_A_B"]


def test_memory_bank_with_its_questions_beside(tmp_path):
    bank = write(tmp_path / "memory_bank_cn.json", {"艾米": PERSON})
    with pytest.raises(InvalidArgumentError, match=r"probing_questions_cn\.jsonl"):
        read_dataset(bank)
    beside = tmp_path / "probing_questions_cn.jsonl"
    beside.write_text('{"艾米": ["我是谁?"]}\n\n{"nobody": ["?"]}\n', "utf-8")
    (conversation,) = read_dataset(bank)
    assert [each.spoken for each in conversation.sessions[0].turns] == [
        "艾米: 你好",
        "Assistant: 你好!",
    ]
    (question,) = conversation.asked
    assert (question.text, question.category, question.expected) == ("我是谁?", "probing", ())
    assert question.asked_at == datetime(2023, 4, 27, tzinfo=UTC)
    assert read_dataset(tmp_path) == [conversation]


@pytest.mark.parametrize(
    "chat",
    [
        BEAM_CHAT,
        [{"plan-1": BEAM_CHAT[:1], "plan-2": None}, {"plan-2": BEAM_CHAT[1:]}],
        [[message for turn in batch["turns"] for message in turn] for batch in BEAM_CHAT],
    ],
    ids=["turns", "plans", "bare"],
)
def test_beam(tmp_path, chat):
    write(tmp_path / "100K" / "2" / "chat.json", chat)
    write(tmp_path / "100K" / "2" / "probing_questions" / "probing_questions.json", BEAM_ASKED)
    (conversation,) = read_dataset(tmp_path)
    assert conversation.id == "100K/2"
    first, second = conversation.sessions
    assert [turn.text for turn in first.turns] == ["I'm Darryl", "Hi", "a ->-> b"]
    assert {turn.said_at for turn in first.turns} == {datetime(2024, 3, 15, tzinfo=UTC)}
    assert second.turns[0].said_at == datetime(2024, 4, 2, tzinfo=UTC)
    asked = {each.id: each for each in conversation.asked}
    assert asked["abstention-1"].abstain
    assert asked["knowledge_update-1"].evidence == ("0", "3")
    assert asked["instruction_following-1"].expected == ("Month Day",)
    assert asked["summarization-1"].expected == ("all",)
    assert asked["summarization-1"].asked_at == datetime(2024, 4, 2, tzinfo=UTC)
    assert read_dataset(tmp_path / "100K" / "2")[0].sessions == conversation.sessions


def test_the_shortened_chat_of_beam_is_the_one_that_is_asked_about(tmp_path):
    for name in ("1", "10", "2"):
        write(tmp_path / name / "chat.json", BEAM_CHAT)
        write(tmp_path / name / "probing_questions" / "probing_questions.json", BEAM_ASKED)
    write(tmp_path / "10" / "chat_trunecated.json", BEAM_CHAT[:1])
    found = read_dataset(tmp_path)
    assert [(each.id, len(each.sessions)) for each in found] == [("1", 2), ("2", 2), ("10", 1)]


def test_a_long_run_of_spaces_in_a_message_is_read_at_once(tmp_path):
    said = f"code{' ' * 300_000}more ->-> 1,2"
    chat = [{"role": "user", "id": 1, "content": said}]
    write(tmp_path / "1" / "chat.json", chat)
    write(tmp_path / "1" / "probing_questions" / "probing_questions.json", BEAM_ASKED)
    (conversation,) = read_dataset(tmp_path)
    assert conversation.sessions[0].turns[0].text == said.removesuffix(" ->-> 1,2")


def test_our_own_form_takes_several_answers():
    entry = {
        "id": 7,
        "sessions": [{"turns": [{"id": 1, "speaker": "A", "text": "x"}]}],
        "questions": [
            {"question": "?", "category": "kin", "answer": ["a", 2], "evidence": [1], "id": "q"},
            {"question": "?", "category": 4, "abstain": True, "asked_at": "2024-01-02"},
        ],
    }
    (conversation,) = parse_dataset([entry])
    first, second = conversation.asked
    assert (conversation.id, first.id, first.expected) == ("7", "q", ("a", "2"))
    assert (first.category, first.evidence) == ("kin", ("1",))
    assert (second.id, second.abstain) == ("2", True)
    assert second.asked_at == datetime(2024, 1, 2, tzinfo=UTC)


def damaged(**changes):
    return [{**LONG_MEM_EVAL, **changes}]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (BEAM_CHAT, "no known field"),
        ([LOCOMO, LOCOMO], "two conversations have the id 'conv-1'"),
        ([{**LOCOMO, "qa": [{**LOCOMO["qa"][0], "id": "x"}] * 2}], "two questions"),
        (damaged(haystack_dates=[]), "ValueError"),
        (damaged(haystack_sessions=None), "TypeError"),
        (damaged(question=["?"]), "others.0.text: Input should be a valid string"),
        (damaged(haystack_dates=[7, 7, 7]), "TypeError"),
        ({**REALTALK, "session_1": [7]}, "number 1"),
        ({**REALTALK, f"session_{'9' * 5000}": []}, "ValueError"),
        ({"x": {"history": {"2023": [{}]}, "name": "x"}}, "KeyError"),
        ("conversation", "a list of conversations"),
        (["conversation"], "not a conversation"),
    ],
)
def test_a_damaged_file_is_refused_by_its_place(document, told):
    with pytest.raises(InvalidArgumentError, match=told) as caught:
        parse_dataset(document, "file.json")
    assert str(caught.value).startswith("file.json: ")
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("content", ["[", "null", '{"abstention": 3}', "[1]", '{"a": [{}]}'])
def test_a_damaged_chat_of_beam_is_refused_by_its_folder(tmp_path, content):
    write(tmp_path / "1" / "chat.json", BEAM_CHAT)
    path = write(tmp_path / "1" / "probing_questions" / "probing_questions.json", {})
    path.write_text(content)
    with pytest.raises(InvalidArgumentError, match="1"):
        read_dataset(tmp_path)


def test_a_folder_without_a_chat_is_refused(tmp_path):
    write(tmp_path / "probing_questions" / "probing_questions.json", {})
    with pytest.raises(FileNotFoundError, match=r"chat\.json"):
        read_dataset(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match="a list of conversations"):
        read_dataset(tmp_path / "empty")


WORDS = st.sampled_from(
    ["", "D1:1", "session_1", "2024-01-01T00:00+23:59", "0001-01-01", "\x00<script>", "٣"]
) | st.text(max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)
KNOWN = [LOCOMO, LONG_MEM_EVAL, REALTALK, PERSON, BEAM_CHAT]


@given(data=st.data(), document=st.sampled_from(KNOWN))
def test_whatever_stands_in_a_file_it_is_read_or_refused(data, document):
    def changed(value):
        """The same value, with one place of it replaced by anything."""
        if not isinstance(value, (dict, list)) or not value or data.draw(st.booleans()):
            return data.draw(VALUES)
        if isinstance(value, dict):
            name = data.draw(st.sampled_from(sorted(value)))
            return {**value, name: changed(value[name])}
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], changed(value[place]), *value[place + 1 :]]

    whole = changed(document)
    try:
        found = parse_dataset(json.loads(json.dumps([whole])))
    except InvalidArgumentError:
        return
    for conversation in found:
        known = {turn.id for session in conversation.sessions for turn in session.turns}
        for question in conversation.asked:
            assert known.issuperset(question.evidence)
            assert isinstance(question.text, str)
            assert question.id
