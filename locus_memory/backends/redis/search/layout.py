"""The layout of a key prefix: the index of its texts and vectors, decided once and recorded.

The record is at `<prefix>layout`, if RediSearch could be used; data without a record is in the
library's own indexes. The record has a mark, which is new for each new layout. A write names the
mark it knows, and is refused if the server has another, so processes never write to different
indexes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast, get_args

from locus_memory._internal.quoting import quote
from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.features import Features
from locus_memory.backends.redis.items.items import rows
from locus_memory.backends.redis.items.scripts import script
from locus_memory.backends.redis.search.redisearch import RediSearch
from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)
from locus_memory.events import emit

__all__ = ["Layout", "LayoutChangedError", "Layouts", "SearchIndex", "ours"]

SearchIndex = Literal["auto", "own", "redisearch"]
"""The index that a store requests."""

Holder = Literal["own", "redisearch", "none"]
"""An index of texts or vectors; for vectors, `own` means vector sets."""

_HOLDERS: Final[frozenset[bytes | None]] = frozenset((b"own", b"redisearch", b"none"))
_NOT_THERE: Final = "the server has no RediSearch, or the user must not use it"
_NUL: Final = "its key_prefix has a NUL character"
_NAMES: Final = {
    ("text", "own"): "the library's own index",
    ("text", "redisearch"): "RediSearch",
    ("vectors", "own"): "vector sets",
    ("vectors", "redisearch"): "RediSearch",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The indexes of the items.

    Attributes:
        text: The index of the texts.
        vectors: The index of the vectors.
        mark: The mark of the record; empty: there is none.
        dimensions: The dimensions of the vector indexes of RediSearch.
        text_problem: The reason why texts cannot be searched; empty: they can.
        vector_problem: The same for vectors.
    """

    text: Holder = "own"
    vectors: Holder = "none"
    mark: bytes = b""
    dimensions: frozenset[int] = frozenset()
    text_problem: str = ""
    vector_problem: str = ""

    @property
    def has_labels(self) -> bool:
        """Whether an item has the labels of its namespace, for RediSearch."""
        return "redisearch" in (self.text, self.vectors)

    @property
    def has_vectors(self) -> bool:
        """Whether vectors can be written and searched."""
        return self.vectors != "none" and not self.vector_problem


class LayoutChangedError(BackendError):
    """A write for another layout was refused; nothing is written."""


