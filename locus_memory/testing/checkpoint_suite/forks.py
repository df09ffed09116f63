"""The checkpointer suite: a fork names its source, also after removals."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open, turns, verify
from locus_memory.testing.store_suite.base import PROPERTY

__all__ = ["ForkTests"]

Origins = dict[str, tuple[str, str]]


async def _save(
    checkpointer: DeltaCheckpointer, thread_id: str, *names: str
) -> dict[str, dict[str, Any]]:
    """Save a growing state under each of these ids; return the states by id."""
    for turn, name in enumerate(names):
        await checkpointer.save(turns(turn), thread_id, name, {"step": turn})
    return {name: turns(turn) for turn, name in enumerate(names)}


async def _origins(checkpointer: DeltaCheckpointer, thread_id: str) -> Origins:
    """Return the checkpoints of a thread that name a fork point, and these fork points."""
    infos = await checkpointer.list_with_metadata(thread_id, 1000)
    return {info.checkpoint_id: info.forked_from for info in infos if info.forked_from}


class ForkTests(CheckpointerSuite):
    """A tree of forks can be drawn."""

    async def test_a_fork_names_the_checkpoint_it_began_with(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        states = await _save(checkpointer, "main", *"abcde")
        await checkpointer.fork("main", "c", "branch")
        assert await _origins(checkpointer, "branch") == {"c": ("main", "c")}
        assert await _origins(checkpointer, "main") == {}
        assert await checkpointer.get_metadata("branch", "c") == {"step": 2}
        assert await checkpointer.get_metadata("branch", "b") == {"step": 1}
        await checkpointer.save({"later": 1}, "branch", "f")
        assert await _origins(checkpointer, "branch") == {"c": ("main", "c")}
        found = await checkpointer.query_by_metadata({"step": 2})
        assert {(i.thread_id, i.forked_from) for i in found} == {
            ("main", None),
            ("branch", ("main", "c")),
        }
        kept = {name: states[name] for name in "abc"}
        await verify(checkpointer, "branch", {**kept, "f": {"later": 1}})

    async def test_a_fork_of_a_fork_names_both(self, checkpointer: DeltaCheckpointer) -> None:
        await _save(checkpointer, "main", *"abc")
        await checkpointer.fork("main", "b", "branch")
        await _save(checkpointer, "branch", "d", "e")
        await checkpointer.fork("branch", "d", "twig")
        await checkpointer.fork("branch", "b", "other")
        assert await _origins(checkpointer, "twig") == {"b": ("main", "b"), "d": ("branch", "d")}
        assert await _origins(checkpointer, "other") == {"b": ("branch", "b")}
        await verify(checkpointer, "twig", {"a": turns(0), "b": turns(1), "d": turns(0)})
        await verify(checkpointer, "other", {"a": turns(0), "b": turns(1)})

    async def test_a_copy_comes_from_where_its_source_comes_from(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _save(checkpointer, "main", *"abc")
        await checkpointer.copy_thread("main", "copy")
        assert await _origins(checkpointer, "copy") == {}
        await checkpointer.fork("copy", "b", "branch")
        await checkpointer.copy_thread("branch", "branch 2")
        assert await _origins(checkpointer, "branch 2") == {"b": ("copy", "b")}
        await verify(checkpointer, "branch 2", {"a": turns(0), "b": turns(1)})

    async def test_any_name_is_kept(self, checkpointer: DeltaCheckpointer) -> None:
        thread, name = 'a"b\x00\x01é\U0001f600[', "\x00\x02'\\"
        await _save(checkpointer, thread, name)
        await checkpointer.fork(thread, name, "branch")
        assert await _origins(checkpointer, "branch") == {name: (thread, name)}

    async def test_the_origin_stays_when_its_source_goes(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _save(checkpointer, "main", *"abc")
        await checkpointer.fork("main", "b", "branch")
        await checkpointer.delete("main")
        assert await _origins(checkpointer, "branch") == {"b": ("main", "b")}
        await checkpointer.delete("branch")
        await _save(checkpointer, "branch", "b")
        assert await _origins(checkpointer, "branch") == {}

    async def test_the_nearest_newer_names_it_when_its_own_is_pruned(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _save(checkpointer, "main", *"abcd")
        await checkpointer.fork("main", "c", "branch")
        states = await _save(checkpointer, "branch", *"efgh")
        await checkpointer.delete("branch", "c")
        assert await _origins(checkpointer, "branch") == {"e": ("main", "c")}
        await checkpointer.prune("branch", keep_last=2)
        assert await _origins(checkpointer, "branch") == {"g": ("main", "c")}
        await verify(checkpointer, "branch", {name: states[name] for name in "gh"})
        assert await checkpointer.get_metadata("branch", "g") == {"step": 2}

    async def test_the_nearest_older_names_it_when_nothing_newer_is_there(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _save(checkpointer, "main", *"abc")
        await checkpointer.fork("main", "c", "branch")
        await checkpointer.delete("branch", "c")
        assert await _origins(checkpointer, "branch") == {"b": ("main", "c")}
        await verify(checkpointer, "branch", {"a": turns(0), "b": turns(1)})

    @PROPERTY
    @given(
        forks=st.lists(st.integers(0, 200), min_size=1, max_size=3),
        removed=st.lists(st.integers(0, 200), max_size=12),
        depth=st.sampled_from([0, 2, 64]),
    )
    async def test_forks_of_forks_are_whole_whatever_was_removed(
        self, open_another: Open, forks: list[int], removed: list[int], depth: int
    ) -> None:
        checkpointer: DeltaCheckpointer = await open_another(max_chain_depth=depth)
        for thread in await checkpointer.list_threads():
            await checkpointer.delete(thread)
        states = await _save(checkpointer, "0", *(f"0-{n}" for n in range(6)))
        for number, choice in enumerate(forks):
            names = list(states)
            start = choice % len(names)
            source, target = str(number), str(number + 1)
            await checkpointer.fork(source, names[start], target)
            states = {name: states[name] for name in names[: start + 1]}
            states |= await _save(checkpointer, target, *(f"{target}-{n}" for n in range(4)))
            for pick in removed[number::3]:
                gone = list(states)[pick % len(states)]
                if len(states) > 1:
                    await checkpointer.delete(target, gone)
                    del states[gone]
            await verify(checkpointer, target, states)
            origins = await _origins(checkpointer, target)
            assert (source, names[start]) in origins.values()
        await checkpointer.close()
