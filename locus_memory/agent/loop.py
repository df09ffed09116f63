"""The reference agent: a small loop that wires a model, tools, checkpoints and memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack
from uuid import uuid4

from typing_extensions import override

from locus_memory._internal.cancellation import finished
from locus_memory._internal.options import Keywords
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.agent.current import CURRENT_CALL
from locus_memory.agent.documents import documents_of, with_documents
from locus_memory.agent.events import (
    AgentEvent,
    AgentResult,
    Tell,
    ToolFinished,
    ToolStarted,
    streamed,
)
from locus_memory.agent.hooks import Invocation, InvocationHooks, MemoryHooks
from locus_memory.agent.managers import (
    PrefetchHook,
    SessionHooks,
    Trimmer,
    TurnHook,
    memory_of,
    resource_hooks,
    trimmed,
    with_placement,
)
from locus_memory.agent.options import AgentKeywords, AgentOptions, read_settings
from locus_memory.agent.session import ThreadRun, load_state
from locus_memory.agent.tree_verbs import TreeVerbs
from locus_memory.backends.base import Backend
from locus_memory.chat.asking import ask, takes_tools
from locus_memory.chat.base import CONTEXT_WINDOW, ChatModel, ToolModel, window_of
from locus_memory.chat.registry import as_model
from locus_memory.chat.usage import Usage, report_usage
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.conversation.registry import as_conversation_manager
from locus_memory.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    ConfigurationError,
)
from locus_memory.events import collect
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.registry import as_checkpointer
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.store.item import check_text, need_text
from locus_memory.tools import Tool, as_tools, failed

if TYPE_CHECKING:
    from locus_memory.documents.context import ContextConfig

__all__ = ["Agent", "Usage"]

_Part = TypeVar("_Part")


class Agent(TreeVerbs, Resource):
    """An agent with tools, checkpoints and memory: a small reference loop.

    The whole thread is saved after every step: after the user's message, each answer of the model
    and each tool result. The system prompt and the memories are never saved, so a new prompt also
    applies to old threads. If the memory manager or the conversation manager fails, the run
    continues. The failure is an event (`agent.memory_failed`, `agent.trim_failed`, `memory.*`), a
    line in the log and one of the result's `failures`. An error of the model or the checkpointer
    ends the run. The thread keeps its last saved state, its session stays open, and `resume`
    continues it.

    A provider string is opened on first use, and closed by `close` or `async with`. The caller
    closes any object that it passes in.

    Args:
        model: An async function from messages to an assistant `Message`, see
            `locus_memory.chat.base`; or a string for `get_model`, such as `"openai:gpt-4.1-mini"`.
        system_prompt: The first message that the model sees; never saved.
        tools: Functions or `Tool`s that the model may call; calls of one answer run concurrently.
        checkpointer: A provider string, a backend or a checkpointer of `AgentState`. Without one,
            each run is a separate conversation.
        memory_manager: An object with `on_session_start` and `on_session_end`; a memory provider,
            which has `prefetch` or `on_turn_complete`, and which the agent shuts down; a string of
            `get_memory_manager`; or a backend or a store, for an `LLMMemoryManager` whose model
            is this one.
        conversation_manager: An object with `async_apply` or `apply`; or a string for
            `get_conversation_manager`, such as `"sliding_window:20"`.
        memory_settings: Whether to recall and to extract, how much text to recall, where the model
            sees it, and whether a failure of the memory ends a run.
        options: How long a run goes on, whose memories it reads, the functions around it, and the
            resources and documents that are put before the model.
        **keywords: The fields of `AgentOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An invalid provider string, model, tool, manager or function, or tools
            for a model that accepts none.
    """

    def __init__(
        self,
        model: str | ChatModel | ToolModel,
        *,
        system_prompt: str | None = None,
        tools: Iterable[Callable[..., Any] | Tool] = (),
        checkpointer: str | BaseCheckpointer | Backend | None = None,
        memory_manager: str
        | BaseStore
        | Backend
        | SessionHooks
        | PrefetchHook
        | TurnHook
        | None = None,
        conversation_manager: str | Trimmer | None = None,
        memory_settings: MemorySettings | None = None,
        options: AgentOptions | None = None,
        **keywords: Unpack[AgentKeywords],
    ) -> None:
        named = Keywords(self, keywords)
        given = Keywords(self, {}).into(MemorySettings, memory_settings=memory_settings)
        settings = read_settings(given, named.rest)
        options = named.all_into(AgentOptions, options=options)
        self._owned: list[Any] = []
        # It is closed last: the memory manager may use it until then.
        self.model: ChatModel | ToolModel = self._own(*as_model(model))
        self.system_prompt = check_text(system_prompt, "system_prompt")
        self.tools = as_tools(tools)
        if self.tools and not takes_tools(self.model):
            raise ConfigurationError("a model that may call tools takes the keyword tools=")
        self.max_iterations, self.agent_id = options.max_iterations, options.agent_id
        self.inherit_user, self.end_on_error = options.inherit_user, options.end_on_error
        self.memory_placement: Literal["system", "user"] = settings.placement
        self.on_memory_error = settings.on_error
        self.checkpointer: BaseCheckpointer | None = None
        if checkpointer is not None:
            self.checkpointer = self._own(*as_checkpointer(checkpointer))
        self.memory_manager = self._own(*memory_of(memory_manager, settings, self.model))
        self._memory = MemoryHooks(self.memory_manager, settings)
        self.documents = self._own(*documents_of(options.documents))
        self._document_context: ContextConfig | Literal["openjarvis"] | None = (
            options.document_context
        )
        self._resources = resource_hooks(
            options.resources,
            options.resource_settings,
            has_memory=self.memory_manager is not None or not settings.enabled,
        )
        self._before = InvocationHooks("before_invocation", options.before_invocation)
        self._after = InvocationHooks("after_invocation", options.after_invocation)
        self.conversation_manager: Trimmer | None = self._own(
            *as_conversation_manager(conversation_manager)
        )

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
        remember: bool | None = None,
    ) -> AgentResult:
        """Answer the user's message.

        A thread that was cut off is repaired first, so that a provider accepts it: a tool call
        without a result gets a result that says it was cut off, and is not run (see `resume`).

        Args:
            text: The user's message.
            thread_id: The thread to continue; a new one by default.
            user_id: The user of the message and of the memories. It is stored with the thread, and
                every later run of the thread has to pass it. `metadata["user_id"]` means the same.
            metadata: JSON to store in the thread's state.
            remember: `False`: the run is off the record. It is in its checkpoint and nowhere else:
                nothing is extracted, quoted, counted or committed of it, in later runs neither,
                and no memory provider sees it. Memories are shown to it. A thread that begins off
                the record stays so until a run has `remember=True`. `None`: as the thread.

        Raises:
            CheckpointConflictError: Another run saved the thread meanwhile; nothing that either
                run saved is lost.
            InvalidArgumentError: An invalid text, id or metadata, a thread of another user, or a
                run without a user on a thread that belongs to a user (see `inherit_user`).
            ModelError: The model failed; a custom model may raise other errors.
            BackendError: The database failed.
            Exception: With `on_error="raise"` in the settings, the error of the memory.
        """
        return await self._run(text, thread_id, user_id, metadata, None, remember=remember)

    def stream(
        self,
        text: str,
        thread_id: str | None = None,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        remember: bool | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Answer as `run` does, and yield the events of the run; the last one is `Done`.

        Closing the stream stops the run; the saved state stays.
        """
        return streamed(partial(self._run, text, thread_id, user_id, metadata, remember=remember))

    async def _run(
        self,
        text: str,
        thread_id: str | None,
        user_id: str | None,
        metadata: Mapping[str, Any] | None,
        tell: Tell | None,
        *,
        remember: bool | None,
    ) -> AgentResult:
        need_text(text, "a message")
        name = uuid4().hex if thread_id is None else thread_id
        with collect() as happened:
            session = await ThreadRun.load(self.checkpointer, name, happened, tell)
            session.begin(
                agent_id=self.agent_id,
                user_id=user_id,
                metadata=metadata,
                inherit_user=self.inherit_user,
                remember=remember,
            )
            session.repair()
            await session.add(Message.user(text))
            return await self._go_on(session)

    async def resume(self, thread_id: str) -> AgentResult:
        """Complete a run that a crash, an error or `max_iterations` cut short.

        Tool calls with saved results never run again. A call that was in progress runs again, so
        make sure that no other process is still running it. If there is nothing to complete, the
        last answer is returned without a call of the model. It is still the same run with the same
        user: check first that the caller may see the answer.

        Raises:
            CheckpointNotFoundError: There is no such thread.
            ConfigurationError: The agent has no checkpointer.
            CheckpointConflictError: As for `run`, like all other errors.
        """
        with collect() as happened:
            session = await ThreadRun.load(self._threads, thread_id, happened)
            if session.checkpoint_id is None:
                raise CheckpointNotFoundError(thread_id)
            if session.finished and not session.is_waiting:
                return session.result()
            return await self._go_on(session, resumed=True)

    async def _go_on(self, session: ThreadRun, *, resumed: bool = False) -> AgentResult:
        """Complete the run, and call the hooks around it."""
        try:
            await self._before.call(_invocation(session))
            if resumed:
                await self._answer_calls(session)
                session.repair()
            result = await self._complete(session)
        except (Exception, asyncio.CancelledError) as error:
            # A cancelled run waits for its hooks, which have their time limits.
            await finished(self._end_with_error(session, error))
            raise
        await self._after.call(_invocation(session, result=result))
        await self._memory.warm(session.state, session.thread_id)
        return result

    async def _complete(self, session: ThreadRun) -> AgentResult:
        """Call the model and run its tools until it requests no more calls."""
        await self._recall(session)
        while session.is_waiting and session.iterations < self.max_iterations:
            await self._ask_model(session)
            await self._answer_calls(session)
        session.ended = True
        await self._memory.end(session.state)
        if not session.is_waiting:
            await self._memory.complete(session.state, session.thread_id)
        if self._resources is not None:
            await self._resources.end(session.state, session.thread_id)
        self._check_memory(session)
        return await session.finish()

    async def _end_with_error(self, session: ThreadRun, error: BaseException) -> None:
        is_own = not session.ended and not isinstance(error, CheckpointConflictError)
        if self.end_on_error and is_own:
            await self._memory.end(session.state)
        await self._after.call(_invocation(session, error=error))

    async def _ask_model(self, session: ThreadRun) -> None:
        view = session.view
        seen = await trimmed(self.conversation_manager, view, session.state, self.memory_manager)
        await self._memory.compact(session.state, view, seen, session.thread_id)
        seen = with_placement(seen, self.memory_placement)
        specs = [each.spec for each in self.tools.values()]
        answer = await ask(self.model, seen, specs, on_text=session.on_text)
        report_usage(answer, "answer")
        await session.add(answer)

    async def _answer_calls(self, session: ThreadRun) -> None:
        """Run the open calls concurrently, and save each result when it arrives."""
        ended: asyncio.Queue[asyncio.Task[ToolResult]] = asyncio.Queue()
        tasks: dict[asyncio.Task[ToolResult], ToolCall] = {}
        try:
            for call in session.open_calls:
                task = asyncio.create_task(self._call_tool(session, call))
                task.add_done_callback(ended.put_nowait)
                tasks[task] = call
            for _ in tasks:
                task = await ended.get()
                # A tool that cancelled its own task failed.
                result = (
                    failed(tasks[task], asyncio.CancelledError())
                    if task.cancelled()
                    else task.result()
                )
                session.tell(ToolFinished(result))
                await session.add(Message.tool(result))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _call_tool(self, session: ThreadRun, call: ToolCall) -> ToolResult:
        session.tell(ToolStarted(call))
        error = session.unreadable(call)
        if error is not None:
            error = f"invalid arguments: {error}"
        elif call.name not in self.tools:
            error = f"no tool {quote(call.name)}; there are: {', '.join(self.tools) or 'none'}"
        if error is None:
            # Each call has a task and so a context of its own.
            CURRENT_CALL.set(session.current_call)
            return await self.tools[call.name].run(call)
        return ToolResult(tool_call_id=call.id, name=call.name, error=error)

    async def _recall(self, session: ThreadRun) -> None:
        """Start the model's view: the system prompt, memories, documents and the thread so far."""
        thread = session.state.messages
        prompt = () if self.system_prompt is None else (Message.system(self.system_prompt),)
        view = session.state.model_copy(update={"messages": (*prompt, *thread)})
        window = CONTEXT_WINDOW.set(window_of(self.model))
        try:
            seen = await self._memory.recall(view, session.thread_id)
        finally:
            CONTEXT_WINDOW.reset(window)
        if self._resources is not None:
            seen = await self._resources.recall(seen, session.thread_id)
        seen, session.sources = await with_documents(
            self.documents, seen, thread, self._document_context
        )
        session.lead_in(seen)
        self._check_memory(session)

    def _check_memory(self, session: ThreadRun) -> None:
        if self.on_memory_error == "raise":
            session.raise_memory_failure()

    async def state(self, thread_id: str, checkpoint_id: str | None = None) -> AgentState:
        """Return the state of a thread at a checkpoint, the newest by default.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            ConfigurationError: The agent has no checkpointer.
        """
        return await load_state(self._threads, thread_id, checkpoint_id)

    async def history(
        self, thread_id: str, limit: int = 10, *, before: str | None = None
    ) -> list[CheckpointInfo]:
        """Return information on a thread's checkpoints, newest first.

        A checkpoint's metadata has `kind`, the step after which it was saved (`user`, `assistant`,
        `tool` or `done`), `step`, `run_id`, and `user_id` and `agent_id` if they are set.

        Args:
            thread_id: The thread; the list is empty if it is unknown.
            limit: At most this many.
            before: The cursor: only checkpoints older than this one.

        Raises:
            ConfigurationError: The agent has no checkpointer.
        """
        return await self._threads.list_with_metadata(thread_id, limit, before=before)

    async def fork(
        self, thread_id: str, checkpoint_id: str | None = None, new_thread_id: str | None = None
    ) -> str:
        """Start a thread from a checkpoint of another, the newest by default; return its id.

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
            if self._resources is not None:
                stack.push_async_callback(self._resources.close)
            await self._memory.close()


def _invocation(
    session: ThreadRun, *, result: AgentResult | None = None, error: BaseException | None = None
) -> Invocation:
    return Invocation(
        thread_id=session.thread_id,
        user_id=session.state.metadata.get("user_id"),
        state=session.state,
        result=result,
        error=error,
    )
