"""Text search over cached postings: the same hits as FTS5's, ranked at once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.posted.cache import RECENT, PostingCache, State, View
from locus_memory.backends.sqlite.search.posted.postings import Ids, Postings
from locus_memory.backends.sqlite.search.posted.ranking import (
    Scored,
    Text,
    Totals,
    Weighed,
    best_first,
    score_of,
    scores_of,
    scores_of_all,
)

__all__ = ["PostedSearch", "State", "Target", "Totals"]

_FEW: Final = 4_096
"""So many items of a scope are scored one by one, and so many namespaces are read for new ones."""

_USES: Final = 256
"""How many searches reuse the result of a check whether a scope has more items."""

_REMEMBERED: Final = 1_024
"""The number of scopes with such a result."""

Row = tuple[int, int, float]
"""The id, the revision and the score of a hit."""


@dataclass(frozen=True, slots=True)
class Target:
    """The scope and the filter of a search.

    Attributes:
        connection: The connection.
        where: The compiled filter.
        recursive: Whether the namespaces below `:path` are searched, or `:namespace`.
        values: The parameters of the statement.
    """

    connection: sqlite3.Connection
    where: str
    recursive: bool
    values: Mapping[str, object]

    def members(self, after: int, most: int) -> list[tuple[int, int, int]] | None:
        """Return the items after a revision, or `None` if there are more than `most`."""
        statement = queries.members(self.where, recursive=self.recursive)
        values = {**self.values, "after": after, "most": most + 1}
        found = self.connection.execute(statement, values).fetchall()
        return None if len(found) > most else found

    def of_those(self, ids: Ids) -> list[tuple[int, int]]:
        """Return the ids and revisions of those of the items that the search may find."""
        statement = queries.of_those(self.where, recursive=self.recursive)
        values = {**self.values, "ids": json.dumps(ids.tolist())}
        return self.connection.execute(statement, values).fetchall()

    def has_many_namespaces(self) -> bool:
        """Return whether there are too many namespaces to look for new items in each."""
        if not self.recursive:
            return False
        values = {**self.values, "most": _FEW}
        return self.connection.execute(queries.HAS_MORE_NAMESPACES, values).fetchone() is not None


class _Recent(NamedTuple):
    """An item that is newer than the cache; `text` is `None` if the search may not find it."""

    id: int
    revision: int
    is_wanted: bool
    text: Text


class PostedSearch:
    """A text search that uses cached postings once they are worth it.

    Args:
        capacity: How many bytes the postings may take.
    """

    def __init__(self, capacity: int) -> None:
        self.cache = PostingCache(capacity)
        self._wide: dict[object, int] = {}

    def find(
        self, target: Target, state: State, quoted: Sequence[str], limit: int
    ) -> list[Row] | None:
        """Return the best matches of any of the words, or `None` if FTS5 has to find them.

        Args:
            target: The scope and the filter.
            state: The state that the transaction sees.
            quoted: The words as a query has them.
            limit: How many matches to return, at least 1.
        """
        view = self.cache.view(target.connection, state, quoted)
        if view is None:
            return None
        members = self._members(target)
        recent = self._recent(target, state, view, members)
        if recent is None:
            return None
        words = [
            Weighed(word, postings, state.totals.weight(_having(word, postings, recent)))
            for word, postings in view.words
        ]
        found = [
            (each.id, each.revision, score)
            for each in recent
            if each.is_wanted and (score := score_of(each.text, words, state.totals)) > 0
        ]
        if members is not None:
            found += _of_members(members, words, view, state.totals)
        else:
            scores = scores_of_all(words, view.lengths, state.totals)
            scores[[each.id for each in recent if each.id < len(scores)]] = 0.0
            rarest = min((each.postings for each in words), key=lambda each: len(each.low))
            found = _of_all(target, found, best_first(scores, rarest, limit), limit)
        return sorted(found, key=_rank)[:limit]

    def _members(self, target: Target) -> list[tuple[int, int, int]] | None:
        """Return the items of a scope of few items; `None`: it has more."""
        name = target.values.get("namespace"), target.recursive and target.values.get("path")
        uses = self._wide.get(name, 0)
        if uses:
            self._wide[name] = uses - 1
            return None
        found = target.members(-1, _FEW)
        if found is None:
            if len(self._wide) >= _REMEMBERED:
                self._wide.clear()
            self._wide[name] = _USES
        return found

    def _recent(
        self,
        target: Target,
        state: State,
        view: View,
        members: list[tuple[int, int, int]] | None,
    ) -> list[_Recent] | None:
        """Return the items of the scope that are newer than the cache; `None`: too many."""
        if state.newest == view.newest:
            return []
        if members is not None:
            rows = [row for row in members if row[1] > view.newest]
        elif target.has_many_namespaces():
            return None
        else:
            found = target.members(view.newest, RECENT)
            if found is None:
                self.cache.drop()
                return None
            rows = found
        texts = self.cache.texts(target.connection, [row[:2] for row in rows])
        return [
            _Recent(item, revision, bool(wanted), text)
            for (item, revision, wanted), text in zip(rows, texts, strict=True)
        ]


def _rank(row: Row) -> tuple[float, int]:
    """Return the key that sorts hits, the best first."""
    return -row[2], -row[1]


def _having(word: str, postings: Postings, recent: Sequence[_Recent]) -> int:
    """Return how many items have a word, of the cached and the newer ones."""
    if not recent:
        return len(postings.low)
    replaced = np.isin(postings.ids(), [each.id for each in recent], kind="sort")
    new = sum(word in each.text.counts for each in recent)
    return len(postings.low) - int(replaced.sum()) + new


def _of_members(
    members: Sequence[tuple[int, int, int]], words: Sequence[Weighed], view: View, totals: Totals
) -> list[Row]:
    """Return the matches among a few items, without newer ones."""
    known = [
        (item, revision)
        for item, revision, is_wanted in members
        if is_wanted and revision <= view.newest and item < len(view.lengths)
    ]
    scores = scores_of(np.array([row[0] for row in known], np.int64), words, view.lengths, totals)
    return [(*row, score) for row, score in zip(known, scores.tolist(), strict=True) if score > 0]


def _of_all(
    target: Target, recent: Sequence[Row], parts: Iterable[Scored], limit: int
) -> list[Row]:
    """Return the best matches of a scope of many items, and those that are not cached."""
    found = list(recent)
    for part in parts:
        known = dict(zip(part.ids.tolist(), part.scores.tolist(), strict=True))
        found += [(item, revision, known[item]) for item, revision in target.of_those(part.ids)]
        # All scores of the next parts are lower than those of this part.
        if sum(row[2] >= part.scores[-1] for row in found) >= limit:
            break
    return found
