"""The tree of an agent: what is found goes into the prompt, and sessions are committed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.options import Keywords
from locus_memory.conversation.roles import runs_off_record
from locus_memory.conversation.tokens import as_token_counter
from locus_memory.errors import ConfigurationError, MemoryAccessDenied
from locus_memory.memory.extraction.thread import asked, query_of
from locus_memory.memory.inject import with_tail
from locus_memory.memory.options import check_number, check_one_of
from locus_memory.memory.providers.hooks import call_hook
from locus_memory.memory.reading.lines import Line, fitting
from locus_memory.messages import Message
from locus_memory.presets import is_preset
from locus_memory.registry import get_store
from locus_memory.resources.backends import registry
from locus_memory.resources.backends.base import MemoryBackend, MemoryStoreSpec
from locus_memory.resources.backends.handle import MemoryStoreHandle
from locus_memory.resources.reading.memories import FACTS
from locus_memory.resources.results import MemoryHit
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI, as_uri
from locus_memory.resources.verbs import MemoryVerbs
from locus_memory.state import AgentState
from locus_memory.store.item import check_limit

__all__ = ["ResourceHooks", "ResourceSettings"]

_SECONDS: Final = 30.0
_RECALL_SECONDS: Final = 5.0
_MEMORIES: Final = MemoryURI((FACTS,), is_folder=True)
_MOST_OVERVIEWS: Final = 2
_MOST_SESSIONS: Final = 256

_SessionName = tuple[str | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSettings:
    """How an agent uses its tree; an agent accepts them as `resource_settings=`.

    Attributes:
        inject: Whether to put the best entries for the user's message before the model: their
            abstracts, and the overviews of the best two.
        commit: `"run"`: commit the session after each run; `"close"`: when the agent is closed;
            `"never"`: leave it to the program.
        root: Only entries here and below are put before the model. Those of `memory://memories/`
            are not if the agent has a memory, which shows them, unless the root is among them.
        top_k: At most this many entries.
        min_score: Their lowest score, from 0 to 1.
        token_budget: The most tokens of their lines.

    Raises:
        ConfigurationError: A value is invalid.
        InvalidMemoryURI: The root is no URI.
    """

    inject: bool = True
    commit: Literal["never", "run", "close"] = "never"
    root: str = "memory://"
    top_k: int = 5
    min_score: float = 0.2
    token_budget: int = 1_000

    def __post_init__(self) -> None:
        check_one_of(("never", "run", "close"), commit=self.commit)
        as_uri(self.root)
        check_limit(self.top_k, "top_k")
        check_limit(self.token_budget, "token_budget")
        check_number(0, 1, min_score=self.min_score)


class ResourceHooks:
    """The tree of an agent in its runs; no failure ends a run.

    Args:
        resources: A tree, a handle, a spec, a backend, or the name of a backend or of a preset, or
            a provider string of a store.
        settings: How it is used.
        has_memory: Whether the agent has a memory of its own, or wants none: then the memories of
            the tree are not put before the model, unless the root of the settings is among them.

    Raises:
        ConfigurationError: One of them is something else, or no provider has such a string.
        MissingDriverError: The driver of the store is not installed.
    """

    def __init__(
        self, resources: object, settings: ResourceSettings | None, *, has_memory: bool
    ) -> None:
        self._resources = _checked(resources)
        self._settings = Keywords(self, {}).into(ResourceSettings, resource_settings=settings)
        is_asked = as_uri(self._settings.root).is_within(_MEMORIES)
        self._without = _MEMORIES if has_memory and not is_asked else None
        self._opened: MemoryVerbs | None = None
        self._opening = asyncio.Lock()
        self._used: dict[_SessionName, tuple[str, ...]] = {}
        self._sessions: OrderedDict[_SessionName, Sequence[Message]] = OrderedDict()

    async def recall(self, state: AgentState, thread_id: str) -> AgentState:
        """Return the state with what the tree has on the user's message."""
        if not self._settings.inject:
            return state
        work = partial(self._recalled, state, thread_id)
        found = await call_hook(
            "recall", work, seconds=_RECALL_SECONDS, event="agent.resources_failed"
        )
        if not found:
            return state
        messages = with_tail(state.messages, "".join(f"{line}\n" for line in found))
        return state.model_copy(update={"messages": messages})

    async def _recalled(self, state: AgentState, thread_id: str) -> list[str]:
        query, settings = query_of(asked(state.messages)) or "", self._settings
        user = state.metadata.get("user_id")
        tree = await self.bound(user)
        found = await tree.find(query, settings.root, settings.top_k, without=self._without)
        hits = [each for each in found.hits if each.score >= settings.min_score]
        if not runs_off_record(state):
            self._used[user, thread_id] = tuple(each.uri for each in hits)
        if len(self._used) > _MOST_SESSIONS:
            del self._used[next(iter(self._used))]
        return await self._lines(tree, hits)

    async def _lines(self, tree: MemoryVerbs, hits: Sequence[MemoryHit]) -> list[str]:
        """Return a line for each abstract, then for the best overviews, within the budget."""
        levels = ["abstract"] * len(hits) + ["overview"] * min(_MOST_OVERVIEWS, len(hits))
        wanted = [*hits, *hits[:_MOST_OVERVIEWS]]
        read = await asyncio.gather(
            *(
                tree.read(hit.uri, level)  # type: ignore[arg-type]
                for hit, level in zip(wanted, levels, strict=True)
            )
        )
        texts = [neutralise(str(each.data)) for each in read]
        shown = list(dict.fromkeys(texts[: len(hits)]))
        lines = [
            Line(kind="rule", text=f"- {each.uri} ({each.level}): {text}")
            for each, text in zip(read, texts, strict=True)
            # A short text is its own abstract.
            if text and (each.level == "abstract" or text not in shown)
        ]
        chosen, _ = fitting(lines, self._settings.token_budget, as_token_counter(None), None)
        return [line.text for line in chosen]

    async def end(self, state: AgentState, thread_id: str) -> None:
        """Commit the session of a run, or keep it until the agent is closed."""
        if self._settings.commit == "never" or runs_off_record(state):
            return
        name = (state.metadata.get("user_id"), thread_id)
        if self._settings.commit == "run":
            await self._commit(name, state.messages)
            return
        self._sessions[name] = state.messages
        self._sessions.move_to_end(name)
        if len(self._sessions) > _MOST_SESSIONS:
            await self._commit(*self._sessions.popitem(last=False))

    async def _commit(self, name: _SessionName, messages: Sequence[Message]) -> None:
        async def work() -> None:
            tree = await self.bound(name[0])
            await tree.commit(name[1], list(messages), self._used.pop(name, ()))

        await call_hook("commit", work, seconds=_SECONDS, event="agent.resources_failed")

    async def bound(self, user_id: str | None) -> MemoryVerbs:
        """Return the tree of a user.

        Raises:
            MemoryAccessDenied: The tree belongs to another user.
        """
        tree = await self._tree()
        owner: str | None = getattr(tree, "user_id", None)
        if user_id is None or owner == user_id:
            return tree
        if owner is not None:
            raise MemoryAccessDenied("the tree of the agent belongs to another user than the run")
        bound: MemoryVerbs = tree.for_user(user_id)  # type: ignore[attr-defined]
        return bound

    async def _tree(self) -> MemoryVerbs:
        """Return the tree, opened with the first use."""
        async with self._opening:
            if self._opened is None:
                self._opened = await _open(self._resources)
            return self._opened

    async def close(self) -> None:
        """Commit the sessions that wait, and let go of the tree; what was opened here is closed."""
        while self._sessions:
            await self._commit(*self._sessions.popitem(last=False))
        opened, self._opened = self._opened, None
        if isinstance(opened, MemoryStoreHandle):
            await opened.release()
        elif isinstance(opened, MemoryTree) and opened is not self._resources:
            await opened.close()


def _checked(resources: object) -> object:
    if isinstance(resources, str) and resources not in registry.list_names():
        # A run would only report an unknown preset, provider or option.
        get_store(resources)
    if isinstance(
        resources, str | MemoryTree | MemoryStoreHandle | MemoryStoreSpec | MemoryBackend
    ):
        return resources
    raise ConfigurationError(
        "resources= is a MemoryTree, a handle, a MemoryStoreSpec, a memory backend, or the name of"
        f" a backend or a preset or a provider string, not {type(resources).__name__}"
    )


async def _open(resources: Any) -> MemoryVerbs:
    """Return a tree that is open; a handle is acquired."""
    if isinstance(resources, MemoryTree):
        return resources
    if isinstance(resources, MemoryStoreHandle):
        return resources.acquire()
    if isinstance(resources, MemoryStoreSpec):
        backend = registry.get(resources.backend) if resources.backend else registry.current()
        return (await backend.open(resources)).acquire()
    if isinstance(resources, MemoryBackend):
        return (await resources.open()).acquire()
    if not is_preset(resources) and resources in registry.list_names():
        return (await registry.get(resources).open()).acquire()
    return MemoryTree(resources)
