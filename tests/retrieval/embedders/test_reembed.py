from __future__ import annotations

import asyncio
import json

import pytest
import typer

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.backends.sqlite import SQLiteStore
from locus_memory.cli.commands.reembed import reembed as command
from locus_memory.cli.options.session import Globals, with_session
from locus_memory.errors import ConfigurationError, InvalidArgumentError, InvalidEmbeddingError
from locus_memory.retrieval.embedders import register_embedder
from locus_memory.retrieval.embedders.marks import embedded_put, mark_of
from locus_memory.retrieval.reembed import ReembedReport, reembed
from locus_memory.store.item import Put, StoreCapabilities
from locus_memory.store.wrappers import EmbeddingStore, StoreWrapper
from locus_memory.testing import FakeClock, FakeEmbedder

NS = ("notes",)


class NewEmbedder(FakeEmbedder):
    """The model of tomorrow: its vectors are of another length, and it may be interrupted."""

    def __init__(self, dimension=32):
        super().__init__(dimension)
        self.name = "new-model"
        self.texts = []
        self.meanwhile = None

    async def embed(self, texts, *, kind="document"):
        self.texts += texts
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().embed(texts, kind=kind)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
async def inner(request, tmp_path, clock):
    if request.param == "memory":
        made = InMemoryStore(clock=clock)
    else:
        made = SQLiteStore(tmp_path / "a.db", clock=clock)
    async with made as store:
        yield store


@pytest.fixture
def old(inner):
    return EmbeddingStore(inner, FakeEmbedder())


@pytest.fixture
def new():
    return NewEmbedder()


async def test_a_namespace_gets_new_vectors(inner, old, new, clock):
    await old.put(NS, "fox", {"text": "a red fox"}, {"kind": "x"}, ttl=60)
    await old.put(NS, "text", {"n": 1}, text="a grey wolf")
    await old.put((*NS, "below"), "deep", "a white owl")
    created = (await inner.get_item(NS, "fox")).created_at
    clock.advance(10)
    assert await reembed(inner, NS, new, clock=clock) == ReembedReport(total=2, seen=2, embedded=2)
    now = EmbeddingStore(inner, new)
    assert [item.key for item in await now.search(NS, "red fox", 1)] == ["fox"]
    assert [item.key for item in await now.search(NS, "grey wolf", 1)] == ["text"]
    assert [item.key for item in await inner.search(NS, "wolf")] == ["text"]
    item = await now.get_item(NS, "fox")
    assert (item.value, item.metadata, item.version) == ({"text": "a red fox"}, {"kind": "x"}, 2)
    assert item.created_at == created
    clock.advance(49)
    assert await now.exists(NS, "fox")
    clock.advance(2)
    assert not await now.exists(NS, "fox")
    found = await now.search(NS, "white owl", recursive=True)
    assert [item.key for item in found] == ["text"]
    report = await reembed(now, NS, new, recursive=True, clock=clock)
    assert report == ReembedReport(total=2, seen=2, embedded=1, current=1)
    found = await now.search(NS, "white owl", 1, recursive=True)
    assert [item.key for item in found] == ["deep"]


async def test_it_goes_on_where_it_was(inner, old, new):
    await old.put_batch([(NS, f"{n:02}", f"fox number {n}") for n in range(20)])
    seen = []

    def stop(report):
        seen.append(report)
        if report.seen == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await reembed(inner, NS, new, batch_size=4, on_progress=stop)
    assert [report.seen for report in seen] == [4, 8, 12]
    assert {report.total for report in seen} == {20}
    report = await reembed(inner, NS, new, batch_size=4)
    assert report == ReembedReport(total=20, seen=20, embedded=8, current=12)
    assert sorted(new.texts) == sorted(f"fox number {n}" for n in range(20))
    again = await reembed(inner, NS, new)
    assert again == ReembedReport(total=20, seen=20, current=20)


async def test_what_was_embedded_is_embedded_again(inner, new):
    put = Put(namespace=NS, key="a", value={"text": "tea"}, text="tea and its neighbours")
    fake = FakeEmbedder()
    await inner.put_batch([embedded_put(put, [1.0] * 64, fake, source="Ada: tea")])
    await reembed(inner, NS, new)
    assert new.texts == ["Ada: tea"]
    assert [item.key for item in await inner.search(NS, "neighbours")] == ["a"]
    await reembed(inner, NS, fake)
    assert mark_of((await inner.get_item(NS, "a")).metadata).source == "Ada: tea"


async def test_items_without_a_mark_are_left_alone_unless_asked_for(inner, new):
    await inner.put(NS, "plain", {"text": "a fox"})
    await inner.put_with_embedding(NS, "own", "a wolf", [1.0] * 8)
    await inner.put(NS, "number", 5)
    assert await reembed(inner, NS, new) == ReembedReport(total=3, seen=3, skipped=3)
    assert await inner.get_embedding(NS, "own") == pytest.approx([8**-0.5] * 8)
    report = await reembed(
        inner, NS, new, include_unmarked=True, text_of=lambda v: str(v) if v != 5 else ""
    )
    assert report == ReembedReport(total=3, seen=3, embedded=2, skipped=1)
    assert new.texts == ["a wolf", "{'text': 'a fox'}"]
    await reembed(inner, NS, FakeEmbedder())
    await reembed(inner, NS, new)
    assert new.texts[2:] == ["a wolf", "{'text': 'a fox'}"]


