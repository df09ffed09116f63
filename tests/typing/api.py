"""The public API as a user calls it: checked by the type checkers, never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

from pydantic import BaseModel

from locus_memory import (
    Agent,
    AgentOptions,
    AgentResult,
    AgentState,
    Backend,
    BaseCheckpointer,
    BaseMemoryManager,
    BaseMemoryProvider,
    BaseStore,
    Checkpointable,
    CheckpointerCapabilities,
    CheckpointInfo,
    ConversationManager,
    Delete,
    DeltaCheckpointer,
    DeltaStorage,
    DocumentIndex,
    Embedder,
    EmbeddingStore,
    EncryptingStore,
    Event,
    FileBackend,
    FileCheckpointer,
    FileDeltaStorage,
    ForgetReport,
    HeuristicExtractor,
    HybridSearch,
    InMemoryBackend,
    InMemoryDeltaStorage,
    InMemoryStore,
    Invocation,
    LLMExtractor,
    LLMMemoryManager,
    LocusMemoryError,
    Memory,
    MemoryCheckpointer,
    MemoryOptions,
    MemoryProvider,
    MemorySearchResult,
    MemorySettings,
    MemoryTree,
    MemoryType,
    MemoryURI,
    Message,
    NamespacedStore,
    NoopMemoryManager,
    NotesManager,
    NullManager,
    OpenAIChat,
    PostgreSQLCheckpointer,
    PostgreSQLStore,
    ProviderManager,
    Put,
    RedisCheckpointer,
    RedisStore,
    Role,
    ScriptedModel,
    SemanticSearchResult,
    SlidingWindowManager,
    SQLiteBackend,
    SQLiteCheckpointer,
    SQLiteDatabase,
    SQLiteDeltaStorage,
    SQLiteStore,
    StorageStats,
    StoreCapabilities,
    StoreContext,
    StoreItem,
    StoreWrapper,
    SummarizingManager,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    VersionConflictError,
    __version__,
    as_checkpointer,
    as_store,
    blocking,
    count_tokens,
    estimate_tokens,
    forget,
    get_checkpointer,
    get_conversation_manager,
    get_documents,
    get_memory_manager,
    get_store,
    list_checkpointers,
    list_memory_providers,
    list_stores,
    open_backend,
    preferred,
    register_checkpointer,
    register_memory_api,
    register_memory_provider,
    register_store,
    subscribe,
    tool,
)
from locus_memory.agent import ResourceSettings
from locus_memory.backends.postgresql import PostgreSQLOptions
from locus_memory.backends.redis import RedisOptions
from locus_memory.checkpoint.base import AnyState
from locus_memory.conversation import Fault, repair, validate
from locus_memory.documents import (
    Chunk,
    ContextConfig,
    HybridOptions,
    Ingested,
    RetrievalResult,
    chunk_text,
    fuse,
    inject_context,
    register_document_index,
)
from locus_memory.faces import BlockingCheckpointer, BlockingStore
from locus_memory.integrations import mem0
from locus_memory.memory import MemoryOptions as KeptOptions
from locus_memory.resources import (
    FailureKind,
    MemoryExecutionFailure,
    MemoryMoveResult,
    MemoryOpRead,
    MemoryReadResult,
)
from locus_memory.resources import backends as memory_backends

version: str = __version__


def messages() -> None:
    call = ToolCall(name="search", arguments={"query": "sloop"})
    assert_type(call.id, str)
    assert_type(call.arguments, dict[str, Any])
    result = ToolResult(tool_call_id=call.id, name="search", content="found", duration_ms=3.5)
    assert_type(result.success, bool)
    message = Message.assistant(tool_calls=[call])
    assert_type(message, Message)
    assert_type(message.role, Role)
    assert_type(message.content, str | None)
    assert_type(message.tool_calls, tuple[ToolCall, ...])
    assert_type(Message.tool(result).to_openai_format(), dict[str, Any])
    state = AgentState(run_id="r").with_message(Message.user("hello")).with_metadata(step=1)
    assert_type(state, AgentState)
    assert_type(state.messages, tuple[Message, ...])
    assert_type(AgentState.from_checkpoint(state.to_checkpoint()), AgentState)
    checkpointable: Checkpointable = state
    del checkpointable


def from_synchronous_code() -> None:
    with blocking("sqlite:./agent.db") as store:
        assert_type(store, BlockingStore)
        assert_type(store.put(("a",), "k", {"x": 1}, ttl=2.5), int)
        assert_type(store.get_item(("a",), "k"), StoreItem | None)
        assert_type(store.search(("a",), "words", filter={"x": 1}), list[StoreItem])
        assert_type(store.get_batch([(("a",), "k")]), dict[tuple[tuple[str, ...], str], Any])
        assert_type(store.capabilities, StoreCapabilities)
        store.put(("a",), "k")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] # no value
        store.putt(("a",), "k", 1)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # no such verb
    assert_type(blocking(get_store("memory")), BlockingStore)
    with blocking(open_backend("memory")) as backend:
        assert_type(backend.store.exists(("a",), "k"), bool)
        assert_type(backend.checkpointer.list_threads(5), list[str])
    with blocking(get_checkpointer("memory")) as checkpointer:
        assert_type(checkpointer, BlockingCheckpointer)
        assert_type(checkpointer.save({"a": 1}, "t", metadata={"m": 1}), str)
        assert_type(checkpointer.list_with_metadata("t"), list[CheckpointInfo])
        assert_type(checkpointer.get_storage_stats("t"), StorageStats)
    with blocking(LLMMemoryManager("memory")) as memory:
        assert_type(memory.retrieve("when?", 5), list[Memory])
        assert_type(memory.retrieve("when?", type="user", min_score=0.5), list[Memory])
        assert_type(memory.for_user("ada").forget("k"), int)
        for each in memory.memories():
            assert_type(each, Memory)
    with blocking(Agent(ScriptedModel(), memory_manager=NoopMemoryManager())) as agent:
        assert_type(agent.run("hello", "t"), AgentResult)
    assert_type(blocking(SlidingWindowManager()), Any)


async def memory_providers() -> None:
    class Notes(BaseMemoryProvider):
        pass

    class Two:
        async def prefetch(self, query: str, *, session_id: str = "") -> str:
            return query + session_id

        async def on_turn_complete(
            self, user: str, assistant: str, *, session_id: str = ""
        ) -> None: ...

    def after(invocation: Invocation) -> None:
        assert_type(invocation.result, AgentResult | None)

    settings = MemorySettings(max_prompt_chars=100)
    async with Agent(
        ScriptedModel(),
        memory_manager=Two(),
        memory_settings=settings,
        end_on_error=True,
        after_invocation=[after],
    ):
        pass
    Agent(ScriptedModel(), memory_manager=Notes())
    Agent(ScriptedModel(), memory_manager="hindsight:support")
    memory = get_memory_manager("local:memory")
    assert_type(memory, BaseMemoryManager)
    assert_type(await memory.prefetch("tea", session_id="t"), str)
    assert_type(await memory.search("tea"), list[MemorySearchResult])
    assert_type(await memory.remember("tea"), str)
    assert_type(await ProviderManager(Two()).forget("1"), bool)
    assert_type(list_memory_providers(), list[str])
    register_memory_api("notes", Notes)()
    options = MemoryOptions(config={"folder": "./notes"})
    register_memory_provider(MemoryProvider("notes", "Notes", "notes", options))()
    settings.enabled = False  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] # frozen


def options() -> None:
    redis = RedisOptions(key_prefix="a:", pool_size=4, command_timeout=None)
    assert_type(redis.pool_size, int)
    RedisStore("host", options=redis, text_index=False)
    RedisStore("host", key_prefix="a:", pool_size=4, command_timeout=None, text_index=False)
    assert_type(
        RedisCheckpointer("host", options=redis, state_type=AgentState, ttl=60),
        RedisCheckpointer[AgentState],
    )
    assert_type(
        RedisCheckpointer("host", pool_size=4, state_type=AgentState, ttl=60),
        RedisCheckpointer[AgentState],
    )
    get_store("redis:host", options=redis)
    postgresql = PostgreSQLOptions(schema="mine", pooler=True)
    PostgreSQLStore("mydb", options=postgresql, exact_below=5, namespace_indexes=0)
    PostgreSQLStore("mydb", schema="mine", pooler=True, exact_below=5)
    assert_type(
        PostgreSQLCheckpointer("mydb", schema="mine", state_type=AgentState),
        PostgreSQLCheckpointer[AgentState],
    )
    small = KeptOptions(memory_budget_tokens=200, token_counter=estimate_tokens, blend="trust")
    LLMMemoryManager("memory", blend="recency", max_memories=9)
    LLMMemoryManager("memory", max_memories=9, options=small)
    LLMMemoryManager("memory", max_memories=9, retrieve_limit=3, extract_mode="background")
    KeptOptions(extract_mode="later")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    LLMMemoryManager("memory", memory_budget_tokens="1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    LLMMemoryManager("memory", tokenbudget=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    redis.pool_size = 5  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] # frozen
    RedisOptions("a:")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] # keyword-only
    RedisStore(pool_size="4")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    RedisStore(poolsize=4)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


async def store() -> None:
    async with get_store("sqlite:./agent.db", synchronous="full") as opened:
        assert_type(opened, BaseStore)
    async with SQLiteStore(Path("agent.db"), embedding_dimension=3) as store:
        assert_type(store, SQLiteStore)
        assert_type(store.capabilities, StoreCapabilities)
        assert_type(await store.put(("a", "b"), "k", {"x": [1, None]}, {"m": 1}, ttl=2.5), int)
        assert_type(await store.get(("a",), "k"), Any)
        item = await store.get_item(("a",), "k")
        assert_type(item, StoreItem | None)
        if item is not None:
            assert_type(item.namespace, tuple[str, ...])
            assert_type(item.score, float | None)
            assert_type(StoreItem.from_dict(item.to_dict()), StoreItem)
        assert_type(await store.delete(("a",), "k", if_version=1), bool)
        assert_type(await store.list_keys(("a",), prefix="p"), list[str])
        assert_type(await store.scan(("a",), descending=True), list[StoreItem])
        assert_type(await store.list_namespaces(("*",), max_depth=1), list[tuple[str, ...]])
        assert_type(await store.clear_namespace(("a",), recursive=True), int)


async def batches_and_search(store: BaseStore) -> None:
    put = Put(namespace=("a",), key="k", value=1, if_version=0, embedding=[1.0, 0.0])
    done = await store.write_batch([put, Delete(namespace=("a",), key="l")])
    assert_type(done, list[int | bool])
    assert_type(await store.put_batch([put, (("a",), "k", 1)]), list[int])
    values = await store.get_batch([(("a",), "k")])
    assert_type(values, dict[tuple[tuple[str, ...], str], Any])
    assert_type(await store.delete_batch([(("a",), "k")]), int)
    found = await store.search(("a",), "words", 5, filter={"n": {"$gt": 1}}, recursive=True)
    assert_type(found, list[StoreItem])
    await store.put_with_embedding(("a",), "k", "v", [0.5, 0.5], text="v")
    assert_type(await store.get_embedding(("a",), "k"), list[float] | None)
    hits = await store.search_by_embedding(("a",), (0.5, 0.5), threshold=0.1)
    assert_type(hits, list[SemanticSearchResult])
    assert_type(hits[0].item, StoreItem)
    assert_type(hits[0].distance, float)


async def views(store: BaseStore) -> None:
    notes = NamespacedStore(store, ("notes",)).scoped("2026", "may")
    assert_type(notes, NamespacedStore)
    assert_type(await notes.put("k", 1), int)
    context = StoreContext(store, user_id="ada")
    assert_type(context.for_user(), NamespacedStore)
    assert_type(context.for_session("s"), NamespacedStore)
    assert_type(await context.remember("k", "v"), int)
    assert_type(await context.search_memories("words"), list[StoreItem])
    assert_type(await context.forget("k"), bool)


class Lengths:
    """An embedder of the user's own: no base class is needed."""

    name = "lengths"
    dimension = 1

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"]
    ) -> list[list[float]]:
        del kind
        return [[float(len(text))] for text in texts]


