"""The codes of a search in memory: rows that are only added, and marks of deletions.

All values are immutable for their users. Rows that are added later are behind their own rows, in
the same buffers or in further ones, and a mark makes a new array of marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite.search.codes import PLANES, Target, code_bytes, words_of
from locus_memory.errors import BackendCorruptError

__all__ = ["Block", "CodeRows", "block_of", "bytes_per_code"]

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Singles = NDArray[np.float32]

_FULL: Final = 65_536
"""The number of rows after which a new block begins."""


def bytes_per_code(dimension: int) -> int:
    """Return the memory of a row: its code, its id, its namespace and its mark."""
    return code_bytes(dimension) + 8 + 8 + 1


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that lie together, in buffers with room for more.

    Attributes:
        count: The number of rows.
        ids: The ids of the vectors.
        owners: The ids of their namespaces.
        planes: The words of their codes, of shape `(words, room)`.
        factors: The factors of their codes, of shape `(room, 2)`.
    """

    count: int
    ids: Ids
    owners: Ids
    planes: NDArray[np.uint64]
    factors: Singles

    def extended(self, other: Block) -> Block:
        """Return a block with the rows of both."""
        count = self.count + other.count
        made = (
            self
            if count <= len(self.ids)
            else self._roomier(max(count, min(_FULL, count + count // 4)))
        )
        here = slice(self.count, count)
        # Other users of this block read its own rows only.
        made.ids[here], made.owners[here] = other.ids[: other.count], other.owners[: other.count]
        made.planes[:, here] = other.planes[:, : other.count]
        made.factors[here] = other.factors[: other.count]
        return replace(made, count=count)

    def _roomier(self, room: int) -> Block:
        made = Block(
            self.count,
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty((len(self.planes), room), np.uint64),
            np.empty((room, 2), np.float32),
        )
        here = slice(0, self.count)
        made.ids[here], made.owners[here] = self.ids[here], self.owners[here]
        made.planes[:, here], made.factors[here] = self.planes[:, here], self.factors[here]
        return made

    def chosen(self, kept: Mask) -> Block:
        """Return a block with some of the rows."""
        here = slice(0, self.count)
        return Block(
            int(kept.sum()),
            self.ids[here][kept],
            self.owners[here][kept],
            np.ascontiguousarray(self.planes[:, here][:, kept]),
            self.factors[here][kept],
        )


def block_of(ids: Ids, namespace: int, codes: list[bytes], dimension: int) -> Block:
    """Return the block of ids with their codes.

    Raises:
        BackendCorruptError: A code is damaged.
    """
    size = 8 * PLANES * words_of(dimension)
    try:
        rows = np.frombuffer(b"".join(codes), np.uint8).reshape(len(ids), code_bytes(dimension))
    except (TypeError, ValueError) as error:
        raise BackendCorruptError("sqlite: the code of a stored vector is damaged") from error
    words = np.ascontiguousarray(rows[:, :size]).view("<u8").astype(np.uint64, copy=False)
    factors = np.ascontiguousarray(rows[:, size:]).view("<f4").astype(np.float32, copy=False)
    owners = np.full(len(ids), namespace, np.int64)
    return Block(len(ids), ids, owners, np.ascontiguousarray(words.T), factors)


@dataclass(frozen=True, slots=True)
class CodeRows:
    """The rows of all blocks, and which of them are deleted.

    Attributes:
        blocks: The blocks, none of them empty.
        dead: A mark for each deleted row; `None`: there is none.
    """

    blocks: tuple[Block, ...] = ()
    dead: Mask | None = None

    @property
    def count(self) -> int:
        """The number of rows, deleted ones as well."""
        return sum(block.count for block in self.blocks)

    @property
    def deleted(self) -> int:
        """The number of deleted rows."""
        return 0 if self.dead is None else int(self.dead.sum())

    @property
    def size(self) -> int:
        """The memory in bytes."""
        return sum(
            each.ids.nbytes + each.owners.nbytes + each.planes.nbytes + each.factors.nbytes
            for each in self.blocks
        )

    def ids(self, start: int = 0) -> Ids:
        """Return the ids of the rows from a place on."""
        found = [block.ids[max(0, start - first) : block.count] for first, block in self._placed()]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _placed(self) -> Iterator[tuple[int, Block]]:
        first = 0
        for block in self.blocks:
            yield first, block
            first += block.count

    def extended(self, block: Block) -> CodeRows:
        """Return the rows with those of a block behind them."""
        dead = self.dead
        if dead is not None:
            dead = np.concatenate((dead, np.zeros(block.count, np.bool_)))
        if self.blocks and self.blocks[-1].count + block.count <= _FULL:
            *others, last = self.blocks
            return CodeRows((*others, last.extended(block)), dead)
        return CodeRows((*self.blocks, block), dead)

    def marked(self, ids: list[int], *, dead: bool) -> CodeRows:
        """Return the rows with other marks for these ids."""
        hit = np.isin(self.ids(), np.array(ids, np.int64))
        return self._with_marks(hit, dead=dead)

    def without(self, namespaces: list[int]) -> CodeRows:
        """Return the rows with marks for all of these namespaces."""
        return self._with_marks(self._owned_by(namespaces), dead=True)

    def has_any_of(self, namespaces: list[int]) -> bool:
        """Return whether any row, deleted or not, is of one of these namespaces."""
        # Without a mark, all rows are of namespaces that have vectors.
        return self.dead is not None and bool(self._owned_by(namespaces).any())

    def _owned_by(self, namespaces: list[int]) -> Mask:
        owners = np.concatenate([block.owners[: block.count] for block in self.blocks])
        return np.isin(owners, np.array(namespaces, np.int64))

    def _with_marks(self, hit: Mask, *, dead: bool) -> CodeRows:
        before = np.zeros(len(hit), np.bool_) if self.dead is None else self.dead
        marks = before | hit if dead else before & ~hit
        return CodeRows(self.blocks, marks if marks.any() else None)

    def compacted(self) -> CodeRows:
        """Return the rows without the deleted ones."""
        made = CodeRows()
        for first, block in self._placed():
            kept = ~self.marks()[first : first + block.count]
            if kept.any():
                made = made.extended(block if kept.all() else block.chosen(kept))
        return made

    def marks(self) -> Mask:
        """Return a mark for each row: whether it is deleted."""
        return np.zeros(self.count, np.bool_) if self.dead is None else self.dead

    def distances(self, target: Target) -> NDArray[np.uint16]:
        """Return how many signs of each row differ from those of the target."""
        return np.concatenate(
            [target.distances(block.planes[:, : block.count]) for block in self.blocks]
        )

    def by_signs(self, target: Target, places: Ids) -> tuple[Singles, Singles]:
        """Return the sums by signs at ascending places, and the estimates of the cosines."""
        sums = np.empty(len(places), np.float32)
        estimates = np.empty(len(places), np.float32)
        for block, here, local in self._at(places):
            sums[here] = target.by_signs(block.planes, local)
            estimates[here] = sums[here] * block.factors[local, 0]
        return sums, estimates

    def by_sizes(self, target: Target, places: Ids, sums: Singles) -> Singles:
        """Return the finer estimates of the cosines at ascending places, from the sums by signs."""
        estimates = np.empty(len(places), np.float32)
        for block, here, local in self._at(places):
            found = target.by_sizes(block.planes, local, sums[here])
            estimates[here] = found * block.factors[local, 1]
        return estimates

    def ids_at(self, places: Ids) -> Ids:
        """Return the ids at ascending places."""
        found = [block.ids[local] for block, _, local in self._at(places)]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _at(self, places: Ids) -> Iterator[tuple[Block, slice, Ids]]:
        for first, block in self._placed():
            start, stop = np.searchsorted(places, (first, first + block.count)).tolist()
            if start < stop:
                yield block, slice(start, stop), places[start:stop] - first
