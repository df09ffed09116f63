"""The tool `memory`: a model searches, remembers, forgets and reflects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from locus_memory._internal.quoting import quote
from locus_memory.agent.current import CURRENT_CALL
from locus_memory.agent.toolkit.scope import (
    AsOf,
    At,
    ValidFrom,
    ValidTo,
    Verbs,
    Writes,
    packed,
    row,
    verbs_of,
)
from locus_memory.errors import ConfigurationError, InvalidArgumentError, StoreCapabilityError
from locus_memory.memory.extraction.origin import Speakers, follows_tool
from locus_memory.memory.models import ORIGIN, Origin
from locus_memory.memory.providers.hooks import call_hook
from locus_memory.memory.validity import VALID_FROM, VALID_TO
from locus_memory.messages import Message
from locus_memory.tools import Tool, tool

__all__ = ["ACTIONS", "memory_tool"]

Action = Literal["search", "remember", "forget", "reflect"]

ACTIONS: Final = ("search", "remember", "forget")
"""The actions of a memory tool by default."""

_ALL: Final = (*ACTIONS, "reflect")
_NAME: Final = "memory"
_REMEMBERED, _FORGOT = "remembered as ", "forgot "
_DESCRIPTION: Final = {
    "search": "search finds what is remembered about the query",
    "remember": "remember keeps one fact, a full sentence, beyond this conversation",
    "forget": "forget drops the memory with the memory_id that a search returned",
    "reflect": "reflect answers the query from many memories",
}


def memory_tool(
    manager: object,
    *,
    user_id: str | None = None,
    actions: Sequence[Action] = ACTIONS,
    confirm_forget: bool = False,
) -> Tool:
    """Return a tool with which a model reads and writes the memories of one user.

    The user is bound here: no argument of a call names one. A write has the same checks as an
    extracted memory: its length, secrets, duplicates, and a record of the call. A run writes at
    most 20 times. `forget` retires a memory, and `undo` brings it back; only a person erases. Each
    write calls `on_memory_write(action, target, content)` of the manager.

    An answer of a search has at most 10 memories and 800 tokens. A refused call is a text for the
    model and never an exception.

    Args:
        manager: An `LLMMemoryManager`, or a memory provider with `search`, `remember`, `forget` and
            `reflect`.
        user_id: The user; `None`: the scope of the manager itself.
        actions: What the model may do, of `search`, `remember`, `forget` and `reflect`.
        confirm_forget: Whether a memory is only forgotten by a second call with `confirmed`, which
            the model is told to make after the user agreed.

    Raises:
        ConfigurationError: Unknown actions or none, or an object that is no manager.
        InvalidArgumentError: The user id is invalid.
    """
    given: object = actions
    allowed = tuple(dict.fromkeys(actions)) if isinstance(given, Iterable) else ()
    if not allowed or not set(allowed) <= set(_ALL):
        raise ConfigurationError(f"actions are of {', '.join(_ALL)}, not {quote(actions)}")
    verbs = verbs_of(manager, user_id)
    made = _MemoryTool(verbs, allowed, confirms=confirm_forget)
    return made.as_tool()


class _MemoryTool:
    """The calls of one tool.

    Args:
        verbs: The bound verbs, and the bound manager for its hook.
        actions: The allowed actions.
        confirms: Whether `forget` needs a second call.
    """

    def __init__(self, verbs: Verbs, actions: tuple[str, ...], *, confirms: bool) -> None:
        self._verbs = verbs
        self._actions = actions
        self._confirms = confirms
        self._writes = Writes()

    def as_tool(self) -> Tool:
        """Return the tool, with a signature that has no more than the allowed actions need."""

        async def memory(
            action: str,
            query: str | None = None,
            content: str | None = None,
            memory_id: str | None = None,
            *,
            as_of: AsOf = None,
            at: At = None,
            valid_from: ValidFrom = None,
            valid_to: ValidTo = None,
            confirmed: bool = False,
        ) -> object:
            if action not in self._actions:
                return f"refused: action is of {', '.join(self._actions)}, not {quote(action)}"
            validity = {VALID_FROM: valid_from, VALID_TO: valid_to}
            named = validity if action == "remember" else {"as_of": as_of, "at": at}
            given = {name: each for name, each in named.items() if each}
            if given and not self._verbs.takes_moments:
                return f"refused: this memory knows no {next(iter(given))}"
            return await self._call(action, query, content, memory_id, given, confirmed=confirmed)

        memory.__annotations__["action"] = Literal[self._actions]
        described = "; ".join(_DESCRIPTION[each] for each in self._actions)
        text = f"Long-term memory of this user: {described}."
        if self._confirms and "forget" in self._actions:
            text += " Ask the user before forget, then call it with confirmed=true."
        return tool(name=_NAME, description=text)(memory)

    async def _call(
        self,
        action: str,
        query: str | None,
        content: str | None,
        memory_id: str | None,
        moments: Mapping[str, str],
        *,
        confirmed: bool,
    ) -> object:
        needed = {"search": query, "reflect": query, "remember": content, "forget": memory_id}
        given: object = needed[action]
        if not isinstance(given, str) or not given.strip():
            name = {"remember": "content", "forget": "memory_id"}.get(action, "query")
            return f"refused: {action} needs {name}"
        try:
            if action == "search":
                found = await self._verbs.search(given, **moments)
                return packed(map(row, found), self._verbs.token_counter)
            if action == "reflect":
                return await self._verbs.reflect(given, **moments) or "no memories tell about that"
            if action == "remember":
                return await self._remember(given, moments)
            return await self._forget(given.strip(), confirmed=confirmed)
        except (InvalidArgumentError, StoreCapabilityError) as error:
            return f"refused: {error}"

    async def _remember(self, content: str, validity: Mapping[str, str]) -> str:
        refused = self._writes.allow()
        if refused is not None:
            return refused
        memory_id = await self._verbs.remember(content, _provenance(content), **validity)
        await self._told("remember", memory_id, content)
        return f"{_REMEMBERED}{memory_id}"

    async def _forget(self, memory_id: str, *, confirmed: bool) -> str:
        if self._confirms and not confirmed:
            return "not forgotten yet: ask the user, then call again with confirmed=true"
        refused = self._writes.allow()
        if refused is not None:
            return refused
        if not await self._verbs.forget(memory_id, _provenance("")):
            return f"there is no memory {quote(memory_id)}"
        await self._told("forget", memory_id, "")
        return f"{_FORGOT}{memory_id}"

    async def _told(self, action: str, target: str, content: str) -> None:
        """Call the manager's hook; a failure is an event."""
        hook: Callable[..., Any] | None = getattr(self._verbs.owner, "on_memory_write", None)
        if hook is not None:
            await call_hook("on_memory_write", lambda: hook(action, target, content))


def _provenance(content: str) -> dict[str, Any]:
    """Return the source of a call, for the metadata of its memory."""
    call = CURRENT_CALL.get()
    if call is None:
        return {ORIGIN: Origin.ASSISTANT.value}
    # What this tool answered to a write is no foreign text.
    said = [each for each in call.messages if not _is_receipt(each)]
    is_own = not call.has_documents and not follows_tool([m.role for m in said], len(said))
    told = Speakers(said).origin((), content) if is_own else Origin.TOOL
    return {
        "thread_id": call.thread_id,
        **({} if call.message_id is None else {"message_ids": [call.message_id]}),
        ORIGIN: (Origin.ASSISTANT if told is Origin.USER else told).value,
    }


def _is_receipt(message: Message) -> bool:
    """Return whether a message is what the memory tool answered to a write."""
    return message.name == _NAME and str(message.content).startswith((_REMEMBERED, _FORGOT))