def wrappers(store: BaseStore) -> None:
    embedder: Embedder = Lengths()
    semantic = EmbeddingStore(store, embedder, text_of=str)
    secret = EncryptingStore(semantic, {"2026": b"k" * 32}, active="2026")
    assert_type(secret.inner, BaseStore)
    wrapper: StoreWrapper = secret
    del wrapper


@dataclass
class Research:
    """A state of the user's own."""

    question: str

    def to_checkpoint(self) -> dict[str, Any]:
        return {"question": self.question}

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any], /) -> Research:
        return cls(document["question"])


class Ticket(BaseModel):
    """A pydantic model as a state: nothing is needed but its fields."""

    title: str


@dataclass
class Point:
    """A dataclass as a state."""

    x: int
    y: int


async def checkpoints() -> None:
    async with get_checkpointer("file:./threads", state_type=None) as opened:
        assert_type(opened, BaseCheckpointer[dict[str, Any]])
        assert_type(await opened.load("t"), dict[str, Any] | None)
    async with get_checkpointer("memory", state_type=Research) as typed:
        assert_type(typed, BaseCheckpointer[Research])
        assert_type(await typed.load("t"), Research | None)
    async with get_checkpointer("memory", max_chain_depth=3) as as_saved:
        assert_type(as_saved, BaseCheckpointer[AnyState])
        assert_type(await as_saved.load("t"), AnyState | None)
        if (state := await as_saved.load("t")) is not None:
            # It may be used as either, without a cast.
            plain: dict[str, Any] = state
            agents: AgentState = state
            assert plain["n"] == agents.metadata["n"] == state["n"]
    async with SQLiteCheckpointer("agent.db", state_type=Research) as checkpointer:
        saved = await checkpointer.save(Research("why?"), "t", metadata={"n": 1})
        assert_type(saved, str)
        await checkpointer.save({"plain": "dict"}, "t", "id", expected_parent=saved)
        await checkpointer.save(AgentState(), "u", expected_parent=None)
        await checkpointer.save(Ticket(title="leak"), "u")
        await checkpointer.save(Point(1, 2), "u")
        assert_type(await checkpointer.load("t"), Research | None)
        assert_type(await checkpointer.list_checkpoints("t"), list[str])
        infos = await checkpointer.list_with_metadata("t", before=saved)
        assert_type(infos, list[CheckpointInfo])
        assert_type(await checkpointer.query_by_metadata({"n": 1}), list[CheckpointInfo])
        assert_type(await checkpointer.get_metadata("t"), dict[str, Any] | None)
        assert_type(await checkpointer.exists("t", saved), bool)
        assert_type(await checkpointer.delete("t", saved), bool)
        assert_type(await checkpointer.list_threads(prefix="p", after="q"), list[str])
        assert_type(await checkpointer.fork("t", "id", "branch"), str)
        assert_type(await checkpointer.copy_thread("t", "copy"), int)
        assert_type(await checkpointer.prune("t", older_than=timedelta(days=1)), int)
        assert_type(await checkpointer.vacuum(7), int)
        stats = await checkpointer.get_storage_stats("t")
        assert_type(stats, StorageStats)
        assert_type(stats["compression_ratio"], float)
        assert_type(checkpointer.capabilities, CheckpointerCapabilities)


