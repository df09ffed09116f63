"""One run of an agent on one thread: its state, saved after every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self
from uuid import uuid4

from locus_memory._internal.quoting import quote
from locus_memory.agent.current import CurrentCall, last_text
from locus_memory.agent.events import (
    AgentEvent,
    AgentResult,
    Done,
    MessageAdded,
    Saved,
    StopReason,
    Tell,
    TextDelta,
)
from locus_memory.chat.base import INVALID_ARGUMENTS
from locus_memory.chat.usage import usage_in
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.conversation.roles import REMEMBER, runs_off_record
from locus_memory.conversation.validation import mend
from locus_memory.documents.values import RetrievalResult
from locus_memory.errors import (
    CheckpointNotFoundError,
    InvalidArgumentError,
    LocusMemoryError,
    StateTypeError,
)
from locus_memory.events import Event, emit
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.state import AgentState
from locus_memory.store.item import check_identifier

__all__ = ["FORKED_FROM", "ThreadRun", "load_state"]

FORKED_FROM: Final = "forked_from"
"""The key of a state's metadata with the source of a fork or a copy, and the number of messages
it began with: `{"thread_id": ..., "messages": ...}`."""

_FINISHED = "done"


class ThreadRun:
    """A thread while an agent works on it; every change is saved, then reported.

    Each save names the checkpoint it builds on. So if two runs use one thread, the slower one is
    refused with `CheckpointConflictError`, and the thread stays whole.

    Attributes:
        thread_id: The thread.
        state: The thread as saved.
        checkpoint_id: Its newest checkpoint; `None` for a new thread or without a checkpointer.
        on_text: Called with the pieces of the model's text; `None` if the run is not streamed.
        iterations: How often this run has called the model.
        off_record: Whether the messages of this run are off the record.
        finished: Whether an earlier run ended here, including its end hook.
        ended: Whether the end hook of this run was called.
        happened: The events of this run, while they are collected.
        sources: The documents that the model was shown.
    """

    def __init__(
        self,
        checkpointer: BaseCheckpointer | None,
        thread_id: str,
        happened: list[Event],
        tell: Tell | None = None,
    ) -> None:
        self.thread_id = check_identifier(thread_id, "a thread id")
        self.state = AgentState()
        self.checkpoint_id: str | None = None
        self.iterations = 0
        self.off_record = False
        self.finished = False
        self.ended = False
        self.happened = happened
        self.sources: tuple[RetrievalResult, ...] = ()
        self.on_text = None if tell is None else lambda text: tell(TextDelta(text))
        self._tell = tell
        self._checkpointer = checkpointer
        self._added: list[Message] = []
        self._lead: tuple[Message, ...] = ()
        self._led = 0

    @classmethod
    async def load(
        cls,
        checkpointer: BaseCheckpointer | None,
        thread_id: str,
        happened: list[Event],
        tell: Tell | None = None,
    ) -> Self:
        """Return the session of a thread, which may be new."""
        session = cls(checkpointer, thread_id, happened, tell)
        newest = await checkpointer.list_with_metadata(thread_id, 1) if checkpointer else []
        if checkpointer and newest:
            session.checkpoint_id = newest[0].checkpoint_id
            session.finished = newest[0].metadata.get("kind") == _FINISHED
            state = await load_state(checkpointer, thread_id, session.checkpoint_id)
            session.state = _as_own(state, thread_id)
            session.off_record = runs_off_record(state)
        return session

    def begin(
        self,
        *,
        agent_id: str | None,
        user_id: str | None,
        metadata: Mapping[str, Any] | None,
        inherit_user: bool = False,
        remember: bool | None = None,
    ) -> None:
        """Start a new run on the thread.

        A `user_id` in the metadata means the same as the argument; `None` there means no user. A
        thread that begins off the record stays so until a run says otherwise.

        Args:
            agent_id: The agent.
            user_id: The user.
            metadata: Further metadata of the thread.
            inherit_user: Whether a run without a user acts as the user of its thread.
            remember: Whether the run is on the record; `None`: as its thread.

        Raises:
            InvalidArgumentError: The thread belongs to another user, or it belongs to a user and
                the run has none, or `metadata` is not a mapping, or it names another user, thread
                or origin than the run's.
        """
        if not isinstance(metadata, Mapping | None):
            raise InvalidArgumentError(f"metadata is an object, not {type(metadata).__name__}")
        given = metadata or {}
        owner = self._owner(_user(user_id, given), inherit_user=inherit_user)
        own = {"thread_id": self.thread_id, FORKED_FROM: self.state.metadata.get(FORKED_FROM)}
        for name in own.keys() & given.keys():
            if given[name] != own[name]:
                raise InvalidArgumentError(f"metadata[{quote(name)}] is not that of the run")
        merged = {**self.state.metadata, **given, "thread_id": self.thread_id}
        merged.pop("user_id", None)
        known = merged.get(REMEMBER) is not False
        self.off_record = not (known if remember is None else remember)
        begins = self.off_record and not self.state.messages
        if begins or (remember and not known):
            merged[REMEMBER] = not self.off_record
        self.state = self.state.model_copy(
            update={
                "run_id": uuid4().hex,
                "agent_id": agent_id or self.state.agent_id,
                "iteration": 0,
                "metadata": merged | ({"user_id": owner} if owner is not None else {}),
            }
        )

    def _owner(self, user_id: str | None, *, inherit_user: bool) -> str | None:
        """Return the user of the thread, or the given one if the thread has none."""
        owner: str | None = self.state.metadata.get("user_id")
        if user_id is not None and owner not in (None, user_id):
            raise InvalidArgumentError(
                f"thread {quote(self.thread_id)} is another user's: give it another thread_id"
            )
        if user_id is None and owner is not None and not inherit_user:
            raise InvalidArgumentError(
                f"thread {quote(self.thread_id)} belongs to a user, and this run names none: pass"
                " user_id=, or let runs act as the user of their thread with"
                " Agent(..., inherit_user=True)"
            )
        return owner if user_id is None else user_id

    def repair(self) -> None:
        """Repair faults that a provider would refuse, such as a tool call without a result."""
        mended, faults = mend(self.state.messages)
        if faults:
            emit("agent.thread_repaired", thread_id=self.thread_id, faults=len(faults))
            messages = tuple(map(_with_id, mended))
            self.state = self.state.model_copy(update={"messages": messages})

    @property
    def is_waiting(self) -> bool:
        """Whether it is the model's turn."""
        messages = self.state.messages
        return bool(messages) and messages[-1].role in {Role.USER, Role.TOOL}

    @property
    def open_calls(self) -> list[ToolCall]:
        """The tool calls at the end of the thread that have no result yet."""
        answered: set[str | None] = set()
        for message in reversed(self.state.messages):
            if message.role != Role.TOOL:
                return [call for call in message.tool_calls if call.id not in answered]
            answered.add(message.tool_call_id)
        return []

    @property
    def current_call(self) -> CurrentCall:
        """The run and the thread, for a tool that is called now."""
        said = self.state.messages
        while said and said[-1].role == Role.TOOL:
            said = said[:-1]
        return CurrentCall(self.state.run_id, self.thread_id, said, bool(self.sources))

    def unreadable(self, call: ToolCall) -> str | None:
        """Return why the arguments of an open call could not be read, if so."""
        asking = next(m for m in reversed(self.state.messages) if m.role == Role.ASSISTANT)
        reasons: dict[str, str] = asking.metadata.get(INVALID_ARGUMENTS) or {}
        return reasons.get(call.id)

    def lead_in(self, seen: AgentState) -> None:
        """Show the model these messages instead of the thread so far; use their metadata."""
        self._lead, self._led = seen.messages, len(self.state.messages)
        self.state = self.state.model_copy(update={"metadata": seen.metadata})

    @property
    def view(self) -> list[Message]:
        """The messages for the model, before they are trimmed."""
        return [*self._lead, *self.state.messages[self._led :]]

    async def add(self, message: Message) -> None:
        """Add a message to the thread and save it."""
        added = _with_id(message)
        if self.off_record:
            added = added.model_copy(update={"metadata": {**added.metadata, REMEMBER: False}})
        if added.role == Role.ASSISTANT:
            added = _with_own_calls(added, self.state.messages)
            self.iterations += 1
            self.state = self.state.with_iteration(self.state.iteration + 1)
        self._added.append(added)
        self.state = self.state.with_message(added)
        await self._save(added.role.value, MessageAdded(added))

    async def finish(self) -> AgentResult:
        """Save that the run is over, and return its result."""
        await self._save(_FINISHED)
        result = self.result()
        self.tell(Done(result))
        return result

    def tell(self, event: AgentEvent) -> None:
        """Send an event to the stream, if there is one."""
        if self._tell is not None:
            self._tell(event)

    @property
    def failures(self) -> tuple[Event, ...]:
        """The failures so far that did not end the run."""
        return tuple(event for event in self.happened if event.error is not None)

    def raise_memory_failure(self) -> None:
        """Raise the first failure of the memory, if there is one.

        Raises:
            Exception: The first error of the memory manager or of its store.
        """
        for event in self.failures:
            if event.name.startswith(("memory.", "agent.memory")):
                if isinstance(event.error, Exception):
                    event.error.add_note(f"on_error='raise': {event.name}")
                    raise event.error
                raise LocusMemoryError(f"{event.name}: {type(event.error).__name__}")

    def result(self) -> AgentResult:
        """Return the result of the run."""
        stop_reason: StopReason = "max_iterations" if self.is_waiting else "done"
        return AgentResult(
            text=last_text(self.state.messages, Role.ASSISTANT),
            messages=tuple(self._added),
            state=self.state,
            thread_id=self.thread_id,
            checkpoint_id=self.checkpoint_id,
            iterations=self.iterations,
            stop_reason=stop_reason,
            failures=self.failures,
            usage=usage_in(self.happened),
            sources=self.sources,
        )

    async def _save(self, kind: str, *events: AgentEvent) -> None:
        """Save the thread, and only then send the events."""
        if self._checkpointer is not None:
            facts = {
                "kind": kind,
                "step": self.state.iteration,
                "run_id": self.state.run_id,
                "agent_id": self.state.agent_id,
                "user_id": self.state.metadata.get("user_id"),
            }
            self.checkpoint_id = await self._checkpointer.save(
                self.state,
                self.thread_id,
                metadata={name: fact for name, fact in facts.items() if fact is not None},
                expected_parent=self.checkpoint_id,
            )
            events = (*events, Saved(self.checkpoint_id))
        for event in events:
            self.tell(event)


