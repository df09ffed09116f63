"""The branches of a session: copies of its first turns, each with a log of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.openai_agents.log import Entry, Log
from locus_memory.integrations.reading import labels_below
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_identifier

__all__ = ["Branches"]

_MAIN: Final = "main"
_PREVIEW: Final = 100


class Branches:
    """The branches of one session; the methods are those of the SDK's `AdvancedSQLiteSession`.

    A turn begins with a user's message; the first is 1. Each object has a current branch of its
    own, so processes may work on different branches of one session.

    Args:
        store: The store of the session.
        place: The namespace above those of the branches.
        ttl: Seconds until an item expires.
        branch: The current branch.
    """

    def __init__(self, store: BaseStore, place: Namespace, ttl: float | None, branch: str) -> None:
        self._branches_store = store
        self._place = place
        self._branch_ttl = ttl
        self._branch = branch
        self._log = self._log_of(branch)

    @property
    def branch(self) -> str:
        """The current branch."""
        return self._branch

    async def create_branch_from_turn(
        self, turn_number: int, branch_name: str | None = None
    ) -> str:
        """Copy the items before a turn of the current branch to a new branch, and switch to it.

        Args:
            turn_number: The turn to leave out, with all that follow it; 1 is the first.
            branch_name: The name of the branch; `None`: a new one.

        Returns:
            The name of the branch.

        Raises:
            InvalidArgumentError: There is no such turn, or the branch exists already.
        """
        entries = await self._log.read()
        begins = [index for index, entry in enumerate(entries) if _is_user_message(entry)]
        if type(turn_number) is not int or not 1 <= turn_number <= len(begins):
            raise InvalidArgumentError(
                f"turn_number is a turn from 1 to {len(begins)}, not {quote(turn_number)}"
            )
        name = f"branch-{uuid4()}" if branch_name is None else branch_name
        log = self._log_of(check_identifier(name, "branch_name"))
        kept = [entry.item for entry in entries[: begins[turn_number - 1]]]
        if name == _MAIN or not await log.start(kept):
            raise InvalidArgumentError(f"branch_name {quote(name)} exists already: choose another")
        self._branch, self._log = name, log
        return name

    async def switch_to_branch(self, branch_id: str) -> None:
        """Make another branch the current one.

        Raises:
            InvalidArgumentError: There is no such branch.
        """
        if branch_id not in {_MAIN, *await self._names()}:
            raise InvalidArgumentError(f"there is no branch {quote(branch_id)}")
        self._branch, self._log = branch_id, self._log_of(branch_id)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Return the branches in the order of their creation.

        Each has the keys `branch_id`, `message_count`, `user_turns`, `is_current` and `created_at`,
        an ISO 8601 time of its first item, or `None`.
        """
        listed = [await self._described(name) for name in await self._names()]
        return sorted(listed, key=lambda each: (each["created_at"] is None, each["created_at"]))

    async def delete_branch(self, branch_id: str, *, force: bool = False) -> None:
        """Delete a branch and its items.

        Args:
            branch_id: The branch, any but `main`.
            force: Delete even the current branch; `main` is the current one then.

        Raises:
            InvalidArgumentError: It is `main`, it does not exist, or it is the current branch.
        """
        if branch_id == _MAIN:
            raise InvalidArgumentError("the branch 'main' cannot be deleted: use clear_session")
        if branch_id not in await self._names():
            raise InvalidArgumentError(f"there is no branch {quote(branch_id)}")
        if branch_id == self._branch:
            if not force:
                raise InvalidArgumentError(
                    f"{quote(branch_id)} is the current branch: switch, or pass force=True"
                )
            await self.switch_to_branch(_MAIN)
        await self._branches_store.clear_namespace((*self._place, branch_id))

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """Return the user's messages of a branch, by default of the current one.

        Each has the keys `turn`, `content` (its first 100 characters), `full_content`, `timestamp`
        (ISO 8601) and `can_branch`.
        """
        log = self._log if branch_id is None else self._log_of(branch_id)
        turns = [entry for entry in await log.read() if _is_user_message(entry)]
        return [
            {
                "turn": number,
                "content": _preview(entry.item.get("content", "")),
                "full_content": entry.item.get("content", ""),
                "timestamp": entry.stored.created_at.isoformat(),
                "can_branch": True,
            }
            for number, entry in enumerate(turns, 1)
        ]

    def _log_of(self, branch: str) -> Log:
        return Log(self._branches_store, (*self._place, branch), self._branch_ttl)

    async def _names(self) -> list[str]:
        return [name async for name in labels_below(self._branches_store, self._place)]

    async def _described(self, name: str) -> dict[str, Any]:
        entries = await self._log_of(name).read()
        return {
            "branch_id": name,
            "message_count": len(entries),
            "user_turns": _count(map(_is_user_message, entries)),
            "is_current": name == self._branch,
            "created_at": entries[0].stored.created_at.isoformat() if entries else None,
        }


def _is_user_message(entry: Entry) -> bool:
    return entry.item.get("role") == "user"


def _count(flags: Iterable[bool]) -> int:
    return sum(flags)


def _preview(content: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return f"{text[:_PREVIEW]}..." if len(text) > _PREVIEW else text
