"""A document that is added while its source is deleted."""

from dataclasses import replace

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex
from locus_memory.documents.layout import chunks_of, sources_of
from locus_memory.store.base import scan_all
from locus_memory.store.wrappers.base import StoreWrapper


class Meddling(StoreWrapper):
    """A store that somebody else writes to before one of its calls."""

    def __init__(self, store, before, meddle, *, transactions):
        super().__init__(store)
        self.left, self._meddle, self._transactions = before, meddle, transactions

    @property
    def capabilities(self):
        return replace(super().capabilities, transactions=self._transactions)


def meddled(name):
    """Return a verb that is counted, and then passed on."""

    async def verb(self, *arguments, **options):
        self.left -= 1
        if self.left == -1:
            await self._meddle()
        return await getattr(self.inner, name)(*arguments, **options)

    return verb


for each in ("list_keys", "get_item", "scan", "put_batch", "delete_batch", "delete", "write_batch"):
    setattr(Meddling, each, meddled(each))


async def whole(index, store):
    """Return whether each document has all its chunks, and each chunk its document."""
    records = [each.value async for each in scan_all(store, sources_of(index.namespace))]
    expected = sum(each["chunks"] for each in records)
    documents = {each["document"] for each in records if each["complete"]}
    chunks = [each async for each in scan_all(store, chunks_of(index.namespace))]
    mine = {each.key.rpartition("/")[0] for each in chunks}
    return len(documents) == len(records) and mine == documents and len(chunks) == expected


@pytest.mark.parametrize("text", ["A plum grows here. " * 90, "A walnut grows there. " * 90])
@pytest.mark.parametrize("transactions", [True, False])
@pytest.mark.parametrize("before", range(9))
async def test_what_is_added_meanwhile_is_there_or_not(before, transactions, text):
    store = InMemoryStore()
    plain = DocumentIndex(store)
    await plain.add("A plum grows here. " * 90, source="trees.txt")

    async def meddle():
        await plain.add(text, source="trees.txt")

    meddling = Meddling(store, before, meddle, transactions=transactions)
    await DocumentIndex(meddling).delete_source("trees.txt")
    assert meddling.left < 0
    assert await whole(plain, store)
    await plain.add(text, source="trees.txt")
    assert await whole(plain, store)
    assert await plain.sources()
