"""The server of a session answers hooks; and whatever it does, a hook does its work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from locus_memory import StoreItem, __version__, get_store
from locus_memory.memory import LLMMemoryManager
from locus_memory.plug import command
from locus_memory.plug.command import NAMES, listen
from locus_memory.plug.data_folder import data_folder
from locus_memory.plug.hook import Settings, here, show
from locus_memory.plug.hosts import HOSTS
from locus_memory.plug.settings import COMMAND

QUESTION = "Which staging database?"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    # The path of a socket has at most 107 bytes.
    with TemporaryDirectory(prefix="d-") as folder:
        monkeypatch.setenv("XDG_DATA_HOME", folder)
        yield Path(folder, "locus_memory")


@pytest.fixture
async def url(data: Path, tmp_path: Path) -> str:
    where = f"sqlite:{tmp_path / 'agents.db'}"
    project = Settings(url=where, person="person:ada").project(str(tmp_path / "shop"))
    async with LLMMemoryManager(where) as manager:
        view = manager.for_user(project)
        await view.remember("We deploy with `make ship`.")
        # What is new since the session began stands in what answers a message.
        start = event(tmp_path, "SessionStart")
        await asyncio.to_thread(show, ["claude-code", "--url", where], start)
        await view.remember("The staging database is called heron.")
    return where


def event(folder: Path, name: str = "UserPromptSubmit") -> bytes:
    told = {"hook_event_name": name, "session_id": "two", "cwd": str(folder / "shop")}
    return json.dumps({**told, "prompt": QUESTION}).encode()


def hook(url: str, given: bytes, seconds: int = 60) -> tuple[Any, str]:
    """What a hook showed, and the modules that it imported; it has more time, if need be."""
    printed, modules = call("claude-code", url, given, seconds)
    return json.loads(printed or b"{}"), modules


def call(name: str, url: str, given: bytes, seconds: int = 60) -> tuple[bytes, str]:
    """What a hook printed, and the modules that it imported; it has more time, if need be."""
    code = (
        "import sys\nfrom locus_memory.plug import command\n"
        "command.SECONDS = %d\ncommand.run(sys.argv[1:])"
    )
    python = [sys.executable, "-P", "-X", "importtime", "-c", code % seconds]
    done = subprocess.run(
        [*python, name, "--url", url],
        input=given,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout, done.stderr.decode()


@pytest.fixture
def served(data: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """The MCP server of a session, as the settings of a host start it."""
    pytest.importorskip("mcp")
    command = [*COMMAND, "mcp", "--url", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        for _ in range(600):
            if [*(data / "run").glob("*")]:
                break
            time.sleep(0.1)
        assert [*(data / "run").glob("*")]
        yield server
        server.kill()


def test_the_names_of_the_hosts_are_those_of_their_table() -> None:
    assert tuple(HOSTS) == NAMES


def test_the_server_of_a_session_answers_and_the_hook_imports_nothing(
    served: subprocess.Popen[bytes], data: Path, url: str, tmp_path: Path
) -> None:
    answer, modules = hook(url, event(tmp_path))
    assert "heron" in answer["hookSpecificOutput"]["additionalContext"]
    assert not [name for name in ("pydantic", "asyncio", "orjson") if f" {name}\n" in modules]
    assert (data / "run").stat().st_mode & 0o777 == 0o700
    assert served.stdin is not None
    served.stdin.close()
    assert served.wait(60) == 0
    assert not [*(data / "run").glob("*")]


def test_a_status_line_tells_how_much_is_known_and_that_a_hook_failed(
    data: Path, url: str, tmp_path: Path
) -> None:
    given = json.dumps({"cwd": str(tmp_path / "shop"), "model": {"id": "x"}}).encode()
    line, _ = call("status", url, given)
    assert line == b"memories: 2 of the project, 0 of the person"
    assert show(["status", "--url", url], given) == line
    call("claude-code", url, b"{")
    line, _ = call("status", url, given)
    assert line.endswith(f" | a hook failed: see {data / 'hook.log'}".encode())
    os.utime(data / "hook.log", (0, 0))
    assert b"failed" not in call("status", url, given)[0]
    assert call("status", url, b"{}")[0] == b""


def test_a_server_that_was_killed_is_no_loss(
    served: subprocess.Popen[bytes], data: Path, url: str, tmp_path: Path
) -> None:
    served.send_signal(signal.SIGKILL)
    served.wait()
    answer, modules = hook(url, event(tmp_path))
    assert "heron" in answer["hookSpecificOutput"]["additionalContext"]
    assert " pydantic\n" in modules
    assert not [*(data / "run").glob("*")]


@pytest.mark.parametrize("answer", [b"", None])
def test_a_server_that_does_not_answer_leaves_the_work_to_the_hook(
    data: Path, url: str, tmp_path: Path, answer: bytes | None
) -> None:
    """It ends in the middle, or fails: it may be of an older version."""

    def fails(arguments: list[str], given: bytes) -> bytes:
        assert (arguments[0], given) == ("claude-code", event(tmp_path))
        if answer is None:
            raise ImportError
        return answer

    listen(fails)
    told, _ = hook(url, event(tmp_path))
    assert "heron" in told["hookSpecificOutput"]["additionalContext"]


def test_servers_that_hang_keep_no_hook_from_its_work(data: Path, url: str, tmp_path: Path) -> None:
    """They are suspended with their sessions, as by Ctrl-Z in a terminal."""
    (data / "run").mkdir(parents=True)
    told = {"type": "user", "uuid": "m", "message": {"role": "user", "content": "We use tabs."}}
    (tmp_path / "one.jsonl").write_text(json.dumps(told) + "\n")
    over = {**json.loads(event(tmp_path, "Stop")), "transcript_path": str(tmp_path / "one.jsonl")}
    with ExitStack() as opened:
        for number in range(3):
            line = opened.enter_context(socket.socket(socket.AF_UNIX))
            line.bind(str(data / "run" / f"{__version__}-{number}"))
            line.listen()
        answer, _ = hook(url, event(tmp_path), 12)
        assert "heron" in answer["hookSpecificOutput"]["additionalContext"]
        hook(url, json.dumps(over).encode(), 12)
    assert [each.value["text"] for each in asyncio.run(_found(url, "tabs"))] == ["We use tabs."]


async def _found(url: str, words: str) -> list[StoreItem]:
    async with get_store(url) as store:
        return await store.search(("locus_memory",), words, recursive=True)


@pytest.mark.parametrize("folder", ["run", "x" * 120])
def test_where_no_server_can_listen_none_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / folder))
    (tmp_path / "run").write_text("a file")
    threads = threading.active_count()
    listen(show)
    assert threading.active_count() == threads


def test_a_server_is_seen_once_it_listens(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a hook would be refused, and take it for one that was killed."""
    activate, seen = socketserver.UnixStreamServer.server_activate, []

    def watched(server: socketserver.UnixStreamServer) -> None:
        seen.append([*(data / "run").glob(f"{__version__}-*")])
        activate(server)

    monkeypatch.setattr(socketserver.UnixStreamServer, "server_activate", watched)
    listen(show)
    assert seen == [[]]
    assert len([*(data / "run").iterdir()]) == 1


