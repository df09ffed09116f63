"""The knowledge graph: against a model in a few lines, with two writers, and with damage."""

from __future__ import annotations

import asyncio
import json

import pytest

from locus_memory import EncryptingStore
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import subscribe
from locus_memory.integrations.mcp import KnowledgeGraph
from locus_memory.integrations.mcp.graph import Entity, Relation
from locus_memory.memory import forget
from tests.integrations.mcp.conftest import call, connected, refused

SPACE = ("locus_memory", "users", "ada")


@pytest.fixture
def graph(backend):
    """A graph of one user."""
    return KnowledgeGraph(backend.store, SPACE)


async def test_a_second_entity_or_relation_of_the_same_name_is_left_out(graph):
    first, other = Entity("a", "t", ("x",)), Entity("a", "u", ("y",))
    assert await graph.create_entities([first, other]) == [first]
    assert await graph.create_entities([other]) == []
    edge = Relation("a", "b", "knows")
    assert await graph.create_relations([edge, edge]) == [edge]
    assert await graph.create_relations([edge, Relation("b", "a", "knows")]) == [
        Relation("b", "a", "knows")
    ]
    found = await graph.read()
    assert found.entities == (first,)
    assert found.relations == (edge, Relation("b", "a", "knows"))


async def test_an_observation_of_a_missing_entity_writes_nothing(graph):
    await graph.create_entities([Entity("a", "t")])
    with pytest.raises(InvalidArgumentError, match="Entity with name b not found"):
        await graph.add_observations([("a", ["x"]), ("b", ["y"])])
    assert (await graph.read()).entities == (Entity("a", "t"),)


async def test_a_deleted_entity_takes_its_relations_along(graph):
    await graph.create_entities([Entity("a", "t"), Entity("b", "t")])
    await graph.create_relations([Relation("a", "b", "r"), Relation("b", "c", "r")])
    await graph.delete_entities(["a", "nobody"])
    found = await graph.read()
    assert found.entities == (Entity("b", "t"),)
    assert found.relations == (Relation("b", "c", "r"),)


async def test_unusual_names_stay_apart(graph):
    names = ["", " ", "a/b", "a\0b", "=", "*", "%", "\x1f", "é", "e\u0301", "x" * 500]
    await graph.create_entities([Entity(each, each, (each,)) for each in names])
    edges = [Relation(a, b, "") for a in names[:4] for b in names[:4]]
    await graph.create_relations(edges)
    found = await graph.read()
    assert [each.name for each in found.entities] == names
    assert list(found.relations) == edges


async def test_writers_at_the_same_time_lose_nothing(backend):
    graphs = [KnowledgeGraph(backend.store, SPACE) for _ in range(4)]
    await graphs[0].create_entities([Entity("a", "t")])

    async def writer(number, graph):
        for turn in range(5):
            await graph.add_observations([("a", [f"{number}-{turn}"])])
            await graph.create_entities([Entity(f"{number}-{turn}", "t"), Entity("b", "t")])

    await asyncio.gather(*(writer(*each) for each in enumerate(graphs)))
    found = await graphs[0].read()
    written = {f"{number}-{turn}" for number in range(4) for turn in range(5)}
    assert sorted(found.entities[0].observations) == sorted(written)
    assert sorted(each.name for each in found.entities) == sorted({*written, "a", "b"})


async def test_a_damaged_node_is_left_out_and_told():
    inner = InMemoryStore()
    store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
    other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
    graph = KnowledgeGraph(store, SPACE)
    await graph.create_entities([Entity("a", "t"), Entity("b", "t")])
    await graph.create_relations([Relation("a", "b", "r")])
    place = (*SPACE, "graph", "entities")
    await other.put(place, "=a", {"name": "a"})
    await store.put(place, "=c", {"name": 7})
    happened = []
    unsubscribe = subscribe(lambda event: happened.append(event.name))
    found = await graph.read()
    unsubscribe()
    assert found.entities == (Entity("b", "t"),)
    assert found.relations == (Relation("a", "b", "r"),)
    assert happened == ["integrations.item_unreadable"] * 2
    assert await graph.create_entities([Entity("d", "t"), Entity("a", "t")]) == [Entity("d", "t")]
    with pytest.raises(InvalidArgumentError, match="not found"):
        await graph.add_observations([("a", ["x"])])
    await graph.delete_entities(["a"])
    assert await graph.create_entities([Entity("a", "t")]) == [Entity("a", "t")]


