"""The layers of a manager's scope: identity, episodes, and their consolidation."""

from __future__ import annotations

from functools import partial

from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.memory.layers.episodes import Episode, EpisodeBook
from locus_memory.memory.layers.identity import IdentityBook, OwnIdentity
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.reading.fixed import check_override
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.report import ConsolidationReport
from locus_memory.memory.tending.rewriting.report import FactsReport
from locus_memory.memory.tending.tender import Moment, Tender
from locus_memory.store.item import Namespace

__all__ = ["LayerVerbs"]


class LayerVerbs:
    """The part of a memory manager that works on the layers beside the memories."""

    _ledger: Ledger
    _scope: Scope
    _bound: bool
    _identities: IdentityBook
    _episodes: EpisodeBook
    _tender: Tender
    _count: TokenCounter

    @property
    def identity(self) -> OwnIdentity:
        """Who the owner of the memories is: what a person fixed, and what was derived."""
        check = partial(check_override, count=self._count)
        return OwnIdentity(self._identities, self._scope, self._ledger.now, check=check)

    async def episodes(self, limit: int = 20) -> list[Episode]:
        """Return the digests of the newest sessions.

        Raises:
            InvalidArgumentError: `limit` is not an integer of at least 0.
            BackendError: The store failed.
        """
        return await self._episodes.newest(self._scope, limit)

    async def consolidate(
        self,
        scope: Namespace | None = None,
        now: Moment | None = None,
        *,
        dry_run: bool = False,
    ) -> ConsolidationReport:
        """Let memories fade or end, as far as it is time for it.

        Salience falls, and expired facts move to the history, from which `undo` brings them back.
        Episodes, transcripts and log entries older than their retention are erased. If the
        extractor calls a model, it writes the narrative, and once a day tidies the facts, see
        `consolidate_facts`.

        Args:
            scope: The namespace of one owner's memories; `None`: the scope that this manager is
                bound to, else all scopes below `namespace_prefix`, those of users included.
            now: The moment; `None`: the present one.
            dry_run: Only report; nothing is written.

        Raises:
            InvalidArgumentError: `now` is not a moment.
            BackendError: The store failed; call it again.
        """
        return await self._tender.consolidate(self._of(scope), now, dry_run=dry_run)

    async def consolidate_facts(
        self,
        model: ChatModel,
        *,
        scope: Namespace | None = None,
        dry_run: bool = False,
        batch: int = 60,
    ) -> FactsReport:
        """Let a model tidy the facts; see `locus_memory.memory.consolidate_facts`."""
        owner = self._of(scope)
        return await self._tender.consolidate_facts(owner, model, dry_run=dry_run, batch=batch)

    def _of(self, scope: Namespace | None) -> Scope | None:
        if scope is not None:
            return Scope(scope)
        return self._scope if self._bound else None
