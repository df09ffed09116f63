"""`LocusSaver`: a checkpoint saver of LangGraph over any checkpointer of the library.

Each LangGraph thread and namespace is a thread of a `BaseCheckpointer`, so the cost of a
checkpoint depends on what changed since the one before. See `threads` for the names,
`checkpoints.records` for the documents and `checkpoints.values` for the values in them.
"""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.states import BytesDocument
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.langgraph.checkpoints.known import Known, encode_channels
from locus_memory.integrations.langgraph.checkpoints.pending import (
    WaitingRoom,
    encode_writes,
    is_special,
)
from locus_memory.integrations.langgraph.checkpoints.reading import Caches, Reader
from locus_memory.integrations.langgraph.checkpoints.records import (
    COUNTERS,
    Head,
    TaskWrites,
    alone_of,
    before_of,
    closed,
    document_of,
    metadata_beside,
    opened,
    parent_of,
    stored_by,
)
from locus_memory.integrations.langgraph.checkpoints.removal import Remover
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer, informed
from locus_memory.integrations.langgraph.opening import Opened
from locus_memory.integrations.langgraph.threads import Place, places
from locus_memory.registry import as_checkpointer
from locus_memory.sync import blocking

__all__ = ["LocusSaver"]


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _waits(method: _Method, *, as_asked: bool = False) -> _Method:
    """Return a synchronous method that waits for the asynchronous one of its name.

    Args:
        method: LangGraph's method.
        as_asked: Whether it reads with the classes that the calling graph names.
    """

    @wraps(method)
    def waits(self: LocusSaver, *arguments: Any, **options: Any) -> Any:
        saver = self._asked() if as_asked else self  # pyright: ignore[reportPrivateUsage] # its own
        return getattr(blocking(saver), f"a{method.__name__}")(*arguments, **options)

    return cast("_Method", waits)


