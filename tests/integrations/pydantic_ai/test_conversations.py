"""Conversations of Pydantic AI: the answers and errors of the framework's own store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("pydantic_ai.conversation_store")

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel

from locus_memory import EncryptingStore, open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import collect
from locus_memory.integrations.pydantic_ai import LocusConversationStore
from locus_memory.store.wrappers.base import StoreWrapper


def said(text):
    return ModelRequest(parts=[UserPromptPart(content=text)])


def answered(text):
    return ModelResponse(parts=[TextPart(content=text)])


def texts(conversation):
    return [message.parts[0].content for message in conversation.messages]


@pytest.fixture
async def stores(provider):
    """Makes conversation stores over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda: LocusConversationStore(backend)


class Plain(StoreWrapper):
    """A store without transactions."""

    @property
    def capabilities(self):
        return replace(super().capabilities, transactions=False)


class TestRuns:
    async def test_a_run_continues_a_stored_conversation(self, stores):
        agent = Agent(TestModel(custom_output_text="Hello Ada."))
        result = await agent.run("I am Ada.", conversation=Conversation(conversation_id="ada"))
        assert len(await stores().save(result)) == 2
        conversation = await stores().load("ada")
        again = await agent.run("Who am I?", conversation=conversation)
        saved = await stores().save(again)
        entries = await stores().load_entries("ada")
        assert [entry.id for entry in entries[2:]] == [entry.id for entry in saved]
        assert [entry.message for entry in entries] == again.conversation.messages
        assert (await stores().load("ada")).usage.requests == 2
        with pytest.raises(ConversationConflict):
            await stores().save(conversation)


