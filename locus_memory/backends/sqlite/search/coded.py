"""Vector search over codes: estimates of all cosines, and exact cosines of the best.

Three steps, each over fewer vectors: the signs of all codes are compared with those of the query,
the codes that differ least are estimated, and the vectors of the best estimates are read from the
file. How many pass a step follows from the error of the step before, so that queries with many
vectors at nearly the same distance examine more of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.code_blocks import Ids, Mask, Singles
from locus_memory.backends.sqlite.search.code_cache import Codes
from locus_memory.backends.sqlite.search.codes import Target, error, words_of
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.store.filters import All, Condition

__all__ = ["CodedSearch", "Exact"]

Exact = Callable[[list[int], int], tuple[Ids, NDArray[np.float64]]]
"""Reads vectors by their ids, and returns the ids and cosines of those that may be the best."""

_SPREADS: Final = 3.5
"""How many standard errors a code may be beyond the best ones, to be estimated."""

_FEWEST, _PORTION = 4_096, 5
"""At least so many codes are estimated by their signs, and at most one of so many of them."""

_ESTIMATED: Final = 8_192
"""How many codes are estimated with their sizes, for a page that begins with the best."""

_FIRST, _NEXT, _MOST = 128, 256, 2_048
"""How many vectors are read at first, then, and at most."""

_SAMPLE: Final = 1_024
_ENOUGH: Final = 100
"""A filter that this many of the best `_SAMPLE` satisfy is evaluated for those only."""

_FAR: Final = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class CodedSearch:
    """A search for the vectors that are nearest to a query.

    Attributes:
        connection: The connection.
        codes: The codes, as the transaction sees them.
        vector: The query, as float32.
        condition: The filter.
        expired: The ids of vectors whose items are expired.
        wanted: How many are wanted.
    """

    connection: sqlite3.Connection
    codes: Codes
    vector: bytes
    condition: Condition
    expired: Ids
    wanted: int

    def best(self, exact: Exact) -> tuple[Ids, NDArray[np.float64]]:
        """Return the ids and the cosines of the best, in no order, and of some more."""
        ids, estimates = self._estimated()
        dimension = len(self.vector) // 4
        found_ids, found = np.empty(0, np.int64), np.empty(0, np.float64)
        start, step, most = 0, max(_FIRST, 2 * self.wanted), _MOST + 4 * self.wanted
        while start < min(len(ids), most):
            more = exact(ids[start : start + step].tolist(), self.wanted)
            found_ids = np.concatenate((found_ids, more[0]))
            found = np.concatenate((found, more[1]))
            start, step = start + step, _NEXT
            if len(found) < self.wanted or start >= len(ids):
                continue
            last = float(np.partition(found, -self.wanted)[-self.wanted])
            if estimates[start] < last - 3 * error(dimension, last) - 1e-4:
                break
        return found_ids, found

    def _estimated(self) -> tuple[Ids, Singles]:
        """Return the ids of the codes with the best estimates, the best first, and these."""
        rows, target = self.codes.rows, Target.of(self.vector)
        distances = rows.distances(target)
        if rows.dead is not None:
            distances[rows.dead] = _FAR
        if len(self.expired):
            distances[np.isin(rows.ids(), self.expired)] = _FAR
        if self.condition == All(()):
            return self._nearest(target, distances)
        mask = self.codes.mask(repr(self.condition))
        if mask is None:
            ids, estimates = self._nearest(target, distances)
            kept = self._sampled(ids)
            if int(kept.sum()) >= max(_ENOUGH, 8 * self.wanted):
                return ids[: len(kept)][kept], estimates[: len(kept)][kept]
        distances[~self._satisfying(mask)] = _FAR
        return self._nearest(target, distances)

    def _nearest(self, target: Target, distances: NDArray[np.uint16]) -> tuple[Ids, Singles]:
        places = self._places(distances)
        rows = self.codes.rows
        sums, rough = rows.by_signs(target, places)
        most = _ESTIMATED + 8 * self.wanted
        if len(places) > most:
            chosen = np.flatnonzero(rough >= np.partition(rough, -most)[-most])
            places, sums = places[chosen], sums[chosen]
        estimates = rows.by_sizes(target, places, sums)
        ids = rows.ids_at(places)
        # Among equals, the newest comes first.
        order = np.lexsort((-ids, -estimates))
        return ids[order], estimates[order]

    def _places(self, distances: NDArray[np.uint16]) -> Ids:
        """Return the places of the codes to estimate."""
        fewest = min(len(distances), _FEWEST + 16 * self.wanted)
        if fewest == len(distances):
            return np.flatnonzero(distances < _FAR)
        most = max(fewest, len(distances) // _PORTION)
        few, near, far = np.partition(distances, (self.wanted, fewest - 1, most - 1))[
            [self.wanted, fewest - 1, most - 1]
        ].tolist()
        bits = 64 * words_of(len(self.vector) // 4)
        spread = (few * max(0, bits - few) / bits) ** 0.5
        limit = min(max(few + _SPREADS * spread, near), far)
        return np.flatnonzero(distances <= min(limit, _FAR - 1))

    def _sampled(self, ids: Ids) -> Mask:
        """Return which of the first ids satisfy the filter."""
        sample = ids[: _SAMPLE + 8 * self.wanted]
        return np.isin(sample, self._listed(sample))

    def _satisfying(self, known: Mask | None) -> Mask:
        """Return which of all rows satisfy the filter."""
        rows = self.codes.rows
        if known is None:
            found = np.fromiter(self._evaluated(), np.int64)
            mask = np.isin(rows.ids(), found)
        elif len(known) < rows.count:
            new = rows.ids(len(known))
            mask = np.concatenate((known, np.isin(new, self._listed(new))))
        else:
            return known[: rows.count]
        self.codes.keep_mask(repr(self.condition), mask)
        return mask

    def _evaluated(self) -> Iterator[int]:
        where, bound = compile_filter(self.condition, metadata="i.metadata", value="i.value")
        statement = queries.vectors_that_satisfy(where)
        for shelf in self.codes.shelves.values():
            values = {"namespace": shelf.namespace, "dimension": shelf.dimension, **bound}
            for (found,) in self.connection.execute(statement, values):
                yield found

    def _listed(self, ids: Ids) -> Ids:
        where, bound = compile_filter(self.condition, metadata="i.metadata", value="i.value")
        values: dict[str, Any] = {"ids": json.dumps(ids.tolist()), **bound}
        found = self.connection.execute(queries.listed_that_satisfy(where), values)
        return np.fromiter((row[0] for row in found), np.int64)
