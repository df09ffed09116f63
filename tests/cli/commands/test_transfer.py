from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.cli.conversations.importer import (
    Imported,
    checkpoint_ids,
    import_conversation,
    turn_key,
    turn_value,
)
from locus_memory.cli.demo.sample import load_sample
from locus_memory.inspection.errors import CommandError
from locus_memory.registry import open_backend
from locus_memory.state import AgentState
from locus_memory.transfer.chats.conversation import Conversation

URL = "sqlite:./locus.db"


def everything(url=URL):
    """Return all that a database holds: items with their versions, checkpoints, states."""

    async def read():
        async with open_backend(url, state_type=None) as backend:
            items = [
                (item.namespace, item.key, item.value, item.version)
                for namespace in await backend.store.list_namespaces()
                for item in await backend.store.scan(namespace, 10_000)
            ]
            threads = {
                name: [
                    (info.checkpoint_id, await backend.checkpointer.load(name, info.checkpoint_id))
                    for info in await backend.checkpointer.list_with_metadata(name, 10_000)
                ]
                for name in await backend.checkpointer.list_threads()
            }
            return items, threads

    return asyncio.run(read())


def test_import_of_messages(ok, write, chat):
    items, threads = everything()
    assert list(threads) == ["chat"]
    checkpoints = threads["chat"][::-1]
    for place, (checkpoint_id, state) in enumerate(checkpoints, 1):
        assert checkpoint_id.startswith(f"{place:06d}-")
        assert state == {"run_id": "chat", "messages": chat["messages"][:place], "metadata": {}}
    assert [(key, value["role"], value["text"]) for _, key, value, _ in items] == [
        (f"{place:06d}", message["role"], message["content"])
        for place, message in enumerate(chat["messages"], 1)
    ]
    assert {namespace for namespace, *_ in items} == {("turns", "chat")}


def test_import_of_sessions(ok, sessions):
    items, threads = everything()
    assert {name: len(checkpoints) for name, checkpoints in threads.items()} == {
        "garden": 3,
        "kitchen": 1,
    }
    assert items[2] == (
        ("turns", "garden"),
        "000003",
        {
            "turn": 3,
            "speaker": "Bo",
            "role": "assistant",
            "text": "Crimson ones, look!",
            "turn_id": "D2:1",
            "session": 2,
            "session_date": "6 pm on 3 May",
            "image_caption": "a row of flowers beside a wheelbarrow",
        },
        1,
    )
    found = ok("search", "wheelbarrows", "--json").json["items"]
    assert [item["key"] for item in found] == ["000003"]
    assert "Bo  6 pm on 3 May\n      Crimson ones" in ok("search", "crimson").out