async def test_no_write_is_lost(inner, old, new):
    await old.put_batch([(NS, key, f"old {key}") for key in "abcde"])
    writer = EmbeddingStore(inner, new)

    async def meanwhile():
        new.meanwhile = None
        await inner.put(NS, "a", "written meanwhile")
        await inner.delete(NS, "b")
        await inner.delete(NS, "c")
        await old.put(NS, "c", "made again")
        await old.put(NS, "d", "rewritten by the old one")
        await inner.put(NS, "aa", "a key between")

    new.meanwhile = meanwhile
    report = await reembed(inner, NS, new, batch_size=5)
    values = {item.key: item.value for item in await inner.scan(NS)}
    assert values == {
        "a": "written meanwhile",
        "aa": "a key between",
        "c": "made again",
        "d": "rewritten by the old one",
        "e": "old e",
    }
    assert report.embedded == 3
    assert {item.key for item in await writer.search(NS, "again rewritten old")} == {"c", "d", "e"}


async def test_one_that_always_changes_does_not_hold_up_the_others(inner, old, new):
    await old.put_batch([(NS, key, f"fox {key}") for key in "ab"])
    count = 0

    async def meanwhile():
        nonlocal count
        count += 1
        await old.put(NS, "a", f"fox {count}")

    new.meanwhile = meanwhile
    report = await reembed(inner, NS, new)
    assert (report.embedded, report.left) == (1, 1)
    assert await inner.get(NS, "a") == f"fox {count}"


async def test_a_conflict_in_the_last_moment(old, new, inner):
    class Racing(StoreWrapper):
        raced = False

        async def put_batch(self, items):
            if not self.raced:
                self.raced = True
                await old.put(NS, "a", "a later fox")
            return await super().put_batch(items)

    await old.put_batch([(NS, key, f"fox {key}") for key in "abc"])
    report = await reembed(Racing(inner), NS, new)
    assert (report.embedded, report.left) == (3, 0)
    assert await inner.get(NS, "a") == "a later fox"


async def test_cancelling_leaves_a_store_that_goes_on(inner, old, new):
    await old.put_batch([(NS, str(n), f"fox {n}") for n in range(6)])
    started = asyncio.Event()

    async def wait():
        started.set()
        await asyncio.Event().wait()

    new.meanwhile = wait
    task = asyncio.create_task(reembed(inner, NS, new))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    new.meanwhile = None
    assert (await reembed(inner, NS, new)).embedded == 6


async def test_what_cannot_be_is_refused(inner, new):
    class Bare(StoreWrapper):
        capabilities = StoreCapabilities()

    class Fixed(StoreWrapper):
        capabilities = StoreCapabilities(semantic_search=True, embedding_dimension=64)

    with pytest.raises(ConfigurationError, match="has no semantic search"):
        await reembed(Bare(inner), NS, new)
    with pytest.raises(
        ConfigurationError, match=r"new-model makes vectors of 32 dimensions, .* 64"
    ):
        await reembed(Fixed(inner), NS, new)
    with pytest.raises(InvalidArgumentError, match="batch_size is at least 1"):
        await reembed(inner, NS, new, batch_size=0)

    class Broken(NewEmbedder):
        async def embed(self, texts, *, kind="document"):
            return [[1.0]] * len(texts)

    await inner.put(NS, "a", "a fox")
    with pytest.raises(InvalidEmbeddingError):
        await reembed(inner, NS, Broken(), include_unmarked=True)
    assert await inner.get_embedding(NS, "a") is None


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command on a database file of its own."""
    app = typer.Typer()

    @app.callback()
    def main(context: typer.Context):
        context.obj = Globals(f"sqlite:{tmp_path / 'agent.db'}", as_json=False)

    app.command("reembed")(with_session(command))

    def runner(*arguments):
        app(["reembed", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    return runner


def test_the_command(tmp_path, run):
    async def fill():
        async with SQLiteStore(tmp_path / "agent.db") as store:
            await EmbeddingStore(store, FakeEmbedder()).put(NS, "a", "a red fox")
            await store.put(NS, "b", "a wolf")

    asyncio.run(fill())
    unregister = register_embedder("new", lambda _hint: NewEmbedder())
    try:
        document = json.loads(run("notes", "--embedder", "new", "--json"))
        assert document == {
            "total": 2,
            "seen": 2,
            "embedded": 1,
            "current": 0,
            "skipped": 1,
            "left": 0,
        }
        shown = run("notes", "--embedder", "new", "--include-unmarked", "--recursive")
    finally:
        unregister()
    assert shown.split()[1::2] == [*"11002"]
