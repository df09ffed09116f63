"""The model of OCI Generative AI: the real SDK, and a server with the service's documented JSON."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest

from locus_memory import Message
from locus_memory.chat import get_model
from locus_memory.chat.base import INVALID_ARGUMENTS, ToolSpec
from locus_memory.errors import (
    ConfigurationError,
    ModelAnswerError,
    ModelRequestError,
    ModelUnavailableError,
    UnknownOptionError,
)
from locus_memory.messages import ToolCall, ToolResult

pytestmark = pytest.mark.skipif(find_spec("oci") is None, reason="needs the SDK of OCI")

NAME = "meta.llama-3.3-70b-instruct"
USAGE = {"promptTokens": 12, "completionTokens": 3, "totalTokens": 15}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
        status, answer = self.server.replies.pop(0)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def service():
    """A server that answers each request with the next of its `replies`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.replies = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def options(service, oci_config):
    endpoint = f"http://127.0.0.1:{service.server_port}"
    return {"config_file": str(oci_config), "service_endpoint": endpoint, "max_retries": 0}


@pytest.fixture(scope="module")
def oci_config(tmp_path_factory):
    """The configuration of the SDK, with a key of its own."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - of the SDK
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - of the SDK

    folder = tmp_path_factory.mktemp("oci")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(key)
    (folder / "key.pem").chmod(0o600)
    (folder / "config").write_text(
        "[DEFAULT]\ntenancy=ocid1.tenancy.oc1..aaaatests\nuser=ocid1.user.oc1..aaaatests\n"
        f"fingerprint={':'.join(['aa'] * 16)}\nregion=eu-frankfurt-1\nkey_file={folder}/key.pem\n"
    )
    (folder / "config").chmod(0o600)
    return folder / "config"


def answer(*parts, finish="stop", **message):
    """Return a `ChatResult` of the documentation."""
    content = [{"type": "TEXT", "text": each} for each in parts]
    choice = {
        "index": 0,
        "finishReason": finish,
        "message": {"role": "ASSISTANT", "content": content, **message},
    }
    response = {"apiFormat": "GENERIC", "timeCreated": "2026-01-01T00:00:00Z"}
    response |= {"choices": [choice], "usage": USAGE}
    return 200, {"modelId": NAME, "modelVersion": "1.0.0", "chatResponse": response}


async def ask(options, *messages, tools=(), name=NAME, **given):
    async with get_model(f"oci:{name}", **options, **given) as model:
        return await model(messages or [Message.user("Hi")], tools=tools)


async def test_an_answer(service, options):
    service.replies.append(answer("Good ", "day."))
    said = await ask(options, Message.system("Be kind."), Message.user("Hi"), temperature=0.5)
    assert said.content == "Good day."
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    assert said.metadata == {"model": NAME, "finish_reason": "stop", "usage": usage}
    [(path, headers, body)] = service.requests
    assert path == "/20231130/actions/chat"
    assert headers["authorization"].startswith("Signature ")
    assert body["compartmentId"] == "ocid1.tenancy.oc1..aaaatests"
    assert body["servingMode"] == {"servingType": "ON_DEMAND", "modelId": NAME}
    request = body["chatRequest"]
    assert (request["apiFormat"], request["temperature"]) == ("GENERIC", 0.5)
    assert request["messages"] == [
        {"role": "SYSTEM", "content": [{"type": "TEXT", "text": "Be kind."}]},
        {"role": "USER", "content": [{"type": "TEXT", "text": "Hi"}]},
    ]
    assert "tools" not in request


async def test_tools(service, options):
    call = {"type": "FUNCTION", "id": "c2", "name": "add", "arguments": '{"a": 1}'}
    bad = {"type": "FUNCTION", "id": "c3", "name": "add", "arguments": "{"}
    service.replies.append(answer(finish="tool_calls", toolCalls=[call, bad]))
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    earlier = ToolCall(id="c1", name="add", arguments={"a": 0})
    said = await ask(
        options,
        Message.user("Add."),
        Message.assistant(None, tool_calls=(earlier,)),
        Message.tool(ToolResult(tool_call_id="c1", name="add", content="0")),
        tools=[ToolSpec("add", "Adds.", schema)],
        compartment_id="ocid1.compartment.oc1..a",
        name="ocid1.generativeaiendpoint.oc1..e",
    )
    assert [(each.id, each.arguments) for each in said.tool_calls] == [("c2", {"a": 1}), ("c3", {})]
    assert set(said.metadata[INVALID_ARGUMENTS]) == {"c3"}
    [(_, _, body)] = service.requests
    assert body["compartmentId"] == "ocid1.compartment.oc1..a"
    assert body["servingMode"]["servingType"] == "DEDICATED"
    request = body["chatRequest"]
    assert request["tools"] == [
        {"type": "FUNCTION", "name": "add", "description": "Adds.", "parameters": schema}
    ]
    [_, assistant, tool] = request["messages"]
    [sent] = assistant["toolCalls"]
    assert (sent["id"], sent["name"], json.loads(sent["arguments"])) == ("c1", "add", {"a": 0})
    assert (tool["role"], tool["toolCallId"], tool["content"][0]["text"]) == ("TOOL", "c1", "0")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRequestError),
        (401, ModelRequestError),
        (404, ModelRequestError),
        (429, ModelUnavailableError),
        (500, ModelUnavailableError),
        (503, ModelUnavailableError),
    ],
)
async def test_refusals(service, options, status, kind):
    service.replies.append((status, {"code": "Some", "message": "the reason"}))
    with pytest.raises(kind, match=f"HTTP {status}: the reason"):
        await ask(options)


@pytest.mark.slow
async def test_a_failure_that_passes_is_repeated(service, options):
    service.replies += [(503, {"code": "Busy", "message": "later"}), answer("Here.")]
    assert (await ask({**options, "max_retries": 1})).content == "Here."
    assert len(service.requests) == 2


async def test_no_connection(service, options):
    endpoint = "http://127.0.0.1:9"
    with pytest.raises(ModelUnavailableError, match="no answer"):
        await ask({**options, "service_endpoint": endpoint})


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        {"modelId": NAME},
        {"modelId": NAME, "chatResponse": {"apiFormat": "GENERIC", "choices": []}},
        {"modelId": NAME, "chatResponse": {"apiFormat": "GENERIC", "choices": [{"index": 0}]}},
    ],
)
async def test_what_is_no_answer(service, options, content):
    service.replies.append((200, content))
    with pytest.raises(ModelAnswerError):
        await ask(options)


async def test_wrong_options(options, tmp_path):
    with pytest.raises(UnknownOptionError, match="temprature"):
        await ask(options, temprature=1)
    with pytest.raises(ConfigurationError, match="nothing to sign with"):
        await ask({**options, "config_file": str(tmp_path / "none")})
    with pytest.raises(ConfigurationError, match="authentication is one of"):
        await ask(options, authentication="hope")
    with pytest.raises(ConfigurationError, match="which model"):
        get_model("oci", **options)
    with pytest.raises(ConfigurationError, match="format of its own"):
        await ask(options, name="cohere.command-a-03-2025")
