"""What a person fixed in a manager's scope: read, added and removed."""

from __future__ import annotations

from typing import Final

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.extraction import check_sentence
from locus_memory.memory.layers.identity import BY_A_PERSON, Identity, Override, adopt
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import Memory
from locus_memory.memory.phrases.naming import named_memory
from locus_memory.memory.reading.fixed import check_room, fixed_memories
from locus_memory.memory.reading.reading import Reading
from locus_memory.memory.scope import Scope

__all__ = ["OwnIdentity"]

_LONGEST: Final = 300


class OwnIdentity:
    """The sentences that a person fixed in one scope: a view of its memories, see `FIXED`.

    Args:
        ledger: The ledger of the memories.
        scope: The scope.
        reading: Reads what always holds.
    """

    def __init__(self, ledger: Ledger, scope: Scope, reading: Reading) -> None:
        self._ledger = ledger
        self._scope = scope
        self._reading = reading

    async def read(self) -> Identity:
        """Return the sentences; none if there are none.

        Raises:
            BackendError: The store failed.
        """
        known = await fixed_memories(self._reading, self._scope)
        return Identity(overrides=tuple(map(Override.of, known)))

    async def add(self, text: str) -> Override:
        """Fix a sentence, which is always in context, such as "Answer in English" or "Be brief".

        Its memory has the type and the key that `remember` would give it. So it takes the place of
        another one on the same fact, which stays in the history.

        Raises:
            InvalidArgumentError: The text has no visible character or more than 300, it looks like
                a secret, it is fixed already, or there is no room to show it beside what is fixed:
                the message says how many tokens are left.
            BackendError: The store failed.
        """
        given: object = text
        line = neutralise(given) if isinstance(given, str) else ""
        if not 1 <= len(line) <= _LONGEST:
            raise InvalidArgumentError(
                f"a fixed sentence has 1 to {_LONGEST} characters, not {len(line)}"
            )
        check_sentence(line, allow_secrets=self._reading.options.allow_secrets)
        memory = await named_memory(line, metadata={**BY_A_PERSON})
        async with self._reading.lock:
            known = [each.content for each in await self._adopted()]
            if memory.content in known:
                raise InvalidArgumentError("this sentence is fixed already")
            await check_room(self._reading, self._scope, [memory])
            written = await self._ledger.apply(self._scope, [Statement(memory)])
            return Override.of([*written, memory][0])

    async def remove(self, override_id: str) -> Override:
        """Retire a fixed sentence, and return it; `undo` brings it back.

        Args:
            override_id: Its id, or the beginning of the id if only one begins so.

        Raises:
            InvalidArgumentError: No sentence, or more than one, has this id.
            BackendError: The store failed.
        """
        wanted: object = override_id
        start = wanted if isinstance(wanted, str) and wanted else " "
        found = [each for each in await self._adopted() if each.id.startswith(start)]
        if len(found) != 1:
            many = "more than one fixed sentence has" if found else "no fixed sentence has"
            raise InvalidArgumentError(f"{many} the id {quote(override_id)}")
        await self._ledger.apply(self._scope, [Retirement(found[0].type, found[0].key)])
        return Override.of(found[0])

    async def _adopted(self) -> list[Memory]:
        """Return what is fixed, after what an earlier version left is a part of it."""
        await adopt(self._reading.recall.store, self._ledger, self._scope)
        return await fixed_memories(self._reading, self._scope)