async def checkpointers_by_name() -> None:
    assert_type(await MemoryCheckpointer(state_type=Ticket).load("t"), Ticket | None)
    assert_type(await FileCheckpointer("threads", state_type=Point).load("t"), Point | None)
    assert_type(
        await DeltaCheckpointer(FileDeltaStorage("x"), state_type=AgentState).load("t"),
        AgentState | None,
    )
    assert_type(await MemoryCheckpointer(state_type=None).load("t"), Any | None)
    assert_type(await MemoryCheckpointer(max_chain_depth=3).load("t"), Any | None)


def storages() -> list[DeltaCheckpointer]:
    chosen: list[DeltaStorage] = [
        InMemoryDeltaStorage(),
        FileDeltaStorage("threads"),
        SQLiteDeltaStorage("agent.db"),
    ]
    named = [MemoryCheckpointer(max_chain_depth=8), FileCheckpointer(base_dir="threads")]
    return [*(DeltaCheckpointer(storage) for storage in chosen), *named]


async def backends(where: BaseStore | Backend | str) -> None:
    async with open_backend("sqlite:./agent.db", busy_timeout=5) as backend:
        assert_type(backend, Backend[AnyState])
        assert_type(backend.store, BaseStore)
        assert_type(backend.checkpointer, BaseCheckpointer[AnyState])
    async with open_backend("memory", state_type=Ticket) as tickets:
        assert_type(tickets, Backend[Ticket])
        assert_type(await tickets.checkpointer.load("t"), Ticket | None)
    async with open_backend("memory", state_type=None) as dicts:
        assert_type(await dicts.checkpointer.load("t"), dict[str, Any] | None)
    assert_type(SQLiteBackend(database=SQLiteDatabase("agent.db")).store, SQLiteStore)
    assert_type(InMemoryBackend().store, InMemoryStore)
    assert_type(FileBackend("threads").checkpointer, FileCheckpointer)
    assert_type(as_store(where), tuple[BaseStore, bool])
    assert_type(as_checkpointer("memory"), tuple[BaseCheckpointer, bool])


