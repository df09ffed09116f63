"""The layers of a manager's scope: identity and episodes."""

from __future__ import annotations

from collections.abc import Iterable

from locus_memory.memory.layers.episodes import Episode, EpisodeBook
from locus_memory.memory.models import Origin
from locus_memory.memory.validity import Moment
from locus_memory.memory.verbs.identity import OwnIdentity
from locus_memory.memory.verbs.single import SingleMemories

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
