"""Text search over cached postings: the same hits as FTS5's, ranked at once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.posted.cache import (
    RECENT,
    STEADY,
    PostingCache,
    ScopeIds,
    State,
    View,
)
from locus_memory.backends.sqlite.search.posted.postings import Ids, Lengths, shared
from locus_memory.backends.sqlite.search.posted.ranking import (
    Everything,
    Scored,
    Text,
    Totals,
    Weighed,
    best_first,
    best_of,
    score_of,
    scores_of,
)

__all__ = ["PostedSearch", "State", "Target", "Totals"]

_FEW: Final = 4_096
"""The ids of a scope of so many items are cached."""

_REMEMBERED: Final = 256
"""The number of scopes whose ids are cached."""

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

    def newer(
        self, after: int, known: int, *, everywhere: bool
    ) -> list[tuple[int, int, int]] | None:
        """Return the items of the scope, or of the file, after a revision; `None`: too many.

        Each is an id, a revision, and whether the search may find it. Items without a text are left
        out, unless their ids are below `known`: they may have had one.
        """
        statement = queries.newer(self.where, recursive=self.recursive, everywhere=everywhere)
        values = {**self.values, "after": after, "known": known, "most": RECENT + 1}
        found = self.connection.execute(statement, values).fetchall()
        return None if len(found) > RECENT else found

    def ids(self, until: int, below: int, most: int) -> list[int] | None:
        """Return the ids of the scope's items, or `None` if there are more than `most`.

        They are below a number, in order, and of items until a revision.
        """
        statement = queries.ids_until(recursive=self.recursive)
        values = {**self.values, "until": until, "most": most + 1}
        found = self.connection.execute(statement, values).fetchall()
        return None if len(found) > most else sorted(item for (item,) in found if item < below)

    def of_those(self, ids: Ids) -> list[tuple[int, int]]:
        """Return the ids and revisions of those of the items that the search may find."""
        statement = queries.of_those(self.where, recursive=self.recursive)
        values = {**self.values, "ids": json.dumps(ids.tolist())}
        return self.connection.execute(statement, values).fetchall()


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
        recent = self._recent(target, state, view)
        if recent is None:
            return None
        # Few new items have a word of the query: the others cost one look.
        asked = {word for word, _ in view.words}
        matching = [each for each in recent if not each.text.counts.keys().isdisjoint(asked)]
        replaced = _replaced(recent, view.lengths)
        having = [
            postings.count(len(view.lengths), replaced)
            + sum(word in each.text.counts for each in matching)
            for word, postings in view.words
        ]
        words = [
            Weighed(word, postings, state.totals.weight(count))
            for (word, postings), count in zip(view.words, having, strict=True)
        ]
        found = [
            (each.id, each.revision, score_of(each.text, words, state.totals))
            for each in matching
            if each.is_wanted
        ]
        ids = self._ids(target, state, view)
        if ids is None:
            parts = best_first(Everything(words, view.lengths, state.totals, replaced), limit)
        else:
            scores = scores_of(ids, words, view.lengths, state.totals)
            scores[shared(replaced, ids)[1]] = 0.0
            parts = best_of(ids, scores, limit)
        return sorted(_of_all(target, found, parts, limit), key=_rank)[:limit]

    def _ids(self, target: Target, state: State, view: View) -> Ids | None:
        """Return the cached items of a scope that has few, in order; `None`: it has more.

        A filter does not count, and some may be deleted by now.
        """
        name = target.values.get("namespace"), target.recursive and target.values.get("path")
        held = view.scopes.get(name)
        # An item that was replaced later than this search looks is missing in a later list.
        if held is None or state.is_older(held.state):
            found = target.ids(view.state.newest, len(view.lengths), _FEW)
            held = ScopeIds(state, None if found is None else np.array(found, np.int64))
            if len(view.scopes) >= _REMEMBERED:
                view.scopes.clear()
            view.scopes[name] = held
        return held.ids

    def _recent(self, target: Target, state: State, view: View) -> list[_Recent] | None:
        """Return the items that are newer than the cache; `None`: too much has changed.

        In a small file they are those of the whole file, and the scores are those of FTS5. In a
        large one they are those of the scope: what is put or deleted elsewhere changes the weights
        by at most one of `STEADY`.
        """
        rows, then = state.totals.rows, view.state
        is_small = rows < RECENT * STEADY
        changed = 0 if is_small else max(state.newest - then.newest, abs(rows - then.totals.rows))
        found = target.newer(then.newest, len(view.lengths), everywhere=is_small)
        if found is None or changed * STEADY > rows:
            self.cache.drop()
            return None
        texts = self.cache.texts(target.connection, [row[:2] for row in found])
        recent = [
            _Recent(item, revision, bool(wanted), text)
            for (item, revision, wanted), text in zip(found, texts, strict=True)
        ]
        deleted = then.totals.rows + sum(bool(each.text.counts) for each in recent) - rows
        deleted -= int(np.count_nonzero(view.lengths[_replaced(recent, view.lengths)]))
        if is_small and deleted * STEADY > rows:
            self.cache.drop()
            return None
        return recent


def _replaced(recent: Iterable[_Recent], lengths: Lengths) -> Ids:
    """Return the ids of new items that the cache has for others, in order."""
    return np.array(sorted(each.id for each in recent if each.id < len(lengths)), np.int64)


def _rank(row: Row) -> tuple[float, int]:
    """Return the key that sorts hits, the best first."""
    return -row[2], -row[1]


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
