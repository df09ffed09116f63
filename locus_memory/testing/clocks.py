"""The conformance suite of stores on a server, whose clock decides what has expired."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from locus_memory.errors import VersionConflictError
from locus_memory.registry import get_store
from locus_memory.testing.store_suite.base import held, refused

__all__ = ["ServerClockConformance"]

NS: Final = ("locks",)

_PROCESS: Final = """
import asyncio, json, sys, time

real, shift = time.time, float(sys.argv[1])
time.time = lambda: real() + shift

from locus_memory import VersionConflictError, get_store

async def main(url, options):
    async with get_store(url, **options) as store:
        found = {"seen": await store.get(("locks",), "lease")}
        try:
            await store.put(("locks",), "lease", "other", ttl=60, if_version=0)
            found["taken"] = True
        except VersionConflictError:
            found["taken"] = False
        found["keys"] = await store.list_keys(("locks",))
        found["exists"] = await store.exists(("locks",), "lease")
        found["newest"] = [each.key for each in await store.search(("locks",))]
        found["batch"] = len(await store.get_batch([(("locks",), "lease")]))
        await store.put(("locks",), "other", 1)
        await store.compact()
    print(json.dumps(found))

asyncio.run(main(sys.argv[2], json.loads(sys.argv[3])))
"""
"""A process whose clock is ahead, or behind; it takes what has expired, and deletes it."""


class ServerClockConformance(ABC):
    """A time of life ends by the clock of the server, whatever those of its clients say.

    ```python
    class TestMyClock(ServerClockConformance):
        def where(self, tmp_path):
            return "mydb://localhost", {"table": tmp_path.name}
    ```

    Attributes:
        shift: Seconds by which the clock of another process differs, either way.
        precision: Seconds by which the moments of a store may be late.
    """

    pytestmark: ClassVar[list[pytest.MarkDecorator]] = [pytest.mark.asyncio]

    shift: float = 600.0
    precision: float = 0.1

    @abstractmethod
    def where(self, tmp_path: Path) -> tuple[str, dict[str, Any]]:
        """Return the provider string of an empty store, and its options, which are JSON."""

    async def _differing(self, shift: float, tmp_path: Path) -> dict[str, Any]:
        url, options = self.where(tmp_path)
        arguments = "-W", "ignore", "-c", _PROCESS, str(shift), url, json.dumps(options)
        done = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await done.communicate()
        assert done.returncode == 0
        found: dict[str, Any] = json.loads(told)
        return found

    @pytest.mark.slow
    @pytest.mark.parametrize("side", [1, -1])
    async def test_a_live_lock_stays(self, side: int, tmp_path: Path) -> None:
        url, options = self.where(tmp_path)
        life = self.shift / 2
        async with get_store(url, **options) as store:
            await store.put(NS, "lease", "mine", ttl=life, if_version=0)
            found = await self._differing(side * self.shift, tmp_path)
            assert found == {
                "seen": "mine",
                "taken": False,
                "keys": ["lease"],
                "exists": True,
                "newest": ["lease"],
                "batch": 1,
            }
            # A write of a process that is ahead deletes nothing for good.
            assert await store.get(NS, "lease") == "mine"
            item = await held(store, NS, "lease")
            assert item.expires_at is not None
            assert abs((item.expires_at - item.created_at).total_seconds() - life) < 1
            assert item.version == 1
            await refused(
                VersionConflictError,
                store.put(NS, "lease", "again", if_version=0),
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("side", [1, -1])
    async def test_what_another_process_holds(self, side: int, tmp_path: Path) -> None:
        """A lock that a process with a differing clock took is held as long as it said."""
        url, options = self.where(tmp_path)
        assert (await self._differing(side * self.shift, tmp_path))["taken"]
        async with get_store(url, **options) as store:
            item = await held(store, NS, "lease")
            assert item.expires_at is not None
            assert abs((item.expires_at - item.created_at).total_seconds() - 60) < 1
            assert await store.put(NS, "beside", 1) == 1
            beside = await held(store, NS, "beside")
            assert 0 <= (beside.created_at - item.created_at).total_seconds() < 60
            await refused(
                VersionConflictError,
                store.put(NS, "lease", "again", if_version=0),
            )

    async def test_what_has_expired_is_gone_for_all(self, tmp_path: Path) -> None:
        url, options = self.where(tmp_path)
        async with get_store(url, **options) as store:
            await store.put(NS, "short", 1, ttl=0.001)
            await store.put_batch([(NS, "a", 1), (NS, "b", 2)])
            # A server has no clock that a test could move.
            await asyncio.sleep(self.precision)
            assert await store.get(NS, "short") is None
            assert not await store.exists(NS, "short")
            assert await store.list_keys(NS) == ["a", "b"]
            assert await store.put(NS, "short", 2, ttl=1000, if_version=0) == 1
            item = await held(store, NS, "short")
            assert item.value == 2
            assert item.updated_at >= item.created_at

    async def test_a_moment_never_goes_back(self, tmp_path: Path) -> None:
        """The clock of one process was ahead for a write; the next one is later all the same."""
        url, options = self.where(tmp_path)
        async with (
            get_store(url, **options, clock=lambda: 2e9) as ahead,
            get_store(url, **options, clock=lambda: 1.9e9) as behind,
        ):
            await ahead.put(NS, "k", 1)
            await behind.put(NS, "k", 2)
            assert await behind.put(NS, "k", 3, if_version=2) == 3
            await behind.put_batch([(NS, "k", 4), (NS, "l", 1)])
            item = await held(behind, NS, "k")
            assert item.updated_at == item.created_at
            assert item.updated_at.timestamp() == 2e9
            assert item.version == 4
