"""The interface of memory backends: what one can do, how it is opened, and what it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from locus_memory.errors import ConfigurationError, UnsupportedMemoryOp
from locus_memory.resources.operations import (
    MemoryOp,
)
from locus_memory.resources.results import (
    MemoryExecutionFailure,
    MemoryResult,
)

if TYPE_CHECKING:
    from locus_memory.resources.backends.handle import MemoryStoreHandle
    from locus_memory.resources.verbs import MemoryVerbs

__all__ = ["MemoryBackend", "MemoryCapabilities", "MemoryStoreSpec", "ScopeModel"]


class ScopeModel(StrEnum):
    """Whom an open store of a backend belongs to, at the finest."""

    GLOBAL = "global"
    NAMESPACE = "namespace"
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class MemoryCapabilities:
    """What a memory backend can do; a test proves that what is claimed works.

    Attributes:
        scope_model: Whom an open store belongs to.
        supports_write: `MemoryOpWrite`.
        supports_read: `MemoryOpRead`.
        supports_list: `MemoryOpList`.
        supports_tree: `MemoryOpTree`.
        supports_vector_search: `MemoryOpFind` finds by meaning, given an embedder.
        supports_intent_search: A session steers `MemoryOpSearch`.
        supports_resource_ingest: `MemoryOpResource`.
        supports_session_commit: `MemoryOpCommit`.
        supports_l0_l1_l2: Entries have an abstract and an overview.
    """

    scope_model: ScopeModel = ScopeModel.GLOBAL
    supports_write: bool = False
    supports_read: bool = False
    supports_list: bool = False
    supports_tree: bool = False
    supports_vector_search: bool = False
    supports_intent_search: bool = False
    supports_resource_ingest: bool = False
    supports_session_commit: bool = False
    supports_l0_l1_l2: bool = False


@dataclass(frozen=True, slots=True)
class MemoryStoreSpec:
    """Which store of a backend to open.

    A backend may ignore what does not apply, but never the user: if it cannot keep users apart,
    opening fails.

    Attributes:
        namespace: The name of the tree, or several labels.
        account_id: The account, if a backend has accounts.
        user_id: The user.
        agent_id: The agent.
        options: Options of the backend, such as `store` for `local`.
        backend: The backend, if a preset named one.
    """

    namespace: str | tuple[str, ...] | None = None
    account_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    options: Mapping[str, Any] | None = field(default=None, repr=False)
    backend: str | None = None

    @classmethod
    def from_config(
        cls,
        name: str | None = None,
        *,
        store: Mapping[str, Any] | str | Path | None = None,
        **overrides: Any,
    ) -> Self:
        """Return a spec of the configuration.

        It is the table `memory.providers.<name>` of `pyproject.toml` (below `tool.locus_memory`),
        or of the configuration file of the user; see `locus_memory.presets`.

        Args:
            name: Its name; `None`: that of `memory.default_provider`.
            store: The configuration: a mapping or the path of a file; `None`: the files.
            **overrides: Fields of the spec in place of those of the table.

        Raises:
            KeyError: There is no such name, or no default.
            ConfigurationError: The table has a field that a spec has not, or a literal secret.
        """
        # Nothing is read before this call.
        from locus_memory.presets import memory_table  # noqa: PLC0415

        table = {**memory_table(name, store), **overrides}
        unknown = table.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise ConfigurationError(
                f"a memory store has no {', '.join(sorted(unknown))}: put options of the backend"
                " into its table 'options'"
            )
        if isinstance(table.get("namespace"), list):
            table["namespace"] = tuple(table["namespace"])
        return cls(**table)


class MemoryBackend(ABC):
    """A kind of store of `memory://` resources, such as `local`.

    A backend keeps its own scheme to itself: users see only `memory://`.

    Attributes:
        name: The name, as the registry lists it.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def is_available(cls) -> bool:
        """Whether it can be used here; takes microseconds, and asks no network and no process."""

    @classmethod
    @abstractmethod
    def capabilities(cls) -> MemoryCapabilities:
        """Return what it can do."""

    @classmethod
    @abstractmethod
    def supported_ops(cls) -> frozenset[type[MemoryOp]]:
        """Return the classes of the operations that it takes."""

    @abstractmethod
    def store_count(self) -> int:
        """Return how many of its stores are open."""

    @abstractmethod
    async def open(self, spec: MemoryStoreSpec | None = None) -> MemoryStoreHandle:
        """Open a store, and return a handle that nobody has acquired yet.

        Raises:
            UnsupportedMemoryOp: It cannot keep users apart, and the spec names one.
            ConfigurationError: An option is invalid.
        """

    @abstractmethod
    async def close(self, handle: MemoryStoreHandle) -> None:
        """Close a store; called by the last release. Calling it again is harmless."""

    def for_user(self, handle: MemoryStoreHandle, user_id: str) -> MemoryVerbs:
        """Return the part of an open store of no user that is a user's.

        Raises:
            UnsupportedMemoryOp: It cannot keep users apart in one store.
        """
        del user_id
        reason = "it cannot keep users apart in one store: open one for each user"
        raise UnsupportedMemoryOp("for_user", handle.backend_name, reason)

    async def discard(self, resource: object) -> None:
        """Close what the handle of an open store stood for, after the handle was collected.

        Args:
            resource: What the backend gave to the handle.
        """
        close = getattr(resource, "close", None)
        if close is not None:
            await close()

    @abstractmethod
    async def dispatch(
        self, handle: MemoryStoreHandle, op: MemoryOp
    ) -> MemoryResult | MemoryExecutionFailure:
        """Return the result of an operation, or its failure.

        Raises:
            UnsupportedMemoryOp: It does not take such operations.
            MemoryStoreClosed: The store is closed.
        """
