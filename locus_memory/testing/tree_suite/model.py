"""The suite of trees: random sequences of operations, compared with a plain dict."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from locus_memory.errors import MemoryConflict, MemoryNotFound
from locus_memory.resources.operations import (
    WriteMode,
)
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import BaseStore
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import PROPERTY
from locus_memory.testing.tree_suite.base import TreeSuite

__all__ = ["TREE_LIVES", "TreeModelTests", "live"]

TREE_LIVES: Final = settings(PROPERTY, max_examples=12, stateful_step_count=25)

_NAMES: Final = ["a", "b", "a/b", "🦊", "\x00", "x" * 1000]
_WORDS: Final = ["petrel", "spruce", "harbour", "lantern"]

_paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3).map(tuple)
_words = st.lists(st.sampled_from(_WORDS), max_size=3).map(" ".join)
_modes = st.sampled_from(["replace", "append", "create"])

Path_ = tuple[str, ...]


class TreeModel(RuleBasedStateMachine):
    """Applies the same operations to a tree and to a dict from paths to texts."""

    def __init__(
        self, store: BaseStore, runner: asyncio.Runner, serial: itertools.count[int]
    ) -> None:
        super().__init__()
        self.store, self.run = store, runner.run
        self.tree = MemoryTree(store, prefix=("model", str(next(serial))))
        self.entries: dict[Path_, str] = {}

    def is_folder(self, path: Path_) -> bool:
        """Whether an entry is below a path."""
        return any(each[: len(path)] == path and each != path for each in self.entries)

    def is_blocked(self, path: Path_) -> bool:
        """Whether no entry can be at a path."""
        above = any(path[:depth] in self.entries for depth in range(1, len(path)))
        return above or self.is_folder(path)

    @rule(path=_paths, text=_words, mode=_modes)
    def write(self, path: Path_, text: str, mode: WriteMode) -> None:
        """Write an entry."""
        call = self.tree.write(str(MemoryURI(path)), text, mode=mode)
        if self.is_blocked(path) or (mode == "create" and path in self.entries):
            with pytest.raises(MemoryConflict):
                self.run(call)
            return
        assert self.run(call).bytes_written == len(text)
        old = self.entries.get(path)
        is_added = mode == "append" and old is not None
        self.entries[path] = f"{old}\n{text}" if is_added else text

    @rule(path=_paths)
    def read(self, path: Path_) -> None:
        """Read an entry."""
        call = self.tree.read(str(MemoryURI(path)))
        if path not in self.entries:
            with pytest.raises(MemoryNotFound):
                self.run(call)
            return
        assert self.run(call).data == self.entries[path]
        abstract = self.run(self.tree.read(MemoryURI(path), "abstract")).data
        assert set(abstract.split()) <= set(self.entries[path].split())

    @rule(path=_paths, recursive=st.booleans())
    def delete(self, path: Path_, *, recursive: bool) -> None:
        """Delete an entry or a folder."""
        call = self.tree.delete(MemoryURI(path), recursive=recursive)
        if path in self.entries:
            assert self.run(call).deleted == 1
            del self.entries[path]
            return
        is_folder = self.is_folder(path)
        if not is_folder or not recursive:
            with pytest.raises(MemoryConflict if is_folder else MemoryNotFound):
                self.run(call)
            return
        doomed = [each for each in self.entries if each[: len(path)] == path]
        assert self.run(call).deleted == len(doomed)
        for each in doomed:
            del self.entries[each]

    @rule(path=_paths, goal=_paths)
    def move(self, path: Path_, goal: Path_) -> None:
        """Move an entry."""
        if self.is_folder(path):
            return
        call = self.tree.move(MemoryURI(path), MemoryURI(goal))
        if path not in self.entries:
            with pytest.raises(MemoryNotFound):
                self.run(call)
        elif goal in self.entries or self.is_blocked(goal):
            with pytest.raises(MemoryConflict):
                self.run(call)
        else:
            self.run(call)
            self.entries[goal] = self.entries.pop(path)

    @rule(word=st.sampled_from(_WORDS), below=st.just(()) | _paths)
    def find(self, word: str, below: Path_) -> None:
        """Find a word."""
        if not self.store.capabilities.search:
            return
        found = self.run(self.tree.find(word, MemoryURI(below), top_k=500)).hits
        wanted = {
            str(MemoryURI(path))
            for path, text in self.entries.items()
            if path[: len(below)] == below and word in text.split()
        }
        assert {each.uri for each in found} == wanted
        assert len(found) == len(wanted)

    @invariant()
    def the_whole_tree_is_listed(self) -> None:
        """List everything."""
        if not self.entries:
            assert self.run(self.tree.tree(depth=9)).entries == ()
            return
        listed = self.run(self.tree.tree(depth=9)).entries
        folders = {path[:depth] for path in self.entries for depth in range(1, len(path))}
        assert [each.uri for each in listed if each.is_dir] == [
            str(MemoryURI(path, is_folder=True)) for path in sorted(folders)
        ]
        sizes = {each.uri: each.size for each in listed if not each.is_dir}
        assert sizes == {str(MemoryURI(p)): len(t) for p, t in self.entries.items()}


class TreeModelTests(TreeSuite):
    """The state machine."""

    async def test_a_tree_behaves_like_a_dict(self, clock: FakeClock, tmp_path: Path) -> None:
        # The machine is not async: it has its own thread, with an event loop for the store.
        await asyncio.to_thread(live, self.make_store(clock, tmp_path))


def live(manager: AbstractAsyncContextManager[BaseStore], lives: settings = TREE_LIVES) -> None:
    """Run the state machine on the store of `manager`, for so many lives."""
    serial = itertools.count()
    with asyncio.Runner() as runner:
        store = runner.run(manager.__aenter__())
        try:
            run_state_machine_as_test(
                cast("Any", lambda: TreeModel(store, runner, serial)), settings=lives
            )
        finally:
            runner.run(manager.__aexit__(None, None, None))
