"""The tokens that the turns of a session took; kept below each branch, by a turn's first item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit
from locus_memory.integrations.openai_agents.branches import Branches
from locus_memory.integrations.openai_agents.turns import structure, tools_used, turns_of
from locus_memory.integrations.reading import readable
from locus_memory.store.item import StoreItem

if TYPE_CHECKING:
    from agents.result import RunResultBase
    from agents.usage import Usage

__all__ = ["Usages"]

_COUNTS: Final = ("requests", "input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = ("input_tokens_details", "output_tokens_details")


class Usages(Branches):
    """The usage of a session by turns; the methods are those of `AdvancedSQLiteSession`.

    The usage of a turn is gone with the turn's first item.
    """

    async def store_run_usage(self, result: RunResultBase) -> None:
        """Keep the usage of a run with the last turn of the current branch, after the run.

        A failure of the database is told by the event `integrations.usage_not_stored`.
        """
        try:
            turns = list(turns_of(await self._read()).values())
            if turns:
                place = (*self._log.namespace, "usage")
                value = _value_of(result.context_wrapper.usage)
                await self._branches_store.put(
                    place, turns[-1][0].key, value, ttl=self._branch_ttl, text=""
                )
        except LocusMemoryError as error:
            emit("integrations.usage_not_stored", error=error, branch=self._branch)

    async def get_session_usage(self, branch_id: str | None = None) -> dict[str, int] | None:
        """Return the sums of a branch, or of all branches; `None` if no usage is stored.

        The keys are `requests`, `input_tokens`, `output_tokens`, `total_tokens` and `total_turns`.
        """
        names = [branch_id] if branch_id else await self._names()
        found = [usage for name in names for usage in (await self._used(name)).values()]
        if not found:
            return None
        sums = {each: sum(usage[each] for usage in found) for each in _COUNTS}
        return {**sums, "total_turns": len(found)}

    async def get_turn_usage(
        self, user_turn_number: int | None = None, branch_id: str | None = None
    ) -> list[dict[str, Any]] | dict[str, Any]:
        """Return the usage of a turn, `{}` if none is stored; without a number, of each turn."""
        used = await self._used(branch_id)
        if user_turn_number is not None:
            return used.get(user_turn_number, {})
        return [{"user_turn_number": number, **usage} for number, usage in used.items()]

    async def get_conversation_by_turns(
        self, branch_id: str | None = None
    ) -> dict[int, list[dict[str, str | None]]]:
        """Return the `type` and the `tool_name` of each item, by turns."""
        turns = turns_of(await self._read(branch_id))
        return {number: structure(entries) for number, entries in turns.items()}

    async def get_tool_usage(
        self, branch_id: str | None = None
    ) -> list[tuple[str | None, int, int]]:
        """Return the name of each tool, how often it was called in a turn, and the turn."""
        return tools_used(await self.get_conversation_by_turns(branch_id))

    async def _used(self, branch_id: str | None) -> dict[int, dict[str, Any]]:
        turns = turns_of(await self._read(branch_id))
        begins = {entries[0].key: number for number, entries in turns.items()}
        log = self._log if branch_id is None else self._log_of(branch_id)
        return {
            begins[stored.key]: usage
            async for stored, usage in readable(
                self._branches_store, (*log.namespace, "usage"), _usage_of
            )
            if stored.key in begins
        }


def _value_of(usage: Usage) -> dict[str, Any]:
    counts = {each: getattr(usage, each) or 0 for each in _COUNTS}
    details = {each: getattr(usage, each) for each in _DETAILS}
    return counts | {
        name: each.model_dump(mode="json") if each else None for name, each in details.items()
    }


def _usage_of(stored: StoreItem) -> dict[str, Any]:
    return {each: stored.value[each] for each in (*_COUNTS, *_DETAILS)}
