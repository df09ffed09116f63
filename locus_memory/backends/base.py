"""Both contracts over one connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from typing_extensions import override

from locus_memory._internal.options import Keywords
from locus_memory._internal.resource import Resource
from locus_memory.checkpoint.base import BaseCheckpointer, StateT
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore

if TYPE_CHECKING:
    from locus_memory.backends.advice import Advice
    from locus_memory.backends.remains import ByteSearch, Place

__all__ = [
    "Backend",
    "ComposedBackend",
    "ConnectedBackend",
    "OverConnection",
    "PairedBackend",
    "SharedConnection",
    "checkpointer_of",
    "store_of",
]


class SharedConnection(Resource):
    """The connection to a database, which a store and a checkpointer share.

    Attributes:
        place: The place of the database, without a password: a path, or hosts and a name.
    """

    place: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"


ConnectionT = TypeVar("ConnectionT", bound=SharedConnection)
StoreT = TypeVar("StoreT", bound=BaseStore)
CheckpointerT = TypeVar("CheckpointerT", bound=BaseCheckpointer)


class _Connected(Generic[ConnectionT]):
    """What uses a connection that others may share; it closes one only if it made it."""

    _connection: ConnectionT
    _owned: bool

    def _connect(
        self,
        kind: type[ConnectionT],
        group: type[Any],
        where: str | None,
        options: object,
        keywords: Mapping[str, object],
        **given: object,
    ) -> None:
        """Use the connection of the caller, or make one.

        Args:
            kind: The class of the connection.
            group: That of its options.
            where: Where the database is.
            options: Its options, or `None`.
            keywords: The same by name.
            given: The parameter of `kind` for what may be used instead of the address, with the
                argument of the caller: a connection, a client or pool of the driver, or `None`.

        Raises:
            ConfigurationError: An option that cannot work.
        """
        group_of = Keywords(self, keywords).all_into(group, options=options)
        (shared,), make = given.values(), cast("Callable[..., ConnectionT]", kind)
        self._owned = not isinstance(shared, kind)
        self._connection = (
            shared if isinstance(shared, kind) else make(where, **given, options=group_of)
        )


class OverConnection(_Connected[ConnectionT], Resource, Generic[ConnectionT]):
    """A store, or a storage of checkpoints, over a connection that others may share."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    @property
    def place(self) -> str:
        """The place of the database, without a password."""
        return self._connection.place

    @override
    async def open(self) -> None:
        await self._connection.open()

    @override
    async def close(self) -> None:
        if self._owned:
            await self._connection.close()


class Backend(Resource, ABC, Generic[StateT]):
    """A store and a checkpointer that share one connection.

    The backend owns the connection: closing the backend closes it, closing its store or its
    checkpointer does not. A backend overrides `store`, `checkpointer` or both, and returns the
    same object each time.

    Attributes:
        provider: Its name in provider strings.
    """

    provider: str

    @property
    def store(self) -> BaseStore:
        """The store.

        Raises:
            ConfigurationError: The provider has no store.
        """
        raise ConfigurationError(f"{self.provider}: has no store, only checkpoints")

    @property
    def checkpointer(self) -> BaseCheckpointer[StateT]:
        """The checkpointer.

        Raises:
            ConfigurationError: The provider has no checkpointer.
        """
        raise ConfigurationError(f"{self.provider}: has no checkpoints, only a store")

    async def problems(self) -> list[str]:
        """Return the problems of the database as a whole that it can detect itself.

        It may read the whole database. `integrity.verify` finds problems of single items and
        checkpoints.
        """
        return []

    async def advice(self) -> list[Advice]:
        """Return what is configured badly, and what to do; the database works all the same."""
        return []

    async def outdated(self) -> list[Advice]:
        """Return advice if an earlier version of the library made the tables; it only reads them.

        The first use of a database brings its tables up to date: ask before, and do not open it.

        Raises:
            ConfigurationError: A newer version of the library made them.
        """
        return []

    async def compact(self) -> None:
        """Erase deleted data from the indexes and the files, and free their space.

        It may take long, and lock tables: run it when little else does. `remains` tells what it
        cannot reach.
        """
        from locus_memory.checkpoint.chain import DeltaCheckpointer  # noqa: PLC0415 - seldom needed

        checkpointer, store = checkpointer_of(self), store_of(self)
        if isinstance(checkpointer, DeltaCheckpointer):
            await checkpointer.storage.reclaim()
        if store is not None:
            await store.compact()

    async def remains(self, search: ByteSearch) -> list[Place]:
        """Return the files and raw values of the database, each searched for deleted words.

        Args:
            search: The words.
        """
        from locus_memory.backends.remains import Place  # noqa: PLC0415 - seldom needed

        del search
        problem = f"{self.provider}: its files are not here; ask the operator of the database"
        return [Place(name="files", how="not read", problem=problem)]

    @abstractmethod
    @override
    async def close(self) -> None:
        """Close the connection; calling it again is harmless."""