def a_store(hint: str | None, /, **options: Any) -> BaseStore:
    return SQLiteStore(hint or "agent.db", **options)


def a_checkpointer(hint: str | None, /, **options: Any) -> BaseCheckpointer:
    return SQLiteCheckpointer(hint or "agent.db", **options)


def registration() -> None:
    assert_type(register_store("mine", a_store), Callable[[], None])
    assert_type(register_checkpointer("mine", a_checkpointer), Callable[[], None])
    assert_type(list_stores() + list_checkpointers(), list[str])


def events_and_errors() -> None:
    def handler(event: Event) -> None:
        assert_type(event.name, str)
        assert_type(event.error, BaseException | None)

    assert_type(subscribe(handler), Callable[[], None])
    try:
        raise VersionConflictError(1, 2)
    except LocusMemoryError as error:
        if isinstance(error, VersionConflictError):
            assert_type((error.expected, error.actual), tuple[int, int])


def weather(city: str) -> str:
    return city


async def talks(messages: Sequence[Message]) -> Message:
    return messages[-1]


async def calls(messages: Sequence[Message], *, tools: Sequence[ToolSpec]) -> Message:
    return Message.assistant(f"{len(messages)} {len(tools)}")


async def agents(store: BaseStore, backend: Backend) -> None:
    Agent(talks)
    Agent(calls, tools=[weather, tool(name="rain")(weather)], checkpointer=backend)
    Agent(OpenAIChat("m"), checkpointer=backend.checkpointer, memory_manager=backend)
    Agent(talks, memory_manager=NoopMemoryManager(), conversation_manager=NullManager())
    Agent(talks, inherit_user=True, memory_settings=MemorySettings(on_error="raise"))
    Agent(talks, options=AgentOptions(max_iterations=3, documents="memory"))
    async with Agent(ScriptedModel(), checkpointer="memory", memory_manager=store) as agent:
        result = await agent.run("hello", "t", user_id="ada", metadata={"k": 1})
        assert_type(result, AgentResult)
        assert_type(result.state, AgentState)
        assert_type(result.failures, tuple[Event, ...])
        assert_type(result.usage.total_tokens, int)
        assert_type(await agent.resume("t"), AgentResult)
        assert_type(await agent.fork("t"), str)
        assert_type(await agent.history("t", 3), list[CheckpointInfo])
        async for event in agent.stream("hello"):
            if isinstance(event, TextDelta):
                assert_type(event.text, str)


