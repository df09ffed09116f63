"""The application of `docs/fastapi.md` serves users from several processes on one database."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from fastapi.testclient import TestClient

from locus_memory import Agent, Message, ScriptedModel

PAGE = Path(__file__).parents[1] / "docs" / "fastapi.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the files that the page shows."""
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    for name, code in re.findall(
        r"^```python\n# (\w+\.py)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    ):
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


@pytest.fixture
def app(folder):
    spec = importlib.util.spec_from_file_location("app", folder / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def is_listening(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(database):
    """Run uvicorn; yields its port. At the end it must stop by itself, and well."""
    port = free_port()
    log = Path(f"{port}.log")
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
    environment = os.environ | {"DATABASE": database}
    with log.open("wb") as output:
        running = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        while not is_listening(port):
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield port
        running.terminate()
        assert running.wait(60) in {0, -signal.SIGTERM}
    finally:
        running.kill()
        running.wait()
    assert "Application shutdown complete" in log.read_text()
    assert "Traceback" not in log.read_text()


@contextmanager
def two_processes(database):
    with process(database) as one, process(database) as other:
        yield one, other


def ask(port, thread, text, user):
    request = Request(
        f"http://127.0.0.1:{port}/threads/{thread}/messages",
        json.dumps({"text": text}).encode(),
        {"content-type": "application/json", "x-user": user},
    )
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)["text"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    if request.param == "sqlite":
        return "sqlite:./app.db"
    server = request.getfixturevalue("postgresql_server")
    server.run("DROP DATABASE IF EXISTS web")
    server.run("CREATE DATABASE web")
    return server.url.rsplit("/", 1)[0] + "/web"


@pytest.mark.slow
def test_several_processes_serve_one_database(folder, database):
    homes = {"ada": "Vienna", "bob": "Oslo", "cem": "Izmir"}
    with two_processes(database) as (one, other):
        for user, home in homes.items():
            assert ask(one, "monday", f"I live in {home}.", user) == "Noted."
            for port in (other, one, other):
                answer = ask(port, "monday", "Where do I live?", user)
                assert answer == f"You said: I live in {home}."
    # Stopping drained the queue, so that another start remembers, in each process.
    with two_processes(database) as ports:
        for port in ports:
            for user, home in homes.items():
                answer = ask(port, f"thread-{port}", "Where do I live?", user)
                assert answer == f"I remember: The user lives in {home}."


def test_two_messages_of_one_thread_at_once_are_a_conflict(app):
    with TestClient(app) as client:
        agent = app.state.agent

        async def slow(messages):
            other = Agent(ScriptedModel(), checkpointer=app.state.backend)
            await other.run("And I was quicker.", "ada/monday", user_id="ada")
            return Message.assistant("Too late.")

        agent.model = slow
        send = {"json": {"text": "Hello"}, "headers": {"X-User": "ada"}}
        answer = client.post("/threads/monday/messages", **send)
        assert (answer.status_code, answer.json()) == (409, {"detail": "CheckpointConflictError"})
        agent.model = ScriptedModel()
        assert client.post("/threads/monday/messages", **send).status_code == 200


def test_nobody_speaks_on_the_thread_of_another_user(app):
    with TestClient(app) as client:
        send = {"json": {"text": "Hello"}}
        ours = client.post("/threads/b/messages", headers={"X-User": "ada"}, **send)
        assert ours.status_code == 200
        client.portal.call(app.state.backend.checkpointer.copy_thread, "ada/b", "eve/b")
        theirs = client.post("/threads/b/messages", headers={"X-User": "eve"}, **send)
        assert (theirs.status_code, theirs.json()) == (422, {"detail": "InvalidArgumentError"})
