"""The layers of a manager's scope: identity, episodes, and their consolidation."""

from __future__ import annotations

from collections.abc import Iterable

from locus_memory.chat.base import ChatModel
from locus_memory.memory.layers.episodes import Episode, EpisodeBook
from locus_memory.memory.models import Origin
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.report import ConsolidationReport, FactsReport
from locus_memory.memory.validity import Moment
from locus_memory.memory.verbs.identity import OwnIdentity
from locus_memory.memory.verbs.single import SingleMemories
from locus_memory.store.item import Namespace

__all__ = ["LayerVerbs"]


class LayerVerbs(SingleMemories):
    """The part of a memory manager that works on the layers beside the memories."""

    @property
    def identity(self) -> OwnIdentity:
        """What a person fixed: always shown, and changed by nobody else."""
        return OwnIdentity(
            self._ledger,
            self._scope,
            self._reader,
            allow_secrets=self._options.allow_secrets,
        )

    async def episodes(
        self,
        limit: int = 20,
        *,
        origins: Iterable[Origin | str] | None = None,
        as_of: Moment | None = None,
        at: Moment | None = None,
    ) -> list[Episode]:
        """Return the notes of the newest sessions.

        Args:
            limit: At most this many sessions.
            origins: Only sessions with notes of these origins, and only these notes.
            as_of: Likewise, only notes that were said until this moment; as for `memories`.
            at: Likewise, only notes that were true at this moment.

        Raises:
            InvalidArgumentError: `limit` is not an integer of at least 0, an origin is unknown, or
                a moment is none.
            BackendError: The store failed.
        """
        book, then = EpisodeBook(self._store), self._then(as_of, at)
        return await book.newest(self._scope, limit, origins=origins, then=then)

    async def consolidate(
        self,
        now: Moment | None = None,
        *,
        dry_run: bool = False,
    ) -> ConsolidationReport:
        """End what has expired, and erase what is too old.

        It is done in the scope that this manager is bound to, or else in all scopes below
        `namespace_prefix`, those of users included. Expired facts move to the history, from which
        `undo` brings them back. Episodes, transcripts and log entries older than their retention
        are erased. If the extractor calls a model, it condenses the oldest notes, and once a day
        tidies the facts, see `consolidate_facts`.

        Args:
            now: The moment; `None`: the present one.
            dry_run: Only report; nothing is written.

        Raises:
            InvalidArgumentError: `now` is not a moment.
            BackendError: The store failed; call it again.
        """
        return await self._tender.consolidate(self._own, now, dry_run=dry_run)

    async def consolidate_facts(
        self,
        model: ChatModel,
        *,
        scope: Namespace | None = None,
        dry_run: bool = False,
    ) -> FactsReport:
        """Let a model tidy the facts; see `locus_memory.memory.consolidate_facts`."""
        owner = self._own if scope is None else Scope(scope)
        return await self._tender.consolidate_facts(owner, model, dry_run=dry_run)

    @property
    def _own(self) -> Scope | None:
        """The scope that the manager is bound to; `None`: none."""
        return self._scope if self._bound else None
