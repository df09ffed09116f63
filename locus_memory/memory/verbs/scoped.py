"""A manager with its parts, bound to a scope: what all verbs work on."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, Self, Unpack, cast

from typing_extensions import override

from locus_memory._internal.notebook import table
from locus_memory._internal.options import Keywords
from locus_memory._internal.running.schedule import Schedule
from locus_memory.backends.base import Backend
from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.base import BaseMemoryManager
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import Extractor
from locus_memory.memory.options import (
    ManagerKeywords,
    MemoryOptions,
    check_callable,
    check_embedder,
    check_whole,
    read_options,
)
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.reading.reader import Reader
from locus_memory.memory.reading.uses import Afterwards
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import NamespaceResolver, Scope, namespace_of, user_namespace
from locus_memory.memory.tending.passes import Pass
from locus_memory.registry import as_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["ScopedManager"]

_PREFIX: Final = ("locus_memory",)
_HOURS: Final = 24.0
"""The hours between two consolidations of a scope."""

_COUNTED: Final = 4_096
"""The number of lines whose tokens are remembered."""


class ScopedManager(BaseMemoryManager):
    """The part of a memory manager that makes the others, and binds them to a scope.

    For the arguments, see `LLMMemoryManager`.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        extract_fn: Extractor | Callable[..., Any] | str | None = None,
        namespace_prefix: Namespace | NamespaceResolver = _PREFIX,
        max_memories: int = 50,
        embedder: Embedder | None = None,
        retrieve_limit: int = 20,
        options: MemoryOptions | None = None,
        clock: Callable[[], float] = time.time,
        **keywords: Unpack[ManagerKeywords],
    ) -> None:
        named = Keywords(self, read_options(keywords))
        self.retrieve_limit = named.rest.pop("retrieve_limit", retrieve_limit)
        resolver = named.rest.pop("namespace_prefix", None)
        history_limit = named.rest.pop("history_limit", 20)
        if callable(namespace_prefix):
            if resolver is not None:
                raise ConfigurationError("namespace_resolver is now namespace_prefix: name one")
            namespace_prefix, resolver = _PREFIX, namespace_prefix
        self._options = options = named.all_into(MemoryOptions, options=options)
        check_callable(clock=clock)
        if resolver is not None:
            check_callable(namespace_prefix=resolver)
        check_embedder(embedder)
        check_whole(0, history_limit=history_limit, retrieve_limit=self.retrieve_limit)
        check_whole(1, max_memories=max_memories)
        self.token_budget = options.memory_budget_tokens
        self.token_counter = as_token_counter(options.token_counter)
        # The same lines are shown again and again.
        self._count = lru_cache(_COUNTED)(options.token_counter or expected_tokens)
        self.namespace_prefix = check_namespace(namespace_prefix)
        self._resolver: NamespaceResolver | None = resolver
        self._scope, self._bound = Scope(namespace_prefix), False
        self._store, self._owned = as_store(store)
        self._listed_of_type = max_memories
        self._ledger = Ledger(self._store, history_limit, clock=clock, embedder=embedder)
        if isinstance(embedder, Embedder):
            from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder  # noqa: PLC0415 - most have none

            # A turn searches several layers for one message, which is embedded once.
            embedder = CachingEmbedder(embedder, max_size=64)
        recall = Recall(self._store, embedder, clock=clock)
        extractor = as_extractor(extract_fn)
        self._made: object = None if extractor is extract_fn else extractor
        self._model = _model_of(extractor)
        asked: ChatModel | None = getattr(extractor, "model", None)
        if options.gate == "model" and asked is None:
            raise ConfigurationError(
                "gate='model' asks the model of the extractor: pass extract_fn=LLMExtractor(model)"
            )
        self.recall_timeout = options.recall_timeout
        phrases = extractor if isinstance(extractor, HeuristicExtractor) else None
        self._queue = ExtractionQueue(self._store, self._scope, self._ledger.now, options, phrases)
        parts = (extractor, self._ledger, recall, options)
        self._extraction = Extraction(*parts, holds=self._queue.holds)
        self._worker = Worker(self._queue, self._extraction, options, clock)
        self._reader = Reader(
            recall=recall,
            options=options,
            afterwards=Afterwards(self._store, self._ledger.now),
            unread=self._queue.unread if self._extraction.is_by_model else None,
            count=self._count,
            now=self._ledger.now,
            model=asked if options.gate == "model" else None,
        )
        self._pass = partial(
            Pass, store=self._store, ledger=self._ledger, options=options, clock=clock
        )
        self._schedule = Schedule(
            self._run_due,
            clock,
            _HOURS,
            failed=lambda error: emit("memory.consolidate_failed", error=error),
        )

    @abstractmethod
    async def _run_due(self) -> None:
        """Consolidate what is due."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, namespace={self.namespace!r})"

    def _repr_html_(self) -> str:
        rows = ("store", repr(self._store)), ("namespace", self.namespace)
        return table(rows)

    @property
    def namespace(self) -> Namespace:
        """Where the memories are that the methods work on."""
        return self._scope.namespace

    @property
    def store(self) -> BaseStore:
        """The store of the memories."""
        return self._store

    def scoped(self, namespace: Namespace) -> Self:
        """Return this manager bound to another namespace, whatever a run's state says.

        It shares the store and the work in the background; closing it does nothing.

        Raises:
            InvalidNamespaceError: It is no namespace.
        """
        view = copy.copy(self)
        view._scope, view._bound = Scope(namespace), True  # noqa: SLF001 - it is one of us
        return view

    def for_user(self, user_id: str) -> Self:
        """Return this manager bound to a user's memories; as `scoped`."""
        return self.scoped(user_namespace(self.namespace_prefix, user_id))

    @override
    async def for_run(self, state: Any) -> Self | None:
        """Return this manager bound to the scope of a run; `None`: the run has no memory."""
        if self._bound:
            return self
        try:
            namespace = await namespace_of(state, self.namespace_prefix, self._resolver)
            return None if namespace is None else self.scoped(namespace)
        except Exception as error:  # noqa: BLE001 - reported; a run of nobody sees nothing
            emit("memory.scope_failed", error=error)
            return None


def _model_of(extractor: object) -> ChatModel | None:
    """Return the model of an extractor that calls one; `None` if it has no use for instructions."""
    model: Any = getattr(extractor, "model", None)
    if not callable(model) or not getattr(model, "follows_instructions", True):
        return None
    return cast("ChatModel", model)
