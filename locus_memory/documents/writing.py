"""Writing of documents to a store, so that an interrupted write can be run again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from locus_memory._internal.offload import in_thread
from locus_memory._internal.running.paging import batches
from locus_memory._internal.running.retrying import until_first
from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import Chunk, ChunkConfig
from locus_memory.documents.layout import (
    Document,
    chunk_key,
    chunk_put,
    chunks_of,
    record_put,
    source_range,
    sources_of,
)
from locus_memory.errors import (
    BackendError,
    ConfigurationError,
    InvalidEmbeddingError,
    VersionConflictError,
)
from locus_memory.events import emit
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import MARK, check_newest_mark, mark_of
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.retrieval.reembed import reembed
from locus_memory.store.base import (
    BaseStore,
    all_keys,
    has_semantic_search,
    scan_all,
    write_together,
)
from locus_memory.store.item import Delete, Namespace, Put, StoreItem
from locus_memory.store.text import index_text

__all__ = ["Change", "Outcome", "Writer"]

Outcome = Literal["added", "updated", "unchanged"]

_BATCH: Final = 64
"""How many texts are embedded, and written, at a time."""

_ATOMIC: Final = 256
"""The most operations of one batch that replaces a document at once."""

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Change:
    """What a write of a document changes.

    Attributes:
        document: The document.
        config: The sizes of its chunks.
        outcome: What it does.
        chunks: How many chunks the document has; 0 if it is unchanged.
        puts: The chunks that are not there yet.
        deletes: The chunks of other versions.
        version: The version of the record that it replaces; 0: there is none.
        shown: The document that searches show until all chunks are written; empty: there is none.
    """

    document: Document
    config: ChunkConfig
    outcome: Outcome
    chunks: int = 0
    puts: tuple[Put, ...] = ()
    deletes: tuple[Delete, ...] = ()
    version: int = 0
    shown: str = ""

    @property
    def is_small(self) -> bool:
        """Whether it is embedded and written at once."""
        return len(self.puts) <= _BATCH


class Writer:
    """Writes the documents of an index.

    The chunks of a new version are written first, then the record of the source names it as the
    version that searches show, then those of other versions are deleted. So whatever happens, the
    source is never without its chunks and never seen in two versions, and the next write of it
    repairs what an interrupted one left: until a write is complete, its record says so.

    Args:
        store: The store.
        namespace: The namespace of the index.
        embedder: The embedder, if the index has vectors.
    """

    def __init__(self, store: BaseStore, namespace: Namespace, embedder: Embedder | None) -> None:
        self._store = store
        self._namespace = namespace
        self._chunks = chunks_of(namespace)
        self._sources = sources_of(namespace)
        self._embedder = embedder
        self._is_checked = False

    async def records(self, sources: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the records of these sources, as far as they are there."""
        found = await self._store.get_batch([(self._sources, each) for each in sources])
        return {key: value for (_, key), value in found.items()}

    async def adopt(self, source: str, document: str, root: str) -> None:
        """Note that a document is from another folder by now, unless another writer is first."""
        item = await self._store.get_item(self._sources, source)
        if item is None or item.value["document"] != document:
            return
        with suppress(VersionConflictError):
            await self._store.put_batch([self._noted(item, root=root)])

    def _noted(self, record: StoreItem, **facts: Any) -> Put:
        """Return the put that notes facts in a record, unless another writer is first."""
        value, version = {**record.value, **facts}, record.version
        return Put(
            namespace=self._sources, key=record.key, value=value, text="", if_version=version
        )

    async def change(self, document: Document, config: ChunkConfig) -> Change:
        """Return what a write of a document changes.

        Args:
            document: The document.
            config: The sizes of its chunks.
        """
        # The record is read first: who writes chunks meanwhile changes it before.
        record = await self._store.get_item(self._sources, document.record)
        if record is not None and _is_whole(record.value, document):
            return Change(document, config, "unchanged")
        chunks = await in_thread(chunk_text, document.text, config=config, kind=document.kind)
        # A document without a source replaces nothing.
        versions = source_range(document.source) if document.source else f"{document.id}/"
        there = await all_keys(self._store, self._chunks, versions)
        done = set(there)
        keys = {chunk_key(document.id, each.index): each for each in chunks}
        return Change(
            document,
            config,
            "added" if record is None else "updated",
            len(chunks),
            tuple(
                chunk_put(self._namespace, document, each)
                for key, each in keys.items()
                if key not in done
            ),
            tuple(Delete(namespace=self._chunks, key=key) for key in there if key not in keys),
            0 if record is None else record.version,
            "" if record is None else record.value.get("shown", record.value["document"]),
        )

    async def embedded(self, changes: Sequence[Change]) -> list[Change]:
        """Return changes whose chunks have vectors: those of small ones, many texts at a time.

        A large change is embedded while it is written, so that an interrupted write goes on.
        """
        puts = [put for each in changes if each.is_small for put in each.puts]
        made = iter([put for some in batches(puts, _BATCH) for put in await self._embedded(some)])
        return [
            replace(each, puts=tuple(islice(made, len(each.puts)))) if each.is_small else each
            for each in changes
        ]

    async def apply(self, change: Change) -> Change:
        """Write a change that `embedded` returned; returns what was written.

        If another writer of the source was first, it is planned again, so one version stays.

        Raises:
            VersionConflictError: Others were first 500 times.
        """
        ready = [change]

        async def once() -> Change:
            [now] = ready or await self.embedded(
                [await self.change(change.document, change.config)]
            )
            ready.clear()
            await self._write(now)
            return now

        return await until_first(once)

    async def _write(self, change: Change) -> None:
        if change.outcome == "unchanged":
            return
        record = record_put(self._namespace, change.document, change.chunks)
        record = replace(record, if_version=change.version)
        if (
            self._store.capabilities.transactions
            and change.is_small
            and len(change.puts) + len(change.deletes) < _ATOMIC
        ):
            await self._store.write_batch([*change.puts, record, *change.deletes])
            return
        begun = {**record.value, "complete": False}
        shown = {"shown": change.shown} if change.shown else {}
        [version] = await self._store.put_batch([replace(record, value={**begun, **shown})])
        for batch in batches(change.puts, _BATCH):
            await self._store.put_batch(batch if change.is_small else await self._embedded(batch))
            # A store in memory waits for nothing.
            await asyncio.sleep(0)
        if shown and change.deletes:
            # From here, searches show the new version, and no longer the old one.
            switch = replace(record, value=begun, if_version=version)
            [version] = await self._store.put_batch([switch])
        await self._delete([each.key for each in change.deletes])
        await self._store.put_batch([replace(record, if_version=version)])

    async def store(self, document: Document) -> None:
        """Write a document that is one chunk."""
        chunk = Chunk(document.text)
        put = chunk_put(self._namespace, document, chunk)
        [put] = await self._embedded([put])
        await self._store.put_batch([put, record_put(self._namespace, document, 1)])

    async def _embedded(self, puts: list[Put]) -> list[Put]:
        """Return the puts with vectors; as they are if there is no embedder, or it fails."""
        embedder = self._embedder
        if not puts or not await has_semantic_search(self._store):
            return puts
        await self._check()
        if embedder is None:
            return puts
        try:
            return await embedded_puts(puts, embedder, [index_text(each.value) for each in puts])
        except InvalidEmbeddingError:
            raise
        except Exception as error:  # noqa: BLE001 - reported; text search finds them
            emit("documents.embed_failed", error=error, embedder=embedder.name, chunks=len(puts))
            return puts

    async def _check(self) -> None:
        """Compare the embedder with the vectors that are there; once.

        Raises:
            ConfigurationError: They are of another model.
        """
        if self._is_checked:
            return
        if self._embedder is not None:
            await check_newest_mark(self._store, self._embedder, self._chunks)
        elif there := await self._marked(1, is_marked=True):
            mark = mark_of(there[0].metadata)
            model = "another process's embedder" if mark is None else mark.model
            error = ConfigurationError(
                f"other chunks have vectors of {model}, and new ones have none, so only their"
                " words are found: add files with the same embedder"
            )
            emit("documents.not_embedded", error=error, model=model)
        self._is_checked = True

    async def model(self) -> str | None:
        """Return the model whose vectors the chunks have; `None`: none has a vector with a mark."""
        if not await has_semantic_search(self._store):
            return None
        there = await self._marked(1, is_marked=True)
        mark = mark_of(there[0].metadata) if there else None
        return None if mark is None else mark.model

    async def _marked(self, most: int, *, is_marked: bool) -> list[StoreItem]:
        """Return some of the chunks that have, or have not, a vector with a mark."""
        condition = {MARK: {"$exists": is_marked}}
        return await self._store.search(self._chunks, None, most, filter=condition)

    async def catch_up(self) -> None:
        """Embed the chunks that have no vector, such as after the embedder failed.

        Raises:
            ConfigurationError: Other vectors are of another model.
            BackendError: The store failed.
        """
        embedder = self._embedder
        if embedder is None or not await has_semantic_search(self._store):
            return
        await self._check()
        missing = await self._marked(_BATCH, is_marked=False)
        if not missing:
            return
        try:
            await reembed(self._store, self._chunks, embedder, include_unmarked=True)
        except (BackendError, ConfigurationError, InvalidEmbeddingError):
            raise
        except Exception as error:  # noqa: BLE001 - reported; text search finds them
            emit("documents.embed_failed", error=error, embedder=embedder.name, chunks=len(missing))

    async def delete(self, document: str) -> bool:
        """Delete a document by its id; returns whether it was there."""
        item = await self._store.get_item(self._chunks, chunk_key(document, 0))
        keys = await all_keys(self._store, self._chunks, f"{document}/")
        if item is not None:
            source = item.metadata.get("source", "")
            records = [source, f"{source}\n{document}"]
        else:
            # A document without text has a record only.
            found = await self._store.search(self._sources, None, 1, filter={"document": document})
            records = [each.key for each in found]
        for key in filter(None, records):
            record = await self._store.get_item(self._sources, key)
            # It may be another version's by now.
            if record is not None and record.value["document"] == document:
                with suppress(VersionConflictError):
                    await self._store.delete(self._sources, key, if_version=record.version)
        await self._delete(keys)
        return bool(keys or records)

    async def delete_source(self, source: str) -> int:
        """Delete all that was added under a name; returns how many chunks.

        What is added meanwhile is deleted too, or stays whole.

        Raises:
            VersionConflictError: Other writers of the source were first 500 times.
        """
        deleted = 0

        async def once() -> int:
            nonlocal deleted
            # The chunks come first: whoever writes one that is not read here changes a record.
            keys = await all_keys(self._store, self._chunks, source_range(source)) if source else []
            records = [record async for record in self._records_of(source)]
            for record in records:
                keys += await all_keys(self._store, self._chunks, f"{record.value['document']}/")
            # The records go last: what an interrupted call leaves, the next one finds. Until then,
            # none says that its chunks are there.
            puts = [self._noted(each, complete=False) for each in records]
            versions = await self._store.put_batch(puts)
            deleted += await self._delete(dict.fromkeys(keys))
            ends = [
                Delete(namespace=self._sources, key=record.key, if_version=version)
                for record, version in zip(records, versions, strict=True)
            ]
            for batch in batches(ends, _PAGE):
                await write_together(self._store, batch)
            return deleted

        return await until_first(once)

    async def _records_of(self, source: str) -> AsyncIterator[StoreItem]:
        """Yield the records of a source, and of the documents that were stored under its name."""
        if source and (item := await self._store.get_item(self._sources, source)) is not None:
            yield item
        async for record in scan_all(self._store, self._sources, prefix=f"{source}\n"):
            yield record

    async def sources_from(self, root: str) -> list[str]:
        """Return the sources that are from a folder."""
        records = scan_all(self._store, self._sources)
        return [each.key async for each in records if each.value["root"] == root]

    async def _delete(self, keys: Iterable[str]) -> int:
        deleted = 0
        for batch in batches(keys, _PAGE):
            deleted += await self._store.delete_batch([(self._chunks, each) for each in batch])
        return deleted


def _is_whole(record: Mapping[str, Any], document: Document) -> bool:
    """Whether a record is that of a document, and all of it is written."""
    return bool(record["complete"]) and record["document"] == document.id