class Layouts:
    """The layout of a key prefix, which is decided here if there is no record.

    Attributes:
        latest: The layout, once it is known.
        search: RediSearch.

    Args:
        connection: The connection to the server.
        search_index: The requested index.

    Raises:
        ConfigurationError: `search_index` is not one of these indexes.
    """

    def __init__(self, connection: RedisConnection, search_index: SearchIndex) -> None:
        if search_index not in get_args(SearchIndex):
            raise ConfigurationError(
                f"redis: search_index is one of {', '.join(get_args(SearchIndex))}"
            )
        self.latest: Layout | None = None
        self.search = RediSearch(connection)
        self.key = connection.key("layout")
        self._connection = connection
        self._choice = search_index
        self._locks: LoopLocal[asyncio.Lock] = LoopLocal()

    async def current(self, dimensions: Collection[int] = ()) -> Layout:
        """Return the layout, with an index of vectors of these dimensions if RediSearch has them.

        Raises:
            ConfigurationError: It is not the requested one, or the server does not support it.
            BackendError: The server cannot be queried.
        """
        layout = self.latest
        if layout is None:
            async with self._locks.get(asyncio.Lock):
                layout = self.latest or await self._settled()
        if layout.vectors != "redisearch" or layout.vector_problem:
            return layout
        missing = [each for each in dimensions if each not in layout.dimensions]
        return await self._widened(layout, missing) if missing else layout

    def forget(self, layout: Layout) -> None:
        """Detect the layout again, since this one is outdated."""
        if self.latest is not None and self.latest.mark == layout.mark:
            self.latest = None

    async def dimensions(self, wanted: int) -> frozenset[int]:
        """Return the dimensions of RediSearch's vector indexes; `wanted` is added if missing."""
        layout = await self.current()
        if wanted not in layout.dimensions:
            found, _ = await self._read()
            if found is None or found.mark != layout.mark:
                self.forget(layout)
                return (await self.current()).dimensions
            layout = self.latest = replace(layout, dimensions=found.dimensions)
        return layout.dimensions

    async def _widened(self, layout: Layout, missing: Collection[int]) -> Layout:
        # The index is created before the record, and the record before the indexed data.
        for dimension in missing:
            await self.search.make(dimension, scan=False)
        if not await self._connection.run(script("widen"), [self.key], [layout.mark, *missing]):
            self.forget(layout)
            return await self.current(missing)
        self.latest = replace(layout, dimensions=layout.dimensions.union(missing))
        return self.latest

    async def _settled(self) -> Layout:
        features = await self._connection.known_features()
        if features.cluster:
            if self._choice == "redisearch":
                raise self._refusal("it is not used on a cluster")
            self.latest = ours(features)
            return self.latest
        try:
            record = await self._recorded(features)
        except BackendWriteError as error:
            # On a read-only server there is nothing to decide.
            place = self._connection.place
            emit("redis.search_unusable", error=error, place=place, reason=str(error))
            return ours(features)
        self._check(record)
        self.latest = await self._tried(record, features)
        return self.latest

    async def _recorded(self, features: Features) -> Layout:
        """Return the recorded layout; decide and record one if there is none."""
        record, has_items = await self._read()
        if record is None:
            wanted = await self._wanted(features, has_items=has_items)
            if wanted is None:
                return ours(features)
            return await self._record(b"", wanted) or await self._recorded(features)
        if record.vectors == "none" and self._choice != "own":
            vectors, _ = await self._vectors(features)
            if vectors != "none":
                changed = replace(record, vectors=vectors)
                return await self._record(record.mark, changed) or await self._recorded(features)
        return record

    async def _read(self) -> tuple[Layout | None, bool]:
        """Return the recorded layout, and whether there are items."""
        registry = self._connection.key("namespaces")
        commands = [("HGETALL", self.key), ("EXISTS", registry)]
        found, count = await self._connection.execute_many(commands, again=True)
        return _layout_of(found), bool(count)

    async def _record(self, before: bytes, layout: Layout) -> Layout | None:
        """Record a layout unless there is one now; `None`: items of another layout exist now."""
        keys = [self.key, self._connection.key("namespaces")]
        args = [before, secrets.token_hex(8), layout.text, layout.vectors]
        return _layout_of(await self._connection.run(script("settle"), keys, args))

    async def _wanted(self, features: Features, *, has_items: bool) -> Layout | None:
        """Return the layout to record; `None`: none, since RediSearch holds nothing."""
        if self._choice == "redisearch":
            return await self._all_in_redisearch(features, has_items=has_items)
        if self._choice == "own":
            return ours(features) if features.search else None
        vectors, problem = await self._vectors(features)
        if problem:
            emit("redis.search_unusable", place=self._connection.place, reason=problem)
        return Layout("own", vectors) if vectors == "redisearch" else None

    async def _all_in_redisearch(self, features: Features, *, has_items: bool) -> Layout:
        if reason := self._reason(features):
            raise self._refusal(reason)
        if has_items:
            raise self._conflict("text", "own")
        problem = await _problem(self.search.try_texts(make=True))
        problem = problem or (await self._vectors(features))[1]
        if problem:
            raise self._refusal(problem)
        return Layout("redisearch", "redisearch")

    async def _vectors(self, features: Features) -> tuple[Holder, str]:
        """Return the index for vectors, and the problem if it cannot be RediSearch."""
        vectors = ours(features).vectors
        if self._reason(features) or (self._choice == "auto" and vectors == "own"):
            return vectors, ""
        problem = await _problem(self.search.try_vectors(make=True))
        return ("none" if problem else "redisearch"), problem

    def _reason(self, features: Features) -> str:
        """Return the reason why RediSearch cannot be used, if it is known without a trial."""
        if not features.search:
            return _NOT_THERE
        return _NUL if b"\0" in self.key else ""

    def _check(self, record: Layout) -> None:
        """Refuse a layout that is not the requested one.

        Raises:
            ConfigurationError: It is another.
        """
        other = {"own": "redisearch", "redisearch": "own"}.get(self._choice)
        for what, holder in (("text", record.text), ("vectors", record.vectors)):
            if holder == other:
                raise self._conflict(what, holder)

    async def _tried(self, record: Layout, features: Features) -> Layout:
        """Return the layout with its problems."""
        text = vectors = ""
        if record.text == "redisearch":
            text = await self._problem_of(features, self.search.try_texts)
        if record.vectors == "redisearch":
            vectors = await self._problem_of(features, self.search.try_vectors)
        elif record.vectors == "own" and not features.vector_sets:
            vectors = "they are in vector sets, which the server does not have"
        if (problem := text or vectors) and self._choice == "redisearch":
            raise self._refusal(problem)
        if problem:
            emit("redis.search_unusable", place=self._connection.place, reason=problem)
        return replace(record, text_problem=text, vector_problem=vectors)

    async def _problem_of(
        self, features: Features, attempt: Callable[..., Coroutine[Any, Any, None]]
    ) -> str:
        problem = await _problem(attempt(make=False)) if features.search else _NOT_THERE
        return problem and f"it is in RediSearch, which cannot be used: {problem}"

    def _refusal(self, reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"redis {self._connection.place}: search_index='redisearch' cannot be used: {reason}"
        )

    def _conflict(self, what: str, holder: str) -> ConfigurationError:
        return ConfigurationError(
            f"redis {self._connection.place}: search_index={quote(self._choice)}, but the "
            f"existing items have their {what} in {_NAMES[what, holder]}; copy them to a store "
            "with another key_prefix, by scan and put_batch, or leave search_index out"
        )


def ours(features: Features) -> Layout:
    """Return the layout without RediSearch."""
    return Layout(vectors="own" if features.vector_sets else "none")


def _layout_of(answer: Any) -> Layout | None:
    """Return the layout of a reply to `HGETALL`, a list or a map; `None`: there is none."""
    pairs = () if isinstance(answer, Mapping) else ((row[0], row[1]) for row in rows(answer, 2))
    found: Mapping[bytes, bytes] = answer if isinstance(answer, Mapping) else dict(pairs)
    if not found:
        return None
    text, vectors = found.get(b"text"), found.get(b"vectors")
    if not {text, vectors} <= _HOLDERS or not found.get(b"mark"):
        raise BackendCorruptError("redis: the record of the layout is damaged")
    return Layout(
        text=cast("Holder", found[b"text"].decode()),
        vectors=cast("Holder", found[b"vectors"].decode()),
        mark=found[b"mark"],
        dimensions=frozenset(int(name[1:]) for name in found if name[1:].isdigit()),
    )


async def _problem(attempt: Awaitable[None]) -> str:
    """Return the error of an attempt as text, or an empty one; an outage is raised."""
    try:
        await attempt
    except (BackendClosedError, BackendUnavailableError, BackendWriteError):
        raise
    except (BackendError, ConfigurationError) as error:
        return str(error)
    return ""
