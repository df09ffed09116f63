from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.conversation.roles import BLOCK_CLOSE, STABLE_OPENING
from locus_memory.plug.hosts import HOSTS
from locus_memory.plug.transcripts import MOST_AT_ONCE, new_turns, turns_of

SHOWN = f"{STABLE_OPENING}- Ada is allergic to nuts.\n{BLOCK_CLOSE}"


def claude(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, **more}


def codex(kind: str, record: str = "event_msg", **payload: Any) -> dict[str, Any]:
    return {
        "timestamp": "2026-11-28T10:00:00Z",
        "type": record,
        "payload": {"type": kind, **payload},
    }


def text(words: str, kind: str = "text") -> dict[str, str]:
    return {"type": kind, "text": words}


def read(path: Path, host: str, start: int = 0) -> list[tuple[str, str]]:
    parts = new_turns(path, start, HOSTS[host].turn)
    return [(str(m.role), m.content or "") for part in parts for m in part.messages]


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return path


# Each record, and what is read of it: the shapes of the versions that hosts.py names.
SHAPES: dict[str, list[tuple[dict[str, Any], tuple[str, str] | None]]] = {
    "claude-code": [
        (claude("user", "We ship on Fridays."), ("user", "We ship on Fridays.")),
        (
            claude("user", [text("Ein Satz."), text("Noch einer.")]),
            ("user", "Ein Satz.\nNoch einer."),
        ),
        (claude("assistant", [{"type": "thinking", "thinking": "?"}]), None),
        (
            claude("assistant", [text("Done."), {"type": "tool_use", "id": "1"}]),
            ("assistant", "Done."),
        ),
        (claude("assistant", [text("API Error: 529")], isApiErrorMessage=True), None),
        (claude("user", "Caveat: ...", isMeta=True), None),
        (claude("user", "This session is continued ...", isCompactSummary=True), None),
        (claude("user", "Look for x.", isSidechain=True), None),
        (claude("user", "<command-name>/clear</command-name>"), None),
        (claude("user", "<local-command-stdout></local-command-stdout>"), None),
        (claude("user", [{"type": "tool_result", "content": "42 passed"}]), ("tool", "42 passed")),
        (
            claude("user", [{"type": "tool_result", "content": [text("a"), text("b")]}]),
            ("tool", "a\nb"),
        ),
        (claude("user", f"Hello.\n{SHOWN}"), ("user", "Hello.")),
        ({"type": "attachment", "attachment": {"type": "hook_additional_context"}}, None),
        ({"type": "summary", "summary": "Shipping", "leafUuid": "x"}, None),
        ({"type": "file-history-snapshot"}, None),
    ],
    "codex": [
        (codex("user_message", message="We ship on Fridays."), ("user", "We ship on Fridays.")),
        (codex("agent_message", message="Noted."), ("assistant", "Noted.")),
        (
            codex(
                "item_completed", item={"type": "UserMessage", "id": "1", "content": [text("Hi.")]}
            ),
            ("user", "Hi."),
        ),
        (
            codex(
                "item_completed", item={"type": "AgentMessage", "content": [text("Yo.", "Text")]}
            ),
            ("assistant", "Yo."),
        ),
        (codex("item_completed", item={"type": "Reasoning", "content": [text("Hm.")]}), None),
        (codex("message", "response_item", role="user", content=[text("Hi.", "input_text")]), None),
        (codex("function_call_output", "response_item", output="ok"), ("tool", "ok")),
        (codex("function_call_output", "response_item", output={"content": "ok"}), ("tool", "ok")),
        (codex("task_started"), None),
        ({"type": "session_meta", "payload": {"id": "1"}}, None),
    ],
    "gemini": [
        ({"id": "1", "type": "user", "content": [{"text": "We ship."}]}, ("user", "We ship.")),
        ({"id": "2", "type": "gemini", "content": "Noted."}, ("assistant", "Noted.")),
        (
            {
                "id": "3",
                "type": "user",
                "content": [text("@a.py: 1000 lines")],
                "displayContent": "@a.py",
            },
            ("user", "@a.py"),
        ),
        (
            {
                "id": "4",
                "type": "user",
                "content": "<hook_context>&lt;memory&gt;\n- x\n</hook_context>\n\nHi.",
            },
            ("user", "Hi."),
        ),
        ({"id": "5", "type": "info", "content": "Request cancelled."}, None),
        ({"id": "6", "type": "error", "content": "quota"}, None),
        ({"$set": {"messages": [{"id": "0", "type": "user", "content": "context"}]}}, None),
        ({"sessionId": "1", "projectHash": "2", "kind": "main"}, None),
    ],
    "opencode": [
        ({"info": {"id": "1", "role": "user"}, "parts": [text("We ship.")]}, ("user", "We ship.")),
        (
            {
                "info": {"id": "2", "role": "user"},
                "parts": [text("Hi."), {**text(SHOWN), "synthetic": True}],
            },
            ("user", "Hi."),
        ),
        (
            {
                "info": {"id": "3", "role": "assistant"},
                "parts": [{"type": "step-start"}, text("Noted.")],
            },
            ("assistant", "Noted."),
        ),
        ({"info": {"id": "4", "role": "assistant"}, "parts": []}, None),
    ],
}