NAMES = st.sampled_from(["a", "b"])
CALLS = st.one_of(
    st.tuples(st.just("say"), NAMES, st.integers(1, 3)),
    st.tuples(st.just("say"), NAMES, st.integers(1, 3)),
    st.tuples(st.just("rewrite"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("stale"), NAMES),
    st.tuples(st.just("branch"), NAMES, st.integers(0, 5)),
    st.tuples(st.just("back"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("fork"), NAMES, NAMES, st.none() | st.integers(0, 4)),
    st.tuples(st.just("delete"), NAMES, st.sampled_from([None, "s", "t"])),
    st.tuples(st.just("load"), NAMES, st.none() | st.integers(-1, 4)),
)


class Driven:
    """One store, and what a program that uses it holds."""

    def __init__(self, store):
        self.store = store
        self.number = 0

    async def say(self, name, count):
        loaded = await self.store.load(name)
        conversation = loaded or Conversation(conversation_id=name)
        for _ in range(count):
            self.number += 1
            conversation.messages.append(said(f"{self.number}"))
        return len(await self.store.save(conversation, scope=None if loaded else "s"))

    async def rewrite(self, name, kept):
        conversation = await self.store.load(name) or Conversation(conversation_id=name)
        self.number += 1
        conversation.messages[kept:] = [said(f"{self.number}")]
        return len(await self.store.save(conversation))

    async def stale(self, name):
        return await self.store.save(Conversation(conversation_id=name, revision="old"))

    async def branch(self, name, at):
        loaded = await self.store.load(name)
        revision = loaded.revision if loaded else None
        return texts(await self.store.branch(name, at=at, expected_revision=revision))

    async def back(self, name, number):
        record = await self.store.read_record(name)
        tips = record.branches if record else []
        if number >= len(tips):
            return None
        return texts(
            await self.store.branch(
                name, from_entry=tips[number], expected_revision=record.revision
            )
        )

    async def fork(self, name, new, at):
        return texts(await self.store.fork(name, at=at, new_conversation_id=new))

    async def delete(self, name, scope):
        return await self.store.delete(name, scope=scope)

    async def load(self, name, limit):
        loaded = await self.store.load(name, limit=limit)
        return loaded and (texts(loaded), loaded.new_message_index)

    async def outcome(self, name, *arguments):
        try:
            return await getattr(self, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the same
            return type(error), str(error)

    async def all(self):
        """Return everything that the store tells, without what is new each time."""
        listed = await self.store.list_conversations()
        told = []
        for record in listed:
            history = await self.store.load_entries(record.conversation_id)
            for tip in record.branches:
                left = await self.store.read_history(tip)
                told.append([entry.message.parts[0].content for entry in left])
            said = [entry.message.parts[0].content for entry in history]
            assert [entry.id for entry in history][-1:] == [record.head_id][: len(history)]
            for entry in history:
                assert await self.store.read_entry(entry.id) == entry
            names = (record.conversation_id, record.scope, record.forked_from, record.usage)
            told.append((*names, said, len(record.branches)))
        scoped = await self.store.list_conversations(scope="s", limit=1)
        return told, [record.conversation_id for record in scoped]


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(calls=st.lists(CALLS, max_size=14), plain=st.booleans())
def test_it_answers_as_the_store_of_the_framework(calls, plain):
    async def both():
        inner = InMemoryStore()
        store = Plain(inner) if plain else inner
        theirs = Driven(InMemoryConversationStore())
        ours = Driven(None)
        for number, call in enumerate(calls):
            # Each call by another process, half of the time.
            if number % 2 == 0:
                ours.store = LocusConversationStore(store)
            assert await ours.outcome(*call) == await theirs.outcome(*call), call
        ours.store = LocusConversationStore(store)
        assert await ours.all() == await theirs.all()
        if not plain:
            await assert_nothing_is_left(inner, ours.store)

    asyncio.run(both())


async def assert_nothing_is_left(inner, store):
    """Assert that no segment is there that no conversation holds, and that none lacks its count."""
    held = {}
    for record in await store.list_conversations():
        for segment in (await store._stored(record.conversation_id)).holds:
            held[segment] = held.get(segment, 0) + 1
    counts = await inner.scan(("pydantic_ai", "segments"), 1000)
    assert {item.key: item.value for item in counts} == held
    segments = {
        namespace[-1] for namespace in await inner.list_namespaces(("pydantic_ai", "entries"))
    }
    assert segments == held.keys()


class TestConflicts:
    async def test_of_two_saves_one_is_refused(self, stores):
        first = Conversation(conversation_id="ada", messages=[said("1")])
        await stores().save(first)
        one, other = await stores().load("ada"), await stores().load("ada")
        one.messages.append(said("2"))
        other.messages.append(said("3"))
        ended = await asyncio.gather(
            stores().save(one), stores().save(other), return_exceptions=True
        )
        assert sum(isinstance(each, ConversationConflict) for each in ended) == 1
        assert len((await stores().load("ada")).messages) == 2

    async def test_a_deleted_conversation_is_not_that_of_before(self, stores):
        conversation = Conversation(conversation_id="ada", messages=[said("1")])
        await stores().save(conversation)
        old = await stores().load("ada")
        await stores().delete("ada")
        await stores().save(Conversation(conversation_id="ada", messages=[said("2")]))
        with pytest.raises(ConversationConflict):
            await stores().save(old)
        assert texts(await stores().load("ada")) == ["2"]

    async def test_a_fork_of_what_is_deleted_meanwhile(self, stores):
        await stores().save(Conversation(conversation_id="ada", messages=[said("1"), said("2")]))
        store = stores()
        record = await store.read_record("ada")
        await stores().delete("ada")
        fork = ConversationRecord(conversation_id="fork", head_id=record.head_id)
        with pytest.raises(ConversationConflict):
            await store.write_record(fork, expected_revision=None)
        assert await stores().read_record("fork") is None

    async def test_a_fork_keeps_what_it_shares(self, stores):
        await stores().save(Conversation(conversation_id="ada", messages=[said("1"), said("2")]))
        await stores().fork("ada", at=1, new_conversation_id="fork")
        await stores().delete("ada")
        assert texts(await stores().load("fork")) == ["1"]
        await stores().delete("fork")
        assert await stores().store.list_namespaces(("pydantic_ai", "entries")) == []

    @pytest.mark.slow
    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, where, name, "ada"]) for name in "ab"
        ]
        assert [each.wait(60) for each in writers] == [0, 0]

        async def read():
            async with LocusConversationStore(where) as store:
                return texts(await store.load("ada"))

        found = asyncio.run(read())
        for name in "ab":
            own = [text for text in found if text.startswith(name)]
            assert own == [f"{name}{number}" for number in range(20)]


WRITER = """
import asyncio, sys
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelRequest, UserPromptPart
from locus_memory.integrations.pydantic_ai import LocusConversationStore

async def main(where, name, conversations):
    async with LocusConversationStore(where) as store:
        for each in conversations.split(","):
            await write(store, name, each)

async def write(store, name, each):
    number = 0
    while number < 20:
        conversation = await store.load(each) or Conversation(conversation_id=each)
        part = UserPromptPart(content=f"{name}{number}")
        conversation.messages.append(ModelRequest(parts=[part]))
        try:
            await store.save(conversation)
        except ConversationConflict:
            continue
        number += 1

asyncio.run(main(*sys.argv[1:]))
"""