class PairedBackend(Backend[Any], Generic[StoreT, CheckpointerT]):
    """A store and a checkpointer; a subclass sets the attributes."""

    _store: StoreT
    _checkpointer: CheckpointerT

    @property
    @override
    def store(self) -> StoreT:
        """The store."""
        return self._store

    @property
    @override
    def checkpointer(self) -> CheckpointerT:
        """The checkpointer."""
        return self._checkpointer

    @override
    async def open(self) -> None:
        """Connect and set the database up now, rather than at the first use."""
        await self._store.open()
        await self._checkpointer.open()

    @override
    async def close(self) -> None:
        """Close both."""
        await self._store.close()
        await self._checkpointer.close()


class ConnectedBackend(
    _Connected[ConnectionT],
    PairedBackend[StoreT, CheckpointerT],
    Generic[ConnectionT, StoreT, CheckpointerT],
):
    """A store and a checkpointer over one connection; a subclass sets the attributes."""

    @override
    async def close(self) -> None:
        """Close the connection, unless it was passed in."""
        await super().close()
        if self._owned:
            await self._connection.close()


def store_of(backend: Backend[Any]) -> BaseStore | None:
    """Return the store of a backend, if the provider has one."""
    with suppress(ConfigurationError):
        return backend.store
    return None


def checkpointer_of(backend: Backend[Any]) -> BaseCheckpointer[Any] | None:
    """Return the checkpointer of a backend, if the provider has one."""
    with suppress(ConfigurationError):
        return backend.checkpointer
    return None


class ComposedBackend(Backend[Any]):
    """A separate store and checkpointer, for a provider without its own backend class.

    Args:
        provider: Its name in provider strings.
        store: The store, if there is one; the backend opens and closes it.
        checkpointer: The checkpointer, if there is one; the backend opens and closes it.
    """

    def __init__(
        self,
        provider: str,
        store: BaseStore | None = None,
        checkpointer: BaseCheckpointer | None = None,
    ) -> None:
        self.provider = provider
        self._store = store
        self._checkpointer = checkpointer

    @property
    def store(self) -> BaseStore:
        """The store."""
        return super().store if self._store is None else self._store

    @property
    def checkpointer(self) -> BaseCheckpointer:
        """The checkpointer."""
        return super().checkpointer if self._checkpointer is None else self._checkpointer

    @property
    def _parts(self) -> list[Resource]:
        return [each for each in (self._store, self._checkpointer) if each is not None]

    async def open(self) -> None:
        """Open both; if the second fails, the first is closed again."""
        async with AsyncExitStack() as stack:
            for part in self._parts:
                await part.open()
                stack.push_async_callback(part.close)
            stack.pop_all()

    async def close(self) -> None:
        """Close both, the second even if the first fails."""
        async with AsyncExitStack() as stack:
            for part in self._parts[::-1]:
                stack.push_async_callback(part.close)
