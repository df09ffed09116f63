"""Several processes on one bucket, some of them killed: nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys

import pytest
from served import ADDRESS

from locus_memory.backends.oci import OCICheckpointer, OCIStore

NS = ("shared",)

PUTS = """
import asyncio, json, sys
from locus_memory.backends.oci import OCIStore

async def main(address, options, count):
    async with OCIStore(address, **json.loads(options)) as store:
        for n in range(int(count)):
            print(await store.put(("shared",), "k", n), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

SAVES = """
import asyncio, json, sys
from locus_memory.backends.oci import OCICheckpointer

async def main(address, options, count, mark):
    async with OCICheckpointer(address, **json.loads(options), state_type=None) as checkpointer:
        for n in range(int(count)):
            name = f"{mark}-{n:04}"
            state = {"by": mark, "n": n, "text": "the sloop lies in the shed " * 5}
            await checkpointer.save(state, "shared", name)
            print(name, flush=True)
            if n % 20 == 19:
                await checkpointer.prune("shared", keep_last=60)

asyncio.run(main(*sys.argv[1:]))
"""

MIXED = """
import asyncio, json, sys
from locus_memory import CheckpointNotFoundError
from locus_memory.backends.oci import OCIBackend

async def main(address, options, name):
    backend = OCIBackend(address, checkpointer_options={"state_type": None}, **json.loads(options))
    async with backend:
        state = await backend.checkpointer.load(name) or {"messages": []}
        while True:
            number = len(state["messages"]) + 1
            text = f"{name} says {number}: " + "the sloop lies in the shed " * 8
            state = {"messages": [*state["messages"], {"n": number, "text": text}]}
            parent = f"{number - 1:06}" if number > 1 else None
            await backend.checkpointer.save(state, name, f"{number:06}", expected_parent=parent)
            await backend.store.put(("turns", name), f"{number:06}", {"text": text})
            await backend.store.put(("counters",), "all", name)
            print(number, flush=True)
            if number % 25 == 0:
                await backend.checkpointer.prune(name, keep_last=40)

asyncio.run(main(*sys.argv[1:]))
"""


def process(script, options, *arguments):
    command = [sys.executable, "-c", script, ADDRESS, json.dumps(options), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def printed(processes):
    """Return the lines of processes that must end well."""
    lines = [each.communicate()[0].split() for each in processes]
    assert [each.returncode for each in processes] == [0] * len(processes)
    return [line for each in lines for line in each]


async def test_four_processes_put_and_lose_nothing(options):
    versions = printed([process(PUTS, options, 40) for _ in range(4)])
    assert sorted(map(int, versions)) == list(range(1, 161))
    async with OCIStore(ADDRESS, **options) as store:
        assert (await store.get_item(NS, "k")).version == 160


async def test_four_processes_put_and_lose_nothing_though_answers_are_lost(service, options):
    fault = {"kind": "cut", "late": True, "times": None, "rate": 0.05}
    service.plan(fault, {**fault, "late": False})
    versions = printed([process(PUTS, options, 25) for _ in range(4)])
    assert sorted(map(int, versions)) == list(range(1, 101))


async def test_four_processes_on_one_thread_lose_nothing(options):
    names = printed([process(SAVES, options, 15, f"p{n}") for n in range(4)])
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        listed = await checkpointer.list_checkpoints("shared", 1000)
        assert sorted(listed) == sorted(names)
        for name in listed:
            mark, _, number = name.partition("-")
            state = await checkpointer.load("shared", name)
            assert (state["by"], state["n"]) == (mark, int(number))


async def test_four_processes_save_and_prune(options):
    names = printed([process(SAVES, options, 40, f"p{n}") for n in range(4)])
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        listed = await checkpointer.list_checkpoints("shared", 1000)
        assert len(listed) >= 60
        assert set(listed) <= set(names)
        for name in listed:
            assert (await checkpointer.load("shared", name))["n"] == int(name.partition("-")[2])


KILLS = int(os.environ.get("LOCUS_TEST_OCI_KILLS", "12"))


@pytest.mark.slow
async def test_what_was_acknowledged_survives_sigkill(options, service, prefix):
    acknowledged = {f"w{n}": [] for n in range(3)}
    silent = dict.fromkeys(acknowledged, 0)
    for _ in range(KILLS // 3):
        processes = {name: process(MIXED, options, name) for name in acknowledged}
        first = {name: each.stdout.readline() for name, each in processes.items()}
        await asyncio.sleep(0.5 + random.random())
        for name, each in processes.items():
            each.kill()
            lines = [first[name], *each.communicate()[0].splitlines(keepends=True)]
            numbers = [int(line) for line in lines if line.endswith("\n")]
            acknowledged[name] += numbers
            silent[name] = 0 if numbers else silent[name] + 1
    assert all(acknowledged.values())
    async with (
        OCIStore(ADDRESS, **options) as store,
        OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer,
    ):
        for name, numbers in acknowledged.items():
            await whole_thread(checkpointer, name, numbers[-1], silent[name])
            keys = await store.list_keys(("turns", name), 10_000)
            assert set(keys) >= {f"{n:06}" for n in numbers}
        counter = await store.get_item(("counters",), "all")
        assert counter.version >= sum(map(len, acknowledged.values()))
        await checkpointer.vacuum(older_than_days=10_000)
        for name, numbers in acknowledged.items():
            await whole_thread(checkpointer, name, numbers[-1], silent[name])
            await checkpointer.delete(name)
        kinds = {name[len(prefix) :].partition("/")[0] for name in ours(service, prefix)}
        assert kinds == {"items"}


def ours(service, prefix):
    return [name for name in service.names() if name.startswith(prefix)]


async def whole_thread(checkpointer, name, number, silent):
    """Assert that a thread has its last acknowledged state, and that each of it loads.

    A process ends with at most one save that it did not acknowledge: the one that acknowledged
    this number, and each of the `silent` ones after it, which acknowledged nothing.
    """
    listed = await checkpointer.list_checkpoints(name, 10_000)
    assert number <= int(listed[0]) <= number + 1 + silent
    for each in listed:
        state = await checkpointer.load(name, each)
        assert [message["n"] for message in state["messages"]] == list(range(1, int(each) + 1))


@pytest.mark.parametrize("where", ["before", "within"])
async def test_a_forked_process_has_connections_of_its_own(options, where):
    async with OCIStore(ADDRESS, **options) as store:
        if where == "within":
            await store.put(NS, "parent", 1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                loop = asyncio.new_event_loop()
                asyncio.events._set_running_loop(None)
                asyncio.set_event_loop(loop)
                code = 0 if loop.run_until_complete(store.put(NS, "child", 1)) == 1 else 2
            finally:
                os._exit(code)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert await store.put(NS, "parent", 2) == (2 if where == "within" else 1)
        assert await store.list_keys(NS) == ["child", "parent"]


def test_an_interpreter_ends_though_a_call_has_no_answer(service, options):
    service.latency(30)
    script = """
import asyncio, json, sys
from locus_memory.backends.oci import OCIStore

async def main(address, options):
    store = OCIStore(address, **json.loads(options))
    try:
        async with asyncio.timeout(0.5):
            await store.get(("a",), "k")
    except TimeoutError:
        print("late", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
    running = process(script, options)
    lines, _ = running.communicate(timeout=15)
    assert lines.split() == ["late"]
