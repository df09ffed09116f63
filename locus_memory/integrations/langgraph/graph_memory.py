"""`GraphMemory`: a memory manager in a graph, as a step before the model and one after the turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from langchain_core.messages import BaseMessage, SystemMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.runtime import get_runtime
from typing_extensions import override

from locus_memory._internal.bridge import shared_bridge
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.agent.hooks import MemoryHooks
from locus_memory.agent.managers import SessionHooks, as_memory_manager, remember
from locus_memory.backends.base import Backend
from locus_memory.conversation.roles import REMEMBER, is_memory_block, is_off_record
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.integrations.langgraph.opening import Opened
from locus_memory.memory.extraction.thread import OTHERS
from locus_memory.memory.forms import run_state, write_messages
from locus_memory.memory.inject import blocks_of, inject
from locus_memory.memory.scope import thread_of
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore

__all__ = ["GraphMemory"]

_NAMED: Final = ("user_id", "thread_id", "agent_id", REMEMBER)
_TURNS: Final = 1024
"""For how many turns that are under way the blocks are kept."""
_LOOKED_AT: Final = 25
"""In how many of a thread's newest checkpoints a user is looked for."""
_SAVER: Final = "__pregel_checkpointer"
"""Where LangGraph keeps the checkpointer of a run in its config."""


class GraphMemory(Opened):
    """A memory manager in a graph of LangGraph.

    ```python
    memory = GraphMemory("sqlite:./agent.db")
    chain = memory.recall | model  # from the state to the answer
    builder.add_node("remember", memory.remember)
    ```

    A run has the memories of the `user_id` in the `configurable` of its config, or else in its
    context or its state. Its thread is the `thread_id` of the config; a graph inside of another has
    a thread of its own. `remember=False` at one of these places keeps the run off the record, and
    `additional_kwargs={"remember": False}` one message. A run without a user on a thread of a user,
    such as one from the config of a snapshot, is off the record: nobody knows whose words it has.

    A failure of the memory is an event, and the run goes on without it. As with `LocusSaver`, both
    steps work in `invoke` and in `ainvoke`, but not in `invoke` inside of a running event loop.

    Args:
        memory: A memory manager or a memory provider; a provider string, a store or a backend for a
            new manager. Only a manager that is made here is closed here.
        **options: Options of a manager that is made here, such as `extract_fn`.

    Attributes:
        manager: The memory manager.
        recall: From the state of a graph, or a list of messages, to the messages for the model. The
            part that stays as it is stands at the end of the system prompt, and the part for the
            message of the user in front of it. The graph keeps neither. All calls of the model in a
            turn get the same.
        remember: A node for the end of a turn. It queues what is new in the thread, and changes
            nothing in the state.

    Raises:
        ConfigurationError: It is none of these, or an invalid option.
    """

    recall: Runnable[Any, list[BaseMessage]]
    remember: Runnable[Any, None]

    def __init__(
        self, memory: str | BaseStore | Backend | SessionHooks | object, **options: Any
    ) -> None:
        super().__init__()
        manager, self._owned = as_memory_manager(memory, options=options)
        if manager is None:
            raise ConfigurationError("a graph's memory is a manager or a provider string, not None")
        self.manager = manager
        self._hooks = MemoryHooks(manager)
        self._turns: RecentlyUsed[tuple[str | None, str | None]] = RecentlyUsed(_TURNS)
        self._users = RecentlyUsed[str](_TURNS)
        self.recall = RunnableLambda(self._now_recalled, self._recalled, name="recall")
        self.remember = RunnableLambda(self._now_remembered, self._remembered, name="remember")

    @override
    async def aopen(self) -> None:
        """Connect now, and take up what an earlier process left, rather than on first use."""
        manager: Any = self.manager
        if hasattr(manager, "open"):
            await manager.open()

    @override
    async def aclose(self) -> None:
        """Complete the running extraction, and close a manager that was made here."""
        if self._owned:
            manager: Any = self.manager
            await manager.close()

    def _now_recalled(self, state: Any) -> list[BaseMessage]:
        return shared_bridge().run(self._recalled(state))

    def _now_remembered(self, state: Any) -> None:
        shared_bridge().run(self._remembered(state))

    async def _recalled(self, state: Any) -> list[BaseMessage]:
        seen = run_state(state)
        messages = state if isinstance(state, list | tuple) else _field(state, "messages")
        try:
            run = await self._run_of(seen)
            stable, tail = await self._blocks_of_turn(run)
            messages = write_messages(inject(run.messages, tail, "user"))
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("agent.memory_failed", error=error, hook="on_session_start")
            stable = None
        return _prompted(convert_to_messages(messages), stable)

    async def _blocks_of_turn(self, run: AgentState) -> tuple[str | None, str | None]:
        """Return the blocks of a turn, which stay; without a message's id, no turn is known."""
        turn = await self._turn_of(run)
        blocks = None if turn is None else self._turns.get(turn)
        if blocks is None:
            blocks = await self._blocks(run)
            if turn is not None:
                self._turns.put(turn, blocks)
        return blocks

    async def _turn_of(self, run: AgentState) -> str | None:
        """Return a string that is unique to the user's latest message in its thread and scope."""
        last = _users(run)[-1:]
        if not (last and last[0].id):
            return None
        manager: Any = self.manager
        bound = await manager.for_run(run) if hasattr(manager, "for_run") else None
        place = getattr(bound, "namespace", run.metadata.get("user_id"))
        return repr((place, thread_of(run), last[0].id, last[0].content))

    async def _blocks(self, run: AgentState) -> tuple[str | None, str | None]:
        """Return what the model is shown at the end of its prompt, and before the user's text."""
        seen = (await self._hooks.recall(run, thread_of(run))).messages
        stable, tail = blocks_of(seen)
        given = {id(each) for each in run.messages}
        added = [
            each.content
            for each in seen
            if each.role == "system" and id(each) not in given and not is_memory_block(each)
        ]
        return "\n\n".join(filter(None, (*added, stable))) or None, tail

    async def _remembered(self, state: Any) -> None:
        try:
            run = await self._run_of(run_state(state))
            if (turn := await self._turn_of(run)) is not None:
                self._turns.discard(turn)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("agent.memory_failed", error=error, hook="on_session_end")
            return
        # One that is off the record is told as well, so that no later run remembers it.
        await remember(self.manager, run)
        await self._hooks.complete(run, thread_of(run))
        await self._hooks.warm(run, thread_of(run))

    async def _run_of(self, seen: Any) -> AgentState:
        """Return the present run; one without the user of its thread is off the record."""
        run = _run_of(seen)
        user = await self._user_of(run)
        if user is None:
            return run
        emit("langgraph.user_missing", thread_id=thread_of(run), user_id=user)
        return run.model_copy(update={"metadata": {**run.metadata, REMEMBER: False}})

    async def _user_of(self, run: AgentState) -> str | None:
        """Return the user of the thread, if the run has none.

        Those of threads are kept, and the empty string for a thread without one.
        """
        configurable = _configurable()
        thread, saver = configurable.get("thread_id"), configurable.get(_SAVER)
        user = run.metadata.get("user_id")
        if user is not None:
            self._users.put(thread, str(user))
            return None
        if not isinstance(saver, BaseCheckpointSaver):
            return None
        known = self._users.get(thread)
        if known is None:
            known = await _user_in(saver, thread)
            self._users.put(thread, known)
        return known or None


