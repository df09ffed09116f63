from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import pytest
import typer.main

from locus_memory.cli import app
from locus_memory.registry import open_backend
from locus_memory.retrieval.embedders import get_embedder
from locus_memory.store.wrappers import EmbeddingStore

HOMES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(scope="session", autouse=True)
def commands_built_once():
    """Build the commands once: typer does so for every call, and it takes longer than the call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


def play(folder):
    """Play the demo in a new folder; return what it printed."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "locus_memory.cli", "demo"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    """The folder where the demo was played, once for all processes, and what it printed."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, printed = root / "demo", root / "demo.txt"
    with (root / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not printed.exists():
            shutil.rmtree(folder, ignore_errors=True)
            printed.write_text(play(folder))
    return folder, printed.read_text()


@pytest.fixture
def copied(played, empty_directory):
    """A copy of what the demo left, in the current folder; and what it printed."""
    folder, printed = played
    shutil.copytree(folder, empty_directory, dirs_exist_ok=True)
    return printed


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    """Work in an empty directory, on a terminal of 80 columns without colours.

    The settings and the data of whoever runs the tests are neither read nor changed.
    """
    monkeypatch.chdir(tmp_path)
    for name in HOMES:
        monkeypatch.setenv(name, str(tmp_path.with_name(f"{tmp_path.name}-home")))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "25")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    return tmp_path


@pytest.fixture
def on_a_pipe(monkeypatch):
    """Print as on a pipe, where no terminal is read by a person."""
    monkeypatch.delenv("FORCE_COLOR")


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
    ok("import", "--threads", write("chat.json", CHAT))
    return CHAT


@pytest.fixture
def sessions(write, ok):
    """Import two conversations of sessions."""
    ok("import", "--threads", write("sessions.json", SESSIONS))
    return SESSIONS


@pytest.fixture
def table(write, empty_directory):
    """Write a model that is a table of vectors, one a word; returns what `--embedder` takes."""

    def writer(name, words):
        tokenizers = pytest.importorskip("tokenizers")
        (empty_directory / name).mkdir()
        vectors = [*words.values(), [0] * len(next(iter(words.values())))]
        numbers = [number for vector in vectors for number in vector]
        shape = [len(vectors), len(vectors[0])]
        tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len(numbers)]}
        header = json.dumps({"embeddings": tensor}).encode()
        body = struct.pack(f"<Q{len(header)}s{len(numbers)}f", len(header), header, *numbers)
        write(f"{name}/model.safetensors", body)
        tokens = {word: place for place, word in enumerate([*words, "[UNK]"])}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(tokens, unk_token="[UNK]"))
        tokenizer.normalizer = tokenizers.normalizers.Lowercase()
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        tokenizer.save(f"{name}/tokenizer.json")
        return f"static:./{name}"

    return writer


@pytest.fixture
def model(table):
    """A model that knows that physicians are doctors, and boats ships."""
    words = {"doctor": [1, 0, 0], "physician": [1, 0.1, 0], "boat": [0, 1, 0], "ship": [0, 1, 0.1]}
    return table("model-a", words)


@pytest.fixture
def other_model(table):
    """Another model, whose vectors are of another length."""
    words = {"doctor": [1, 0], "physician": [1, 0.1], "boat": [0, 1], "ship": [0.1, 1]}
    return table("model-b", words)


@pytest.fixture
def store_with(empty_directory):
    """Store texts with vectors, as an application does: a namespace and its items by key."""

    def storer(embedder, namespace, items):
        async def work():
            async with open_backend("sqlite:./locus.db") as backend:
                store = EmbeddingStore(backend.store, get_embedder(embedder))
                await store.put_batch([(namespace, key, text) for key, text in items.items()])

        asyncio.run(work())

    return storer
