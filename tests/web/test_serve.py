"""`locus-memory serve` and `ui` as processes of their own, over real databases."""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from locus_memory.evaluation.journal import Answered, Journal, Run

TOKEN = "a-token-of-20-letters"
OPENER = build_opener(ProxyHandler({}))


@contextmanager
def process(folder, *arguments, command="serve", **environment):
    """Run the command; yields its address, and at the end it must stop by itself, and well."""
    command = [sys.executable, "-m", "locus_memory.cli", command, "--port", "0", *arguments]
    log = folder / "log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        line = running.stderr.readline()
        found = re.search(r"at (http://\S+?)/?[,;]", line)
        assert found, line + running.stderr.read()
        yield found[1], line
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
        assert (running.wait(60), rest, log.read_text()) == (0, "", "")
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def ask(address, path, body=None, method=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **headers}
    request = Request(address + path, data, headers, method=method)
    with OPENER.open(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "redis"])
def test_it_serves_a_database_and_stops_well(database, request, tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    if database != "sqlite":
        url = request.getfixturevalue(f"{database}_server").url
    namespace = f"serve-{tmp_path.name}"
    body = {"namespace": [namespace], "key": "k", "value": {"n": 1}}
    with process(tmp_path, "--url", url) as (address, _):
        assert ask(address, "/health?seconds=1")["ok"]
        assert ask(address, "/store/item", body, "PUT")["version"] == 1
    with process(tmp_path, "--url", url, "--read-only") as (address, line):
        assert "read-only" in line
        items = ask(address, f"/store/items?namespace={namespace}")["items"]
        assert [item["value"] for item in items] == [{"n": 1}]
        with pytest.raises(HTTPError) as refused:
            ask(address, "/store/item", body, "PUT")
        assert refused.value.code == 403
        refused.value.close()
    if database != "sqlite":
        with process(tmp_path, "--url", url) as (address, _):
            ask(address, "/store/clear", {"namespace": [namespace], "dry_run": False})


@pytest.mark.slow
def test_a_token_of_the_environment_is_asked_for_and_not_shown(tmp_path):
    with process(tmp_path, LOCUS_MEMORY_TOKEN=TOKEN) as (address, line):
        assert TOKEN not in line
        with pytest.raises(HTTPError) as refused:
            ask(address, "/health")
        assert refused.value.code == 401
        refused.value.close()
        assert ask(address, "/health", authorization=f"Bearer {TOKEN}")["ok"]


@pytest.mark.slow
def test_events_are_streamed_and_an_open_stream_does_not_keep_it_from_stopping(tmp_path):
    with process(tmp_path) as (address, _):
        stream = OPENER.open(Request(address + "/events/stream"), timeout=60)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b"retry: 2000\n"
        body = {"user": "ada", "key": "nothing", "dry_run": False}
        ask(address, "/memory/forget", body)
        lines = [stream.readline().decode() for _ in range(4)]
        assert lines[1:3] == ["id: 1\n", "event: memory.forgotten\n"]
        assert json.loads(lines[3].removeprefix("data: "))["name"] == "memory.forgotten"
    stream.close()


@pytest.mark.slow
def test_a_password_of_the_url_is_nowhere(tmp_path, postgresql_server):
    parts = urlsplit(postgresql_server.url)
    user = parts.username or getpass.getuser()
    url = parts._replace(netloc=f"{user}:hunter2@{parts.hostname}:{parts.port}").geturl()
    with process(tmp_path, "--url", url) as (address, line):
        assert "hunter2" not in line
        told = ask(address, "/health")
        assert (told["ok"], "***@" in told["database"]) == (True, True)
        assert "hunter2" not in json.dumps(told)
    refused_line = refused(tmp_path, "--url", url.replace(f":{parts.port}", ":1"))[1]
    assert refused_line.count("\n") == 1
    assert "hunter2" not in refused_line


@pytest.mark.slow
def test_a_password_of_the_url_is_on_no_page(tmp_path, postgresql_server):
    parts = urlsplit(postgresql_server.url)
    user = parts.username or getpass.getuser()
    url = parts._replace(netloc=f"{user}:hunter2@{parts.hostname}:{parts.port}").geturl()
    with process(tmp_path, "--url", url, command="ui") as (address, line):
        assert "hunter2" not in line
        for page in ("/", "/threads", "/danger", "/nothing", "/threads/at?thread=hunter3"):
            told = read(address + page)
            assert "***@" in told
            assert "hunter2" not in told
    _, told = refused(tmp_path, "--url", url.replace(f":{parts.port}", ":1"), command="ui")
    assert (told.count("\n"), "hunter2" in told) == (1, False)


def read(address):
    """The text of a page, also of one for an error."""
    try:
        with OPENER.open(address, timeout=60) as answer:
            return answer.read().decode()
    except HTTPError as error:
        with error:
            return error.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_pages_that_others_reach_need_a_token(tmp_path, host):
    code, line = refused(tmp_path, "--host", host, command="ui")
    assert (code, line.count("\n"), "LOCUS_MEMORY_TOKEN" in line) == (2, 1, True)


def refused(folder, *arguments, command="serve"):
    command = [sys.executable, "-m", "locus_memory.cli", command, *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.slow
def test_what_cannot_be_served_is_one_line(tmp_path):
    code, line = refused(tmp_path, "--host", "0.0.0.0")
    assert (code, line.count("\n")) == (2, 1)
    assert "LOCUS_MEMORY_TOKEN" in line
    code, line = refused(tmp_path, "--token", "short")
    assert (code, "short" in line) == (2, False)
    code, line = refused(tmp_path, "--read-only")
    assert (code, "no database at" in line) == (1, True)
    assert not list(tmp_path.iterdir())
    with process(tmp_path) as (address, _):
        port = address.split(":")[2].split("/")[0]
        code, line = refused(tmp_path, "--port", port)
        assert (code, line.count("\n")) == (1, 1)
        assert "name another port" in line


@pytest.mark.slow
def test_the_report_of_a_run_is_read_once_before_the_server_begins(tmp_path):
    run = tmp_path / "run.jsonl"
    made = Journal(run)
    made.write(
        Run(
            file="a.json", digest="0" * 64, seed=0, sample=None, answer="m", judge=None,
            memories=("ours",), budgets=(1000,),
        )
    )  # fmt: skip
    made.write(
        Answered(
            conversation="c", question="1", category="<b>", memory="ours", budget=1000,
            asked="?", expected=("Oslo",), abstain=False, answer="Oslo", block="", block_tokens=7,
            evidence=None, prompt_tokens=9, completion_tokens=1,
        )
    )  # fmt: skip
    made.close()
    with process(tmp_path, "--eval", str(run), command="ui") as (address, _):
        run.unlink()
        page = read(f"{address}/answers")
        assert "<td>&lt;b&gt;</td>" in page
        assert page.count("<svg") == 2
        assert "Answers</a>" in read(f"{address}/")
    code, line = refused(tmp_path, "--eval", "none.jsonl", command="ui")
    assert code != 0
    assert "none.jsonl" in line
