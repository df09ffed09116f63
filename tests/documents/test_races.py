"""A document that is added while its source is deleted."""

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex
from locus_memory.documents.layout import chunks_of, sources_of
from locus_memory.store.base import scan_all
from locus_memory.store.wrappers.base import StoreWrapper


class Meddling(StoreWrapper):
    """A store that somebody else writes to before one of its calls."""

    def __init__(self, store, before, meddle):
        super().__init__(store)
        self.left, self._meddle = before, meddle

    async def _count(self):
        self.left -= 1
        if self.left == -1:
            await self._meddle()

    async def get_batch(self, keys):
        await self._count()
        return await super().get_batch(keys)

    async def scan(self, *arguments, **options):
        await self._count()
        return await super().scan(*arguments, **options)

    async def put_batch(self, items):
        await self._count()
        return await super().put_batch(items)

    async def delete_batch(self, keys):
        await self._count()
        return await super().delete_batch(keys)

    async def delete(self, namespace, key, *, if_version=None):
        await self._count()
        return await super().delete(namespace, key, if_version=if_version)


async def whole(index, store):
    """Return whether each document has all its chunks, and each chunk its document."""
    records = [each.value async for each in scan_all(store, sources_of(index.namespace))]
    expected = sum(each["chunks"] for each in records)
    documents = {each["document"] for each in records if each["complete"]}
    chunks = [each async for each in scan_all(store, chunks_of(index.namespace))]
    mine = {each.key.rpartition("/")[0] for each in chunks}
    return len(documents) == len(records) and mine == documents and len(chunks) == expected


@pytest.mark.parametrize("text", ["A plum grows here. " * 90, "A walnut grows there. " * 90])
@pytest.mark.parametrize("before", range(12))
async def test_what_is_added_meanwhile_is_there_or_not(before, text):
    store = InMemoryStore()
    plain = DocumentIndex(store)
    await plain.add("A plum grows here. " * 90, source="trees.txt")

    async def meddle():
        await plain.add(text, source="trees.txt")

    meddling = Meddling(store, before, meddle)
    await DocumentIndex(meddling).delete_source("trees.txt")
    if before == 0:
        assert meddling.left < 0
    assert await whole(plain, store)
    await plain.add(text, source="trees.txt")
    assert await whole(plain, store)
    assert await plain.sources()
