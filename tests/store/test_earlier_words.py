"""Items that an earlier version indexed, without variants of words, are still found."""

from __future__ import annotations

import pytest

from locus_memory import get_store
from locus_memory.store import text as texts

NOTES = {
    "zh": "明年春天我们打算搬到上海",
    "de": "Wir haben zwei Katzen und einen Hund",
    "hi": "मेरी बहन दिल्ली में काम करती है",
    "ar": "كتاب الطبخ على الرف",
    "ru": "Мы купили новые книги",
}
QUERIES = {
    "zh": "我们什么时候搬到上海",
    "de": "Was fressen die zwei Katzen?",
    "hi": "मेरी बहन कहाँ काम करती है?",
    "ar": "أين كتاب الطبخ؟",
    "ru": "Где новые книги?",
}


async def test_old_items_are_found_and_new_ones_replace_them(tmp_path, monkeypatch):
    where = f"sqlite:{tmp_path / 'old.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(texts, "pairs", lambda run: f" {' '.join(run)} ")
        patch.setattr(texts, "variants", lambda *_: [])
        async with get_store(where) as store:
            for key, note in NOTES.items():
                await store.put(("n",), key, note)
    async with get_store(where) as store:
        for key, query in QUERIES.items():
            assert [item.key for item in await store.search(("n",), query, 1)] == [key]
        for key, note in NOTES.items():
            await store.put(("n",), key, note)
        await store.delete(("n",), "zh")
        assert await store.search(("n",), "上海") == []
        assert [item.key for item in await store.search(("n",), "Hat er eine Katze?")] == ["de"]


@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
async def test_two_characters_that_are_one_word_count_more_than_apart(where):
    async with get_store(where) as store:
        await store.put(("n",), "apart", "海上的人上山 海边下雨")
        await store.put(("n",), "word", "今天我在上海看到了大雨")
        found = await store.search(("n",), "上海")
        assert [item.key for item in found] == ["word", "apart"]
