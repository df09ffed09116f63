"""Changes of what stays: no search text keeps the words of what is erased."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from locus_memory.memory.batch import insisting, rewritten
from locus_memory.memory.forgetting.choice import Choice, Kind, Name, named
from locus_memory.memory.forgetting.words import text_of
from locus_memory.memory.ledger.revision import memory_in, read_memory
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope, current_key
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["reword"]

_NEIGHBOURS: Final = 4
"""How far away from it the search text of a turn may name another one."""


async def reword(store: BaseStore, choice: Choice, found: Mapping[Kind, Sequence[Name]]) -> None:
    """Take what is about to be erased out of what stays.

    These are the search texts of current memories, which name their past versions, and those of
    turns, which name the turns around them.

    Args:
        store: The store.
        choice: The choice of the items that go.
        found: The names of these items, those of a namespace together.

    Raises:
        VersionConflictError: Another writer changes an item without pause.
        BackendError: The store failed.
    """
    for space, names in groupby(found.get("turns", ()), itemgetter(0)):
        await _reword_turns(store, space, {key for _, key in names})
    for space, names in groupby(found.get("past", ()), itemgetter(0)):
        if choice.memories.get(named(space, "")) is False:
            gone = {key for _, key in names}
            await _reword_memory(store, choice.scope, space, gone)


@insisting
async def _reword_memory(
    store: BaseStore, scope: Scope, history: Namespace, gone: Collection[str]
) -> None:
    item = await store.get_item(scope.current, current_key(*named(history, "")))
    memory = None if item is None else read_memory(item)
    if item is not None and memory is not None:
        records = [each async for each in scan_all(store, history) if each.key not in gone]
        past = {int(each.key): memory_in(each.value) for each in records if each.key.isdecimal()}
        await store.put_batch([await rewritten(store, item, search_text(memory, past))])


@insisting
async def _reword_turns(store: BaseStore, space: Namespace, gone: Collection[str]) -> None:
    turns = [item async for item in scan_all(store, space)]
    left = [place for place, item in enumerate(turns) if item.key not in gone]
    puts = turn_puts(space, [_turn(turns[place]) for place in left])
    near = {
        place + step
        for place, item in enumerate(turns)
        if item.key in gone
        for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)
    }
    await store.put_batch(
        [
            await rewritten(store, turns[place], put.text or "")
            for place, put in zip(left, puts, strict=True)
            if place in near
        ]
    )


def _turn(item: StoreItem) -> Turn:
    speaker = item.metadata.get("speaker")
    return Turn(
        text=text_of(item.value),
        speaker=speaker if isinstance(speaker, str) else "",
        said_at=read_moment(item.metadata.get("date")),
    )