async def extracting(messages: list[Message]) -> list[Memory]:
    return [Memory(MemoryType.USER, "name", messages[-1].content or "nobody")]


async def searches(where: BaseStore, embedder: Embedder) -> None:
    found = await HybridSearch(where, embedder).search(("a",), "words", min_score=0.5)
    assert_type([hit.relevance for hit in found], list[float])


async def memories(where: BaseStore | Backend | str, embedder: Embedder) -> None:
    LLMMemoryManager(where, extract_fn=LLMExtractor(talks), namespace_prefix=("mine",))
    LLMMemoryManager(where, extract_fn=HeuristicExtractor(), embedder=embedder)
    LLMMemoryManager(where, extract_fn=LLMExtractor("openai:gpt-4.1-mini"))
    LLMMemoryManager(where, extract_fn="openai:gpt-4.1-mini")
    async with LLMMemoryManager(where, extract_fn=extracting) as manager:
        memory = Memory(MemoryType.PROJECT, "deadline", "It is Friday.")
        assert_type([Memory("I like tea"), Memory(content="I like tea")], list[Memory])
        assert_type(await manager.save([memory]), list[Memory])
        assert_type(await manager.retrieve("when?"), list[Memory])
        assert_type(await manager.retrieve("when?", 5), list[Memory])
        assert_type(await manager.retrieve(limit=5), list[Memory])
        assert_type(await manager.retrieve(5, "when?"), list[Memory])
        assert_type(await manager.retrieve("when?", min_score=0.5), list[Memory])
        important = {"metadata.importance": {"$gte": 0.5}}
        assert_type(await manager.retrieve(type=MemoryType.PROJECT, filter=important), list[Memory])
        assert_type(await manager.retrieve("when?", at="2026-03-01"), list[Memory])
        assert_type(await manager.feedback("deadline", helpful=True), bool)
        assert_type(await manager.history("deadline"), list[Memory])
        assert_type(await manager.undo("deadline", "project"), Memory | None)
        assert_type(await manager.on_session_start(AgentState()), AgentState)
        assert_type(await manager.for_user("ada").drain(), int)
        assert_type(await manager.sync_now(), int)
        assert_type(await manager.add("I live in Graz.", user_id="ada"), int)
        done = await manager.ingest("helper", "march", [{"user": "I live in Graz."}])
        assert_type(done["episodes"], int)
    assert_type(await forget(where, user_id="ada", dry_run=True), ForgetReport)


