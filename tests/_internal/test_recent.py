from __future__ import annotations

from locus_memory._internal.recent import RecentlyUsed


def test_it_keeps_the_most_recent():
    cache = RecentlyUsed(2)
    for key in "abc":
        cache.put(key, key)
    assert cache.all() == {"b": "b", "c": "c"}
    cache.touch("b")
    cache.put("d", "d")
    assert cache.all() == {"b": "b", "d": "d"}
    cache.discard("b")
    cache.discard("never there")
    cache.put("e", "e")
    assert len(cache) == 2


def test_it_keeps_so_much():
    cache = RecentlyUsed(10, len)
    for key in "abc":
        cache.put(key, "xxxx")
    assert cache.all() == {"b": "xxxx", "c": "xxxx"}
    cache.put("b", "xxxxxx")
    assert cache.all() == {"c": "xxxx", "b": "xxxxxx"}
    cache.put("c", "x")
    cache.put("d", "xxx")
    assert cache.all() == {"b": "xxxxxx", "c": "x", "d": "xxx"}
    cache.put("e", "x" * 11)
    assert not len(cache)
    cache.put("f", "x" * 10)
    assert cache.get("f") == "x" * 10