class LocusSaver(Opened, BaseCheckpointSaver[Any]):
    """A checkpoint saver for LangGraph that stores in any backend.

    ```python
    async with LocusSaver("sqlite:./agent.db") as saver:
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke(inputs, {"configurable": {"thread_id": "ada"}})
    ```

    The synchronous methods wait for the asynchronous ones, and may be called from any thread
    without a running event loop. A list is stored element by element, so the cost of a growing
    conversation depends on what was added. Filters match any key of the metadata.

    Args:
        where: A provider string, a backend or a checkpointer. The saver closes only the
            checkpointer of a provider string.
        serde: Converts values to bytes. The default is LangGraph's own serializer, which on reading
            builds only LangGraph's and LangChain's safe types and the classes that the schemas of
            the graph name. Allow others with `saver.with_allowlist([MyClass])`. Any other class
            raises `StateTypeError`.

    Raises:
        ConfigurationError: `where` has no checkpointer.
    """

    def __init__(
        self, where: str | BaseCheckpointer | Backend, *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde or StrictSerializer())
        self._owned, self._owns = as_checkpointer(where)
        self._checkpointer = _of_documents(self._owned)
        # Separate writes have little in common with earlier ones.
        self._writes = _of_documents(self._owned, max_chain_depth=0)
        self._caches = Caches()
        self._waiting = WaitingRoom()

    @override
    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version, of the same kind.

        Versions are numbers. Those of LangGraph's own savers are texts. If a thread was copied from
        such a saver, the next version is a text of the same form.
        """
        if not isinstance(current, str):
            return super().get_next_version(current, channel)
        number = int(current.partition(".")[0]) + 1
        # Two versions with one number, in branches of a thread, must differ.
        return f"{number:032}.{random.random():016}"  # noqa: S311 - it is not secret

    @override
    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...] | type]) -> Self:
        """Return a saver of the same checkpoints that also builds these classes.

        Args:
            extra_allowlist: The classes, or the module and the name of each.
        """
        return cast("Self", super().with_allowlist(cast("Any", extra_allowlist)))

    @property
    def _reader(self) -> Reader:
        return Reader(self._checkpointer, informed(self.serde), self._caches)

    def _asked(self) -> Self:
        """Return this saver with the classes that the calling graph names."""
        serde = informed(self.serde)
        if serde is self.serde:
            return self
        clone = copy.copy(self)
        clone.serde = serde
        return clone

    @override
    async def aopen(self) -> None:
        await self._checkpointer.open()

    @override
    async def aclose(self) -> None:
        if self._owns:
            await self._owned.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._owned!r})"

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._reader.found(Place.of(config), get_checkpoint_id(config) or None)

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        place, parent = Place.of(config), get_checkpoint_id(config)
        # Before the first await: the graph may change the state while it is saved.
        full: Mapping[str, Any] = get_serializable_checkpoint_metadata(config, metadata)
        latest = self._caches.known.get(place.name) or Known("", None)
        document = document_of(self.serde, checkpoint, full, parent)
        document["v"], typed = encode_channels(
            self.serde, checkpoint["channel_values"], latest.typed
        )
        with self._waiting.saving(place.name) as taken:
            greatest = await self._greatest(place)
            before = await self._stored_before(place, checkpoint["id"], parent, greatest)
            taken.extend(self._waiting.take(place.name, parent))
            before += [waiting.writes for waiting in taken]
            if before:
                document["b"] = before
            beside = metadata_beside(full, document, low=checkpoint["id"] < greatest)
            document, numbers = closed(document, latest.numbers)
            is_delta, greatest = bool(full.get(COUNTERS)), max(greatest, checkpoint["id"])
            # Before it is stored: tasks of the next step may write meanwhile.
            known = Known(checkpoint["id"], greatest, is_delta, numbers, typed)
            self._caches.known.put(place.name, known)
            state = stored_by(self._checkpointer, document)
            await self._checkpointer.save(state, place.name, checkpoint["id"], beside)
        return place.config(checkpoint["id"])

    async def _greatest(self, place: Place) -> str:
        known = self._caches.known.get(place.name)
        if known is not None and known.greatest is not None:
            return known.greatest
        return (await self._reader.newest(place)).greatest

    async def _stored_before(
        self, place: Place, checkpoint_id: str, parent: str | None, greatest: str
    ) -> list[TaskWrites]:
        """Return the writes in the document of a checkpoint that is replaced."""
        if checkpoint_id > greatest:
            return []
        document = await self._reader.read(place.name, checkpoint_id)
        if document is None or parent_of(document) != parent:
            return []
        return before_of(document)

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        place, checkpoint_id = Place.of(config), get_checkpoint_id(config) or ""
        record = encode_writes(self.serde, writes, task_id, task_path)
        known = self._caches.known.get(place.name)
        may_wait = known is not None and not known.is_delta
        if any(map(is_special, record.writes)):
            may_wait = False
        if may_wait and await self._waiting.wait(place.name, checkpoint_id, record):
            return
        known = self._caches.known.get(place.name)
        beside: dict[str, Any] = {"of": checkpoint_id}
        if known is None or known.greatest != checkpoint_id:
            beside["late"] = 1
        document = alone_of(checkpoint_id, [record])
        state = stored_by(self._writes, document)
        record_id = await self._writes.save(state, place.writes, metadata=beside)
        if self._caches.indexes.get(place.name) is not None:
            # The next read of delta channels needs it.
            self._caches.keep(f"{place.writes} {record_id}", document, opened(document))

    @override
    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        only = None if config is None else get_checkpoint_id(config)
        bound = None if before is None else get_checkpoint_id(before)

        def accepts(head: Head) -> bool:
            return (not only or head.checkpoint_id == only) and (
                not bound or head.checkpoint_id < bound
            )

        reader = self._reader
        indexes = [await reader.index(place) for place in await self._places(config)]
        async for found in reader.listed(indexes, accepts, filter or {}, limit):
            yield found

    async def _places(self, config: RunnableConfig | None) -> Sequence[Place]:
        if config is None:
            return await places(self._checkpointer, None)
        configurable = config.get("configurable", {})
        if configurable.get("checkpoint_ns") is not None:
            return [Place.of(config)]
        return await places(self._checkpointer, str(configurable["thread_id"]))

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        await Remover(self._reader).delete_thread(str(thread_id))

    @override
    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await Remover(self._reader).delete_runs(run_ids)

    @override
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await Remover(self._reader).copy(str(source_thread_id), str(target_thread_id))

    @override
    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        remover = Remover(self._reader)
        if strategy not in ("keep_latest", "delete"):
            raise InvalidArgumentError(
                f"a strategy is 'keep_latest' or 'delete', not {quote(strategy)}"
            )
        prune = remover.delete_thread if strategy == "delete" else remover.keep_latest
        for thread_id in thread_ids:
            await prune(str(thread_id))

    @override
    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        if not channels:
            return {}
        return await self._reader.history(Place.of(config), get_checkpoint_id(config), channels)

    get_tuple = _waits(BaseCheckpointSaver.get_tuple, as_asked=True)
    list = _waits(BaseCheckpointSaver.list, as_asked=True)
    put = _waits(BaseCheckpointSaver.put)
    put_writes = _waits(BaseCheckpointSaver.put_writes)
    delete_thread = _waits(BaseCheckpointSaver.delete_thread)
    delete_for_runs = _waits(BaseCheckpointSaver.delete_for_runs)
    copy_thread = _waits(BaseCheckpointSaver.copy_thread)
    prune = _waits(BaseCheckpointSaver.prune)
    get_delta_channel_history = _waits(BaseCheckpointSaver.get_delta_channel_history, as_asked=True)


def _of_documents(
    checkpointer: BaseCheckpointer, *, max_chain_depth: int | None = None
) -> BaseCheckpointer:
    """Return a checkpointer over the same records that loads bytes as they were saved."""
    if not isinstance(checkpointer, DeltaCheckpointer):
        return checkpointer
    return DeltaCheckpointer(
        checkpointer.storage,
        checkpointer.max_chain_depth if max_chain_depth is None else max_chain_depth,
        checkpointer.compression_level,
        state_type=BytesDocument,
        cache_bytes=checkpointer.cache_bytes,
        clock=checkpointer.clock,
    )
