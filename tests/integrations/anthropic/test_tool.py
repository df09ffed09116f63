"""The memory tool of `anthropic`: the answers of the SDK's own, and what it keeps besides."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile

import httpx2
import pytest
from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory import EncryptingStore
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    InvalidNamespaceError,
)
from locus_memory.events import collect
from locus_memory.integrations.anthropic import AsyncLocusMemoryTool, LocusMemoryTool

NAMES = st.sampled_from(["a", "a.md", "b", ".c", "é"])
PATHS = st.one_of(
    st.lists(NAMES, max_size=3).map(lambda names: "/".join(["/memories", *names])),
    st.sampled_from(["/memories/", "/memories/a/../b", "/memories/../x", "/memories//a/", "/etc"]),
    st.just("memories/a"),
)
TEXTS = st.text(st.sampled_from("ab\n\r é"), max_size=12)
CALLS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": PATHS,
            "view_range": st.lists(st.integers(-1, 6), min_size=1, max_size=2),
        }
    ),
    *[st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS})] * 2,
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS, "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS,
            "insert_line": st.integers(-1, 5),
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


def answered(tool, call):
    """Return what a tool answers, or the error that it shows the model."""
    try:
        return tool.call(call)
    except ToolError as error:
        return f"error: {error}"
    except OSError:
        return OSError


def without_sizes(answer):
    """Return a listing without the sizes of folders, which are those of the file system."""
    if not answer.startswith("Here're"):
        return answer
    first, root, *entries = answer.split("\n")
    return [first, root.split("\t")[1], *(re.sub(r"^.*\t(.*/)$", r"\1", each) for each in entries)]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(CALLS, max_size=12))
def test_it_answers_as_the_tool_of_the_sdk(calls):
    with tempfile.TemporaryDirectory() as folder:
        theirs = BetaLocalFilesystemMemoryTool(folder)
        with LocusMemoryTool("memory") as ours:
            for call in calls:
                expected, got = answered(theirs, call), answered(ours, call)
                if expected is OSError:
                    # Such as a folder that is moved into itself.
                    assert got.startswith("error: ")
                    return
                assert without_sizes(got) == without_sizes(expected), call
                if call["command"] == "rename" and "does not exist" in got:
                    # Theirs has created the folders of the new path by then.
                    return
            for path in ("/memories", "/memories/a"):
                view = {"command": "view", "path": path}
                assert without_sizes(answered(ours, view)) == without_sizes(answered(theirs, view))


def create(path, text):
    return {"command": "create", "path": path, "file_text": text}


def replace(path, old, new):
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


class TestFiles:
    async def test_every_command_on_every_database(self, tools):
        tool = tools()
        await tool.call(create("/memories/notes/ada.md", "likes tea\nlives in Berlin\n"))
        await tool.call(replace("/memories/notes/ada.md", "Berlin", "Vienna"))
        insert = {"command": "insert", "path": "/memories/notes/ada.md", "insert_line": 0}
        await tool.call({**insert, "insert_text": "# Ada"})
        moved = {"command": "rename", "old_path": "/memories/notes", "new_path": "/memories/people"}
        await tool.call(moved)
        assert await tools().call({"command": "view", "path": "/memories"}) == (
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden "
            "items:\n32B\t/memories\n32B\t/memories/people/\n32B\t/memories/people/ada.md"
        )
        assert await tool.call({"command": "view", "path": "/memories/people/ada.md"}) == (
            "Here's the content of /memories/people/ada.md with line numbers:\n"
            "     1\t# Ada\n     2\tlikes tea\n     3\tlives in Vienna\n     4\t"
        )
        assert (await tools(namespace=("bob",)).call({"command": "view", "path": "/memories"})) == (
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden "
            "items:\n0B\t/memories"
        )
        await tool.call({"command": "delete", "path": "/memories/people"})
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call({"command": "view", "path": "/memories/people"})
        assert await tool.clear_all_memory() == "All memory cleared"
        assert await tool.versions("/memories/notes/ada.md") == []

    async def test_changes_at_once_lose_nothing(self, tools):
        await tools().call(create("/memories/a", ""))
        insert = {"command": "insert", "path": "/memories/a", "insert_line": 0}
        await asyncio.gather(
            *(tools().call({**insert, "insert_text": f"line {n}"}) for n in range(12))
        )
        text = (await tools().versions("/memories/a"))[-1].text
        assert {*text.splitlines()} == {f"line {n}" for n in range(12)}
        assert [each.number for each in await tools().versions("/memories/a")] == [*range(1, 14)]

    @pytest.mark.slow
    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        with LocusMemoryTool(where) as tool:
            tool.call(create("/memories/a", ""))
            writers = [
                subprocess.Popen([sys.executable, "-c", WRITER, where, name]) for name in "ab"
            ]
            assert [each.wait(60) for each in writers] == [0, 0]
            lines = tool.versions("/memories/a")[-1].text.split()
        for name in "ab":
            own = [line for line in lines if line.startswith(name)]
            assert own == [f"{name}{number}" for number in reversed(range(20))]


WRITER = """
import sys
from locus_memory.integrations.anthropic import LocusMemoryTool

