"""The suite of trees: many writers at once, and users who never meet."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import MemoryConflict, MemoryNotFound
from locus_memory.resources.operations import (
    MemoryOp,
    MemoryOpDelete,
    MemoryOpFind,
    MemoryOpHistory,
    MemoryOpList,
    MemoryOpMove,
    MemoryOpRead,
    MemoryOpTree,
    MemoryOpWrite,
)
from locus_memory.resources.results import (
    MemoryExecutionFailure,
)
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import BaseStore
from locus_memory.testing.store_suite.base import PROPERTY
from locus_memory.testing.tree_suite.base import TreeSuite

__all__ = ["RaceTests"]

_HOSTILE = [
    *("memory://", "memory://../users/ada", "memory://%2E%2E/ada", "memory://users/ada/memory"),
    *("memory://secret", "memory://f/secret", "memory:///f/secret", "memory://f%2Fsecret"),
    *("memory://*", "memory://%2A/secret", "memory://tree/f/secret", "memory://memories/user"),
    *("memory://%00", "memory://users/ada", "memory://..", "memory://sessions"),
]
_uris = st.sampled_from(_HOSTILE) | st.text(max_size=12).map("memory://{}".format)
_SECRET = "zeppelin"  # noqa: S105 - a word to look for
_SECRETS = ("memory://secret", "memory://f/secret")


def _ops(uri: str, other: str) -> list[MemoryOp]:
    return [
        MemoryOpRead(uri),
        MemoryOpRead(uri, "overview"),
        MemoryOpList(uri),
        MemoryOpTree(uri, 64),
        MemoryOpFind(_SECRET, uri, 50),
        MemoryOpHistory(uri),
        MemoryOpWrite(uri, "mine"),
        MemoryOpMove(uri, other),
        MemoryOpDelete(uri, recursive=True),
    ]


class RaceTests(TreeSuite):
    """Writers at once."""

    async def test_twenty_writers_of_one_entry(self, tree: MemoryTree) -> None:
        texts = [f"writer {n}\n\n" + f"line of {n}. " * 200 for n in range(20)]
        await asyncio.gather(*(tree.write("memory://one", text) for text in texts))
        read = await tree.read("memory://one")
        assert read.data in texts
        assert read.version == len(texts)
        abstract = str((await tree.read("memory://one", "abstract")).data)
        assert str(read.data).startswith(abstract.splitlines()[0])
        await asyncio.gather(*(tree.write("memory://log", f"{n}", mode="append") for n in range(9)))
        lines = str((await tree.read("memory://log")).data).split("\n")
        assert sorted(lines) == [str(n) for n in range(9)]

    async def test_writers_of_an_entry_and_of_a_folder(self, tree: MemoryTree) -> None:
        for round_ in range(10):
            base = f"memory://r{round_}"

            async def tried(uri: str) -> bool:
                try:
                    await tree.write(uri, uri)
                except MemoryConflict:
                    return False
                return True

            uris = [base, f"{base}/x", f"{base}/x/y", f"{base}/z"]
            done = await asyncio.gather(*map(tried, uris))
            there = {e.uri for e in (await tree.tree(depth=9)).entries if e.uri.startswith(base)}
            assert {uri for uri, ok in zip(uris, done, strict=True) if ok} == {
                uri for uri in there if not uri.endswith("/")
            }
            assert not {uri.rstrip("/") for uri in there if uri.endswith("/")} & there

    async def test_deletes_and_writes_at_once_leave_a_tree(self, tree: MemoryTree) -> None:
        async def change(n: int) -> None:
            uri = f"memory://d/{n % 3}/{n % 2}"
            try:
                await (tree.write(uri, "text") if n % 5 else tree.delete(uri))
            except MemoryNotFound:
                return

        for _ in range(5):
            await asyncio.gather(*map(change, range(20)))
            entries = (await tree.tree(depth=9)).entries
            folders = {each.uri for each in entries if each.is_dir}
            leaves = {each.uri for each in entries if not each.is_dir}
            parents = {str(MemoryURI.parse(uri).parent) for uri in leaves}
            assert folders - {"memory://d/"} == parents
            for uri in leaves:
                assert (await tree.read(uri)).data == "text"
        await tree.delete("memory://d", recursive=True)
        assert (await tree.list()).entries == ()

    @settings(PROPERTY, max_examples=25)
    @given(_uris, _uris)
    async def test_no_uri_reaches_another_user(
        self, store: BaseStore, uri: str, other: str
    ) -> None:
        shared = MemoryTree(store, prefix=self.fresh())
        ada = shared.for_user("ada")
        for each in _SECRETS:
            await ada.write(each, f"the {_SECRET} of ada")
        for tree in (shared.for_user("noor"), shared):
            for op in _ops(uri, other):
                answer = await tree.dispatch(op)
                if isinstance(answer, MemoryExecutionFailure):
                    assert answer.kind not in ("internal", "transport"), answer
                # The others write only "mine", so nothing of theirs has the secret.
                shown = f"{answer!r}{getattr(answer, 'data', '')}"
                assert _SECRET not in shown, op
        for each in _SECRETS:
            assert (await ada.read(each)).data == f"the {_SECRET} of ada"
