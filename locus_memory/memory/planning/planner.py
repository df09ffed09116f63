"""The planner: one block of what a run is shown, within its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.blend import Blend
from locus_memory.memory.extraction.thread import asked
from locus_memory.memory.inject import (
    Part,
    Rendered,
    fence_tokens,
    memory_line,
    render_parts,
)
from locus_memory.memory.options import TendingOptions
from locus_memory.memory.planning.asking import ask_model
from locus_memory.memory.planning.cache import ScopeCache
from locus_memory.memory.planning.decision import Decision, Section
from locus_memory.memory.planning.gate import Gate, Sight
from locus_memory.memory.planning.lines import NOTE, Outcome, PartName, PlannedLine, always_line
from locus_memory.memory.planning.sections import Found, Sections
from locus_memory.memory.planning.standing import (
    STANDING_TOKENS,
    Standing,
    StandingBook,
)
from locus_memory.memory.planning.uses import Afterwards
from locus_memory.memory.recall.found import Facts
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.warming import Warmed
from locus_memory.memory.scope import Scope, thread_of
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore

__all__ = ["Plan", "Planner"]

_CHARACTERS_A_TOKEN: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is shown, and why.

    Attributes:
        block: The fenced block; `None`: nothing.
        section: The section that the gate named.
        reason: The rule that decided.
        tokens: The tokens of the block as a message; 0 without one.
        items: How many lines it has, besides its fence.
        left_out: How many overrides did not fit.
        shown: The names of the memories in it, see `current_key`.
        lines: If an explanation was requested, each line that was found, and its fate.
    """

    block: str | None = None
    section: Section = "none"
    reason: str = ""
    tokens: int = 0
    items: int = 0
    left_out: int = 0
    shown: tuple[str, ...] = field(default=(), repr=False)
    lines: tuple[PlannedLine, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class _Contents:
    """What was found for a run, before it is rendered."""

    standing: Standing
    decision: Decision
    section: Found
    facts: Facts | None = None

    @cached_property
    def parts(self) -> tuple[tuple[PartName, Found], ...]:
        """The parts of the block, each with its lines."""
        overrides = Found.of((line, "") for line in self.standing.overrides)
        rules = Found.of(self.standing.ruled)
        return ("override", overrides), ("rule", rules), ("section", self.section)


class Planner:
    """Plans what runs are shown: what always holds, and one section that the gate names.

    Args:
        store: The store, which this never closes; it is only read.
        recall: The search for memories.
        options: The gate and the budget.
        afterwards: Does what comes after a block is returned.
        embedder: Finds episodes and turns by meaning as well.
        limit: The most memories of a section.
        blend: The order of the memories; `None`: that of the search.
        count: Counts tokens.
        clock: Returns seconds.
        now: Returns the present moment, ISO 8601 in UTC.
        model: Decides in the mode `"llm"` where no rule fires.
        warmed: The memories that were found after the turn before.
    """

    def __init__(
        self,
        store: BaseStore,
        recall: Recall,
        options: TendingOptions,
        afterwards: Afterwards,
        *,
        embedder: Embedder | None = None,
        limit: int = 20,
        blend: Blend | None = None,
        count: TokenCounter,
        clock: Callable[[], float],
        now: Callable[[], str],
        model: ChatModel | None = None,
        warmed: Warmed | None = None,
    ) -> None:
        self._gate = Gate(options.gate_mode, evidence=options.evidence)
        self._budget = options.memory_budget_tokens
        self._longest = self._budget * _CHARACTERS_A_TOKEN
        self._sections = Sections(
            store, recall, embedder, longest=self._longest, limit=limit, blend=blend
        )
        self._standings = StandingBook(store, clock, count)
        self._plans: ScopeCache[Plan] = ScopeCache(clock)
        self._afterwards = afterwards
        self._count = count
        self._now = now
        self._model = model
        self._warmed = warmed

    async def block(
        self,
        scope: Scope,
        state: Any,
        *,
        start: Callable[[], Awaitable[None]],
        timeout: float,  # noqa: ASYNC109 - a bound, then the run goes on
    ) -> str | None:
        """Return the block of a run, report why, and count what it shows.

        A failure is an event, and the run has no block.

        Args:
            scope: The scope of the run.
            state: The state of the run, whose latest text of the user is the query.
            start: Awaited before the store is read.
            timeout: The most seconds to wait for the store.
        """
        query, is_first = asked(state.messages)
        warmed = self._names(scope, query, thread_of(state))
        key = _Key(query, getattr(state, "agent_id", None), is_first, warmed)
        kept = self._plans.get(scope.namespace, key)
        plan = kept
        if plan is None:
            ticket = self._plans.ticket(scope.namespace)
            try:
                async with asyncio.timeout(timeout):
                    await start()
                    contents = await self._find(scope, key)
            except Exception as error:  # noqa: BLE001 - reported; it never fails the run
                emit("memory.retrieve_failed", error=error)
                return None
            try:
                plan = _plan_of(contents, self._rendered(contents))
            except Exception as error:  # noqa: BLE001 - reported; a caller's counter may raise
                emit("memory.inject_failed", error=error)
                return None
            self._plans.put(ticket, key, plan)
            self._afterwards.count_uses(scope, plan.shown, thread_of(state))
        _report(plan, cached=kept is not None)
        return plan.block

    async def plan(
        self,
        scope: Scope,
        query: str | None,
        *,
        agent_id: str | None = None,
        first_in_thread: bool = True,
        session_id: str = "",
        explain: bool = False,
    ) -> Plan:
        """Return what a run with this message is shown; nothing is kept or counted.

        Args:
            scope: The scope of the run.
            query: The message of the user.
            agent_id: The agent of the run.
            first_in_thread: Whether it is the user's first message in its thread.
            session_id: The thread, if it is known.
            explain: Whether to return the lines as well, with what is left out.

        Raises:
            BackendError: The store failed.
        """
        warmed = self._names(scope, query, session_id)
        key = _Key(query, agent_id, first_in_thread, warmed)
        contents = await self._find(scope, key)
        rendered = self._rendered(contents)
        plan = _plan_of(contents, rendered)
        if not explain:
            return plan
        if query and contents.facts is None:
            # The wording decided: the facts are searched only to tell what the gate kept back.
            contents = replace(contents, facts=await self._sections.facts(scope, query))
        return replace(plan, lines=tuple(self._lines(contents, rendered)))

    def check_override(self, text: str) -> None:
        """Check that there is room for an override, if it is the only one.

        Raises:
            InvalidArgumentError: No run could show it.
        """
        tokens = self._count(f"{always_line(text)}\n")
        if tokens > STANDING_TOKENS:
            raise InvalidArgumentError(
                f"an override has at most {STANDING_TOKENS} tokens, this one {tokens}: it would "
                "never be shown"
            )

    def _lines(self, contents: _Contents, rendered: Rendered | None) -> Iterator[PlannedLine]:
        """Yield each line that was found, with its fate: first those that could be shown."""
        standing, parts = contents.standing, contents.parts
        block = set(rendered.block.splitlines()) if rendered else set[str]()
        shown = rendered.shown if rendered else ((),) * len(parts)
        for (part, found), places in zip(parts, shown, strict=True):
            for place, (line, name) in enumerate(zip(found.lines, found.names, strict=True)):
                whole: Outcome = "shown" if line in block else "cut"
                yield self._line(part, line, name, whole if place in places else "budget")
        yield from (self._line("override", line, "", "budget") for line in standing.silent)
        yield from (self._line("rule", *pair, "budget") for pair in standing.unruled)
        known = {name for _, found in parts for name in found.names}
        known |= {name for _, name in standing.unruled}
        kept_back: Outcome = "limit" if contents.decision.section == "pinned" else "gate"
        for fact in contents.facts.facts if contents.facts else ():
            line = memory_line(fact.memory, self._longest)
            if line and fact.name not in known:
                yield self._line("section", line, fact.name, kept_back)

    def _line(self, part: PartName, line: str, name: str, outcome: Outcome) -> PlannedLine:
        tokens = self._count(f"{line}\n")
        return PlannedLine(part=part, line=line, tokens=tokens, outcome=outcome, name=name)

    def _names(self, scope: Scope, query: str | None, session_id: str) -> tuple[str, ...]:
        """Return the names of the memories of the turn before, if the query is about them."""
        if self._warmed is None or not session_id:
            return ()
        return self._warmed.names(scope, session_id, query)

    async def _find(self, scope: Scope, key: _Key) -> _Contents:
        standing = await self._standings.of(scope)
        decision, facts = await self._decide(scope, key, standing)
        section = await self._section(scope, key.query, decision, facts, standing)
        if decision.section == "pinned" and key.warmed:
            section = await self._with_warmed(scope, key.warmed, section, standing)
        return _Contents(standing, decision, section, facts)

    async def _decide(
        self, scope: Scope, key: _Key, standing: Standing
    ) -> tuple[Decision, Facts | None]:
        """Return the decision of the gate, and the facts if they were searched for it."""
        query = key.query
        if not query:
            return self._gate.decide("", first_in_thread=False), None
        seen: list[Facts] = []

        async def look() -> Sight:
            sight, facts = await self._sections.sight(scope, query, standing)
            seen.append(facts)
            return sight

        decision = await self._gate.choose(
            query, look, first_in_thread=key.first_in_thread, ask=self._ask(scope, query)
        )
        return decision, seen[0] if seen else None

    def _ask(self, scope: Scope, query: str) -> Any:
        if self._model is None:
            return None
        log = partial(self._afterwards.log, scope)
        return partial(ask_model, self._model, query, count=self._count, now=self._now, log=log)

    async def _section(
        self,
        scope: Scope,
        query: str | None,
        decision: Decision,
        facts: Facts | None,
        standing: Standing,
    ) -> Found:
        """Return the contents of the section that the gate named."""
        if decision.section == "none":
            return Found()
        if decision.section == "transcript":
            return await self._sections.transcript(scope, query or "")
        if facts is None:
            facts = await self._sections.facts(scope, query)
        if decision.section == "episode":
            return await self._episodes(scope, query or "", decision, facts, standing)
        if decision.section == "identity":
            return await self._sections.identity(scope, facts, self._standings, standing)
        return await self._sections.pinned(scope, facts, standing)

    async def _with_warmed(
        self, scope: Scope, names: Sequence[str], section: Found, standing: Standing
    ) -> Found:
        """Return the pinned facts after those of the turn before."""
        if self._warmed is None:
            return section
        rules = {name for _, name in standing.ruled}
        warmed = await self._warmed.read(scope, [name for name in names if name not in rules])
        return self._sections.after(warmed, section)

    async def _episodes(
        self, scope: Scope, query: str, decision: Decision, facts: Facts, standing: Standing
    ) -> Found:
        """Return the episodes of a query, or facts that are more relevant to it.

        What was decided in a session is often a fact by now. Without either, these are the latest
        episodes.
        """
        found, relevance = await self._sections.episodes(scope, query)
        best = max((fact.relevance for fact in facts.facts), default=0.0)
        is_better = best > relevance or not found.lines
        if is_better and self._sections.evidence(query, facts, standing) is not None:
            told = await self._sections.pinned(scope, facts, standing)
            found = told if told.lines else found
        return found if found.lines else await self._sections.latest(scope, decision)

    def _rendered(self, contents: _Contents) -> Rendered | None:
        """Return the block of what was found; `None`: there is nothing to show."""
        (_, overrides), (_, rules), (_, section) = contents.parts
        parts = [
            Part(overrides.lines, STANDING_TOKENS),
            Part(rules.lines, STANDING_TOKENS),
            Part(section.lines, self._budget - fence_tokens(self._count), cuts=True),
        ]
        note = NOTE if overrides.lines or rules.lines else ""
        return render_parts(parts, note=note, token_counter=self._count)


def _plan_of(contents: _Contents, rendered: Rendered | None) -> Plan:
    """Return the plan of what was found."""
    decision, left_out = contents.decision, len(contents.standing.silent)
    empty = Plan(section=decision.section, reason=decision.reason, left_out=left_out)
    if rendered is None:
        return empty
    parts = zip(contents.parts, rendered.shown, strict=True)
    names = [found.names[place] for (_, found), places in parts for place in places]
    return replace(
        empty,
        block=rendered.block,
        tokens=rendered.tokens,
        items=sum(map(len, rendered.shown)),
        shown=tuple(filter(None, names)),
    )


@dataclass(frozen=True, slots=True)
class _Key:
    """What a plan depends on, besides the contents of its scope."""

    query: str | None
    agent_id: Hashable
    first_in_thread: bool
    warmed: tuple[str, ...] = ()


def _report(plan: Plan, *, cached: bool) -> None:
    emit(
        "memory.planned",
        section=plan.section,
        reason=plan.reason,
        tokens=plan.tokens,
        items=plan.items,
        left_out=plan.left_out,
        cached=cached,
    )
    if plan.block is not None:
        emit("memory.injected", retrieved=plan.items, characters=len(plan.block))
