"""Words that no item of a namespace has: a search for them reads other namespaces in vain.

FTS5 reads all items of the file that have a word, and adds nothing to the score of an item without
it. A recorded conversation has the words of each question, and few facts have them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from locus_memory.backends.sqlite import queries

__all__ = ["AbsentWords"]

_UNASKED: Final = 2
"""How many searches a word is in before it is looked up: most words never come again."""

_USES: Final = 256
"""How many searches a word is in before it is looked up again, if the namespace has it."""

_REMEMBERED: Final = 4_096


class AbsentWords:
    """A cache of the words that no item of a namespace has.

    Every put takes a new revision. So a word that was absent is still absent if the newest revision
    of the namespace is the same, whichever process writes; a delete adds no word.
    """

    def __init__(self) -> None:
        self._absent: dict[tuple[int, str], int] = {}
        self._unasked: dict[tuple[int, str], int] = {}

    def without(
        self, connection: sqlite3.Connection, namespace: int, quoted: Iterable[str]
    ) -> list[str]:
        """Return the quoted words but those that no item of the namespace is known to have.

        Call it only in a transaction that reads nothing which may be rolled back later.
        """
        newest: int = connection.execute(queries.NEWEST_HERE, (namespace,)).fetchone()[0] or 0
        return [
            word for word in quoted if not self._is_absent(connection, (namespace, word), newest)
        ]

    def _is_absent(
        self, connection: sqlite3.Connection, name: tuple[int, str], newest: int
    ) -> bool:
        if self._absent.get(name) == newest:
            return True
        if self._absent.pop(name, None) is not None:
            # The namespace changes: another look may be in vain.
            self._unasked.pop(name, None)
        left = self._unasked.get(name, _UNASKED)
        if left > 0:
            self._keep(self._unasked, name, left - 1)
            return False
        match = f'scope : "n{name[0]}" AND text : {name[1]}'
        if connection.execute(queries.HAS_MATCH, (match,)).fetchone() is None:
            self._keep(self._absent, name, newest)
            return True
        self._keep(self._unasked, name, _USES)
        return False

    @staticmethod
    def _keep(known: dict[tuple[int, str], int], name: tuple[int, str], number: int) -> None:
        if len(known) >= _REMEMBERED:
            known.clear()
        known[name] = number