async def _user_in(saver: BaseCheckpointSaver[Any], thread: object) -> str:
    """Return the user that the newest checkpoints of a thread name; empty: there is none."""
    place: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    # A saver without asynchronous methods tells nothing.
    with suppress(NotImplementedError):
        async for each in saver.alist(place, limit=_LOOKED_AT):
            if user := each.metadata.get("user_id"):
                return str(user)
    return ""


def _configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _run_of(seen: Any) -> AgentState:
    """Return the state of the run that is under way, as managers read it."""
    configurable, context = _configurable(), None
    with suppress(RuntimeError, KeyError):
        context = get_runtime()
    places = (_field(context, "context"), configurable)
    named = {
        name: found
        for place in places
        for name in _NAMED
        if (found := _field(place, name)) is not None
    }
    metadata = {**seen.metadata, **named}
    if metadata.get("thread_id") is not None:
        # A graph inside of another one has its thread, and messages of its own.
        outer = (configurable.get("checkpoint_ns") or "").split("|")[:-1]
        names = (str(metadata["thread_id"]), *(each.partition(":")[0] for each in outer))
        metadata["thread_id"] = "|".join(names)
    if any(map(is_off_record, _users(seen)[-1:])):
        # Its answer is off the record as well.
        metadata[REMEMBER] = False
    # A graph's thread may have served another user before: nobody's memory gets what others said.
    metadata[OTHERS] = _begin_of_turn(seen.messages)
    return AgentState(run_id=thread_of(seen), messages=tuple(seen.messages), metadata=metadata)


def _users(run: Any) -> list[Any]:
    return [each for each in run.messages if each.role == "user"]


def _begin_of_turn(messages: Sequence[Any]) -> int:
    """Return how many messages stand before the present turn: until the answer before it."""
    users = [place for place, each in enumerate(messages) if each.role == "user"]
    before = messages[: users[-1]] if users else ()
    answers = (
        place
        for place, each in reversed(list(enumerate(before)))
        if each.role == "assistant" and not each.tool_calls
    )
    return next(answers, -1) + 1


def _prompted(messages: list[BaseMessage], stable: str | None) -> list[BaseMessage]:
    """Return messages with a text at the end of the system prompt."""
    if stable is None:
        return messages
    count = next((n for n, each in enumerate(messages) if each.type != "system"), len(messages))
    if not count:
        return [SystemMessage(stable), *messages]
    last: Any = messages[count - 1]
    if isinstance(last.content, str):
        content: Any = f"{last.content}\n\n{stable}"
    else:
        content = [*last.content, {"type": "text", "text": stable}]
    return [
        *messages[: count - 1],
        last.model_copy(update={"content": content}),
        *messages[count:],
    ]