def test_what_keeps_something_is_the_work_of_the_hook(data: Path, url: str, tmp_path: Path) -> None:
    assert show(["claude-code", "--url", url], event(tmp_path, "Stop")) == b""


async def test_a_server_answers_many_sessions_at_once(data: Path, url: str, tmp_path: Path) -> None:
    given = ["claude-code", "--url", url], event(tmp_path)
    found = await asyncio.gather(*(asyncio.to_thread(show, *given) for _ in range(12)))
    assert len(set(found)) == 1
    assert b"heron" in found[0]


def test_a_hook_without_a_standard_input_ends_with_0(data: Path) -> None:
    code = "import sys; sys.stdin = None; from locus_memory.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "hook", "codex"],
        env={**os.environ, "XDG_DATA_HOME": str(data.parent)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "AttributeError" in (data / "hook.log").read_text()


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_folder_that_others_write_to_has_no_servers(mode: int, data: Path) -> None:
    """One of them would be told what is asked, and would tell what is known."""
    run = data / "run"
    listen(lambda arguments, event: b"ours")
    assert command._asked([], b"") == b"ours"
    run.chmod(mode)
    assert command._asked([], b"") == b""
    for path in run.iterdir():
        path.unlink()
    listen(lambda arguments, event: b"ours")
    assert not [*run.iterdir()]


def test_a_relative_data_folder_is_not_that_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local/share/locus_memory"


def test_a_user_without_a_home_folder_has_the_commands_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_DATA_HOME", "LOCALAPPDATA", "LOCUS_MEMORY_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.chdir(tmp_path)
    assert here(["recall", "deploy"]) == ["recall", "deploy"]
