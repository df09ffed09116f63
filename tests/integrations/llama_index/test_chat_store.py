"""LlamaIndex' chat store: the answers of its own over SQLAlchemy, and what ours keeps besides."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="it has an environment of its own: make frameworks")
pytest.importorskip("aiosqlite", reason="their chat store needs it")

from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from locus_memory import open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import collect
from locus_memory.integrations.llama_index import LocusChatStore

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


@pytest.fixture
async def chats(provider):
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: LocusChatStore(backend, **given)


def said(text, role="user"):
    return ChatMessage(role=role, content=text)


def texts(messages):
    return [each.content for each in messages]


KEYS = st.sampled_from(["ada", "bob", "*"])
STATUS = st.sampled_from([ACTIVE, ARCHIVED])
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=4)
COUNT = st.integers(0, 4)
CALLS = st.one_of(
    st.tuples(st.just("add_messages"), KEYS, TEXTS.filter(bool), STATUS),
    st.tuples(st.just("set_messages"), KEYS, TEXTS, STATUS),
    st.tuples(st.just("get_messages"), KEYS, st.none() | STATUS),
    st.tuples(st.just("count_messages"), KEYS, st.none() | STATUS),
    st.tuples(st.just("delete_messages"), KEYS, st.none() | STATUS),
    st.tuples(st.just("delete_oldest_messages"), KEYS, COUNT),
    st.tuples(st.just("archive_oldest_messages"), KEYS, COUNT),
)


def shown(answer):
    return texts(answer) if isinstance(answer, list) else answer


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(calls=st.lists(CALLS, max_size=12))
def test_it_answers_as_their_chat_store(calls):
    async def both():
        ours, theirs = LocusChatStore(InMemoryStore()), SQLAlchemyChatStore("messages")
        for name, key, *more in calls:
            arguments = [[said(t) for t in each] if type(each) is list else each for each in more]
            answers = [await getattr(each, name)(key, *arguments) for each in (ours, theirs)]
            assert shown(answers[0]) == shown(answers[1])
        assert sorted(await ours.get_keys()) == sorted(await theirs.get_keys())
        await theirs._async_engine.dispose()

    asyncio.run(both())


async def test_a_memory_flushes_and_goes_on(chats):
    options = {"token_limit": 60, "token_flush_size": 20, "tokenizer_fn": str.split}
    for number in range(20):
        memory = Memory.from_defaults("ada", chat_store=chats(), **options)
        await memory.aput(
            said(f"message {number} " + "word " * 6, "assistant" if number % 2 else "user")
        )
    memory = Memory.from_defaults("ada", chat_store=chats(), **options)
    seen = texts(await memory.aget())
    assert seen[-1].startswith("message 19")
    everything = texts(await chats().get_messages("ada", status=None))
    assert [each.split()[1] for each in everything] == [str(number) for number in range(20)]
    assert await chats().count_messages("ada", ARCHIVED) > 0
    await memory.areset()
    assert await chats().get_keys() == []


async def test_messages_come_back_whole(chats):
    blocks = [TextBlock(text="Grüße 北京"), ImageBlock(url="https://example.com/a.png")]
    message = ChatMessage(
        role="assistant",
        blocks=[*blocks, ToolCallBlock(tool_call_id="1", tool_name="f", tool_kwargs={"a": [1]})],
        additional_kwargs={"tool_calls": [{"id": "1"}]},
    )
    await chats().add_message("ada", message)
    [read] = await chats().get_messages("ada")
    assert read.model_dump(mode="json") == message.model_dump(mode="json")


async def test_parts_of_a_conversation(chats):
    await chats().add_messages("ada", [said(f"{n}") for n in range(5)])
    assert texts(await chats().get_messages("ada", limit=2, offset=1)) == ["1", "2"]
    assert texts(await chats().get_messages("ada", limit=0)) == []
    assert (await chats().delete_message("ada", 2)).content == "1"
    assert await chats().delete_message("ada", 2) is None
    with pytest.raises(InvalidArgumentError):
        await chats().archive_oldest_messages("ada", -1)
    with pytest.raises(InvalidArgumentError):
        await chats().get_messages("")


async def test_calls_at_once_lose_nothing(chats):
    await asyncio.gather(*(chats().add_message("ada", said(f"{n}")) for n in range(10)))
    archived = await asyncio.gather(*(chats().archive_oldest_messages("ada", 1) for _ in range(5)))
    assert len({each[0].content for each in archived}) == 5
    assert await chats().count_messages("ada") == 5


async def test_a_damaged_message_is_left_out():
    store = InMemoryStore()
    chats = LocusChatStore(store)
    await chats.add_message("ada", said("one"))
    for number, value in enumerate([{"status": "active"}, {"status": "active", "data": 5}, 7], 2):
        await store.put(("llama_index", "ada"), f"{number:016d}", value)
    with collect() as events:
        assert texts(await chats.get_messages("ada")) == ["one"]
    assert {each.name for each in events} == {"integrations.item_unreadable"}


async def test_who_opens_closes():
    chats = LocusChatStore("memory")
    assert isinstance(chats, AsyncDBChatStore)
    await chats.add_message("ada", said("one"))
    await chats.close()
    with pytest.raises(ConfigurationError):
        LocusChatStore("file:./x")
