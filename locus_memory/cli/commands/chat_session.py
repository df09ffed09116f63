"""One session of the command `chat`: it reads lines, and an agent answers them.

Lines are read between runs of the event loop, not inside it. So a terminal can edit them, and
an interrupt either cancels the running agent or finds none.
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

from locus_memory._internal.resource import Resource
from locus_memory.agent.events import AgentEvent, AgentResult, Done, MessageAdded, TextDelta
from locus_memory.agent.loop import Agent
from locus_memory.backends.base import Backend
from locus_memory.cli.commands.memory.memories import collect, render_memories
from locus_memory.cli.options.session import Session, encryption, opened_backend
from locus_memory.cli.printing.outcome import report
from locus_memory.cli.printing.output import console, note, write_out
from locus_memory.cli.printing.unlogged import unlogged
from locus_memory.conversation.base import ConversationManager
from locus_memory.errors import BackendClosedError, LocusMemoryError
from locus_memory.events import Event, subscribe
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.memories import open_manager
from locus_memory.inspection.names import parse_namespace
from locus_memory.inspection.text import visible
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Role
from locus_memory.store.item import check_identifier

__all__ = ["ChatSession", "Model"]

Model = Any

_COMMAND: Final = re.compile(r"/[a-z]+")
_UNFINISHED: Final = frozenset(("user", "assistant", "tool"))
"""The kinds of an agent's checkpoints, except the last one of a run."""

_PATIENCE: Final = 60.0
"""Seconds to wait at the end for the model that reads the conversation."""

_TOLD: Final = ("memory.", "agent.memory")
"""Prefixes of the events that the chat reports."""

_HELP: Final = """\
/memories  show your memories
/off, /on  keep nothing of what follows but the thread; go on as before
/help      show this list
/quit      leave the chat; Ctrl-D does too
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSession:
    """The options of a chat.

    Attributes:
        session: The database and the output format.
        model: The model.
        thread_id: The thread; `None` means a new one.
        user: The user who talks.
        system: The system prompt.
        prefix: The namespace of the memories; `None` means no memory.
        off_record: Whether the chat begins off the record.
        trimmer: The conversation manager, which is closed with the chat.
        quiet: Whether to leave out the note about the scripted model.
    """

    session: Session
    model: Model
    thread_id: str | None
    user: str | None
    system: str | None
    prefix: str | None
    off_record: bool
    trimmer: ConversationManager
    quiet: bool

    def run(self) -> None:
        """Chat until there are no more lines.

        Raises:
            CommandError: On a pipe, a message has no answer; or the thread is another user's.
            InvalidArgumentError: The id of the thread or of the user is invalid.
            KeyboardInterrupt: The user interrupted the chat; everything is saved.
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
            raise CommandError(f"messages without an answer: {failures}", answered=True)

    async def _open(self, stack: AsyncExitStack, thread_id: str) -> _Talk:
        options = {"state_type": None, **encryption()}
        backend = await stack.enter_async_context(opened_backend(self.session.url, options))
        model: Any = self.model
        opened: object = model
        if isinstance(opened, Resource):
            await stack.enter_async_context(opened)
        notes = _Notes()
        # Told until the manager is closed, which extracts from the conversation.
        stack.callback(subscribe(notes.tell))
        manager = None
        if self.prefix is not None:
            # As that of `Agent`; it waits for a model that reads a whole session.
            manager = open_manager(
                backend.store,
                parse_namespace(self.prefix),
                LLMExtractor(model) if self.reads else HeuristicExtractor(),
                extract_mode="session_end",
                patience=_PATIENCE,
            )
            stack.callback(notes.tell_of_the_rest, manager)
            await stack.enter_async_context(manager)
        agent = Agent(
            self.model,
            system_prompt=self.system,
            checkpointer=backend,
            memory_manager=manager,
            conversation_manager=await stack.enter_async_context(self.trimmer),
        )
        return _Talk(self, backend, agent, manager, thread_id)

    @property
    def reads(self) -> bool:
        """Whether the model also extracts the memories; otherwise rules do."""
        return getattr(self.model, "follows_instructions", True) is True


