from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass

import pytest

from locus_memory.cli import app


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    """Work in an empty directory, on a pipe of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command in this process."""

    def runner(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = app.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return runner


@pytest.fixture
def ok(run):
    """Run the command, which must succeed and keep stderr empty."""

    def runner(*arguments, stdin=b""):
        result = run(*arguments, stdin=stdin)
        assert (result.code, result.err) == (0, ""), result
        return result

    return runner


@pytest.fixture
def fails(run):
    """Run the command, which must fail with one line on stderr; returns that line."""

    def runner(code, *arguments, stdin=b""):
        result = run(*arguments, stdin=stdin)
        assert result.code == code, result
        assert result.err.startswith("error: ")
        assert result.err.count("\n") == 1
        return result.err

    return runner


CHAT = {
    "id": "chat",
    "messages": [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Where is the spare key?"},
        {"role": "assistant", "content": "Under the blue flowerpot."},
        {"role": "user", "content": "And the ladder?"},
        {"role": "assistant", "content": "Behind the shed."},
    ],
}

SESSIONS = [
    {
        "id": "garden",
        "speakers": ["Ada", "Bo"],
        "sessions": [
            {
                "date_time": "9 am on 1 May",
                "turns": [
                    {"id": "D1:1", "speaker": "Bo", "text": "I planted seven tulips."},
                    {"id": "D1:2", "speaker": "Ada", "text": "Which colours did you take?"},
                ],
            },
            {
                "date_time": "6 pm on 3 May",
                "turns": [
                    {
                        "id": "D2:1",
                        "speaker": "Bo",
                        "text": "Crimson ones, look!",
                        "image_caption": "a row of flowers beside a wheelbarrow",
                    },
                ],
            },
        ],
        "questions": [],
    },
    {
        "id": "kitchen",
        "speakers": ["Ada", "Cy"],
        "sessions": [
            {"date_time": "noon", "turns": [{"speaker": "Cy", "text": "The oven is broken."}]}
        ],
    },
]


@pytest.fixture
def write(empty_directory):
    """Write a file; JSON unless it is text or bytes."""

    def writer(name, content):
        path = empty_directory / name
        if isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = json.dumps(content).encode()
        path.write_bytes(content)
        return path

    return writer


@pytest.fixture
def chat(write, ok):
    """Import a conversation of five messages as the thread `chat`."""
    ok("import", write("chat.json", CHAT))
    return CHAT


@pytest.fixture
def sessions(write, ok):
    """Import two conversations of sessions."""
    ok("import", write("sessions.json", SESSIONS))
    return SESSIONS