with LocusMemoryTool(sys.argv[1]) as tool:
    for number in range(20):
        tool.call({"command": "insert", "path": "/memories/a", "insert_line": 0,
                   "insert_text": f"{sys.argv[2]}{number}"})
"""


class TestVersions:
    async def test_every_version_is_kept(self, tools):
        tool = tools()
        await tool.call(create("/memories/a", "one"))
        await tool.call(replace("/memories/a", "one", "two"))
        await tool.call({"command": "delete", "path": "/memories/a"})
        await tool.call(create("/memories/a", "three"))
        renamed = {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}
        await tool.call(renamed)
        kept = [
            (each.number, each.command, each.text) for each in await tool.versions("/memories/a")
        ]
        assert kept == [
            (1, "create", "one"),
            (2, "str_replace", "two"),
            (3, "delete", None),
            (4, "create", "three"),
            (5, "rename", None),
        ]
        [version] = await tool.versions("/memories/b")
        assert (version.number, version.command, version.text) == (1, "rename", "three")

    async def test_a_redacted_text_is_gone(self, tmp_path):
        path = tmp_path / "test.db"
        async with AsyncLocusMemoryTool(f"sqlite:{path}") as tool:
            await tool.call(create("/memories/a", "her diagnosis is private"))
            with pytest.raises(InvalidArgumentError, match="has now"):
                await tool.redact("/memories/a", 1)
            await tool.call(replace("/memories/a", "her diagnosis is private", "nothing"))
            await tool.redact("/memories/a", 1)
            first, second = await tool.versions("/memories/a")
            assert (first.text, first.redacted, first.command) == (None, True, "create")
            assert (second.text, second.redacted) == ("nothing", False)
            for wrong in (0, 3, "1"):
                with pytest.raises(InvalidArgumentError, match="no version"):
                    await tool.redact("/memories/a", wrong)
        stored = b"".join(each.read_bytes() for each in tmp_path.iterdir())
        assert b"diagnosis" not in stored


class TestRefusals:
    @pytest.mark.parametrize(
        "path",
        [
            *("/memories/../secrets", "/memories/a/../../b", "/etc/passwd", "/memoriesx", ""),
            *("/memories/a\0b", "/memories/..\\..\\b", "/memories/\ud800", None, 7),
        ],
    )
    async def test_paths(self, path):
        tool = AsyncLocusMemoryTool("memory")
        for call in (create(path, "x"), {"command": "view", "path": path}):
            with pytest.raises(ToolError):
                await tool.call(call)
        assert await tool.store.list_namespaces() == []

    @pytest.mark.parametrize(
        ("call", "field"),
        [
            (create("/memories/b", None), "file_text"),
            (create("/memories/b", "\ud800"), "file_text"),
            (replace("/memories/a", 7, "x"), "old_str"),
            (replace("/memories/a", "x", None), "new_str"),
            ({"command": "insert", "path": "/memories/a", "insert_line": "1"}, "insert_text"),
            ({"command": "view", "path": "/memories/a", "view_range": ["x", 2]}, "view_range"),
            ({"command": "rename", "old_path": "/memories/a", "new_path": 7}, "new_path"),
        ],
    )
    async def test_the_error_names_the_field(self, call, field):
        tool = AsyncLocusMemoryTool("memory")
        await tool.call(create("/memories/a", "x"))
        with pytest.raises(ToolError, match=field):
            await tool.call(call)
        assert len(await tool.versions("/memories/a")) == 1

    def test_a_namespace(self):
        with pytest.raises(InvalidNamespaceError):
            AsyncLocusMemoryTool("memory", namespace="ada")


class TestDamage:
    async def test_a_damaged_file_is_left_out_and_told(self):
        inner = InMemoryStore()
        store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        tool = AsyncLocusMemoryTool(store)
        await tool.call(create("/memories/a", "x"))
        await tool.call(create("/memories/b", "y"))
        other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
        await other.put(("anthropic_memory", "files"), "a", {})
        with collect() as events:
            assert "/memories/b" in await tool.call({"command": "view", "path": "/memories"})
            with pytest.raises(ToolError, match="damaged"):
                await tool.call({"command": "view", "path": "/memories/a"})
        assert {each.name for each in events} == {"integrations.item_unreadable"}
        await tool.call(replace("/memories/b", "y", "z"))


@pytest.mark.slow
def test_the_runner_of_the_sdk_takes_it():
    asked = iter(
        [
            [
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "memory",
                    "input": create("/memories/a", "x"),
                }
            ],
            [{"type": "text", "text": "Noted."}],
        ]
    )
    bodies = []

    def serve(request):
        bodies.append(request.read())
        content = next(asked)
        stop = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
        message = {"id": "m", "type": "message", "role": "assistant", "model": "scripted"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(
            200, json={**message, "content": content, "stop_reason": stop, "usage": usage}
        )

    transport = httpx2.Client(transport=httpx2.MockTransport(serve))
    with LocusMemoryTool("memory") as tool, Anthropic(api_key="k", http_client=transport) as client:
        runner = client.beta.messages.tool_runner(
            model="scripted",
            max_tokens=100,
            messages=[{"role": "user", "content": "Remember x."}],
            tools=[tool],
        )
        assert runner.until_done().content[0].text == "Noted."
        assert tool.versions("/memories/a")[0].text == "x"
    assert b"memory_20250818" in bodies[0]
    assert b"File created successfully at: /memories/a" in bodies[1]


class Failing(InMemoryStore):
    """A store whose database does not answer, or refuses what it is asked."""

    error: Exception

    async def _fail(self, *_, **__):
        raise self.error

    get_item = get_batch = scan = list_keys = write_batch = exists = _fail


COMMANDS = [
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/a"},
    {"command": "create", "path": "/memories/b/c", "file_text": "x"},
    {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "y"},
    {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "y"},
    {"command": "delete", "path": "/memories/a"},
    {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
]


class TestFailures:
    @pytest.mark.parametrize("error", [BackendUnavailableError("down"), ConfigurationError("no")])
    @pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each["command"])
    async def test_a_failure_of_the_store_is_told_without_its_details(self, command, error):
        store = Failing()
        store.error = error
        with collect() as events, pytest.raises(ToolError) as told:
            await AsyncLocusMemoryTool(store).call(command)
        assert type(error).__name__ in str(told.value)
        assert error.args[0] not in str(told.value)
        assert {event.name for event in events} == {"integrations.call_failed"}

    def test_the_blocking_tool_tells_it_too(self):
        tool = LocusMemoryTool("redis://127.0.0.1:1/0")
        for command in COMMANDS:
            with pytest.raises(ToolError, match="BackendUnavailableError"):
                tool.call(command)
        tool.close()
