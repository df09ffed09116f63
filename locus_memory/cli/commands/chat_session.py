"""One session of the command `chat`: it reads lines, and an agent answers them.

Lines are read between runs of the event loop, not in it: so a terminal can edit them, and an
interrupt finds either the agent at work, which is then cancelled, or nobody.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final
from uuid import uuid4

import orjson

from locus_memory.agent.events import AgentEvent, AgentResult, Done, MessageAdded, TextDelta
from locus_memory.agent.loop import Agent
from locus_memory.backends.base import Backend
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.cli.commands.memories import collect, render_memories
from locus_memory.cli.options.memories import open_manager
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.outcome import CommandError, report
from locus_memory.cli.printing.output import console, note, visible
from locus_memory.cli.printing.unlogged import unlogged
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.errors import BackendClosedError, LocusMemoryError
from locus_memory.events import Event, subscribe
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Role
from locus_memory.registry import open_backend
from locus_memory.store.item import check_identifier

__all__ = ["ChatSession", "Model"]

Model = OpenAIChat | ScriptedModel

_COMMAND: Final = re.compile(r"/[a-z]+")
_UNFINISHED: Final = frozenset(("user", "assistant", "tool"))
"""What an agent's checkpoint was saved after, unless it is the last of a run."""

_TOLD: Final = ("memory.", "agent.memory")
"""How the names of the events begin that the user is told of."""