class Counting(StoreWrapper):
    """Counts the queries."""

    queries = 0

    async def scan(self, *args, **kwargs):
        self.queries += 1
        return await super().scan(*args, **kwargs)

    async def get_item(self, *args, **kwargs):
        self.queries += 1
        return await super().get_item(*args, **kwargs)


class TestHistories:
    @pytest.mark.slow
    @pytest.mark.parametrize("limit", [None, 3])
    async def test_a_history_is_one_query(self, limit):
        inner = Counting(InMemoryStore())
        messages = [said(f"{number}") for number in range(1200)]
        await LocusConversationStore(inner).save(
            Conversation(conversation_id="ada", messages=messages)
        )
        store = LocusConversationStore(inner)
        record = await store.read_record("ada")
        inner.queries = 0
        history = await store.read_history(record.head_id, limit=limit)
        assert [entry.message for entry in history] == messages[-limit if limit else None :]
        assert inner.queries == 1

    async def test_what_does_not_exist(self, stores):
        store = stores()
        assert await store.read_history(None) == []
        for missing in ("none", ""):
            with pytest.raises(KeyError):
                await store.read_history(missing)
            with pytest.raises(KeyError):
                await store.read_entry(missing)
        with pytest.raises(UserError):
            await store.branch("ada", at=0, expected_revision=None)

    async def test_bytes_come_back(self, stores):
        image = BinaryContent(data=b"\xff\x00", media_type="image/png")
        request = ModelRequest(parts=[UserPromptPart(content=["look", image])])
        await stores().save(Conversation(conversation_id="ada", messages=[request]))
        [message] = (await stores().load("ada")).messages
        assert message.parts[0].content[1].data == b"\xff\x00"


class TestRefusals:
    @pytest.mark.parametrize(
        ("message", "named"),
        [
            (said("\ud800"), r"new_entries\[0\]\.message"),
            (
                ModelRequest(
                    parts=[ToolReturnPart(tool_name="t", content=object(), tool_call_id="1")]
                ),
                r"new_entries\[0\]\.message",
            ),
            (replace(answered("x"), metadata={"score": 2**70}), r"metadata\.score"),
        ],
    )
    async def test_what_json_cannot_hold(self, message, named):
        inner = InMemoryStore()
        with pytest.raises(InvalidArgumentError, match=named):
            await LocusConversationStore(inner).save(
                Conversation(conversation_id="ada", messages=[message])
            )
        assert await inner.list_namespaces() == []

    async def test_a_name_and_a_parent(self):
        store = LocusConversationStore("memory")
        with pytest.raises(InvalidArgumentError, match="conversation_id"):
            await store.load("")
        entry = ConversationEntry(parent_id="none", message=said("x"))
        record = ConversationRecord(conversation_id="ada", head_id=entry.id)
        with pytest.raises(InvalidArgumentError, match=r"new_entries\[0\]\.parent_id"):
            await store.write_record(record, new_entries=[entry], expected_revision=None)


class TestDamage:
    async def test_a_damaged_message_is_left_out_and_told(self):
        inner = InMemoryStore()
        store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
        await LocusConversationStore(store).save(
            Conversation(conversation_id="ada", messages=[said("1"), said("2"), said("3")])
        )
        [segment] = await inner.list_namespaces(("pydantic_ai", "entries"))
        await other.put(segment, f"{1:010d}", {})
        with collect() as events:
            conversation = await LocusConversationStore(store).load("ada")
        assert texts(conversation) == ["1", "3"]
        assert {each.name for each in events} == {"integrations.item_unreadable"}
        conversation.messages.append(said("4"))
        await LocusConversationStore(store).save(conversation)
        assert texts(await LocusConversationStore(store).load("ada")) == ["1", "3", "4"]

    async def test_a_damaged_record_is_missing_and_replaced(self):
        inner = InMemoryStore()
        store = LocusConversationStore(inner)
        await store.save(Conversation(conversation_id="ada", messages=[said("1")]))
        await inner.put(("pydantic_ai", "records"), "ada", {"record": "none"})
        assert await store.load("ada") is None
        assert await store.list_conversations() == []
        await store.save(Conversation(conversation_id="ada", messages=[said("2")]))
        assert texts(await store.load("ada")) == ["2"]
