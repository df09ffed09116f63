"""An agent whose process is killed, and another process that goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from locus_memory import get_checkpointer
from locus_memory.conversation.validation import validate
from locus_memory.messages import Role

AGENT = """
import asyncio, pathlib, sys
from locus_memory.agent.loop import Agent
from locus_memory.messages import Message, Role, ToolCall

where, verb = sys.argv[1:]
log = pathlib.Path("log")

def note(line):
    with log.open("a") as file:
        file.write(line + "\\n")

async def plan(messages, *, tools=()):
    if any(message.role == Role.ASSISTANT for message in messages):
        return Message.assistant("All done.")
    calls = [ToolCall(name=name) for name in ("pay", "mail")]
    return Message.assistant(tool_calls=calls)

def pay():
    note("pay")
    return "paid"

async def mail():
    note(f"mail by {verb}")
    if verb == "run":
        while await checkpoints() < 3:
            await asyncio.sleep(0.001)
        print("under way", flush=True)
        await asyncio.Event().wait()
    return "mailed"

async def checkpoints():
    return len(await agent.history("t"))

async def main():
    async with agent:
        if verb == "run":
            await agent.run("Pay and mail.", "t", user_id="ada")
        else:
            print((await agent.resume("t")).state.model_dump_json())

agent = Agent(plan, tools=[pay, mail], checkpointer=where)
asyncio.run(main())
"""


async def read(where):
    async with get_checkpointer(where) as checkpointer:
        return await checkpointer.load("t"), await checkpointer.get_metadata("t")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("where", ["file:threads", "sqlite:agent.db"])
def test_finished_tools_are_never_run_again(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", AGENT, where]
    with subprocess.Popen([*command, "run"], stdout=subprocess.PIPE, text=True) as killed:
        try:
            assert killed.stdout.readline() == "under way\n"
        finally:
            os.kill(killed.pid, signal.SIGKILL)
    assert (tmp_path / "log").read_text().split("\n")[:-1].count("pay") == 1
    done = subprocess.run([*command, "resume"], capture_output=True, text=True, check=True)
    log = (tmp_path / "log").read_text().splitlines()
    assert sorted(log) == ["mail by resume", "mail by run", "pay"]
    state, newest = asyncio.run(read(where))
    assert json.loads(done.stdout) == json.loads(state.model_dump_json())
    assert validate(state.messages) == []
    said = [m.content for m in state.messages if m.role == Role.TOOL]
    assert said == ["paid", "mailed"]
    assert state.messages[-1].content == "All done."
    assert all(message.id for message in state.messages)
    assert (newest["kind"], newest["user_id"]) == ("done", "ada")
