"""What rules delete: by a model, for any rules, and while others write."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import ConfigurationError
from locus_memory.registry import open_backend
from locus_memory.retention import ItemRule, ThreadRule, retain
from locus_memory.retention import items as items_module
from locus_memory.testing import FakeClock

HOUR = 3600.0
USERS = ("ada", "bob")

ages = st.none() | st.integers(0, 6).map(lambda hours: timedelta(hours=hours))
counts = st.none() | st.integers(1, 4)
item_rules = st.builds(
    ItemRule,
    namespace=st.sampled_from([("users",), ("users", "*", "e"), ("users", "ada"), ("log",)]),
    keep_last=st.none() | st.integers(0, 4),
    older_than=ages,
)
thread_rules = st.builds(
    ThreadRule,
    metadata=st.none() | st.sampled_from([{"kind": "a"}, {"kind": {"$ne": "a"}}]),
    prefix=st.sampled_from(["", "t", "t1"]),
    user_id=st.none() | st.sampled_from(USERS),
    keep_last=counts,
    older_than=ages,
    idle_for=ages,
    keep_threads=st.none() | st.integers(0, 2),
)
writes = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(
                [("users", "ada", "e"), ("users", "bob", "e"), ("users", "ada"), ("log", "x")]
            ),
            st.sampled_from("abcdef"),
        ),
        st.tuples(
            st.sampled_from(["t1", "t12", "t2", "u"]),
            st.sampled_from("ab"),
            st.sampled_from([*USERS, None]),
        ),
        st.just("wait"),
    ),
    max_size=40,
)


async def write(backend, clock, log):
    for number, each in enumerate(log):
        if each == "wait":
            clock.advance(HOUR)
        elif len(each) == 2:
            await backend.store.put(*each, {"n": number})
        else:
            thread, kind, user = each
            metadata = {"kind": kind} if user is None else {"kind": kind, "user_id": user}
            await backend.checkpointer.save({"n": number}, thread, metadata=metadata)


async def contents(backend):
    """Return the items by namespace, and the checkpoints by thread, the newest first."""
    spaces = {}
    for space in await backend.store.list_namespaces(limit=100):
        found = await backend.store.scan(space, 100)
        newest = sorted(found, key=lambda item: (item.updated_at, item.key))[::-1]
        spaces[space] = {item.key: item.updated_at for item in newest}
    threads = {}
    for name in await backend.checkpointer.list_threads():
        infos = await backend.checkpointer.list_with_metadata(name, 100)
        threads[name] = infos
    return spaces, threads


def old(moment, age, now):
    return age is None or (now - moment.timestamp()) > age.total_seconds()


def kept_items(rules, spaces, now):
    """Return the items that stay, by the words of the documentation."""
    left = {}
    for space, found in spaces.items():
        rule = next((rule for rule in rules if rule.matches(space)), None)
        for place, (key, moment) in enumerate(found.items()):
            limited = rule and (rule.keep_last is not None or rule.older_than is not None)
            over = limited and (rule.keep_last is None or place >= rule.keep_last)
            if not (over and old(moment, rule.older_than, now)):
                left.setdefault(space, set()).add(key)
    return left


def users_of(infos):
    return {info.metadata["user_id"] for info in infos if "user_id" in info.metadata}


def first_rule(rules, name, infos):
    for rule in rules:
        kind = infos[0].metadata["kind"]
        fits = rule.metadata is None or ((kind == "a") == (rule.metadata == {"kind": "a"}))
        if fits and name.startswith(rule.prefix) and rule.user_id in {None, *users_of(infos)}:
            return rule
    return None


def kept_threads(rules, threads, now):
    """Return the checkpoints that stay, by the words of the documentation."""
    left = {}
    for name, infos in threads.items():
        rule = first_rule(rules, name, infos)
        if rule is None:
            left[name] = [info.checkpoint_id for info in infos]
            continue
        same = [each for each in threads if first_rule(rules, each, threads[each]) is rule]
        ranked = sorted(same, key=lambda each: (threads[each][0].created_at, each))[::-1]
        gone = rule.idle_for is not None or rule.keep_threads is not None
        gone = gone and old(infos[0].created_at, rule.idle_for, now)
        if rule.keep_threads is not None:
            of_user = [
                [each for each in ranked if user in users_of(threads[each])].index(name)
                for user in users_of(infos)
            ]
            gone = gone and bool(of_user) and all(n >= rule.keep_threads for n in of_user)
        if gone:
            continue
        prunes = rule.keep_last is not None or rule.older_than is not None
        left[name] = [
            info.checkpoint_id
            for place, info in enumerate(infos)
            if not prunes
            or place < (rule.keep_last or 1)
            or not old(info.created_at, rule.older_than, now)
        ]
    return left


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    of_items=st.lists(item_rules, max_size=3),
    of_threads=st.lists(thread_rules, max_size=3, unique_by=id),
    log=writes,
)
def test_exactly_what_no_rule_keeps_is_deleted(of_items, of_threads, log):
    async def work():
        clock = FakeClock()
        async with open_backend("memory", state_type=None, clock=clock) as backend:
            await write(backend, clock, log)
            clock.advance(60)
            rules = [*of_items, *of_threads]
            spaces, threads = before = await contents(backend)
            plan = await retain(backend, rules, dry_run=True, clock=clock)
            assert await contents(backend) == before
            done = await retain(backend, rules, clock=clock)
            assert (plan.places, plan.items, plan.checkpoints, plan.threads) == (
                done.places, done.items, done.checkpoints, done.threads
            )  # fmt: skip
            items, checkpoints = await contents(backend)
            assert {space: set(found) for space, found in items.items()} == kept_items(
                of_items, spaces, clock()
            )
            left = {name: [each.checkpoint_id for each in infos] for name, infos in
                    checkpoints.items()}  # fmt: skip
            assert left == kept_threads(of_threads, threads, clock())
            for name, ids in left.items():
                for each in ids:
                    assert await backend.checkpointer.load(name, each) is not None
            again = await retain(backend, [*of_items, *of_threads], clock=clock, dry_run=True)
            assert again.items == 0
            # A thread that lost the last checkpoint of a user counts for the others anew.
            if all(
                users_of(found) == users_of(threads[name]) for name, found in checkpoints.items()
            ):
                assert again.checkpoints == 0

    asyncio.run(work())


@pytest.fixture
async def backend(tmp_path):
    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", state_type=None) as opened:
        yield opened


async def test_many_items_go_in_batches(backend):
    await backend.store.put_batch([(("log",), f"{n:04}", n) for n in range(350)])
    await backend.store.put_batch([(("logs",), "x", 1)])
    report = await retain(backend, [ItemRule(namespace=("log",), keep_last=20)])
    assert report.items == 330
    assert [(each.namespace, each.deleted, each.kept) for each in report.places] == [
        (("log",), 330, 20)
    ]
    assert await backend.store.list_keys(("log",), 1) == ["0330"]
    assert await backend.store.list_keys(("logs",)) == ["x"]


async def test_an_item_that_is_put_meanwhile_stays(backend, monkeypatch):
    await backend.store.put_batch([(("log",), str(n), n) for n in range(9)])
    delete = items_module._delete

    async def late(store, batch):
        await store.put(("log",), "3", "new")
        return await delete(store, batch)

    monkeypatch.setattr(items_module, "_delete", late)
    report = await retain(backend, [ItemRule(namespace=("log",), keep_last=0)])
    assert report.items == 8
    assert await backend.store.get(("log",), "3") == "new"


async def test_a_checkpoint_that_is_saved_meanwhile_stays(backend, monkeypatch):
    for number in range(3):
        await backend.checkpointer.save({"n": number}, "t", metadata={"user_id": "ada"})
    storage = backend.checkpointer.storage
    delete = storage.delete

    async def late(thread_id, revisions=None, *, rebased=()):
        await backend.checkpointer.save({"n": 3}, "t")
        return await delete(thread_id, revisions, rebased=rebased)

    monkeypatch.setattr(storage, "delete", late)
    report = await retain(backend, [ThreadRule(keep_threads=0)])
    assert report.threads == 0
    assert await backend.checkpointer.load("t") == {"n": 3}


async def test_one_rule_decides_about_a_thread_even_if_it_deletes_what_matched(backend):
    for user in ("ada", "bob"):
        await backend.checkpointer.save({"of": user}, "t", metadata={"user_id": user})
    rules = [ThreadRule(user_id="ada", older_than=timedelta(0)), ThreadRule(keep_threads=0)]
    plan, done = [await retain(backend, rules, dry_run=dry) for dry in (True, False)]
    assert plan.places == done.places
    assert await backend.checkpointer.load("t") == {"of": "bob"}


async def test_the_user_may_be_in_the_state_alone(backend):
    for name, user in (("a", "ada"), ("b", "bob")):
        await backend.checkpointer.save({"metadata": {"user_id": user}}, name)
    report = await retain(backend, [ThreadRule(user_id="ada", idle_for=timedelta(0))])
    assert report.threads == 1
    assert await backend.checkpointer.list_threads() == ["b"]


async def test_a_rule_needs_its_contract(tmp_path):
    async with open_backend(f"file:{tmp_path}") as backend:
        with pytest.raises(ConfigurationError, match="has no store"):
            await retain(backend, [ItemRule(namespace=("log",), keep_last=1)])
        assert (await retain(backend, [ThreadRule(keep_last=1)])).checkpoints == 0
