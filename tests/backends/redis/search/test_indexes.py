"""What the database holds is exactly what the items need, whatever was done before."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from redis import Redis

from locus_memory.backends.redis import lua as scripts
from locus_memory.backends.redis.connection.connection import tag
from locus_memory.backends.redis.items import spaces
from locus_memory.backends.redis.items.items import terms
from locus_memory.backends.redis.store import RedisStore
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Put
from locus_memory.store.text import tokens
from locus_memory.testing.fakes import FakeClock

BLOCK = 4
LIVES = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

namespaces = st.sampled_from([("a",), ("a", "b"), ("\x00",)])
keys = st.sampled_from(["k", "kk", "k\x00", "é", "1", "-"])
texts = st.lists(st.sampled_from(["fox", "foxes", "2", "été", "東京", "the"]), max_size=5).map(
    " ".join
)
ttls = st.none() | st.integers(1, 20)
vectors = st.none() | st.sampled_from([(1.0, 0.0), (0.6, 0.8), (0.0, 0.0, 1.0)])


@dataclass
class Entry:
    text: str
    expires: float | None
    dimension: int


@pytest.fixture
def small_limits(monkeypatch):
    """Let the scripts do in a few steps what they otherwise do in thousands."""
    read = scripts.read_part
    small = {"CHUNK = 1000": "CHUNK = 2", "BLOCK = 4096": f"BLOCK = {BLOCK}"}
    small |= {
        "WAITING = 8, 8, 512": "WAITING = 2, 2, 3",
        "STEMS = 30000": "STEMS = 2",
        "TEXTS = 64": "TEXTS = 2",
    }

    def read_small(name):
        text = read(name)
        for before, after in small.items():
            assert name != "space" or before in text
            text = text.replace(before, after)
        return text

    scripts.script.cache_clear()
    monkeypatch.setattr(scripts, "read_part", read_small)
    monkeypatch.setattr(spaces, "_CLEARED", 2)
    yield
    scripts.script.cache_clear()


class Life(RuleBasedStateMachine):
    """Does anything to a store, and then looks at the keys."""

    session = None

    def __init__(self):
        super().__init__()
        self.runner, self.url, serial = self.session
        self.prefix = f"life{next(serial)}:"
        self.clock = FakeClock()
        self.client = Redis.from_url(self.url)
        self.store = RedisStore(self.url, clock=self.clock, key_prefix=self.prefix)
        self.runner.run(self.store.open())
        self.entries = {}

    def teardown(self):
        self.nothing_is_left_over()
        self.runner.run(self.store.close())
        self.client.close()

    @rule(puts=st.lists(st.tuples(namespaces, keys, texts, ttls, vectors), max_size=5))
    def put(self, puts):
        batch = []
        for namespace, key, text, ttl, vector in puts:
            batch.append(Put(namespace=namespace, key=key, value=text, ttl=ttl, embedding=vector))
            expires = None if ttl is None else self.clock() + ttl
            self.entries[namespace, key] = Entry(text, expires, len(vector or ()))
        self.runner.run(self.store.put_batch(batch))

    @rule(names=st.lists(st.tuples(namespaces, keys), max_size=4))
    def delete(self, names):
        self.runner.run(self.store.delete_batch(names))
        for name in names:
            self.entries.pop(name, None)

    @rule(namespace=namespaces, recursive=st.booleans())
    def clear(self, namespace, recursive):
        self.runner.run(self.store.clear_namespace(namespace, recursive=recursive))
        for name in list(self.entries):
            inside = name[0][: len(namespace)] if recursive else name[0]
            if inside == namespace:
                del self.entries[name]

    @rule(seconds=st.integers(1, 15))
    def advance(self, seconds):
        self.clock.advance(seconds)
        for name, entry in list(self.entries.items()):
            if entry.expires is not None and entry.expires <= self.clock():
                del self.entries[name]

    @rule(namespace=namespaces, key=keys)
    def expire_on_the_server(self, namespace, key):
        """What the server does once the TTL of an item is over by its own clock."""
        entry = self.entries.get((namespace, key))
        if entry is not None and entry.expires is not None:
            assert self.client.pexpire(self.base(namespace) + item(key.encode()), 0)
            del self.entries[namespace, key]

    @rule()
    def forget_scripts(self):
        self.client.script_flush()

    @rule(namespace=namespaces, query=texts)
    def search(self, namespace, query):
        """Searches find what is there, and clean up what is not."""
        mine = {name for name in self.entries if name[0][: len(namespace)] == namespace}
        found = self.runner.run(self.store.search(namespace, limit=99, recursive=True))
        assert {(item.namespace, item.key) for item in found} == mine
        wanted = {name for name in mine if stems(query) & stems(self.entries[name].text)}
        if "the" not in query:
            found = self.runner.run(self.store.search(namespace, query, 99, recursive=True))
            assert {(item.namespace, item.key) for item in found} == wanted

    @rule(namespace=namespaces)
    def search_vectors(self, namespace):
        mine = {
            name: entry
            for name, entry in self.entries.items()
            if name[0] == namespace and entry.dimension == 2
        }
        if mine:
            call = self.store.search_by_embedding(namespace, [1.0, 0.0], 99)
            assert {(namespace, hit.item.key) for hit in self.runner.run(call)} == set(mine)

    @rule(namespace=namespaces)
    def scan(self, namespace):
        names = sorted(key for other, key in self.entries if other == namespace)
        assert self.runner.run(self.store.list_keys(namespace)) == names
        assert [item.key for item in self.runner.run(self.store.scan(namespace))] == names

    @rule()
    def nothing_is_left_over(self):
        listed = self.runner.run(self.store.list_namespaces())
        assert listed == sorted({namespace for namespace, _ in self.entries})
        for namespace in {("a",), ("a", "b"), ("\x00",)}:
            self.runner.run(self.store.list_keys(namespace))
        self.runner.run(self.store.compact())
        by_space = defaultdict(dict)
        for (namespace, key), entry in self.entries.items():
            by_space[namespace][key.encode()] = entry
        expected = {key for each in by_space.items() for key in self.check_space(*each)}
        registry = f"{self.prefix}namespaces".encode()
        paths = sorted(encode_namespace(namespace).encode() for namespace in by_space)
        assert self.client.zrange(registry, 0, -1) == paths
        found = set(self.client.scan_iter(match=f"{self.prefix}*", count=10_000))
        assert found == expected | ({registry} if paths else set())

    def base(self, namespace):
        return f"{self.prefix}store:".encode() + tag(encode_namespace(namespace).encode())

    def check_space(self, namespace, entries):
        """Check the indexes of a namespace and return the names of its keys."""
        base, client = self.base(namespace), self.client
        meta = client.hgetall(base + b":m")
        assert set(client.zrange(base + b":k", 0, -1)) == set(entries)
        assert set(client.zrange(base + b":r", 0, -1)) == set(entries)
        timed = {key: entry.expires for key, entry in entries.items() if entry.expires}
        assert dict(client.zrange(base + b":e", 0, -1, withscores=True)) == timed
        cards = client.hgetall(base + b":c")
        numbers = client.hgetall(base + b":d")
        indexed = {key: terms(tokens(entry.text)) for key, entry in entries.items()}
        assert cards.keys() == {key for key, e in entries.items() if indexed[key] or e.dimension}
        assert sorted(numbers.values()) == sorted(key for key in entries if indexed[key])
        for key, card in cards.items():
            dimension, number, text = card.split(b" ", 2)
            assert (int(dimension), text) == (entries[key].dimension, indexed[key])
            assert numbers.get(number) == (key if text else None)
        self.check_postings(base, meta, numbers, indexed)
        dimensions = {entry.dimension for entry in entries.values()} - {0}
        for size in dimensions:
            count = sum(entry.dimension == size for entry in entries.values())
            name = base + b":v%d" % size
            how = {b"hash": "HLEN", b"vectorset": "VCARD"}[client.type(name)]
            assert int(meta[b"v%d" % size]) == client.execute_command(how, name) == count
        assert {field for field in meta if field[:1] == b"v"} == {b"v%d" % n for n in dimensions}
        parts = {b"k", b"r", b"m", *(item(key)[1:] for key in entries)}
        parts |= {b"v%d" % size for size in dimensions}
        for part, is_there in (
            (b"e", timed),
            (b"c", cards),
            (b"d", numbers),
            (b"p", client.exists(base + b":p")),
        ):
            parts |= {part} if is_there else set()
        self.check_times(base, parts, entries)
        return {base + b":" + part for part in parts}

    def check_postings(self, base, meta, numbers, indexed):
        """Every merged document has its postings, and nothing else has."""
        wanted, blocks = defaultdict(set), defaultdict(int)
        merged = int(meta[b"merged"])
        for number, key in numbers.items():
            length, *pairs = indexed[key].split(b" ")
            if int(number) <= merged:
                block = int(number) // BLOCK
                blocks[b"b%d" % block] += 1
                for pair in pairs:
                    stem, count = pair.split(b"=")
                    posting = (int(number), int(count), int(length))
                    wanted[stem + b" %d" % block].add(posting)
        found = self.client.hgetall(base + b":p")
        unpacked = {field: list(struct.iter_unpack("<IHI", part)) for field, part in found.items()}
        assert all(len(part) == len(set(part)) for part in unpacked.values())
        assert {field: set(part) for field, part in unpacked.items()} == wanted
        counted = {field: int(count) for field, count in meta.items() if field[:1] == b"b"}
        assert counted == blocks
        words = sum(int(indexed[key].split(b" ")[0]) for key in numbers.values())
        assert int(meta[b"words"]) == words

    def check_times(self, base, parts, entries):
        """An item that expires has a TTL, and so has all the rest if every item does."""
        all_expire = all(entry.expires for entry in entries.values())
        for part in parts:
            has_time = self.client.pttl(base + b":" + part) > 0
            if part.startswith(b"i:"):
                assert has_time == bool(entries[part[2:].replace(b"\xff", b"\0")].expires)
            else:
                assert has_time == all_expire, part


def item(key):
    return b":i:" + key.replace(b"\0", b"\xff")


def stems(text):
    return {pair.split(b"=")[0] for pair in terms(tokens(text)).split(b" ")[1:]}


@pytest.mark.slow
@pytest.mark.parametrize("server", ["redis_server", "valkey_server"])
def test_nothing_is_ever_left_over(server, request, small_limits):
    url = request.getfixturevalue(server).url
    with asyncio.Runner() as runner:

        class Bound(Life):
            session = (runner, url, itertools.count())

        run_state_machine_as_test(Bound, settings=LIVES)
