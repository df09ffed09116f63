"""A chat model behind an OpenAI-compatible endpoint, by rules: no key, no network, no weights.

It takes the place of a real model where the documentation asks one. Run it by hand to try a page
without a model: `python tests/model_endpoint.py 11434`. It prints its port and serves until it is
ended.

- A tool is called if its name is a word of the question; its parameters are the words there that
  begin with a capital letter, from the last one on. What a tool says is the answer.
- A prompt that extracts memories is answered by what the user says of allergies and of home.
- A question that shares a word with a memory of the prompt is answered by the memory.
- Everything else is what `ScriptedModel` says.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from locus_memory import Message, ScriptedModel, ToolCall, ToolResult

FACTS = {
    "allergy:{}": (r"user: .*\bI am allergic to (\w+)", "The user is allergic to {}.", 1),
    "home": (r"user: .*\bI live in (\w+)", "The user lives in {}.", 0.6),
}


def read(document: dict[str, Any]) -> Message:
    """Return a message of a request."""
    text = document.get("content") or ""
    if document["role"] == "tool":
        return Message.tool(ToolResult(tool_call_id="call", name="tool", content=text))
    return Message(role=document["role"], content=text)


def extracted(prompt: str) -> str:
    """Return the changes that a prompt for extraction asks for."""
    changes = [
        {
            "op": "add",
            "type": "user",
            "key": key.format(found[2].lower()),
            "messages": [int(found[1])],
        }
        | {"content": content.format(found[2]), "importance": importance}
        for key, (pattern, content, importance) in FACTS.items()
        for found in re.finditer(rf"^(\d+)\. (?:\(.*?\) )*{pattern}", prompt, re.MULTILINE)
    ]
    return json.dumps({"changes": changes})


def wanted(question: str, tools: Sequence[dict[str, Any]]) -> list[ToolCall]:
    """Return the tool calls for a question."""
    words = re.findall(r"\w+", question)
    names = [word for word in words[1:] if word[0].isupper()][::-1]
    return [
        ToolCall(name=tool["name"], arguments=dict(zip(tool["parameters"]["properties"], names)))  # noqa: B905 - as many as there are
        for tool in tools
        if tool["name"] in words
    ]


def remembered(question: str, messages: Sequence[Message]) -> str | None:
    """Return the memory in the prompt that a question is about."""
    asked = set(re.findall(r"[a-z]{4,}", question.lower()))
    blocks = [each.content or "" for each in messages if each.role == "system"]
    memories = re.findall(r"^- (.+)$", "\n".join(blocks), re.MULTILINE)
    return next((each for each in memories if asked & set(re.findall(r"\w+", each.lower()))), None)


async def answer(request: dict[str, Any]) -> Message:
    """Return what the model says."""
    messages = [read(each) for each in request["messages"]]
    last = messages[-1]
    if messages[0].role == "system" and '{"changes":[],"notes":[]' in (messages[0].content or ""):
        return Message.assistant(extracted(last.content or ""))
    if last.role == "tool":
        return Message.assistant(last.content)
    question = last.content or ""
    calls = wanted(question, [each["function"] for each in request.get("tools", ())])
    if calls:
        return Message.assistant(tool_calls=calls)
    memory = remembered(question, messages) if question.endswith("?") else None
    return Message.assistant(f"I remember: {memory}") if memory else await ScriptedModel()(messages)


def completion(request: dict[str, Any], message: Message) -> dict[str, Any]:
    """Return a whole answer as the protocol has it."""
    calls = [call.to_openai_format() for call in message.tool_calls]
    said = {"role": "assistant", "content": message.content} | (
        {"tool_calls": calls} if calls else {}
    )
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1}
    return head | {"model": request["model"], "choices": [choice], "usage": usage}


def chunks(request: dict[str, Any], message: Message) -> Iterator[str]:
    """Yield the answer word by word, as a stream of the protocol has it."""
    calls = [
        {"index": place, **call.to_openai_format()} for place, call in enumerate(message.tool_calls)
    ]
    deltas: list[dict[str, Any]] = [
        {"content": word} for word in re.findall(r"\s*\S+", message.content or "")
    ]
    deltas += [{"tool_calls": calls}] if calls else []
    ends: list[str | None] = [None] * len(deltas) + ["tool_calls" if calls else "stop"]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    for delta, end in zip([*deltas, {}], ends, strict=True):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        yield json.dumps(head | {"model": request["model"], "choices": [choice]})
    yield "[DONE]"


class Handler(BaseHTTPRequestHandler):
    """Answers `POST /v1/chat/completions`."""

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = asyncio.run(answer(request))
        if request.get("stream"):
            body = "".join(f"data: {each}\n\n" for each in chunks(request, message))
            self.send(body, "text/event-stream")
        else:
            self.send(json.dumps(completion(request, message)), "application/json")

    def send(self, body: str, kind: str) -> None:
        content = body.encode()
        self.send_response(200 if self.path == "/v1/chat/completions" else 404)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
