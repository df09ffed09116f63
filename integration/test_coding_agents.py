"""Real coding agents, as npm installs them, with our hooks and a fake endpoint of their model."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from locus_memory.registry import get_store

pytestmark = pytest.mark.slow

TOLD = "We deploy with make ship on Fridays, never on Mondays."
ANSWER = "Noted."
PATIENT = "from locus_memory.plug import command\ncommand.SECONDS = 9\n"
ELSEWHERE = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code@2.1",
    "codex": "@openai/codex@0.171",
    "gemini": "@google/gemini-cli@0.61",
    "opencode": "opencode-ai@1.18",
}


def messages_api():
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    message |= {"stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": ANSWER}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]


def responses_api():
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    whole = {"id": "r", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**whole, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "item_id": "m", "delta": ANSWER},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def completions_api():
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"role": "assistant", "content": ANSWER}
    return [
        {**base, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]


def gemini_api():
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    return [{"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}]


APIS = {
    "/v1/messages": messages_api,
    "/responses": responses_api,
    "/chat/completions": completions_api,
    "enerateContent": gemini_api,
}


class Endpoint(BaseHTTPRequestHandler):
    """Answers every request with one text, and keeps what was asked."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(b"{}", "application/json")

    do_HEAD = do_GET  # noqa: N815 - the name that the server looks up

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        self.server.asked.append(body)
        made = next((make for part, make in APIS.items() if part in self.path), None)
        if made is None or "count_tokens" in self.path:
            self.send(b'{"input_tokens": 1, "totalTokens": 1}', "application/json")
            return
        rows = [f"event: {e.get('type', '')}\ndata: {json.dumps(e)}\n\n" for e in made()]
        if made is not messages_api and made is not responses_api:
            rows = [row.partition("\n")[2] for row in rows]
        end = "data: [DONE]\n\n" if made is completions_api else ""
        self.send("".join((*rows, end)).encode(), "text/event-stream")

    def send(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module", params=PACKAGES)
def host(request, tmp_path_factory):
    """The name of a host, and the command that npm installed."""
    npm, name = shutil.which("npm"), request.param
    if npm is None:
        pytest.skip("the coding agents need node and npm")
    known = os.environ.get("CODING_AGENTS")
    folder = Path(known) if known else tmp_path_factory.mktemp("npm")
    command = folder / "node_modules" / ".bin" / {"claude-code": "claude"}.get(name, name)
    if not command.exists():
        options = ["--no-audit", "--no-fund", "--prefix", str(folder)]
        done = subprocess.run(
            [npm, "install", *options, PACKAGES[name]],
            capture_output=True,
            check=False,
            timeout=600,
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {PACKAGES[name]}: is its registry reachable?")
    return name, native(folder, name, command)


def native(folder, name, command):
    """The program of a package for this platform, where the one in `.bin` has to be set up."""
    named = {
        "claude-code": "claude-code-linux-x64/claude",
        "opencode": "opencode-linux-x64/bin/opencode",
    }
    found = [*folder.glob(f"node_modules/**/{named[name]}")] if name in named else []
    return [str(found[0] if found else command)]


def settings(name, home, address):
    """Point a host at the endpoint; returns the environment and the arguments of its command."""
    if name == "claude-code":
        own = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "sk-ant-x"}
        return own | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, ["-p"]
    if name == "codex":
        provider = {"name": "fake", "base_url": f"{address}/v1", "env_key": "FAKE_KEY"}
        rows = [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
        rows.append('wire_api = "responses"')
        top = 'model = "m"\nmodel_provider = "fake"\n\n[model_providers.fake]\n'
        write(home / ".codex" / "config.toml", top + "\n".join((*rows, "")))
        return {"FAKE_KEY": "x"}, ["exec", "--dangerously-bypass-hook-trust"]
    if name == "gemini":
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        write(home / ".gemini" / "settings.json", json.dumps(auth))
        own = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": address}
        return own | {"GEMINI_CLI_TRUST_WORKSPACE": "true"}, ["-m", "gemini-2.5-flash", "-p"]
    options = {"baseURL": f"{address}/v1", "apiKey": "x"}
    made = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}
    config = {"provider": {"fake": made}, "model": "fake/m", "small_model": "fake/m"}
    write(home / ".config" / "opencode" / "opencode.json", json.dumps(config))
    return {}, ["run"]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def kept(home):
    """The words of all sessions."""

    async def read():
        async with get_store(f"sqlite:{home / '.local/share/locus_memory/agents.db'}") as store:
            spaces = await store.list_namespaces(("locus_memory",))
            found = [
                item.value["text"]
                for space in spaces
                if "transcript" in space
                for item in await store.search(space, None, 100)
            ]
        return "\n".join(found)

    return asyncio.run(read())


def test_a_second_session_is_shown_what_the_first_was_told(host, endpoint, tmp_path):
    name, command = host
    home, project = tmp_path / "home", tmp_path / "home" / "shop"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    address = f"http://127.0.0.1:{endpoint.server_address[1]}"
    own, arguments = settings(name, home, address)
    environment = {key: value for key, value in os.environ.items() if key not in ELSEWHERE}
    # On a busy machine a hook needs more time than it takes elsewhere.
    write(tmp_path / "patient/sitecustomize.py", PATIENT)
    paths = [str(tmp_path / "patient"), environment.get("PYTHONPATH")]
    environment |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, paths)), **own}
    plug = [sys.executable, "-m", "locus_memory", "plug", name]

    def run(program):
        nothing = subprocess.DEVNULL
        subprocess.run(
            program,
            stdin=nothing,
            stdout=nothing,
            cwd=project,
            env=environment,
            check=True,
            timeout=300,
        )

    def ask(words):
        begun = len(endpoint.asked)
        run([*command, *arguments, words])
        return "".join(endpoint.asked[begun:])

    run(plug)

    assert "ship on Fridays" in ask(TOLD)
    assert not (home / ".local/share/locus_memory/hook.log").exists()
    assert "ship on Fridays" in ask("How do we deploy?")
    assert kept(home).count(TOLD) == 1
    run([*plug, "--import"])
    assert kept(home).count(TOLD) == 1
    run([*plug, "--remove"])
    assert "ship on Fridays" not in ask("When do we deploy?")
