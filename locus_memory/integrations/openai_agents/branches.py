"""The branches of a session: copies of its first turns, each with a log of its own."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import uuid4

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.integrations.log import Entry, Log, LogGoneError
from locus_memory.integrations.openai_agents.turns import (
    described,
    is_user_message,
    texts,
    turns_of,
)
from locus_memory.integrations.reading import labels_below
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_identifier, quick_put

__all__ = ["Branches"]

_MAIN: Final = "main"
_PREVIEW: Final = 100
_T = TypeVar("_T")


class Branches:
    """The branches of one session; the methods are those of the SDK's `AdvancedSQLiteSession`.

    A turn begins with a user's message; the first is 1. Each object has a current branch of its
    own, so processes may work on different branches of one session. If another object deletes the
    current branch, `main` is the current one from the next call on. The name of a branch is never
    used for a second one.

    Args:
        store: The store of the session.
        place: The namespace above those of the branches. Its own items are the names in use.
        ttl: Seconds until an item expires.
        branch: The current branch.
    """

    def __init__(self, store: BaseStore, place: Namespace, ttl: float | None, branch: str) -> None:
        self._branches_store = store
        self._place = place
        self._branch_ttl = ttl
        self._go_to(branch)

    @property
    def branch(self) -> str:
        """The current branch."""
        return self._branch

    async def clear_session(self) -> None:
        """Delete all branches with all their items; `main` is the current branch then.

        The names of the other branches stay in use: who still has one of them as the current
        branch goes on in `main`.
        """
        for name in await self._names():
            if name == _MAIN:
                await self._log_of(_MAIN).clear()
                await self._branches_store.clear_namespace((*self._place, _MAIN, "usage"))
            else:
                await self._delete(name)
        self._go_to(_MAIN)

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
            InvalidArgumentError: There is no such turn, or the name is blank or has been used.
        """
        if isinstance(branch_name, str) and not branch_name.strip():
            raise InvalidArgumentError("branch_name: Branch name cannot be empty")
        entries = await self._read()
        begins = [index for index, entry in enumerate(entries) if is_user_message(entry)]
        if type(turn_number) is not int or not 1 <= turn_number <= len(begins):
            raise InvalidArgumentError(
                f"turn_number: Turn {quote(turn_number)} does not contain a user message in branch "
                f"{quote(self._branch)}, which has {len(begins)} turns"
            )
        name = f"branch-{uuid4()}" if branch_name is None else branch_name
        log = self._log_of(check_identifier(name, "branch_name"))
        kept = [entry.item for entry in entries[: begins[turn_number - 1]]]
        if not (await self._reserve(name) and await log.start(kept)):
            raise InvalidArgumentError(
                f"branch_name {quote(name)} has already been used: choose another"
            )
        self._go_to(name, required=True)
        return name

    async def create_branch_from_content(
        self, search_term: str, branch_name: str | None = None
    ) -> str:
        """Create a branch from the first turn that `find_turns_by_content` finds.

        Raises:
            InvalidArgumentError: None is found, or the name is blank or has been used.
        """
        found = await self.find_turns_by_content(search_term)
        if not found:
            raise InvalidArgumentError(f"No user turns found containing {quote(search_term)}")
        return await self.create_branch_from_turn(found[0]["turn"], branch_name)

    async def switch_to_branch(self, branch_id: str) -> None:
        """Make another branch the current one.

        Raises:
            InvalidArgumentError: There is no such branch.
        """
        if branch_id not in {_MAIN, *await self._names()}:
            raise _no_branch(branch_id)
        self._go_to(branch_id, required=True)

    async def list_branches(self) -> list[dict[str, Any]]:
        """Return the branches in the order of their creation.

        Each has the keys `branch_id`, `message_count`, `user_turns`, `is_current` and `created_at`,
        an ISO 8601 time of its first item, or `None`.
        """
        await self._is_left()
        listed: list[dict[str, Any]] = []
        for name in await self._names():
            entries = await self._log_of(name).read()
            listed.append(
                {
                    "branch_id": name,
                    "message_count": len(entries),
                    "user_turns": sum(map(is_user_message, entries)),
                    "is_current": name == self._branch,
                    "created_at": entries[0].stored.created_at.isoformat() if entries else None,
                }
            )
        return sorted(listed, key=lambda each: (each["created_at"] is None, each["created_at"]))

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:  # noqa: FBT001, FBT002 - as the SDK's
        """Delete a branch and its items.

        Args:
            branch_id: The branch, any but `main`.
            force: Delete even the current branch; `main` is the current one then.

        Raises:
            InvalidArgumentError: It is `main`, it does not exist, or it is the current branch.
        """
        if not str(branch_id).strip():
            raise InvalidArgumentError("branch_id: Branch ID cannot be empty")
        if branch_id == _MAIN:
            raise InvalidArgumentError("Cannot delete the 'main' branch: use clear_session")
        if branch_id not in await self._names():
            raise _no_branch(branch_id)
        if branch_id == self._branch and not force:
            raise InvalidArgumentError(
                f"Cannot delete current branch {quote(branch_id)}: switch, or pass force=True"
            )
        await self._delete(branch_id)
        if branch_id == self._branch:
            self._go_to(_MAIN)

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """Return the user's messages of a branch, by default of the current one.

        Each has the keys `turn`, `content` (its first 100 characters), `full_content`, `timestamp`
        (ISO 8601) and `can_branch`.
        """
        return [
            described(number, entries[0], _PREVIEW)
            for number, entries in turns_of(await self._read(branch_id)).items()
            if number
        ]

    async def find_turns_by_content(
        self, search_term: str, branch_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the turns whose user's message has a text in it, in any case of ASCII letters.

        They are those of `get_conversation_turns`, with the whole text as `content`.
        """
        term = re.compile(re.escape(search_term), re.IGNORECASE | re.ASCII)
        return [
            described(number, entries[0], None)
            for number, entries in turns_of(await self._read(branch_id)).items()
            if number and any(map(term.search, texts(entries[0])))
        ]

    async def _read(self, branch_id: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the items of a branch, `None` for the current one, as `Log.read` does."""
        if branch_id is not None:
            return await self._log_of(branch_id).read(limit)
        entries = await self._log.read(limit)
        if not entries and await self._is_left():
            return await self._log.read(limit)
        return entries

    async def _changed(self, change: Callable[[Log], Awaitable[_T]]) -> _T:
        """Change the log of the current branch."""
        try:
            return await change(self._log)
        except LogGoneError:
            self._go_to(_MAIN)
            return await change(self._log)

    async def _is_left(self) -> bool:
        """Go to `main` if the current branch was deleted; return whether it was."""
        gone = self._log.required and not await self._log.exists()
        if gone:
            self._go_to(_MAIN)
        return gone

    def _go_to(self, branch: str, *, required: bool = False) -> None:
        self._branch, self._log = branch, self._log_of(branch)
        # An object that begins with a branch may be the first to write it.
        self._log.required = required and branch != _MAIN

    def _log_of(self, branch: str) -> Log:
        return Log(self._branches_store, (*self._place, branch), self._branch_ttl)

    async def _names(self) -> list[str]:
        return [name async for name in labels_below(self._branches_store, self._place)]

    async def _reserve(self, name: str) -> bool:
        """Keep the name of a branch for good; false: it has been used."""
        reserved = quick_put(self._place, name, {}, ttl=self._branch_ttl, if_version=0, text="")
        try:
            await self._branches_store.put_batch([reserved])
        except VersionConflictError:
            return False
        return name != _MAIN

    async def _delete(self, name: str) -> None:
        # One of an earlier release, or one that began without `create_branch_from_turn`.
        await self._reserve(name)
        await self._branches_store.clear_namespace((*self._place, name), recursive=True)


def _no_branch(branch_id: object) -> InvalidArgumentError:
    return InvalidArgumentError(f"Branch {quote(branch_id)} does not exist")
