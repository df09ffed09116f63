"""The built-in memory backend: a tree over any store of this library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from locus_memory._internal.providers.construction import unknown_option
from locus_memory.backends.folders import PRIVATE_FOLDER
from locus_memory.errors import ConfigurationError, MemoryStoreClosed
from locus_memory.registry import get_store, resolve_address
from locus_memory.resources.backends.base import (
    MemoryBackend,
    MemoryCapabilities,
    MemoryStoreSpec,
    ScopeModel,
)
from locus_memory.resources.backends.handle import MemoryStoreHandle
from locus_memory.resources.backends.registry import register
from locus_memory.resources.operations import (
    MemoryOp,
    MemoryOpCommit,
    MemoryOpDelete,
    MemoryOpFind,
    MemoryOpHistory,
    MemoryOpList,
    MemoryOpMove,
    MemoryOpRead,
    MemoryOpResource,
    MemoryOpSearch,
    MemoryOpTree,
    MemoryOpWrite,
)
from locus_memory.resources.results import (
    MemoryExecutionFailure,
    MemoryResult,
)
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.verbs import MemoryVerbs
from locus_memory.store.base import BaseStore

__all__ = ["DEFAULT_STORE", "LocalMemoryBackend"]

DEFAULT_STORE: Final = "sqlite:./.locus/memory.db"
"""The store that `local` opens if the spec names none."""

_OPTIONS: Final = ("store", "embedder", "model", "memory_manager", "clock")
_PREFIX: Final = ("memory",)
_OPS: Final[frozenset[type[MemoryOp]]] = frozenset(
    {
        MemoryOpWrite,
        MemoryOpRead,
        MemoryOpList,
        MemoryOpTree,
        MemoryOpFind,
        MemoryOpSearch,
        MemoryOpResource,
        MemoryOpCommit,
        MemoryOpDelete,
        MemoryOpMove,
        MemoryOpHistory,
    }
)


@register("local")
class LocalMemoryBackend(MemoryBackend):
    """Trees over the stores of this library.

    Options of a spec: `store` (a provider string or a store, `sqlite:./.locus/memory.db` by
    default), `embedder` (its name or an object), `model`, `memory_manager` and `clock`, as
    `MemoryTree` takes them, and any option of the store of a string.
    """

    def __init__(self) -> None:
        self._open: dict[int, MemoryTree] = {}

    @classmethod
    @override
    def is_available(cls) -> bool:
        return True

    @classmethod
    @override
    def capabilities(cls) -> MemoryCapabilities:
        return MemoryCapabilities(
            scope_model=ScopeModel.AGENT,
            supports_write=True,
            supports_read=True,
            supports_list=True,
            supports_tree=True,
            supports_vector_search=True,
            supports_intent_search=True,
            supports_resource_ingest=True,
            supports_session_commit=True,
            supports_l0_l1_l2=True,
        )

    @classmethod
    @override
    def supported_ops(cls) -> frozenset[type[MemoryOp]]:
        return _OPS

    @override
    def store_count(self) -> int:
        return len(self._open)

    @override
    async def open(self, spec: MemoryStoreSpec | None = None) -> MemoryStoreHandle:
        """Open a tree; namespace, account and agent become its prefix.

        Raises:
            UnknownOptionError: Neither the tree nor the store of a string has such an option.
            ConfigurationError: An option is invalid.
            BackendError: The store cannot be opened.
        """
        spec = spec or MemoryStoreSpec()
        options = dict(spec.options or {})
        own = {name: options.pop(name) for name in _OPTIONS if name in options}
        store, is_owned = _store(own.pop("store", DEFAULT_STORE), options)
        if own.get("embedder") is not None:
            # Loaded only for those who want one.
            from locus_memory.retrieval.embedders.registry import as_embedder  # noqa: PLC0415

            own["embedder"] = as_embedder(own["embedder"])
        tree = MemoryTree(store, prefix=_prefix(spec), user_id=spec.user_id, **own)
        tree.takes_store(is_owned=is_owned)
        try:
            await tree.open()
        except BaseException:
            await tree.close()
            raise
        self._open[id(tree)] = tree
        name = f"local memory store {'/'.join(_prefix(spec))}"
        return MemoryStoreHandle(self, tree, name, spec.user_id)

    @override
    def for_user(self, handle: MemoryStoreHandle, user_id: str) -> MemoryVerbs:
        if handle.user_id == user_id:
            return handle
        tree = self._open.get(id(handle.resource))
        if tree is None or handle.user_id is not None:
            return super().for_user(handle, user_id)
        return tree.for_user(user_id)

    @override
    async def close(self, handle: MemoryStoreHandle) -> None:
        await self.discard(handle.resource)

    @override
    async def discard(self, resource: object) -> None:
        tree = self._open.pop(id(resource), None)
        if tree is not None:
            await tree.close()

    @override
    async def dispatch(
        self, handle: MemoryStoreHandle, op: MemoryOp
    ) -> MemoryResult | MemoryExecutionFailure:
        tree = self._open.get(id(handle.resource))
        if tree is None:
            raise MemoryStoreClosed(handle.name)
        return await tree.dispatch(op)


def _store(where: object, options: Mapping[str, Any]) -> tuple[BaseStore, bool]:
    """Return the store of an option, and whether it is opened here."""
    if isinstance(where, str):
        address, provider = resolve_address(where)
        if provider.is_path and address.hint not in (None, ":memory:"):
            Path(str(address.hint)).parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        return get_store(where, **options), True
    for option in options:
        raise unknown_option("local", option, _OPTIONS)
    if isinstance(where, BaseStore):
        return where, False
    found = getattr(where, "store", None)
    if not isinstance(found, BaseStore):
        raise ConfigurationError(
            f"the option store is a provider string or a store, not {type(where).__name__}"
        )
    return found, False


def _prefix(spec: MemoryStoreSpec) -> tuple[str, ...]:
    given = spec.namespace
    prefix = _PREFIX if given is None else (given,) if isinstance(given, str) else given
    # A label before each of them keeps an account and an agent of the same name apart.
    for label, name in (("account", spec.account_id), ("agent", spec.agent_id)):
        if name is not None:
            prefix = (*prefix, label, name)
    return prefix