async def conversations(messages: list[Message], store: BaseStore) -> None:
    assert_type(repair(messages), list[Message])
    assert_type(validate(messages), list[Fault])
    assert_type(count_tokens(messages, len), int)
    window = SlidingWindowManager(None, max_tokens=1_000, token_counter=estimate_tokens)
    window.apply(messages)
    async with LLMMemoryManager(store) as memory:
        noting = NotesManager(memory, 20_000, keep_tokens=5_000).for_run(AgentState())
        assert_type(noting, NotesManager)
    trimmer = get_conversation_manager("sliding_window:20", max_tokens=1_000)
    assert_type(trimmer, ConversationManager)
    Agent(talks, conversation_manager=trimmer)
    Agent(talks, conversation_manager="notes:20000")
    SummarizingManager(summarize_fn="openai:gpt-4.1-mini")
    SummarizingManager(summarize_fn=talks)
    async with SummarizingManager(summarize_fn=lambda said: str(len(said)), store=store) as manager:
        await manager.async_apply(messages)


async def documents() -> None:
    assert_type(chunk_text("a text", kind="markdown"), list[Chunk])
    index = get_documents("memory", kind="text")
    assert_type(index, DocumentIndex)
    assert_type(await index.add("a text", source="a"), Ingested)
    assert_type(await index.store("a text", metadata={"team": "red"}), str)
    assert_type(await index.retrieve("words", min_score=0.3), list[RetrievalResult])
    both = fuse(index, index, options=HybridOptions.classic())
    assert_type(await both.retrieve("words", top_k=3), list[RetrievalResult])
    await inject_context("words", [Message.user("words")], both, config=ContextConfig(top_k=2))

    @register_document_index("own")
    def own(where: str, *, depth: int = 1) -> DocumentIndex:
        del depth
        return DocumentIndex(where)

    assert_type(own("memory"), DocumentIndex)
    assert_type(blocking(index).retrieve("words", top_k=3), list[RetrievalResult])
    assert_type(blocking(index).add_path("handbook"), Ingested)
    agent = Agent(ScriptedModel(), documents=index)
    assert_type((await agent.run("hello")).sources, tuple[RetrievalResult, ...])


async def resources(tree: MemoryTree) -> None:
    """A tree: typed results of its verbs, and operations as values."""
    await tree.write(MemoryURI(("a", "b")), "text", mode="append", metadata={"by": "ada"})
    read = await tree.read("memory://a/b", "abstract")
    assert_type(read.data, str | bytes)
    assert_type((await tree.list()).entries[0].size, int | None)
    assert_type((await tree.find("q")).hits[0].score, float)
    answer = await tree.dispatch(MemoryOpRead("memory://a"))
    if isinstance(answer, MemoryExecutionFailure):
        assert_type(answer.kind, FailureKind)
    assert_type(tree.for_user("ada"), MemoryTree)
    assert_type(blocking(tree).read("memory://a"), MemoryReadResult)
    spec = memory_backends.MemoryStoreSpec(user_id="ada")
    async with await memory_backends.current().open(spec) as store:
        assert_type(store.refcount, int)
        assert_type(await store.move("memory://a", "memory://b"), MemoryMoveResult)
        Agent(ScriptedModel(), resources=store, resource_settings=ResourceSettings(commit="close"))
    assert_type(preferred(["@prod", "memory"], probe=True), str)


async def verbs_of_mem0(memory: mem0.AsyncMemory) -> None:
    """The verbs of mem0, with and without `await`."""
    assert_type(await memory.add("text", user_id="ada", infer=False), dict[str, Any])
    face = mem0.Memory("memory")
    assert_type(face.search("text", filters={"user_id": "ada"}, top_k=3), dict[str, Any])
    assert_type(face.get("id"), dict[str, Any] | None)
    assert_type(face.history("id"), list[dict[str, Any]])
    assert_type(face.manager.pending, int)
    assert_type(mem0.Memory.from_config({}), mem0.Memory)
