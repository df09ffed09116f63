"""The calls of stores and checkpointers, as operations of a database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sized
from typing import Any, Final

from typing_extensions import override

from locus_memory.checkpoint.inmemory import InMemoryDeltaStorage
from locus_memory.observability.conventions import (
    DB_BATCH_SIZE,
    DB_COLLECTION,
    DB_NAMESPACE,
    DB_OPERATION,
    DB_SYSTEM,
    DB_SYSTEMS,
    SERVER_ADDRESS,
    SERVER_PORT,
)
from locus_memory.observability.recording import Attributes, Describe
from locus_memory.store.wrappers.base import READS, WRITES

__all__ = ["CHECKPOINTER_VERBS", "STORE_VERBS", "Verb", "database_attributes"]

STORE_VERBS: Final = (*READS, *WRITES)
CHECKPOINTER_VERBS: Final = (
    *("save", "load", "list_checkpoints", "list_with_metadata", "get_metadata", "delete"),
    *("exists", "list_threads", "query_by_metadata", "copy_thread", "fork", "prune", "vacuum"),
    "get_storage_stats",
)

_BACKENDS: Final = "locus_memory.backends."
_SERVER: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:/,@\s]+):(?P<port>\d+)(?:/(?P<name>[^,]*))?")
_BATCHES: Final = frozenset(("put_batch", "get_batch", "delete_batch", "write_batch"))
_NO_ATTRIBUTES: Final[Attributes] = {}
_LEAST_BATCH: Final = 2


def database_attributes(kind: type[Any], place: str) -> Mapping[str, str | int]:
    """Return the attributes that name a database.

    Args:
        kind: The class of a store or of the storage of a checkpointer.
        place: Its `place`: a path, a name, or `host:port/name`; several hosts have no address.
    """
    found: dict[str, str | int] = {DB_SYSTEM: _system_of(kind)}
    server = _SERVER.fullmatch(place)
    if server is None:
        return {**found, DB_NAMESPACE: place} if place else found
    found[SERVER_ADDRESS], found[SERVER_PORT] = server["host"].strip("[]"), int(server["port"])
    if server["name"]:
        found[DB_NAMESPACE] = server["name"]
    return found


def _system_of(kind: type[Any]) -> str:
    """Return the value of `db.system.name`; for a class of another library, its name."""
    if issubclass(kind, InMemoryDeltaStorage):
        return DB_SYSTEMS["inmemory"]
    for each in kind.__mro__:
        if each.__module__.startswith(_BACKENDS):
            folder, is_inside, _ = each.__module__.removeprefix(_BACKENDS).partition(".")
            if is_inside:
                return DB_SYSTEMS.get(folder, folder)
    return kind.__qualname__


class Verb(Describe):
    """Describes the calls of one verb; a result may hold the user's data, and is not described.

    Args:
        name: The verb.
        collection: `items` or `checkpoints`.
    """

    def __init__(self, name: str, collection: str) -> None:
        self._name = f"{name} {collection}"
        self._operation = {DB_OPERATION: name, DB_COLLECTION: collection}
        self._is_batch = name in _BATCHES
        self._known: dict[tuple[type[Any], str], Attributes] = {}

    @override
    def begin(
        self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, Attributes, Attributes]:
        """Return the name of the span, and the attributes that name database and verb."""
        where: Any = getattr(owner, "storage", owner)
        place: str = getattr(where, "place", "")
        shared = self._known.get((type(where), place))
        if shared is None:
            shared = {**database_attributes(type(where), place), **self._operation}
            self._known[type(where), place] = shared
        return self._name, shared, _batch_of(args, kwargs) if self._is_batch else _NO_ATTRIBUTES


def _batch_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Attributes:
    given: object = args[0] if args else next(iter(kwargs.values()), None)
    if isinstance(given, Sized) and len(given) >= _LEAST_BATCH:
        return {DB_BATCH_SIZE: len(given)}
    return _NO_ATTRIBUTES