async def load_state(
    checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str | None
) -> AgentState:
    """Return the state at a checkpoint, the newest by default.

    Raises:
        CheckpointNotFoundError: There is no such checkpoint.
        StateTypeError: It does not hold the state of an agent.
    """
    loaded = await checkpointer.load(thread_id, checkpoint_id)
    if loaded is None:
        raise CheckpointNotFoundError(thread_id, checkpoint_id)
    if isinstance(loaded, AgentState):
        return loaded
    if not isinstance(loaded, dict):
        raise StateTypeError(
            f"an agent's thread holds AgentState, not {type(loaded).__name__}: give the agent a"
            " checkpointer without state_type="
        )
    try:
        return AgentState.from_checkpoint(loaded)
    except ValueError as error:
        raise StateTypeError(f"thread {quote(thread_id)} does not hold an agent's state") from error


def _as_own(state: AgentState, thread_id: str) -> AgentState:
    """Return the state with this thread's id; that of a fork or a copy names its source."""
    origin = state.metadata.get("thread_id")
    own: dict[str, Any] = {"thread_id": thread_id}
    if isinstance(origin, str) and origin != thread_id:
        own[FORKED_FROM] = {"thread_id": origin, "messages": len(state.messages)}
    return state.with_metadata(**own)


def _user(user_id: str | None, metadata: Mapping[str, Any]) -> str | None:
    """Return the user of the run, from the argument, the metadata or both."""
    named = metadata.get("user_id")
    for each in (user_id, named):
        if each is not None:
            check_identifier(each, "a user id")
    if user_id is not None and named not in (None, user_id):
        raise InvalidArgumentError("user_id and metadata['user_id'] name two users")
    return named if user_id is None else user_id


def _with_id(message: Message) -> Message:
    return message if message.id else message.model_copy(update={"id": uuid4().hex})


def _with_own_calls(message: Message, thread: Sequence[Message]) -> Message:
    """Return an answer whose tool calls have ids that are unique in the thread.

    Some servers count the ids from 0 in every answer, and each result must match one call.
    """
    if not message.tool_calls:
        return message
    taken = {call.id for earlier in thread for call in earlier.tool_calls}
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        is_own = bool(call.id) and call.id not in taken
        calls.append(call if is_own else call.model_copy(update={"id": ToolCall(name="").id}))
        taken.add(calls[-1].id)
    reasons: dict[str, str] = message.metadata.get(INVALID_ARGUMENTS) or {}
    renamed = {
        new.id: reasons[old.id]
        for old, new in zip(message.tool_calls, calls, strict=True)
        if old.id in reasons
    }
    metadata = message.metadata | ({INVALID_ARGUMENTS: renamed} if renamed else {})
    return message.model_copy(update={"tool_calls": tuple(calls), "metadata": metadata})