async def test_forgetting_a_user_erases_the_graph(backend, graph):
    await graph.create_entities([Entity("a", "t")])
    other = graph.of(("locus_memory", "users", "bob"))
    await other.create_entities([Entity("b", "t")])
    await forget(backend, user_id="ada")
    assert (await graph.read()).entities == ()
    assert (await other.read()).entities == (Entity("b", "t"),)


class TestImport:
    async def test_lines_that_are_neither_are_skipped_and_told(self, graph, tmp_path):
        lines = [
            {"type": "entity", "name": "a", "entityType": "t", "observations": ["x"]},
            {"type": "entity", "name": "a", "entityType": "t", "observations": ["x", "y"]},
            {"type": "relation", "from": "a", "to": "b", "relationType": "r"},
            {"type": "entity", "name": "b", "entityType": "t", "observations": [7]},
            {"type": "entity", "name": "c"},
            {"type": "other"},
            [],
        ]
        file = tmp_path / "memory.jsonl"
        file.write_bytes(
            b"\xef\xbb\xbf" + "\r\n\n".join(map(json.dumps, lines)).encode() + b"\n{cut"
        )
        await graph.create_entities([Entity("a", "t", ("z",))])
        done = await graph.import_file(file)
        assert (done.entities, done.relations, done.observations) == (0, 1, 2)
        assert len(done.skipped) == 5
        assert (await graph.read()).entities == (Entity("a", "t", ("z", "x", "y")),)
        again = await graph.import_file(file)
        assert (again.entities, again.relations, again.observations) == (0, 0, 0)

    async def test_a_file_of_many_batches(self, graph, tmp_path):
        file = tmp_path / "memory.jsonl"
        line = '{{"type":"entity","name":"{0}","entityType":"t","observations":[]}}\n'
        file.write_text("".join(map(line.format, range(250))))
        assert (await graph.import_file(file)).entities == 250
        assert [each.name for each in (await graph.read()).entities] == [*map(str, range(250))]


async def test_the_tools_answer_as_the_reference_server_does(backend):
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    edge = {"from": "Ada", "to": "London", "relationType": "lives_in"}
    async with connected(backend, tools=["knowledge-graph"]) as client:
        made = await client.call_tool("create_entities", {"entities": [entity]})
        assert made.structured_content == {"entities": [entity]}
        assert made.content[0].text == json.dumps([entity], indent=2)
        made = await client.call_tool("create_relations", {"relations": [edge]})
        assert made.structured_content == {"relations": [edge]}
        additions = [{"entityName": "Ada", "contents": ["writes programs", "is a countess"]}]
        made = await client.call_tool("add_observations", {"observations": additions})
        assert made.structured_content == {
            "results": [{"entityName": "Ada", "addedObservations": ["is a countess"]}]
        }
        found = await client.call_tool("search_nodes", {"query": "COUNTESS"})
        grown = {**entity, "observations": ["writes programs", "is a countess"]}
        assert found.structured_content == {"entities": [grown], "relations": [edge]}
        opened = await client.call_tool("open_nodes", {"names": ["London"]})
        assert opened.structured_content == {"entities": [], "relations": []}
        said = await call(client, "delete_relations", relations=[edge])
        assert said == "Relations deleted successfully"
        resource = await client.read_resource("memory://knowledge-graph")
        assert json.loads(resource.contents[0].text) == {"entities": [grown], "relations": []}


async def test_a_node_that_is_too_large_names_the_field(backend):
    entity = {"name": "a", "entityType": "t", "observations": ["x" * 4_001]}
    async with connected(backend, tools=["knowledge-graph"]) as client:
        said = await refused(client, "create_entities", entities=[entity])
        assert "entities.0.observations.0" in said
        assert "100" in await refused(client, "open_nodes", names=["a"] * 101)
        assert "entities.0.observations" in await refused(
            client, "create_entities", entities=[{"name": "a", "entityType": "t"}]
        )
