"""An import that is interrupted says what is in, and going on loses and repeats nothing."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

# A job in the background ignores interrupts, and so do its children, if they are not told. The
# process says how far it is and waits to be told to go on, so nothing depends on time.
IMPORT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from locus_memory.cli import app
from locus_memory.cli.conversations import importer

save = importer._save_turn

async def paced(checkpointer, conversation, ids, index):
    await save(checkpointer, conversation, ids, index)
    if (conversation.thread_id, index) == ("two", 2):
        print("there", flush=True)
        import asyncio
        await asyncio.sleep(3600)

importer._save_turn = paced
sys.exit(app.run(sys.argv[1:]))
"""


def conversation(name, turns):
    messages = [{"role": "user", "content": f"{name} says {turn}"} for turn in range(turns)]
    return {"id": name, "messages": messages}


@pytest.fixture
def interrupted(write):
    """Import two conversations, and send a signal after the third turn of the second."""

    def interrupt(number, *options):
        write("two talks.json", [conversation("one", 4), conversation("two", 6)])
        process = subprocess.Popen(
            [sys.executable, "-c", IMPORT, "import", "two talks.json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "there\n"
        process.send_signal(number)
        out, err = process.communicate()
        return process.returncode, out, err

    return interrupt


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupted_import_says_what_is_in(interrupted, ok):
    status, out, err = interrupted(signal.SIGINT)
    assert (status, out) == (130, "")
    assert err == (
        "error: interrupted: 3 of 6 turns of 'two' are imported, "
        "and 1 conversation is complete; "
        "to continue, run: locus-memory import 'two talks.json'\n"
    )
    assert len(ok("checkpoints", "two", "--json").json["checkpoints"]) == 3
    command = shlex.split(err.rpartition("run: ")[2])
    done = ok(*command[1:], "--json").json
    assert (done["turns"], done["saved"]) == (10, 3)
    assert len(ok("checkpoints", "two", "--json").json["checkpoints"]) == 6


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupted_import_is_a_document_too(interrupted):
    status, out, _ = interrupted(signal.SIGINT, "--json")
    assert status == 130
    error = json.loads(out)["error"]
    assert error["type"] == "Interrupted"
    assert error["hint"] == "locus-memory import --json 'two talks.json'"


def test_interrupted_before_anything_was_written(run, write, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus_memory.cli.commands.ingest.chats_in", interrupt)
    done = run("import", write("a.json", [{"role": "user", "content": "hi"}]))
    assert done.code == 130
    assert done.err.startswith("error: interrupted: no turn is imported yet; to continue, ")