class _Talk:
    """A running chat.

    Attributes:
        is_interactive: Whether stdin and stdout are a terminal.
    """

    def __init__(
        self,
        asked: ChatSession,
        backend: Backend,
        agent: Agent,
        manager: LLMMemoryManager | None,
        thread_id: str,
    ) -> None:
        self.is_interactive = _is_interactive()
        self._asked = asked
        self._backend = backend
        self._agent = agent
        self._manager = manager
        self._thread_id = thread_id
        self._remember = False if asked.off_record else None
        self._is_midline = False

    def run(self, runner: asyncio.Runner) -> int:
        """Answer every line; returns the number of messages without an answer."""
        failures = 0
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
            self._end_line()
        self._wait()
        return failures

    def _wait(self) -> None:
        """Tell why the end of the chat takes a moment, if it does."""
        if self._manager is None or not self._asked.reads:
            return
        if self.is_interactive and self._manager.pending:
            note("memory: the model reads the conversation; Ctrl-C leaves that to the next chat")

    def _greet(self) -> None:
        if not self._asked.quiet:
            note("without --model, the scripted model answers by a few rules")
        if self.is_interactive:
            user = f" of user {self._asked.user}" if self._asked.user else ""
            off = ", off the record" if self._asked.off_record else ""
            note(f"thread {self._thread_id}{user}{off}; /help lists commands, Ctrl-D leaves")

    def _lines(self) -> Iterator[str]:
        """Yield the user's lines, without the blank ones."""
        read = self._ask if self.is_interactive else _read
        while (line := read()) is not None:
            if line.strip():
                yield line.strip()

    def _ask(self) -> str | None:
        with suppress(ImportError):
            # Once imported, readline lets `input` edit lines.
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
        """Await some work; an error becomes one line on stderr, and the chat continues."""
        try:
            await work
        except BackendClosedError:
            raise
        except LocusMemoryError as error:
            self._end_line()
            report(error, as_json=self._asked.session.as_json)
            return False
        return True

    async def _look_at_thread(self) -> bool:
        """Check the owner of the thread; returns whether its last run is unfinished.

        Raises:
            CommandError: The thread belongs to another user, or to a user and none is named.
        """
        newest = await self._backend.checkpointer.list_with_metadata(self._thread_id, 1)
        if not newest:
            return False
        state = await self._agent.state(self._thread_id)
        owner = state.metadata.get("user_id")
        if owner is not None and self._asked.user not in (None, owner):
            raise CommandError(
                f"thread {self._thread_id!r} belongs to another user: choose another"
            )
        if owner is not None and self._asked.user is None:
            raise CommandError(
                f"thread {self._thread_id!r} belongs to a user: name the user with --user"
            )
        # The tools of an interrupted call are not available here: the next message repairs it.
        is_open = not state.messages or bool(state.messages[-1].tool_calls)
        return newest[0].metadata.get("kind") in _UNFINISHED and not is_open

    async def _resume(self) -> None:
        """Finish the run that an earlier process left unfinished."""
        result = await self._agent.resume(self._thread_id)
        if result.messages:
            note("the last run was interrupted: this is its missing answer")
            self._show_text(result.text)
            self._end_line()
            self._show_result(result)

    async def _answer(self, line: str) -> None:
        stream = self._agent.stream(
            line, self._thread_id, user_id=self._asked.user, remember=self._remember
        )
        try:
            async for event in stream:
                self._show(event)
        finally:
            await stream.aclose()

    async def _keep(self) -> None:
        """Queue the messages of an interrupted run for extraction.

        Closing the manager extracts from them, or leaves them to the next process.
        """
        if self._manager is not None and await self._backend.checkpointer.exists(self._thread_id):
            await self._manager.on_session_end(await self._agent.state(self._thread_id))
            if not self._asked.reads:
                # Rules take no time, and the interrupt may have come in the midst of them.
                await self._manager.drain()

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
        if text and not self._asked.session.as_json:
            write_out(visible(text))
            sys.stdout.flush()
            self._is_midline = True

    def _end_line(self) -> None:
        if self._is_midline:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_midline = False

    def _show_result(self, result: AgentResult) -> None:
        if self._asked.session.as_json:
            answer = {
                "thread_id": result.thread_id,
                "checkpoint_id": result.checkpoint_id,
                "text": result.text,
            }
            write_out(orjson.dumps(answer).decode() + "\n")
            sys.stdout.flush()

    async def _command(self, line: str) -> None:
        if line == "/help":
            sys.stdout.write(_HELP)
        elif line == "/memories":
            await self._survived(self._show_memories())
        elif line in ("/off", "/on"):
            self._remember = line == "/on"
            note("on the record" if self._remember else "off the record: only the thread is kept")
        else:
            note(f"unknown command {line}; known: /memories, /off, /on, /help, /quit")

    async def _show_memories(self) -> None:
        if self._manager is None:
            note("this chat runs with --no-memory")
            return
        # What the model has not read yet is read now.
        await self._manager.drain()
        document = await collect(self._backend, self._manager, [self._asked.user])
        render = partial(render_memories, with_user=False, with_sources=False)
        render(console(), document=document)
        if document["more"]:
            note(f"{document['more']} more: locus-memory memories --offset {document['next']}")


def _is_interactive() -> bool:
    """Return whether stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _read() -> str | None:
    line = sys.stdin.buffer.readline()
    try:
        return line.decode() if line else None
    except UnicodeDecodeError as error:
        raise CommandError(f"stdin: not UTF-8 (byte {error.start} of a line)") from None


class _Notes:
    """The notes about what the memory does, from its events."""

    def __init__(self) -> None:
        self._is_interactive = _is_interactive()
        self._has_failed = False

    def tell(self, event: Event) -> None:
        """Print a note about new memories or an error of the memory."""
        if not event.name.startswith(_TOLD):
            return
        if event.error is not None:
            self._has_failed = True
            if event.name != "memory.drain_timeout":
                note(f"memory: {event.name} ({type(event.error).__name__}: {event.error})")
        elif event.name == "memory.extracted" and self._is_interactive:
            count = event.attributes.get("memories", 0)
            if count:
                note(f"new memories: {count}; /memories shows them")

    def tell_of_the_rest(self, manager: LLMMemoryManager) -> None:
        """Print a note about messages that could not be read; a short session waits in silence."""
        if self._has_failed and manager.pending:
            note("memory: the last messages stay queued; the next chat extracts from them")
