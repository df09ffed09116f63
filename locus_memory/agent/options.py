"""The options of an agent: one frozen value, or each by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from locus_memory._internal.options import check_fields
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.store.item import check_limit

if TYPE_CHECKING:
    from locus_memory.agent.hooks import Invocation
    from locus_memory.agent.resources import ResourceSettings
    from locus_memory.documents.context import ContextConfig
    from locus_memory.documents.fusion import Retriever
    from locus_memory.resources.backends.base import MemoryBackend, MemoryStoreSpec
    from locus_memory.resources.backends.handle import MemoryStoreHandle
    from locus_memory.resources.tree import MemoryTree

__all__ = ["AgentKeywords", "AgentOptions", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of an agent beside its model, its tools and its managers.

    Attributes:
        max_iterations: How often a run may call the model before it stops.
        agent_id: Saved with the thread, if there are several agents.
        inherit_user: Whether a run without a user, on a thread that belongs to a user, acts as
            that user and reads their memories. By default such a run is refused.
        end_on_error: Whether `on_session_end` is also called for a run that fails or is cancelled.
            By default its messages are extracted with the next run of the thread. A run that
            loses its thread to another one (`CheckpointConflictError`) never has an end.
        before_invocation: Functions of an `Invocation`, sync or async, called before the memories
            of a run are recalled.
        after_invocation: Functions of an `Invocation`, called when a run is over, has failed or
            is cancelled. A failure of these functions is the event `agent.hook_failed`; each may
            take 30 seconds.
        resources: A tree of `memory://` resources: a `MemoryTree`, a handle, a `MemoryStoreSpec`, a
            memory backend, or the name of a backend or a preset, or the provider string of a
            store. A run with a user has that user's tree.
        memory: `resources` by another name; not both. It becomes `resources`.
        resource_settings: Whether entries that match are shown to the model, and when sessions are
            committed.
        documents: An index, or a provider string of one for `get_documents`: what it has on the
            user's message is put before the model in each run, and never saved. An index of another
            system may be blocking, see `inject_context`. If it fails, the run continues, and the
            event is `agent.documents_failed`.
        document_context: How much of the documents the model sees; `"openjarvis"`: as there.

    Raises:
        ConfigurationError: An option has another type, or the tree is given twice.
        InvalidArgumentError: `max_iterations` is not an integer of at least 1.
    """

    max_iterations: int = 20
    agent_id: str | None = None
    inherit_user: bool = False
    end_on_error: bool = False
    before_invocation: Iterable[Callable[[Invocation], Any]] = ()
    after_invocation: Iterable[Callable[[Invocation], Any]] = ()
    resources: str | MemoryTree | MemoryStoreHandle | MemoryStoreSpec | MemoryBackend | None = None
    memory: str | MemoryTree | MemoryStoreHandle | MemoryStoreSpec | MemoryBackend | None = None
    resource_settings: ResourceSettings | None = None
    documents: Retriever | str | None = None
    document_context: ContextConfig | Literal["openjarvis"] | None = None

    def __post_init__(self) -> None:
        if check_limit(self.max_iterations, "max_iterations") < 1:
            raise InvalidArgumentError(f"max_iterations is at least 1, not {self.max_iterations}")
        check_fields(self)
        if self.memory is not None:
            if self.resources is not None:
                raise ConfigurationError("the tree is given twice: as memory= and as resources=")
            object.__setattr__(self, "resources", self.memory)
            # Given once: `dataclasses.replace` passes every field.
            object.__setattr__(self, "memory", None)


class AgentKeywords(TypedDict, total=False):
    """The fields of `AgentOptions` by name."""

    max_iterations: int
    agent_id: str | None
    inherit_user: bool
    end_on_error: bool
    before_invocation: Iterable[Callable[[Invocation], Any]]
    after_invocation: Iterable[Callable[[Invocation], Any]]
    resources: str | MemoryTree | MemoryStoreHandle | MemoryStoreSpec | MemoryBackend | None
    memory: str | MemoryTree | MemoryStoreHandle | MemoryStoreSpec | MemoryBackend | None
    resource_settings: ResourceSettings | None
    documents: Retriever | str | None
    document_context: ContextConfig | Literal["openjarvis"] | None


_OLD: Final = {"memory_placement": "placement", "on_memory_error": "on_error"}


def read_settings(settings: MemorySettings, given: dict[str, Any]) -> MemorySettings:
    """Return the settings of the memory with those that were options of the agent.

    Args:
        settings: The settings.
        given: The keywords of the agent. The names of earlier versions are taken out of them, with
            a `DeprecationWarning`.

    Raises:
        ConfigurationError: One of them is invalid, or differs from a setting.
    """
    old = {new: given.pop(name) for name, new in _OLD.items() if name in given}
    if old:
        what = "memory_placement and on_memory_error are now MemorySettings(placement=, on_error=)"
        warnings.warn(what, DeprecationWarning, stacklevel=3)
    for name, value in old.items():
        if getattr(settings, name) not in (value, getattr(MemorySettings(), name)):
            raise ConfigurationError(
                f"{name} is given twice: in memory_settings and by an old name"
            )
    return replace(settings, **old)
