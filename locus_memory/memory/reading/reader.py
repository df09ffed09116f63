"""The reader: what a run is shown of what is known, in two parts and within one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final

from locus_memory._internal.notebook import table
from locus_memory.chat.base import CONTEXT_WINDOW, ChatModel
from locus_memory.conversation.roles import BLOCK_CLOSE, STABLE_OPENING, runs_off_record
from locus_memory.conversation.tokens import message_tokens
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import asked, query_of
from locus_memory.memory.layers.log import timed
from locus_memory.memory.layers.runs import RunLog, SeenRun
from locus_memory.memory.reading.gate import is_everyday, needs_memory
from locus_memory.memory.reading.lines import Line, Outcome, fitting, grouped, oldest_word
from locus_memory.memory.reading.reading import Reading
from locus_memory.memory.reading.stable import Stable, build, stable_of, touch
from locus_memory.memory.reading.tail import tail_lines
from locus_memory.memory.reading.uses import Afterwards, report_log
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope, thread_of
from locus_memory.memory.secrets.detection import secrets_in
from locus_memory.memory.validity import Then
from locus_memory.messages import Message

__all__ = ["Plan", "Reader"]

_SHARE_OF_WINDOW: Final = 8
"""All that a run is shown takes at most this fraction of its model's window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is shown.

    Attributes:
        stable: The block at the end of the system prompt; `None`: nothing is known.
        tail: The block in front of the latest message of the user; `None`: nothing answers it.
        block: Both as one block, for a caller that has one place for it.
        tokens: The tokens of both parts as messages.
        items: How many lines both have, besides fences and headings.
        left_out: How much that a person fixed did not fit.
        is_kept: Whether the stable part is that of an earlier run of the thread.
        since: The moment of the oldest note or quote in both; empty: there is none.
        shown: The names of the memories in the tail, see `current_key`.
        lines: If an explanation was requested, each line that was found, with its place.
    """

    stable: str | None = None
    tail: str | None = None
    block: str | None = None
    tokens: int = 0
    items: int = 0
    left_out: int = 0
    is_kept: bool = False
    since: str = ""
    shown: tuple[str, ...] = field(default=(), repr=False)
    lines: tuple[Line, ...] = field(default=(), repr=False)

    def _repr_html_(self) -> str:
        return table([("stable part", self.stable), ("tail", self.tail), ("tokens", self.tokens)])


@dataclass(frozen=True, kw_only=True)
class Reader(Reading):
    """Plans what runs are shown: a part that stays as it is, and a tail for the message.

    Attributes:
        afterwards: Does what comes after a plan is returned.
        model: Decides whether a message needs memories, where the rules of the gate say no.
    """

    afterwards: Afterwards
    model: ChatModel | None = None

    def over(self, recall: Recall, then: Then) -> Reader:
        """Return a reader of what a search finds, at another moment.

        Args:
            recall: The search, over a store with all that may be shown.
            then: The moment.
        """
        return replace(self, recall=recall, now=then.now.isoformat)

    @cached_property
    def runs(self) -> RunLog:
        """The records of what runs were shown."""
        return RunLog(self.recall.store)

    @cached_property
    def _fence(self) -> int:
        """The tokens of a part as a message, without its lines."""
        return message_tokens(Message.system(_fenced("")), self.count)

    async def of_run(
        self,
        scope: Scope,
        state: Any,
        *,
        start: Callable[[], Awaitable[None]],
        timeout: float,  # noqa: ASYNC109 - a bound, then the run goes on
    ) -> Plan:
        """Return what a run is shown, report and record it, and count what it shows.

        A failure is an event, and the run is shown nothing. A run that is off the record is shown
        the same, and nothing of it is counted or kept. The budget is at most an eighth of the
        `CONTEXT_WINDOW`.

        Args:
            scope: The scope of the run.
            state: The state of the run, whose latest text of the user is the query.
            start: Awaited before the store is read.
            timeout: The most seconds to wait for the store.
        """
        thread, off_record = thread_of(state), runs_off_record(state)
        window, budget = CONTEXT_WINDOW.get(), self.options.memory_budget_tokens
        if window is not None:
            budget = min(budget, window // _SHARE_OF_WINDOW)
        try:
            async with asyncio.timeout(timeout):
                await start()
                said, at = asked(state.messages), self.now()
                query = query_of(said)
                stable = await stable_of(self, scope, thread, budget, keeps=not off_record)
                plan = await self._plan(scope, query, stable, budget, thread, logs=not off_record)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.retrieve_failed", error=error)
            return Plan()
        if not off_record:
            run = SeenRun(
                thread=thread,
                at=at,
                message=query or "",
                stable=plan.stable,
                tail=plan.tail,
                tokens=plan.tokens,
                items=plan.items,
                since=plan.since,
            )
            record = self._record(scope, run, stable, said)
            self.afterwards.later(record, report_log)
            self.afterwards.count_uses(scope, plan.shown, thread)
        emit(
            "memory.planned",
            tokens=plan.tokens,
            items=plan.items,
            left_out=plan.left_out,
            cached=plan.is_kept,
        )
        return plan

    async def _record(
        self, scope: Scope, run: SeenRun, stable: Stable, said: Sequence[tuple[str, str]]
    ) -> None:
        """Record that the stable part of a run was used now, and what the run saw."""
        if not self.options.transcript:
            await touch(self, scope, run.thread, stable)
            return
        kinds = [] if self.options.allow_secrets else await secrets_in(said)
        own = [kind for (role, _), kind in zip(said, kinds, strict=bool(kinds)) if role == "user"]
        run = replace(run, message=None if any(own[-1:]) else run.message)
        await touch(self, scope, run.thread, stable, self.runs.put(scope, run))
        await self.runs.trim(scope)

    async def plan(
        self, scope: Scope, query: str | None, *, thread: str = "", explain: bool = False
    ) -> Plan:
        """Return what a run with this message is shown; nothing is counted.

        Args:
            scope: The scope of the run.
            query: The message of the user.
            thread: The thread, whose stable part is kept; without one, nothing is.
            explain: Whether to return the lines as well, with what is left out.

        Raises:
            BackendError: The store failed.
        """
        budget, keeps = self.options.memory_budget_tokens, bool(thread) and not explain
        stable = await (stable_of if keeps else build)(self, scope, thread, budget)
        return await self._plan(scope, query, stable, budget, thread, explain=explain)

    async def _plan(
        self,
        scope: Scope,
        query: str | None,
        stable: Stable,
        budget: int,
        thread: str,
        *,
        explain: bool = False,
        logs: bool = True,
    ) -> Plan:
        """Return the plan for a message; `logs`: whether a decision of the gate is in the log."""
        found = await tail_lines(self, scope, query, stable, thread)
        is_open = await self._opens(scope if logs else None, query, found)
        begun = stable.tokens + self._fence if stable.text else 0
        room, zone = budget - begun - self._fence, self.options.zone()
        chosen, spent = fitting(found, room, self.count, zone) if is_open else ([], 0)
        tail = "".join(
            f"{text}\n" for text in grouped(sorted(chosen, key=attrgetter("moment")), zone)
        )
        return Plan(
            stable=_fenced(stable.text) if stable.text else None,
            tail=_fenced(tail) if tail else None,
            block=_fenced(stable.text + tail) if stable.text or tail else None,
            tokens=begun + (spent + self._fence if tail else 0),
            items=len(chosen) + sum(each.startswith("- ") for each in stable.text.splitlines()),
            left_out=stable.left_out,
            is_kept=stable.is_kept,
            since=min(filter(None, (stable.since, oldest_word(chosen))), default=""),
            shown=tuple(line.name for line in chosen if line.kind == "fact"),
            lines=tuple(self._explained(stable, found, chosen, "budget" if is_open else "gate"))
            if explain
            else (),
        )

    async def _opens(self, scope: Scope | None, query: str | None, found: Sequence[Line]) -> bool:
        """Return whether the gate lets the tail through."""
        if self.options.gate == "off" or not found or not query:
            return True
        if not is_everyday(query, [line.text for line in found]):
            return True
        if self.model is None:
            return False
        log: AbstractContextManager[None] = nullcontext()
        if scope is not None:
            log = timed("gate", self.now(), partial(self.afterwards.log, scope))
        return await needs_memory(self.model, query, log=log)

    def _explained(
        self, stable: Stable, found: Sequence[Line], chosen: Sequence[Line], left_out: Outcome
    ) -> Iterator[Line]:
        """Yield each line that was found, with its place and its tokens.

        Args:
            stable: The stable part, which was built just now.
            found: The lines for the tail.
            chosen: Those of them that stand in it.
            left_out: The place of the others.
        """
        seen = {line.text for line in (*stable.lines, *found)}
        others = {line.text: line for line in stable.rest if line.text and line.text not in seen}
        placed: list[tuple[Line, Outcome]] = [
            *((line, "stable") for line in stable.lines),
            *((line, "tail" if line in chosen else left_out) for line in found),
            *((line, "budget") for line in others.values()),
        ]
        for line, outcome in placed:
            yield line._replace(outcome=outcome, tokens=self.count(f"{line.text}\n"))


def _fenced(lines: str) -> str:
    return f"{STABLE_OPENING}{lines}{BLOCK_CLOSE}"
