"""The data that the functions ask: a backend, and the memory manager over it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.documents.index import DocumentIndex
from locus_memory.inspection.memories import open_manager
from locus_memory.inspection.sources import Sources
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace
from locus_memory.web.questions.journal import Journal
from locus_memory.web.settings import Settings

__all__ = ["Data"]


@dataclass
class Data:
    """A backend with the memory manager and the document index over it.

    Attributes:
        backend: The backend; its states are plain dicts. The caller opens and closes it.
        settings: The settings of the application.
        embedder: Searches by meaning as well; `None`: by words alone.
        journal: The events of this process.
    """

    backend: Backend
    settings: Settings
    embedder: Embedder | None = None
    journal: Journal = field(default_factory=Journal)

    @property
    def store(self) -> BaseStore:
        """The store.

        Raises:
            ConfigurationError: The provider has no store.
        """
        return self.backend.store

    @property
    def checkpointer(self) -> BaseCheckpointer:
        """The checkpointer.

        Raises:
            ConfigurationError: The provider has no checkpointer.
        """
        return self.backend.checkpointer

    @property
    def parts(self) -> tuple[BaseStore | None, BaseCheckpointer | None]:
        """The store and the checkpointer, each if the provider has one."""
        return store_of(self.backend), checkpointer_of(self.backend)

    @property
    def sources(self) -> Sources:
        """What finds the messages that memories came from; for one request."""
        return Sources(self.backend)

    @cached_property
    def manager(self) -> LLMMemoryManager:
        """The manager of the memories; it reads, edits and undoes, and works on no queue."""
        return open_manager(self.store, self.settings.namespace, extract_mode="manual")

    @cached_property
    def ingesting(self) -> LLMMemoryManager:
        """The manager that ingests conversations; only a write may ask for it."""
        return open_manager(self.store, self.settings.namespace)

    @cached_property
    def documents(self) -> DocumentIndex:
        """The index of the documents."""
        return DocumentIndex(
            self.store,
            namespace=self.settings.documents,
            kind="text" if self.embedder is None else "hybrid",
            embedder=self.embedder,
        )

    def scoped(self, user: str | None) -> LLMMemoryManager:
        """Return the manager of a user's memories, or of those without a user.

        Raises:
            InvalidNamespaceError: The user has no valid name.
        """
        return self.manager if user is None else self.manager.for_user(user)

    def scope(self, user: str | None) -> Scope:
        """Return the namespaces of a user's memories."""
        return Scope(self.scoped(user).namespace)

    def under(self, namespace: Namespace) -> Data:
        """Return the data of the memories in another namespace; nothing of it must be closed.

        Raises:
            InvalidNamespaceError: It is not valid.
        """
        return replace(self, settings=replace(self.settings, namespace=namespace))

    async def close(self) -> None:
        """Stop the work of ingestion; the backend stays open."""
        if "ingesting" in self.__dict__:
            await self.ingesting.close()
