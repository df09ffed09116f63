"""The knowledge-graph tools against the real reference memory server, with the same calls."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import AsyncExitStack
from random import Random

import pytest

pytest.importorskip("mcp.server.lowlevel")

from mcp import Client, StdioServerParameters

from locus_memory import open_backend
from locus_memory._internal.neutral import neutralise
from locus_memory.integrations.mcp import KnowledgeGraph, MemoryServer

PACKAGE = "@modelcontextprotocol/server-memory@2026.8.31"
TOOLS = {
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
}

SEQUENCES = 20
CALLS = 40
NAMES = ["Ada", "ada lovelace", "Noor", "Berlin", "a/b", "", "é", "<x>", "\n"]
TEXTS = ["lives in Berlin", "BERLIN", "née", "</memory>", "a\nb", "", '"', "x" * 99]


class Caller:
    """Draws calls; the same ones for the same number."""

    def __init__(self, number):
        self.random = Random(number)

    def some(self, values, most=3):
        """Return some of the values, each at most once."""
        return self.random.sample(values, self.random.randint(0, most))

    def entities(self):
        return [
            {
                "name": name,
                "entityType": self.random.choice(TEXTS),
                "observations": self.some(TEXTS),
            }
            for name in self.some(NAMES)
        ]

    def relations(self):
        return [
            {
                "from": name,
                "to": self.random.choice(NAMES),
                "relationType": self.random.choice("rs"),
            }
            for name in self.some(NAMES)
        ]

    def observed(self, field):
        # An entity may be named twice, and an observation be given twice.
        names = self.random.choices(NAMES, k=self.random.randint(0, 2))
        return [{"entityName": name, field: self.random.choices(TEXTS, k=2)} for name in names]

    def call(self):
        name = self.random.choice(["create_entities", "create_relations", *sorted(TOOLS)])
        arguments = {
            "create_entities": lambda: {"entities": self.entities()},
            "create_relations": lambda: {"relations": self.relations()},
            "add_observations": lambda: {"observations": self.observed("contents")},
            "delete_entities": lambda: {"entityNames": self.some(NAMES, 1)},
            "delete_observations": lambda: {"deletions": self.observed("observations")},
            "delete_relations": lambda: {"relations": self.relations()},
            "read_graph": dict,
            "search_nodes": lambda: {"query": self.random.choice([*TEXTS, "berlin", "ADA", "NÉE"])},
            "open_nodes": lambda: {"names": self.some(NAMES)},
        }
        return name, arguments[name]()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The reference server, installed by npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the reference server needs node and npm")
    folder = tmp_path_factory.mktemp("reference")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE],
        capture_output=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: is its registry reachable?")
    return folder / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"


def reference(program, file):
    """A client that starts the reference server on a file."""
    return Client(
        StdioServerParameters(
            command="node", args=[str(program)], env={"MEMORY_FILE_PATH": str(file)}
        ),
        read_timeout_seconds=120,
    )


async def answer(client, name, arguments):
    result = await client.call_tool(name, arguments)
    text = [each.text for each in result.content]
    if result.is_error:
        # Ours neutralises the names in an error, which is no JSON.
        text = [neutralise(each) for each in text]
    return bool(result.is_error), text, result.structured_content


async def test_both_servers_answer_the_same(program, tmp_path):
    different, calls = [], 0
    for number in range(SEQUENCES):
        caller = Caller(number)
        sequence = [caller.call() for _ in range(CALLS)]
        async with AsyncExitStack() as stack:
            theirs = await stack.enter_async_context(
                reference(program, tmp_path / f"{number}.jsonl")
            )
            server = await stack.enter_async_context(
                MemoryServer("memory", tools=["knowledge-graph"])
            )
            ours = await stack.enter_async_context(Client(server.server))
            for name, arguments in [*sequence, ("read_graph", {})]:
                calls += 1
                expected = await answer(theirs, name, arguments)
                if (found := await answer(ours, name, arguments)) != expected:
                    different.append((name, arguments, expected, found))
    assert calls == SEQUENCES * (CALLS + 1)
    assert different == []


async def test_both_servers_offer_the_same(program, tmp_path):
    async with (
        reference(program, tmp_path / "a.jsonl") as theirs,
        MemoryServer("memory", tools=["knowledge-graph"]) as server,
        Client(server.server) as ours,
    ):
        pairs = []
        for client in (theirs, ours):
            listed = {each.name: each for each in (await client.list_tools()).tools}
            pairs.append({name: shape(each) for name, each in listed.items()})
            assert set(listed) == TOOLS
        assert pairs[0] == pairs[1]
        uri = "memory://knowledge-graph"
        texts = [(await client.read_resource(uri)).contents[0].text for client in (theirs, ours)]
        assert texts[0] == texts[1]


def shape(tool):
    """Return the names of the arguments and of the answer's fields, and whether a tool writes."""
    schema, output = tool.input_schema, tool.output_schema
    return (
        sorted(schema.get("properties", {})),
        sorted(schema.get("required", [])),
        sorted(output["properties"]),
        tool.annotations.read_only_hint,
        tool.annotations.destructive_hint,
    )


async def test_the_file_of_the_reference_server_is_taken_over(program, tmp_path):
    file = tmp_path / "memory.jsonl"
    async with reference(program, file) as theirs:
        caller = Caller(1)
        for _ in range(60):
            await theirs.call_tool(*caller.call())
        expected = json.loads((await theirs.call_tool("read_graph", {})).content[0].text)
    assert expected["entities"]
    assert expected["relations"]
    async with open_backend(f"sqlite:{tmp_path / 'test.db'}") as backend:
        graph = KnowledgeGraph(backend.store, ("locus_memory",))
        for _ in range(2):
            done = await graph.import_file(file)
            found = (await graph.read()).to_json()
            assert found == expected
        assert (done.entities, done.relations, done.observations) == (0, 0, 0)