def test_import_with_vectors(ok, write, model):
    call = {"id": "c", "type": "function", "function": {"name": "ring", "arguments": "{}"}}
    messages = [
        {"role": "user", "name": "Ada", "content": "Is the doctor in?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "A boat passes.", "tool_call_id": "c"},
    ]
    path = write("chat.json", messages)
    assert ok("import", "--threads", path, "--json").json["stored"] == 3
    assert ok("import", "--threads", path, "--embedder", model, "--json").json["stored"] == 2
    assert ok("import", "--threads", path, "--embedder", model, "--json").json["stored"] == 0
    assert ok("import", "--threads", path, "--json").json["stored"] == 0
    for query, key in (("physician", "000001"), ("ship", "000003")):
        found = ok("search", query, "--embedder", model, "--json").json["items"]
        assert found[0]["key"] == key
    assert len(ok("search", "doctor", "--json").json["items"]) == 1


def test_a_day_in_the_question_counts(ok, write):
    turns = [{"speaker": "Bo", "text": f"Tulip number {place}."} for place in range(3)]
    dates = ("9 am on 1 May, 2024", "6 pm on 20 June, 2024", "noon")
    sessions = [
        {"date_time": date, "turns": [turn]} for date, turn in zip(dates, turns, strict=True)
    ]
    ok(
        "import",
        "--threads",
        write("a.json", {"id": "a", "speakers": ["Bo", "Cy"], "sessions": sessions}),
    )
    query = "which tulip on 20 June 2024?"
    found = ok("search", query, "--explain", "--json").json["items"]
    assert found[0]["value"]["text"] == "Tulip number 1."
    assert [item["explanation"]["date"] > 1 for item in found] == [True, False, False]


def test_import_says_what_it_did(ok, write):
    path = write("chat.json", [{"role": "user", "content": "hello"}])
    assert ok("import", "--threads", path, "--json").json == {
        "user": None,
        "threads": [
            {"thread_id": "chat", "source": str(path), "turns": 1, "saved": 1, "stored": 1}
        ],
        "conversations": [],
        "turns": 1,
        "saved": 1,
        "stored": 1,
        "recorded": 0,
        "episodes": 0,
        "facts": 0,
        "pending": 0,
        "unread": [],
        "left_out": 0,
    }
    assert ok("import", "--threads", path).out.splitlines()[1].split() == ["chat", "1", "0", "0"]


def test_importing_twice_changes_nothing(ok, sessions, empty_directory):
    before = everything()
    again = ok("import", "--threads", "sessions.json", "--json").json
    assert (again["turns"], again["saved"], again["stored"]) == (4, 0, 0)
    assert everything() == before


def test_import_from_stdin_and_under_a_name(ok):
    wire = b'{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "ho"}\n'
    assert (
        ok(
            "import",
            "--threads",
            "-",
            stdin=wire,
        )
        .out.splitlines()[1]
        .split()[0]
        == "stdin"
    )
    ok("import", "--threads", "-", "--thread", "a/b", stdin=wire)
    assert ok("show", "a/b").out.splitlines()[1:] == ["   1  user: hi", "   2  assistant: ho"]
    assert ok("ls", "--json").json["namespaces"] == [["turns", "a/b"], ["turns", "stdin"]]


def test_a_grown_file_adds_what_is_new(ok, write, chat):
    longer = {**chat, "messages": [*chat["messages"], {"role": "user", "content": "Thanks."}]}
    done = ok("import", "--threads", write("longer.json", longer), "--json").json
    assert (done["saved"], done["stored"]) == (1, 1)
    assert ok("show", "chat", "--json").json["state"]["messages"] == longer["messages"]
    shorter = ok("import", "--threads", "chat.json", "--json").json
    assert (shorter["saved"], shorter["stored"]) == (0, 0)


def test_a_thread_that_went_on_is_left_alone(ok, chat):
    async def go_on():
        async with open_backend(URL, state_type=None) as backend:
            await backend.checkpointer.save({"messages": []}, "chat", "later")

    asyncio.run(go_on())
    before = everything()
    assert ok("import", "--threads", "chat.json", "--json").json["saved"] == 0
    assert everything() == before


def test_another_conversation_of_that_name_is_refused(ok, run, write, chat):
    before = everything()
    other = write("other.json", {"id": "chat", "messages": [{"role": "user", "content": "x"}]})
    result = run("import", "--threads", other)
    assert result.code == 1
    assert "name another thread with --thread" in result.err
    assert everything() == before
    ok("import", "--threads", other, "--thread", "chat-2")


def test_a_file_without_anything_to_read_makes_no_database(fails, write, empty_directory):
    bad = write("bad.jsonl", '{"role": "user", "content": "x"}\n{"role": "martian"}\n')
    line = fails(1, "import", bad)
    assert line.startswith(f"error: {bad}, line 2: unknown role 'martian'")
    assert not (empty_directory / "locus.db").exists()


def test_a_bad_file_is_named_and_the_others_are_taken_in(run, ok, write):
    good = write("good.json", [{"role": "user", "content": "x"}])
    bad = write("bad.jsonl", '{"role": "martian"}\n')
    result = run("import", "--threads", bad, good, "--json")
    assert (result.code, result.json["saved"]) == (1, 1)
    assert f"{bad}, message 1: unknown role 'martian'" in result.json["unread"][0]
    assert result.json["unread"][0] in result.err
    assert result.err.endswith("error: left out, as said above: 1\n")


def test_files_that_cannot_be_read(fails, write, empty_directory):
    missing = fails(1, "import", "missing.json")
    assert missing == "error: missing.json: No such file or directory\n"
    assert "Is a directory" in fails(1, "import", empty_directory)
    assert "line 1: not UTF-8" in fails(1, "import", write("b", b"\xff\xfe"))


def test_threads_must_differ(run, fails, write):
    one = write("one.json", {"id": "x", "messages": [{"role": "user"}]})
    two = write("two.json", {"id": "x", "messages": [{"role": "user"}]})
    assert f"thread 'x' is also in {one}" in run("import", one, two).err
    fails(2, "import", one, two, "--thread", "t")
    several = write("several.json", [{"messages": [{"role": "user"}]}] * 2)
    assert "the file has 2" in fails(1, "import", several, "--thread", "t")


def test_messages_without_text(ok, write):
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    wire = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ]
    ok("import", "--threads", write("a.json", wire))
    assert ok("export", "a", "--json").json["messages"] == wire
    items, _ = everything()
    assert [value["text"] for _, _, value, _ in items] == ["", ""]


def conversation(count):
    messages = [{"role": "user", "content": f"turn {n}"} for n in range(1, count + 1)]
    return Conversation("t", messages, {}, "file")


class StopError(Exception):
    pass


async def held(backend):
    infos = await backend.checkpointer.list_with_metadata("t", 100)
    items = await backend.store.scan(("turns", "t"))
    return [info.checkpoint_id for info in infos][::-1], [(i.key, i.version) for i in items]


