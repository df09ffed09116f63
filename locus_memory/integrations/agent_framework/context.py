"""A memory manager as a context provider; public as `integrations.agent_framework`."""

# The framework is installed in an environment of its own.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

from agent_framework import AgentSession, ContextProvider, Message, SessionContext
from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.agent.hooks import MemoryHooks
from locus_memory.agent.managers import as_memory_manager, remember
from locus_memory.errors import ConfigurationError
from locus_memory.memory.inject import blocks_of
from locus_memory.messages import Message as Told
from locus_memory.messages import Role
from locus_memory.state import AgentState

__all__ = ["LocusContextProvider"]

_ROLES = frozenset(("user", "assistant"))


class LocusContextProvider(Resource, ContextProvider):
    """Shows an agent what a memory manager knows, and remembers each run.

    Place it behind the history provider, whose messages it then sees. A failure of the memory is an
    event, and the run goes on without it. `session.state["user_id"]` names the user of a session,
    and `session.state["remember"] = False` keeps a session off the record.

    Args:
        memory: A memory manager or a memory provider; a provider string, a store or a backend for a
            new manager. Only a manager that is made here is closed here.
        source_id: The name of the provider among those of an agent.
        user_id: The user of sessions that name none.
        **options: Options of a manager that is made here, such as `model`.

    Raises:
        ConfigurationError: It is none of these, or an invalid option.
    """

    def __init__(
        self,
        memory: object,
        source_id: str = "locus_memory",
        *,
        user_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source_id)
        manager, self._owned = as_memory_manager(memory, options=options)
        if manager is None:
            raise ConfigurationError("a memory is a manager or a provider string, not None")
        self.manager, self._user_id = manager, user_id
        self._hooks = MemoryHooks(manager)

    @override
    async def open(self) -> None:
        manager: Any = self.manager
        if hasattr(manager, "open"):
            await manager.open()

    @override
    async def close(self) -> None:
        """Complete the running extraction, and close a manager that was made here."""
        manager: Any = self.manager
        if self._owned:
            await manager.close()

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what is known to the instructions, and what fits the question before it."""
        del agent, state
        run = self._run(session, context)
        stable, tail = blocks_of((await self._hooks.recall(run, run.run_id)).messages)
        if stable:
            context.extend_instructions(self.source_id, stable)
        if tail:
            context.extend_messages(self, [Message("user", [tail])])

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Remember what was said."""
        del agent, state
        run = self._run(session, context)
        await remember(self.manager, run)
        await self._hooks.complete(run, run.run_id)
        await self._hooks.warm(run, run.run_id)

    def _run(self, session: AgentSession, context: SessionContext) -> AgentState:
        seen = context.get_messages(
            exclude_sources={self.source_id}, include_input=True, include_response=True
        )
        messages = [
            Told(role=Role(each.role), content=each.text, id=each.message_id)
            for each in seen
            if each.role in _ROLES and each.text
        ]
        named = {name: session.state.get(name) for name in ("user_id", "remember")}
        metadata = {name: each for name, each in named.items() if each is not None}
        if self._user_id is not None:
            metadata.setdefault("user_id", self._user_id)
        thread = session.session_id
        return AgentState(
            run_id=thread, messages=tuple(messages), metadata={**metadata, "thread_id": thread}
        )
