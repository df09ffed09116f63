"""The reference agent: a small loop that wires a model, tools, checkpoints and memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import uuid4

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.agent.events import (
    AgentEvent,
    AgentResult,
    Tell,
    ToolFinished,
    ToolStarted,
    streamed,
)
from locus_memory.agent.managers import (
    SessionHooks,
    Trimmer,
    as_memory_manager,
    checked_trimmer,
    recalled,
    remember,
    trimmed,
)
from locus_memory.agent.session import Session, load_state
from locus_memory.backends.base import Backend
from locus_memory.chat.asking import ask, check_model, takes_tools
from locus_memory.chat.base import ChatModel, ToolModel
from locus_memory.chat.usage import Usage, report_usage
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.errors import (
    CheckpointNotFoundError,
    ConfigurationError,
    InvalidArgumentError,
)
from locus_memory.events import collect
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.registry import as_checkpointer
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.store.item import check_limit, check_text
from locus_memory.tools import Tool, as_tools, failed

__all__ = ["Agent", "Usage"]

_Part = TypeVar("_Part")


class Agent(Resource):
    """A model with tools that remembers: it loads, recalls, trims, asks, acts and saves.

    The thread is saved whole after every step: after the user's message, each answer of the
    model and each tool's result. What the model sees besides, the system prompt and the
    memories, is never saved, so that a new prompt holds for old threads, too. What goes wrong
    with the memory or the conversation manager is an event (`agent.memory_failed`,
    `agent.trim_failed`, `memory.*`), a line in the log and one of the result's `failures`, and the
    run goes on. An error of the model or the checkpointer ends it; the thread stays as it was
    saved, its session open: `resume` goes on from there.

    A provider string opens on first use, and is closed by `close` or `async with`; whatever else
    is given stays the caller's.

    Args:
        model: Any async function from messages to an assistant `Message`; see
            `locus_memory.chat.base`.
        system_prompt: Put before each conversation; never saved.
        tools: Functions, or `Tool`s, that the model may call; several at once run concurrently.
        checkpointer: A provider string, a backend or a checkpointer of `AgentState`. Without one
            each run is a conversation of its own.
        memory_manager: One with `on_session_start` and `on_session_end`; or a provider string, a
            backend or a store, for an `LLMMemoryManager` that lets the model extract.
        conversation_manager: One with `async_apply` or `apply`.
        max_iterations: How often a run asks the model before it stops.
        agent_id: Saved with the thread, if there are several agents.
        inherit_user: Whether a run that names no user, on a thread that belongs to one, acts as
            that user and reads their memories. By default such a run is refused.
        on_memory_error: `"raise"` ends a run with the first error of its memory: before the
            model is asked, or once the answer is saved; `resume` tries again. What is extracted
            in the background is no part of a run.

    Raises:
        ConfigurationError: A bad provider string, model, tool or manager, or tools for a model
            that takes none.
    """

    def __init__(
        self,
        model: ChatModel | ToolModel,
        *,
        system_prompt: str | None = None,
        tools: Iterable[Callable[..., Any] | Tool] = (),
        checkpointer: str | BaseCheckpointer | Backend | None = None,
        memory_manager: str | BaseStore | Backend | SessionHooks | None = None,
        conversation_manager: Trimmer | None = None,
        max_iterations: int = 20,
        agent_id: str | None = None,
        inherit_user: bool = False,
        on_memory_error: Literal["report", "raise"] = "report",
    ) -> None:
        if check_limit(max_iterations, "max_iterations") < 1:
            raise InvalidArgumentError(f"max_iterations is at least 1, not {max_iterations}")
        self.model = model
        self.system_prompt = check_text(system_prompt, "system_prompt")
        self.tools = as_tools(tools)
        check_model(model)
        if self.tools and not takes_tools(model):
            raise ConfigurationError("a model that may call tools takes the keyword tools=")
        self.max_iterations = max_iterations
        self.agent_id = agent_id
        self.inherit_user = inherit_user
        if on_memory_error not in ("report", "raise"):
            raise ConfigurationError(
                f"on_memory_error is 'report' or 'raise', not {quote(on_memory_error)}"
            )
        self.on_memory_error = on_memory_error
        self._owned: list[Any] = []
        self.checkpointer: BaseCheckpointer | None = None
        if checkpointer is not None:
            self.checkpointer = self._own(*as_checkpointer(checkpointer))
        self.memory_manager = self._own(*as_memory_manager(memory_manager, model))
        self.conversation_manager = checked_trimmer(conversation_manager)

    def _own(self, part: _Part, owned: bool) -> _Part:  # noqa: FBT001 - as the registry returns it
        if owned:
            self._owned.append(part)
        return part

    async def run(
        self,
        text: str,
        thread_id: str | None = None,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AgentResult:
        """Answer the user's message.

        A thread that was cut off is mended first, so that a provider takes it: a tool call
        without a result is answered as interrupted, not run (see `resume`).

        Args:
            text: What the user says.
            thread_id: The conversation to go on with; a new one by default.
            user_id: Who speaks, and whose memories; kept with the thread, and from then on named
                by each of its runs. `metadata["user_id"]` says the same.
            metadata: JSON to keep in the thread's state.

        Raises:
            CheckpointConflictError: Another run saved the thread meanwhile; nothing of what
                either saved is lost.
            InvalidArgumentError: A bad text, id or metadata, another user's thread, or a user's
                thread and no user is named (see `inherit_user`).
            ModelError: The model failed, or whatever else it raises.
            BackendError: The database failed.
            Exception: With `on_memory_error="raise"`, whatever the memory failed with.
        """
        return await self._run(text, thread_id, user_id, metadata, None)

    def stream(
        self,
        text: str,
        thread_id: str | None = None,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Answer as `run` does, and yield what happens; the last event is `Done`.

        Closing the stream stops the run where it is: what was saved stays.
        """
        return streamed(partial(self._run, text, thread_id, user_id, metadata))

    async def _run(
        self,
        text: str,
        thread_id: str | None,
        user_id: str | None,
        metadata: Mapping[str, Any] | None,
        tell: Tell | None,
    ) -> AgentResult:
        if check_text(text, "a message") is None:
            raise InvalidArgumentError("a message is a text, not None")
        name = uuid4().hex if thread_id is None else thread_id
        with collect() as happened:
            session = await Session.load(self.checkpointer, name, happened, tell)
            session.begin(
                agent_id=self.agent_id,
                user_id=user_id,
                metadata=metadata,
                inherit_user=self.inherit_user,
            )
            session.repair()
            await session.add(Message.user(text))
            return await self._go_on(session)

    async def resume(self, thread_id: str) -> AgentResult:
        """Finish what a crash, an error or `max_iterations` cut short.

        Tool calls that were saved with their results are never run again; one that was under
        way is, so make sure that no other process is still at it. When there is nothing to
        finish, the last answer is returned and nobody is asked. It is still the same run, so it
        has the same user; check beforehand that whoever asks for it may have the answer.

        Raises:
            CheckpointNotFoundError: There is no such thread.
            ConfigurationError: The agent has no checkpointer.
            CheckpointConflictError: As for `run`, and so are the other errors.
        """
        with collect() as happened:
            session = await Session.load(self._threads, thread_id, happened)
            if session.checkpoint_id is None:
                raise CheckpointNotFoundError(thread_id)
            if session.finished and not session.is_waiting:
                return session.result()
            await self._answer_calls(session)
            session.repair()
            return await self._go_on(session)

    async def _go_on(self, session: Session) -> AgentResult:
        """The loop: the model speaks and its tools answer, until it asks for no more."""
        await self._recall(session)
        while session.is_waiting and session.iterations < self.max_iterations:
            await self._ask_model(session)
            await self._answer_calls(session)
        await remember(self.memory_manager, session.state)
        self._check_memory(session)
        return await session.finish()

    async def _ask_model(self, session: Session) -> None:
        seen = await trimmed(self.conversation_manager, session.view)
        specs = [each.spec for each in self.tools.values()]
        answer = await ask(self.model, seen, specs, on_text=session.on_text)
        report_usage(answer, "answer")
        await session.add(answer)

    async def _answer_calls(self, session: Session) -> None:
        """Run the open calls at once, and save each result when it comes."""
        ended: asyncio.Queue[asyncio.Task[ToolResult]] = asyncio.Queue()
        tasks: dict[asyncio.Task[ToolResult], ToolCall] = {}
        try:
            for call in session.open_calls:
                task = asyncio.create_task(self._call_tool(session, call))
                task.add_done_callback(ended.put_nowait)
                tasks[task] = call
            for _ in tasks:
                result = _result(task := await ended.get(), tasks[task])
                session.tell(ToolFinished(result))
                await session.add(Message.tool(result))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _call_tool(self, session: Session, call: ToolCall) -> ToolResult:
        session.tell(ToolStarted(call))
        error = session.unreadable(call)
        if error is not None:
            error = f"invalid arguments: {error}"
        elif call.name not in self.tools:
            error = f"no tool {quote(call.name)}; there are: {', '.join(self.tools) or 'none'}"
        if error is None:
            return await self.tools[call.name].run(call)
        return ToolResult(tool_call_id=call.id, name=call.name, error=error)

    async def _recall(self, session: Session) -> None:
        """Begin what the model sees: the system prompt, memories, and the thread so far."""
        thread = session.state.messages
        prompt = () if self.system_prompt is None else (Message.system(self.system_prompt),)
        view = session.state.model_copy(update={"messages": (*prompt, *thread)})
        session.lead_in(await recalled(self.memory_manager, view))
        self._check_memory(session)

    def _check_memory(self, session: Session) -> None:
        if self.on_memory_error == "raise":
            session.raise_memory_failure()

    async def state(self, thread_id: str, checkpoint_id: str | None = None) -> AgentState:
        """Return the thread as it was at a checkpoint, the newest by default.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            ConfigurationError: The agent has no checkpointer.
        """
        return await load_state(self._threads, thread_id, checkpoint_id)

    async def history(
        self, thread_id: str, limit: int = 10, *, before: str | None = None
    ) -> list[CheckpointInfo]:
        """Return what is known of the thread's checkpoints, newest first.

        A checkpoint's metadata says what it was saved after (`kind`: `user`, `assistant`, `tool`
        or `done`), `step`, `run_id`, and `user_id` and `agent_id` where there is one.

        Args:
            thread_id: Which thread; there is nothing to tell of an unknown one.
            limit: At most this many.
            before: Only those older than this checkpoint: the cursor.

        Raises:
            ConfigurationError: The agent has no checkpointer.
        """
        return await self._threads.list_with_metadata(thread_id, limit, before=before)

    async def fork(
        self, thread_id: str, checkpoint_id: str | None = None, new_thread_id: str | None = None
    ) -> str:
        """Start a thread from a checkpoint of another, the newest by default; returns its id.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            CheckpointConflictError: The new thread has checkpoints already.
            ConfigurationError: The agent has no checkpointer.
        """
        if checkpoint_id is None:
            newest = await self._threads.list_checkpoints(thread_id, 1)
            if not newest:
                raise CheckpointNotFoundError(thread_id)
            checkpoint_id = newest[0]
        name = uuid4().hex if new_thread_id is None else new_thread_id
        await self._threads.fork(thread_id, checkpoint_id, name)
        return name

    @property
    def _threads(self) -> BaseCheckpointer:
        if self.checkpointer is None:
            raise ConfigurationError(
                'the agent keeps no threads: give it a checkpointer, such as "sqlite:./agent.db"'
            )
        return self.checkpointer

    @override
    async def open(self) -> None:
        try:
            for each in self._owned:
                await each.open()
        except BaseException:
            await self.close()
            raise

    @override
    async def close(self) -> None:
        async with AsyncExitStack() as stack:
            for each in self._owned:
                stack.push_async_callback(each.close)


def _result(task: asyncio.Task[ToolResult], call: ToolCall) -> ToolResult:
    """Return what a task came to; a tool that cancelled its own failed."""
    return failed(call, asyncio.CancelledError()) if task.cancelled() else task.result()