@pytest.mark.slow
@given(
    count=st.integers(1, 12),
    stops=st.lists(st.integers(1, 12), max_size=3),
    batch=st.integers(1, 5),
    lost=st.sets(st.integers(1, 12), max_size=4),
)
@settings(deadline=None, max_examples=40)
async def test_however_often_it_is_stopped_it_ends_up_the_same(count, stops, batch, lost):
    whole = conversation(count)

    def stop_after(turn):
        def stop(turns):
            if turns == turn:
                raise StopError

        return stop

    async with open_backend("memory", state_type=None) as backend:
        for turn in stops:
            with suppress(StopError):
                await import_conversation(backend, whole, on_turn=stop_after(turn), batch=batch)
        for place in lost:
            await backend.store.delete(("turns", "t"), turn_key(place))
        await import_conversation(backend, whole, batch=batch)
        ids, items = await held(backend)
        assert ids == checkpoint_ids(whole.messages)
        assert items == [(turn_key(place), 1) for place in range(1, count + 1)]
        assert (await backend.checkpointer.load("t"))["messages"] == whole.messages
        again = await import_conversation(backend, whole, batch=batch)
        assert (again.saved, again.stored) == (0, 0)


async def test_an_imported_thread_is_an_agents():
    async with open_backend("memory") as backend:
        await import_conversation(backend, conversation(2))
        loaded = await backend.checkpointer.load("t")
        assert isinstance(loaded, AgentState)
        assert len(loaded.messages) == 2


async def test_two_imports_at_once_lose_nothing():
    whole = conversation(20)
    async with open_backend("memory", state_type=None) as backend:
        outcomes = await asyncio.gather(
            *(import_conversation(backend, whole, batch=3) for _ in range(2)),
            return_exceptions=True,
        )
        assert {type(o) for o in outcomes} <= {Imported, CommandError}
        await import_conversation(backend, whole)
        ids, _ = await held(backend)
        assert ids == checkpoint_ids(whole.messages)


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 9, 40])
def test_killed_by_sigkill_it_goes_on_where_it_stopped(ok, turns):
    child = subprocess.Popen(
        [sys.executable, "-m", "locus_memory.cli.demo.parts", URL, "import"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    for turn in range(1, turns + 1):
        assert child.stdout.readline() == f"{turn}\n".encode()
        child.stdin.write(b"\n")
        child.stdin.flush()
    child.kill()
    assert child.wait() != 0
    child.stdin.close()
    child.stdout.close()

    sample = load_sample()
    _, threads = everything()
    left = [checkpoint_id for checkpoint_id, _ in threads[sample.thread_id]][::-1]
    ids = checkpoint_ids(sample.messages)
    assert left == ids[: len(left)]
    assert turns <= len(left) <= turns + 1

    document = {
        "id": sample.thread_id,
        "metadata": sample.metadata,
        "messages": sample.messages,
    }
    done = ok("import", "--threads", "-", "--json", stdin=json.dumps(document).encode()).json
    assert done["saved"] == len(ids) - len(left)
    items, threads = everything()
    assert [checkpoint_id for checkpoint_id, _ in threads[sample.thread_id]][::-1] == ids
    assert [(key, value, version) for _, key, value, version in items] == [
        (turn_key(place), turn_value(message, place), 1)
        for place, message in enumerate(sample.messages, 1)
    ]


@pytest.mark.parametrize("options", [(), ("--format", "jsonl"), ("--json",)])
def test_what_is_exported_can_be_imported(ok, write, sessions, options):
    exported = ok("export", "garden", *options).out
    name = "copy.jsonl" if "jsonl" in options else "copy.json"
    ok(
        "--url",
        "sqlite:./copy.db",
        "import",
        "--threads",
        write(name, exported),
        "--thread",
        "garden",
    )
    original = ok("show", "garden", "--json").json
    copy = ok("--url", "sqlite:./copy.db", "show", "garden", "--json").json
    assert copy["state"]["messages"] == original["state"]["messages"]
    if "jsonl" not in options:
        assert copy["state"] == original["state"]
        assert copy["checkpoint_id"] == original["checkpoint_id"]


def test_an_export_imported_where_it_came_from_changes_nothing(ok, write, sessions):
    before = everything()
    exported = ok("export", "garden").out
    assert ok("import", "--threads", write("copy.json", exported), "--json").json["saved"] == 0
    assert everything() == before


def test_export_of_an_earlier_checkpoint(ok, chat):
    document = ok("export", "chat@2").json
    assert document == {"id": "chat", "messages": chat["messages"][:2]}


def test_bare_export_is_what_the_api_takes(ok, sessions):
    assert ok("export", "garden", "--bare").json == {
        "id": "garden",
        "messages": [
            {"role": "assistant", "content": "I planted seven tulips.", "name": "Bo"},
            {"role": "user", "content": "Which colours did you take?", "name": "Ada"},
            {"role": "assistant", "content": "Crimson ones, look!", "name": "Bo"},
        ],
    }


def test_export_of_what_is_no_conversation(ok, fails):
    async def save():
        async with open_backend(URL, state_type=None) as backend:
            await backend.checkpointer.save({"count": 1}, "counter")
            await backend.checkpointer.save({"messages": ["x"]}, "odd")

    asyncio.run(save())
    assert fails(1, "export", "counter") == "error: counter: the state has no messages\n"
    assert "message 1 is not a message" in fails(1, "export", "odd")
    assert fails(1, "export", "nobody") == "error: no thread 'nobody'\n"
