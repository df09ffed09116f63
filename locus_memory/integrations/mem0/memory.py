"""The verbs of mem0 over a memory manager."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Self

from typing_extensions import override

from locus_memory._internal.bridge import Blocking, Bridge, shared_bridge
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.mem0.configuration import arguments_of
from locus_memory.integrations.mem0.export import expiry
from locus_memory.integrations.mem0.filters import checked_filters
from locus_memory.integrations.mem0.inferring import Inference
from locus_memory.integrations.mem0.shapes import (
    Slot,
    change_of,
    changes_of,
    literal,
    merged,
    part_of,
    said_in,
    told_by,
)
from locus_memory.integrations.mem0.slots import Slots
from locus_memory.memory.extraction.extraction import check_length
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import (
    EXPIRES_AT,
    LONGEST_CONTENT,
    ORIGIN,
    Extractor,
    MemoryType,
    Origin,
)
from locus_memory.memory.models import Memory as Fact
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import current_key, split_key
from locus_memory.memory.validity import said_at
from locus_memory.registry import as_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.ranking.absolute import check_min_score
from locus_memory.store.base import BaseStore
from locus_memory.store.hidden_namespaces import further_vectors
from locus_memory.store.item import Namespace, check_limit

if TYPE_CHECKING:
    from locus_memory.faces import (
        BlockingMemoryManager,
        _Blocks,  # pyright: ignore[reportPrivateUsage] # a face is typed as all others are
    )

__all__ = ["AsyncMemory", "Memory"]

_PAGE: Final = 500
_THRESHOLD: Final = 0.1
_LAYERS: Final = (
    *("current", "history", "cursors", "queue", "identity", "vitals", "episodes"),
    *("condensed", "transcript", "log", "blocks", "tending"),
)
_UNSET: Final[Any] = object()

_Row = dict[str, Any]


class AsyncMemory(Resource):
    """The verbs of mem0's `AsyncMemory`, with its arguments and shapes of results.

    A memory of a user is among that user's memories, where `manager` and an agent over it find
    it; one without a user, among those of nobody. `agent_id` and `run_id` are metadata that filter.
    An id is a UUID that stays the same over updates, and stands for the memory in each process.

    Args:
        where: A store, a backend or a provider string; what a string opens is closed here.
        extract_fn: As for `LLMMemoryManager`.
        embedder: As for `LLMMemoryManager`.
        namespace_prefix: As for `LLMMemoryManager`.
        history_limit: The most past versions to keep of each memory.
        options: As for `LLMMemoryManager`.
        clock: Returns seconds since the epoch.

    Attributes:
        manager: The manager of the same memories, such as for an `Agent`.

    Raises:
        ConfigurationError: An option that cannot work.
        InvalidArgumentError: A bad namespace or extractor.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend = "sqlite",
        *,
        extract_fn: Extractor | Callable[..., Any] | None = None,
        embedder: Embedder | None = None,
        namespace_prefix: Namespace = ("locus_memory",),
        history_limit: int = 1_000,
        options: MemoryOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, is_owned = as_store(where)
        self._owned: list[Resource] = [self._store] if is_owned else []
        extractor, options = as_extractor(extract_fn), options or MemoryOptions()
        self.manager = LLMMemoryManager(
            self._store,
            extract_fn=extractor,
            embedder=embedder,
            namespace_prefix=namespace_prefix,
            options=options,
            history_limit=history_limit,
            clock=clock,
        )
        self._prefix = namespace_prefix
        self._ledger = Ledger(self._store, history_limit, clock=clock, embedder=embedder)
        # At the epoch, nothing has expired.
        clocks = {False: clock, True: lambda: 0.0}
        self._recalls = {each: Recall(self._store, embedder, clock=clocks[each]) for each in clocks}
        self._inference = Inference(
            store=self._store,
            extractor=extractor,
            ledger=self._ledger,
            embedder=embedder,
            options=options,
            clock=clock,
        )
        self._slots = Slots(self._store, self._ledger, namespace_prefix)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return the memory of a configuration of mem0.

        Its `llm` extracts and its `embedder` embeds, if `get_model` and `get_embedder` know them. A
        `vector_store` is a provider of this library; of any other, a warning says that the memories
        are in `./locus.db`.

        Raises:
            UnknownProviderError: The model or the embedder is unknown.
            ConfigurationError: Their options are invalid.
        """
        keywords, owned = arguments_of(config_dict)
        memory = cls(**keywords)
        memory._owned += owned
        return memory

    def __await__(self) -> Generator[Any, None, Self]:
        """Return itself, since the older `from_config` is awaited."""
        yield from ()
        return self

    @override
    async def open(self) -> None:
        await self.manager.open()

    @override
    async def close(self) -> None:
        async with AsyncExitStack() as stack:
            for each in self._owned:
                stack.push_async_callback(each.close)
            await self.manager.close()

    async def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        expiration_date: object = None,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> _Row:
        """Extract memories from messages, and keep the words in the transcript.

        What is the same as a memory of the same user, agent and run, but for case and spaces, is no
        new one: its metadata are merged.

        Args:
            messages: A text, a message or a list; the system's and empty ones are left out.
            user_id: The user.
            agent_id: The agent.
            run_id: The run.
            metadata: Metadata of each memory.
            infer: Whether to extract; otherwise each message is a memory, as it is.
            expiration_date: The last day on which they are found, such as `"2030-12-31"`.
            memory_type: Not supported.
            prompt: Not supported: see the `instructions` of `LLMExtractor`.

        Returns:
            `results`: the `id`, the `memory` and the `event` of each: `ADD`, `UPDATE`, `DELETE`,
            and without `infer` also `NONE`.

        Raises:
            InvalidArgumentError: No user, agent or run, no messages, or an unsupported argument.
            ModelError: The model failed; the words are kept.
            BackendError: The store failed.
        """
        if memory_type is not None or prompt is not None:
            raise InvalidArgumentError("memory_type and prompt are not supported: see extract_fn")
        who = checked_filters(None, user_id=user_id, agent_id=agent_id, run_id=run_id)
        said, scope = said_in(messages), self._slots.scope(who.get("user_id"))
        told = told_by(metadata or {}) | part_of(who) | expiry(expiration_date)
        edits: Sequence[Statement | Retirement] = (
            await self._inference.edits(scope, said, told)
            if infer
            else [Statement(check_length(literal(each, told), LONGEST_CONTENT)) for each in said]
        )
        found = await self._written(who.get("user_id"), edits, told)
        return {"results": [each for each in found if not infer or each["event"] != "NONE"]}

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        limit: int | None = None,
        threshold: float | None = _THRESHOLD,
        rerank: bool = False,
        explain: bool = False,
        show_expired: bool = False,
    ) -> _Row:
        """Return the memories that match a query, the best first, each with a `score` from 0 to 1.

        Args:
            query: Their subject.
            user_id: The user, also in `filters`.
            agent_id: The agent, also in `filters`.
            run_id: The run, also in `filters`.
            filters: Ids and metadata, with mem0's operators, `AND`, `OR` and `NOT`.
            top_k: At most this many: by default 20, and 100 where ids are arguments.
            limit: The older name of `top_k`.
            threshold: The lowest score.
            rerank: Ignored: the search ranks by words and meaning together.
            explain: Whether to return `score_details`.
            show_expired: Whether to find what has expired.

        Raises:
            InvalidArgumentError: No user, agent or run, an invalid filter, query or number.
            BackendError: The store failed.
        """
        del rerank
        wanted = checked_filters(filters, user_id=user_id, agent_id=agent_id, run_id=run_id)
        most = _most(top_k, limit, user_id, agent_id, run_id)
        least = check_min_score(_THRESHOLD if threshold is None else threshold)
        asked: object = query
        if not isinstance(asked, str) or not asked.strip():
            raise InvalidArgumentError(f"a query is a text, not {quote(query)}")
        recall = self._recalls[show_expired]
        least = least if await recall.can_search() else 0.0
        found: list[tuple[float, str | None, Fact]] = []
        async for user, selection in self._slots.selected(wanted):
            told = await recall.matching(self._slots.scope(user), most, query, selection)
            found += [(score, user, each) for each, score in told if score >= (least or 0.0)]
        found.sort(key=itemgetter(0), reverse=True)
        best = found[:most]
        rows = [await self._slots.row(user, each) | {"score": score} for score, user, each in best]
        for each in rows if explain else ():
            each["score_details"] = {"final_score": each["score"], "threshold": least}
        return {"results": rows}

    async def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        limit: int | None = None,
        show_expired: bool = False,
    ) -> _Row:
        """Return memories, the newest first.

        Args:
            user_id: The user, also in `filters`.
            agent_id: The agent, also in `filters`.
            run_id: The run, also in `filters`.
            filters: As for `search`.
            top_k: As for `search`.
            limit: As for `search`.
            show_expired: As for `search`.

        Raises:
            InvalidArgumentError: No user, agent or run, or an invalid filter or number.
            BackendError: The store failed.
        """
        wanted = checked_filters(filters, user_id=user_id, agent_id=agent_id, run_id=run_id)
        most = _most(top_k, limit, user_id, agent_id, run_id)
        found: list[tuple[str, str | None, Fact]] = []
        async for user, selection in self._slots.selected(wanted):
            recall, scope = self._recalls[show_expired], self._slots.scope(user)
            newest = [each.memory for each in await recall.newest(scope, most, selection)]
            found += [(said_at(each), user, each) for each in newest]
        found.sort(key=itemgetter(0), reverse=True)
        return {"results": [await self._slots.row(*each[1:]) for each in found[:most]]}

    async def get(self, memory_id: str) -> _Row | None:
        """Return a memory, also an expired one; `None` if there is none.

        Raises:
            BackendError: The store failed.
        """
        found = await self._slots.current(memory_id)
        if found is None:
            return None
        return await self._slots.row(found[0].user, found[1]) | {"score": None}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """PastVersion a memory, which keeps its id.

        Args:
            memory_id: Its id.
            text: The new content; `None`: the present one.
            metadata: Metadata, which are merged; ids of users, agents and runs stay.
            expiration_date: The last day on which it is found; `None`: it never expires.
            data: The older name of `text`.

        Raises:
            InvalidArgumentError: There is no such memory, nothing to change, or no content.
            BackendError: The store failed.
        """
        content = data if text is None else text
        if content is None and metadata is None and expiration_date is _UNSET:
            raise InvalidArgumentError("give a text, metadata or an expiration_date to change")
        slot, known = await self._there(memory_id)
        told = merged(known.metadata, told_by(metadata or {}))
        if expiration_date is not _UNSET:
            told |= {EXPIRES_AT: None} | expiry(expiration_date)
        content = known.content if content is None else content
        told |= {} if same_content(content, known.content) else {ORIGIN: Origin.PERSON.value}
        new = check_length(replace(known, content=content, metadata=told), LONGEST_CONTENT)
        await self._ledger.apply(slot.scope, [Statement(new)])
        return {"message": "The memory is updated."}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Retire a memory: nothing finds it, and its history stays.

        Raises:
            InvalidArgumentError: There is no such memory.
            BackendError: The store failed.
        """
        slot, _ = await self._there(memory_id)
        await self._ledger.apply(slot.scope, [Retirement(slot.kind, slot.key)])
        return {"message": "The memory is deleted."}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Erase memories, also deleted ones, with their history and the words that told them.

        Of a user alone, everything is erased that is kept under that name; see `forget`.

        Args:
            user_id: The user.
            agent_id: The agent.
            run_id: The run.

        Raises:
            InvalidArgumentError: None is named.
            BackendError: The store failed; call it again.
        """
        wanted = checked_filters(None, user_id=user_id, agent_id=agent_id, run_id=run_id)
        if wanted.keys() == {"user_id"}:
            await forget(self._store, user_id=wanted["user_id"], prefix=self._prefix)
            return {"message": "The memories are deleted."}
        async for user, selection in self._slots.selected(wanted):
            scope = self._slots.scope(user)
            while found := await self._recalls[True].newest(scope, _PAGE, selection):
                for fact in (each.memory for each in found):
                    await self._forget(user, fact.type, fact.key)
            for slot in await self._slots.ended(user, selection):
                await self._forget(user, slot.kind, slot.key)
        return {"message": "The memories are deleted."}

    async def history(self, memory_id: str) -> list[_Row]:
        """Return the changes of a memory, the oldest first, also of a deleted one.

        Raises:
            BackendError: The store failed.
        """
        slot = await self._slots.of(memory_id)
        if slot is None:
            return []
        return changes_of(slot, await self._ledger.history(*slot[1:]))

    async def reset(self) -> None:
        """Erase the memories of all users and of nobody, and what is kept with them.

        Raises:
            BackendError: The store failed; call it again.
        """
        for user in [each async for each in self._slots.owners() if each is not None]:
            await forget(self._store, user_id=user, prefix=self._prefix)
        for layer in _LAYERS:
            for space in ((*self._prefix, layer), further_vectors((*self._prefix, layer))):
                await self._store.clear_namespace(space, recursive=True)
        await self._store.compact()

    async def _forget(self, user: str | None, kind: MemoryType, key: str) -> None:
        await forget(self._store, user_id=user, key=key, type=kind, prefix=self._prefix)

    async def _there(self, memory_id: str) -> tuple[Slot, Fact]:
        found = await self._slots.current(memory_id)
        if found is None:
            raise InvalidArgumentError(f"there is no memory with the id {quote(memory_id)}")
        return found

    async def _written(
        self, user: str | None, edits: Sequence[Statement | Retirement], told: Mapping[str, Any]
    ) -> list[_Row]:
        """Write changes, and return what became of each memory; twins get the metadata as well."""
        scope, found = self._slots.scope(user), list[_Row | None]()
        names = dict.fromkeys((each.type, each.key) for each in edits)
        before = [await self._ledger.current(scope, *each) for each in names]
        written, same = await self._ledger.write(scope, edits)
        kept = {(each.type, each.key) for each in written}
        for name, past in zip(names, before, strict=True):
            twin = None if name in kept else split_key(same.get(current_key(*name), ""))
            slot = self._slots.seen(Slot(user, scope, *(twin or name)))
            new = await self._ledger.current(*slot[1:])
            if twin is not None and new is not None:
                joined = replace(new, metadata=merged(new.metadata, told))
                await self._ledger.apply(scope, [Statement(joined)])
            found.append(change_of(slot, past if twin is None else new, new))
        return [each for each in found if each is not None]


class Memory(Blocking, of=f"{__name__}.AsyncMemory"):
    """`AsyncMemory` for code without `await`, with the same arguments and methods.

    Its calls run in the background event loop of `locus_memory.sync`; inside a running event loop
    they raise `BlockingCallError`.

    Args:
        where: As for `AsyncMemory`; or an `AsyncMemory`.
        bridge: Runs the calls; by default that of the process.
        **keywords: As for `AsyncMemory`.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend | AsyncMemory = "sqlite",
        bridge: Bridge | None = None,
        **keywords: Any,
    ) -> None:
        target = where if isinstance(where, AsyncMemory) else AsyncMemory(where, **keywords)
        super().__init__(target, bridge or shared_bridge())

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Do what `AsyncMemory.from_config` does."""
        return cls(AsyncMemory.from_config(config_dict))

    if TYPE_CHECKING:
        manager: BlockingMemoryManager
        add = _Blocks(AsyncMemory.add)
        search = _Blocks(AsyncMemory.search)
        get_all = _Blocks(AsyncMemory.get_all)
        get = _Blocks(AsyncMemory.get)
        update = _Blocks(AsyncMemory.update)
        delete = _Blocks(AsyncMemory.delete)
        delete_all = _Blocks(AsyncMemory.delete_all)
        history = _Blocks(AsyncMemory.history)
        reset = _Blocks(AsyncMemory.reset)
        open = _Blocks(AsyncMemory.open)
        close = _Blocks(AsyncMemory.close)


def _most(top_k: int | None, limit: int | None, *older: str | None) -> int:
    """Return the limit of a call; that of the older form, where ids are arguments."""
    stated = top_k if limit is None else limit
    return check_limit((20 if set(older) == {None} else 100) if stated is None else stated)