_HELP: Final = """\
/memories  what is remembered of you
/help      this
/quit      leave, as Ctrl-D does
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSession:
    """What a chat was asked to be.

    Attributes:
        session: Where the data is, and whether to answer with JSON.
        model: Who answers.
        thread_id: The thread; `None` is a new one.
        user: Who talks.
        system: The system prompt.
        prefix: Where the memories are; `None` is no memory.
        window: How many messages the model sees.
        quiet: Whether the user knows who answers.
    """

    session: Session
    model: Model
    thread_id: str | None
    user: str | None
    system: str | None
    prefix: str | None
    window: int
    quiet: bool

    def run(self) -> None:
        """Chat until there are no more lines.

        Raises:
            CommandError: On a pipe, a message that was not answered; or another user's thread.
            InvalidArgumentError: A thread or a user that cannot be one.
            KeyboardInterrupt: The user wants to leave; everything is saved.
        """
        thread_id = f"chat-{uuid4().hex[:12]}" if self.thread_id is None else self.thread_id
        self.session.resolve()
        if self.user is not None:
            check_identifier(self.user, "a user id")
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            try:
                stack.enter_context(unlogged(*_TOLD))
                talk = runner.run(self._open(stack, thread_id))
                failures = talk.run(runner)
            finally:
                runner.run(stack.aclose())
        if failures and not talk.is_interactive:
            raise CommandError(f"{failures} of the messages had no answer", answered=True)

    async def _open(self, stack: AsyncExitStack, thread_id: str) -> _Talk:
        backend = open_backend(self.session.url, state_type=None)
        # One that could not be opened holds something all the same.
        stack.push_async_callback(backend.close)
        await stack.enter_async_context(backend)
        if isinstance(self.model, OpenAIChat):
            await stack.enter_async_context(self.model)
        manager = None
        if self.prefix is not None:
            extractor = self._extractor()
            manager = open_manager(backend.store, self.prefix, extractor)
            stack.callback(_tell_of_the_rest, manager)
            await stack.enter_async_context(manager)
        agent = Agent(
            self.model,
            system_prompt=self.system,
            checkpointer=backend,
            memory_manager=manager,
            conversation_manager=SlidingWindowManager(self.window),
        )
        return _Talk(self, backend, agent, manager, thread_id)

    def _extractor(self) -> LLMExtractor | HeuristicExtractor:
        if isinstance(self.model, ScriptedModel):
            return HeuristicExtractor()
        return LLMExtractor(self.model)


class _Talk:
    """A chat under way.

    Attributes:
        is_interactive: Whether a person sits there.
    """

    def __init__(
        self,
        asked: ChatSession,
        backend: Backend,
        agent: Agent,
        manager: LLMMemoryManager | None,
        thread_id: str,
    ) -> None:
        self.is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._asked = asked
        self._as_json = asked.session.as_json
        self._backend = backend
        self._agent = agent
        self._manager = manager
        self._thread_id = thread_id
        self._user = asked.user
        self._is_midline = False

    def run(self, runner: asyncio.Runner) -> int:
        """Answer every line; returns how many messages had no answer."""
        failures = 0
        unsubscribe = subscribe(self._tell)
        try:
            is_cut_off = runner.run(self._look_at_thread())
            self._greet()
            if is_cut_off:
                failures += not runner.run(self._survived(self._resume()))
            for line in self._lines():
                is_command = self.is_interactive and _COMMAND.fullmatch(line)
                if is_command and line in ("/quit", "/exit"):
                    break
                work = self._command(line) if is_command else self._survived(self._answer(line))
                failures += runner.run(work) is False
        except KeyboardInterrupt:
            runner.run(self._survived(self._keep()))
            raise
        finally:
            unsubscribe()
            self._end_line()
        return failures

    def _greet(self) -> None:
        if not self._asked.quiet:
            note("no --model is given: the scripted model answers, by a few rules")
        if self.is_interactive:
            user = f" of user {self._user}" if self._user else ""
            note(f"thread {self._thread_id}{user}; /help helps, Ctrl-D leaves")

    def _lines(self) -> Iterator[str]:
        """Yield what the user says, a line each; blank lines say nothing."""
        read = self._ask if self.is_interactive else _read
        while (line := read()) is not None:
            if line.strip():
                yield line.strip()

    def _ask(self) -> str | None:
        with suppress(ImportError):
            # Its mere presence lets `input` edit lines.
            import_module("readline")
        try:
            return input("> ")
        except EOFError:
            sys.stdout.write("\n")
            return None
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            raise

    async def _survived(self, work: Any) -> bool:
        """Do something; what goes wrong is one line on stderr, and the chat goes on."""
        try:
            await work
        except BackendClosedError:
            raise
        except LocusMemoryError as error:
            self._end_line()
            report(error, as_json=self._as_json)
            return False
        return True

    async def _look_at_thread(self) -> bool:
        """Learn whose thread it is; returns whether an earlier process left it in the middle.

        Raises:
            CommandError: It is another user's, or a user's and none is named.
        """
        newest = await self._backend.checkpointer.list_with_metadata(self._thread_id, 1)
        if not newest:
            return False
        state = await self._agent.state(self._thread_id)
        owner = state.metadata.get("user_id")
        if owner is not None and self._user not in (None, owner):
            raise CommandError(f"thread {self._thread_id!r} is another user's")
        if owner is not None and self._user is None:
            raise CommandError(
                f"thread {self._thread_id!r} belongs to a user: say who talks, by --user"
            )
        # The tools of a call that was cut off are not here: the next message mends it.
        is_open = not state.messages or bool(state.messages[-1].tool_calls)
        return newest[0].metadata.get("kind") in _UNFINISHED and not is_open

    async def _resume(self) -> None:
        """Finish what an earlier process did not."""
        result = await self._agent.resume(self._thread_id)
        if result.messages:
            note("the thread was cut off: here is the answer it still owed")
            self._show_text(result.text)
            self._end_line()
            self._show_result(result)
        await self._drain()

    async def _answer(self, line: str) -> None:
        stream = self._agent.stream(line, self._thread_id, user_id=self._user)
        try:
            async for event in stream:
                self._show(event)
        finally:
            await stream.aclose()
        await self._drain()

    async def _drain(self) -> None:
        # Now, and not while the user thinks: nothing moves as long as a line is awaited.
        if self._manager is not None:
            await self._manager.drain()

    async def _keep(self) -> None:
        """Put in the queue what an interrupted run did not, so that it is remembered all the same.

        Closing the manager extracts it, or leaves it to the next process.
        """
        if self._manager is not None and await self._backend.checkpointer.exists(self._thread_id):
            await self._manager.on_session_end(await self._agent.state(self._thread_id))

    def _show(self, event: AgentEvent) -> None:
        if isinstance(event, TextDelta):
            self._show_text(event.text)
        elif isinstance(event, MessageAdded) and event.message.role == Role.ASSISTANT:
            if not self._is_midline:
                self._show_text(event.message.content or "")
            self._end_line()
        elif isinstance(event, Done):
            self._show_result(event.result)

    def _show_text(self, text: str) -> None:
        if text and not self._as_json:
            sys.stdout.write(visible(text))
            sys.stdout.flush()
            self._is_midline = True

    def _end_line(self) -> None:
        if self._is_midline:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_midline = False

    def _show_result(self, result: AgentResult) -> None:
        if self._as_json:
            answer = {
                "thread_id": result.thread_id,
                "checkpoint_id": result.checkpoint_id,
                "text": result.text,
            }
            sys.stdout.write(orjson.dumps(answer).decode() + "\n")
            sys.stdout.flush()

    async def _command(self, line: str) -> None:
        if line == "/help":
            sys.stdout.write(_HELP)
        elif line == "/memories":
            await self._survived(self._show_memories())
        else:
            note(f"no command {line}; there are /memories, /help and /quit")

    async def _show_memories(self) -> None:
        if self._manager is None:
            note("this chat has no memory")
            return
        document = await collect(self._backend, self._manager, [self._user])
        render = partial(render_memories, with_user=False, with_sources=False)
        render(console(), document=document)
        if document["more"]:
            note(f"{document['more']} more: locus-memory memories --offset {document['next']}")

    def _tell(self, event: Event) -> None:
        """Tell the user what memory does, and what goes wrong with it."""
        if not event.name.startswith(_TOLD):
            return
        if event.error is not None:
            note(f"memory: {event.name} ({type(event.error).__name__}: {event.error})")
        elif event.name == "memory.extracted" and self.is_interactive:
            count = event.attributes.get("memories", 0)
            if count:
                note(f"{count} remembered; /memories shows them")


def _read() -> str | None:
    line = sys.stdin.buffer.readline()
    try:
        return line.decode() if line else None
    except UnicodeDecodeError as error:
        raise CommandError(f"stdin: not UTF-8 (byte {error.start} of a line)") from None


def _tell_of_the_rest(manager: LLMMemoryManager) -> None:
    if manager.pending:
        note("memory: what was said last waits for the next chat to be remembered")
