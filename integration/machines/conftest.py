"""What the tests of several machines share: load on a store, and what it acknowledged."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.errors import BackendError

PATIENCE = 60
"""Seconds that a failover may take on a busy machine before the test fails."""


class Load:
    """Writers that put new items all the time, each into a namespace of its own.

    Attributes:
        acknowledged: The namespace and key of each put that returned.
        failures: The errors of the others.
    """

    def __init__(self, store, writers):
        self.store = store
        self.acknowledged = set()
        self.failures = []
        self._stopped = False
        self._progress, self._failed = asyncio.Event(), asyncio.Event()
        self._tasks = [asyncio.create_task(self._write(number)) for number in range(writers)]

    async def _write(self, number):
        namespace, count = ("load", str(number)), 0
        while not self._stopped:
            count += 1
            try:
                await self.store.put(namespace, f"{count:06}", {"text": f"note {count}"})
            except BackendError as error:
                self.failures.append(error)
                self._failed.set()
                await asyncio.sleep(0.01)
            else:
                self.acknowledged.add((namespace, f"{count:06}"))
                self._progress.set()

    async def goes_on(self, count=200):
        """Wait until so many more puts are acknowledged."""
        wanted = len(self.acknowledged) + count
        async with asyncio.timeout(PATIENCE):
            while len(self.acknowledged) < wanted:
                self._progress.clear()
                await self._progress.wait()

    async def everywhere(self, count=5):
        """Wait until every writer goes on."""
        async with asyncio.timeout(PATIENCE):
            for number in range(len(self._tasks)):
                before = self._of(number)
                while self._of(number) < before + count:
                    self._progress.clear()
                    await self._progress.wait()

    async def fails(self, count=10):
        """Wait until so many more puts have failed."""
        wanted = len(self.failures) + count
        async with asyncio.timeout(PATIENCE):
            while len(self.failures) < wanted:
                self._failed.clear()
                await self._failed.wait()

    def _of(self, number):
        return sum(namespace[1] == str(number) for namespace, _ in self.acknowledged)

    async def stop(self):
        """Let the writers finish."""
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def lost(self):
        """Return what was acknowledged and is not there."""
        found = set()
        for namespace in {namespace for namespace, _ in self.acknowledged}:
            after = None
            while page := await self.store.list_keys(namespace, 1000, after=after):
                found |= {(namespace, key) for key in page}
                after = page[-1]
        return self.acknowledged - found


@pytest.fixture
async def load_on():
    """Returns a function that puts load on a store."""
    loads = []

    def start(store, writers=6):
        loads.append(Load(store, writers))
        return loads[-1]

    yield start
    for load in loads:
        await load.stop()
