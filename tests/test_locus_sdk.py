"""What the public pages of the Locus SDK on memory name: imported, made and read as they say.

Source: https://github.com/oracle-samples/locus, `docs/concepts` and `docs/how-to`.
"""

from __future__ import annotations

import importlib
from datetime import UTC, datetime

import pytest

import locus_memory
from locus_memory import (
    Agent,
    AgentState,
    BaseMemoryManager,
    ConversationManager,
    InvalidArgumentError,
    LLMMemoryManager,
    Memory,
    MemoryType,
    Message,
    SlidingWindowManager,
    SummarizingManager,
    get_checkpointer,
    get_store,
    register_checkpointer,
)
from locus_memory.store import InMemoryStore, SemanticSearchResult, StoreItem
from locus_memory.testing.model import FakeModel

NAMES = {
    "store": """
        BaseStore InMemoryStore NamespacedStore SemanticSearchResult StoreCapabilities
        StoreCapabilityError StoreContext StoreItem SQLiteStore RedisStore PostgreSQLStore
        OpenSearchStore OracleStore OCIStore
    """,
    "checkpoint": """
        BaseCheckpointer CheckpointerCapabilities CheckpointMetadata DeltaCheckpoint
        DeltaCheckpointer DeltaStorage InMemoryDeltaStorage FileCheckpointer MemoryCheckpointer
        OCIBucketCheckpointer OracleCheckpointer PostgreSQLCheckpointer RedisCheckpointer
        SQLiteCheckpointer OpenSearchCheckpointer get_checkpointer list_checkpointers
        register_checkpointer
    """,
    "memory": "BaseMemoryManager ExtractFn LLMMemoryManager Memory MemoryType NoopMemoryManager",
    "conversation": "ConversationManager NullManager SlidingWindowManager SummarizingManager",
    "backends": """
        FileCheckpointer InMemoryStore MemoryCheckpointer OCIBucketCheckpointer OracleBackend
        PostgreSQLBackend RedisBackend OpenSearchBackend SQLiteBackend
    """,
    "registry": "get_checkpointer get_store list_checkpointers register_checkpointer",
}


@pytest.mark.parametrize(
    ("where", "name"), [(w, n) for w, names in NAMES.items() for n in names.split()]
)
def test_a_name_is_where_a_reader_looks_for_it(where, name):
    found = getattr(importlib.import_module(f"locus_memory.{where}"), name)
    assert getattr(locus_memory, name) is found


def test_what_was_given_can_be_read():
    assert SlidingWindowManager().window_size == 20
    assert (SummarizingManager().threshold, SummarizingManager().keep_recent) == (30, 10)
    with pytest.raises(InvalidArgumentError, match="less than threshold"):
        SummarizingManager(threshold=5, keep_recent=5)
    store = InMemoryStore()
    manager = LLMMemoryManager(store=store, max_memories=7, retrieve_limit=3)
    assert manager.store is store
    assert (manager.retrieve_limit, manager.namespace_prefix) == (3, ("locus_memory",))


def test_a_hit_needs_no_distance():
    now = datetime.now(UTC)
    item = StoreItem(("n",), "k", 1, {}, now, now)
    assert SemanticSearchResult(item, 0.75).distance == 0.25


async def test_a_memory_says_when_it_was_updated():
    manager = LLMMemoryManager(InMemoryStore())
    await manager.save([Memory(MemoryType.USER, "role", "Senior Python engineer")])
    [memory] = await manager.retrieve()
    assert memory.metadata["updated_at"] == memory.metadata["valid_from"]


def test_backends_are_made_by_their_names():
    pytest.importorskip("oracledb")
    assert "mydb" in repr(locus_memory.OracleCheckpointer(database="mydb").storage)
    pytest.importorskip("oci")
    made = locus_memory.OCIBucketCheckpointer(bucket_name="bucket", namespace="space")
    assert made.storage.place == "bucket/space"


async def test_a_manager_of_three_verbs_serves_an_agent():
    class Mine(BaseMemoryManager):
        def __init__(self):
            self.kept = []

        async def extract(self, messages):
            said = [each.content for each in messages if each.role == "user"]
            return [Memory(MemoryType.USER, "last", said[-1])] if said else []

        async def retrieve(self, limit=20):
            return self.kept[:limit]

        async def save(self, memories):
            self.kept = [*memories]

    manager, model = Mine(), FakeModel(["Noted.", "Tea."])
    async with Agent(model, memory_manager=manager) as agent:
        await agent.run("I like green tea.", thread_id="a")
        await agent.run("What do I like?", thread_id="b")
    assert "green tea" in str(model.calls[-1])


async def test_a_conversation_manager_of_one_verb_serves_an_agent():
    class Last(ConversationManager):
        def apply(self, messages):
            return list(messages)[-1:]

    model = FakeModel(["One.", "Two."])
    async with Agent(model, conversation_manager=Last()) as agent:
        await agent.run("first", thread_id="a")
        await agent.run("second", thread_id="a")
    assert [each.content for each in model.calls[-1]] == ["second"]


async def test_a_factory_is_registered_by_a_name():
    def mine(config_hint=None, **options):
        assert (config_hint, options) == ("somewhere", {"max_chain_depth": 3})
        return get_checkpointer("memory", **options)

    unregister = register_checkpointer("mine", mine)
    try:
        async with get_checkpointer("mine:somewhere", max_chain_depth=3) as checkpointer:
            await checkpointer.save(AgentState(messages=[Message.user("Hi.")]), "t")
            assert (await checkpointer.load("t")).messages[0].content == "Hi."
    finally:
        unregister()
    assert get_store("memory").capabilities.search