@pytest.mark.parametrize("host", SHAPES)
def test_each_shape_is_read_as_its_host_means_it(host: str, tmp_path: Path) -> None:
    for record, said in SHAPES[host]:
        path = lines(tmp_path / "session.jsonl", record)
        assert read(path, host) == ([] if said is None else [said]), record
        known = [(str(m.role), m.content) for m in turns_of([record], HOSTS[host].turn)]
        assert known == ([] if said is None else [said]), record


@pytest.mark.parametrize("host", SHAPES)
@given(
    record=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "message",
                        "content",
                        "payload",
                        "item",
                        "text",
                        "info",
                        "parts",
                        "role",
                        "output",
                    ]
                )
                | st.text(max_size=3),
                inner | st.sampled_from(["user", "assistant", "text", "event_msg", "user_message"]),
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
@settings(max_examples=150)
def test_a_record_of_any_shape_is_passed(host: str, record: Any) -> None:
    for message in turns_of([record], HOSTS[host].turn):
        assert message.content


HOSTILE = [
    b"",
    b"\n\n\n",
    b"{\n",
    b"\xff\xfe\n",
    b"7\n",
    b"[" * 5_000 + b"\n",
    b'{"type": "user"}\n',
    b'{"type": "user", "message": {"content": "\\ud800 half"}}\n',
    b'{"type": "user", "message": {"content": "nul \\u0000"}}\n',
]


@pytest.mark.parametrize("host", SHAPES)
@pytest.mark.parametrize("content", HOSTILE)
def test_what_is_no_record_is_passed(host: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(content + json.dumps(SHAPES[host][0][0]).encode() + b"\n")
    said = read(path, host)
    assert said[-1] == SHAPES[host][0][1]
    for _, words in said:
        words.encode()


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
@pytest.mark.parametrize("half", ["\\ud83d", "a\\ude00", "\\ud83d\\ud83d"])
def test_a_turn_with_half_a_character_is_kept(host: str, half: str, tmp_path: Path) -> None:
    shape, said = SHAPES[host][0]
    assert said is not None
    words = said[1]
    record = json.dumps(shape).replace(words, f"{words} 😀 {half} गर्मी")
    path = tmp_path / "session.jsonl"
    path.write_text(f"{record}\n", encoding="utf-8")
    [(_, kept)] = read(path, host)
    marks = re.sub(r"\\u.{4}", "\ufffd", half)
    assert kept == f"{words} 😀 {marks} गर्मी"


def test_a_line_without_its_end_waits(tmp_path: Path) -> None:
    path = lines(tmp_path / "session.jsonl", claude("user", "One."))
    whole = json.dumps(claude("user", "Two."))
    with path.open("a") as file:
        file.write(whole[:20])
    [part] = new_turns(path, 0, HOSTS["claude-code"].turn)
    assert [m.content for m in part.messages] == ["One."]
    with path.open("a") as file:
        file.write(whole[20:] + "\n")
    assert read(path, "claude-code", part.end) == [("user", "Two.")]


def test_a_file_that_became_shorter_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = lines(tmp_path / "session.jsonl", claude("user", "One."))
    assert read(path, "claude-code", 10_000) == [("user", "One.")]


def test_a_record_that_is_written_again_counts_once(tmp_path: Path) -> None:
    first = {"id": "1", "type": "gemini", "content": "No"}
    path = lines(tmp_path / "session.jsonl", first, {**first, "content": "Noted."})
    assert read(path, "gemini") == [("assistant", "Noted.")]


@given(st.text(max_size=4_000))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_output_of_a_tool_is_short(words: str) -> None:
    result = [{"type": "tool_result", "content": words}]
    for message in turns_of([claude("user", result)], HOSTS["claude-code"].turn):
        assert len(message.content or "") <= 1_220


def test_a_transcript_of_many_short_turns_is_read_in_parts(tmp_path: Path) -> None:
    count = 2 * MOST_AT_ONCE + 7
    turns = [claude("user", f"Turn {n}.", uuid=f"{n}") for n in range(count)]
    path = lines(tmp_path / "session.jsonl", *turns)
    parts = list(new_turns(path, 0, HOSTS["claude-code"].turn))
    assert [len(part.messages) for part in parts] == [MOST_AT_ONCE, MOST_AT_ONCE, 7]
    said = [message.content for part in parts for message in part.messages]
    assert said == [f"Turn {n}." for n in range(count)]
    assert parts[-1].end == path.stat().st_size


def test_a_large_transcript_is_read_in_parts_and_one_large_line_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with path.open("wb") as file:
        file.write(b'{"type": "user", "message": {"content": "' + b"x" * 2**25 + b'"}}\n')
        for number in range(2_000):
            record = claude("user", f"Turn {number}. " + "y" * 4_000)
            file.write(json.dumps(record).encode() + b"\n")
    tracemalloc.start()
    parts = [
        (len(part.messages), part.end) for part in new_turns(path, 0, HOSTS["claude-code"].turn)
    ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(count for count, _ in parts) == 2_000
    assert parts[-1][1] == path.stat().st_size
    assert len(parts) > 3
    assert peak < 2**26
