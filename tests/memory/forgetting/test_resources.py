"""Resources and documents of a user go with the user; what users share stays, and is named."""

from __future__ import annotations

import pytest

from locus_memory import DocumentIndex, LLMMemoryManager, Message
from locus_memory.backends.inmemory.backend import InMemoryBackend
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.deletion import audit_deletion
from locus_memory.memory.forgetting.forget import forget
from locus_memory.resources.tree import MemoryTree
from locus_memory.testing import FakeEmbedder

OWN = ["quillfact", "quilltree", "quillolder", "quilltalk", "quillpaper", "quillhead"]
SHARED = ("documents",), ("memory",)


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    made = InMemoryBackend() if request.param == "memory" else SQLiteBackend(tmp_path / "a.db")
    async with made:
        yield made


async def own_data(store, user, marks):
    """Leave a marked word in each kind of data of one user."""
    fact, tree, older, talk, paper, head = marks
    await LLMMemoryManager(store).for_user(user).remember(f"I keep a {fact} at home.")
    async with MemoryTree(store, user_id=user, embedder=FakeEmbedder()) as resources:
        await resources.write("memory://desk/note", f"On the desk is a {older}.", wait=True)
        await resources.write("memory://desk/note", f"On the desk is a {tree}.", wait=True)
        await resources.commit("t", [Message.user(f"I live in {talk.title()}.")], wait=True)
    for namespace in (("users", user, "documents"), ("users", user, "papers")):
        index = DocumentIndex(store, namespace=namespace, embedder=FakeEmbedder())
        await index.add(f"# {head}\n\nOn {paper}.", source=f"{paper}.md", kind="markdown")


async def test_what_is_a_users_goes_and_the_proof_covers_it(backend, tmp_path):
    store = backend.store
    await own_data(store, "ada", OWN)
    await own_data(store, "bob", [word[::-1] for word in OWN])
    await DocumentIndex(store).add("Of a sharedpaper.", source="all.md")
    await MemoryTree(store).write("memory://all", "Of a sharedtree.", wait=True)
    planned = await forget(backend, user_id="ada", dry_run=True)
    report = await forget(backend, user_id="ada")
    assert planned.kept == report.kept
    assert [space for space, _ in report.kept] == [*SHARED]
    assert [why for _, why in report.kept] == [
        "an index of documents that users share",
        "a tree of resources that users share",
    ]
    assert {space[:3] for space, _ in report.items} >= {
        ("users", "ada", "memory"),
        ("users", "ada", "documents"),
        ("users", "ada", "papers"),
    }
    await backend.compact()
    audit = await audit_deletion(backend, OWN)
    assert audit.found == 0, audit
    assert audit.is_proven is (backend.provider == "sqlite")
    raw = b"".join(each.read_bytes() for each in tmp_path.iterdir()).lower()
    assert not [word for word in OWN if word.encode() in raw]
    for word in (*(word[::-1] for word in OWN), "sharedpaper", "sharedtree"):
        assert (await audit_deletion(backend, [word])).found


async def test_a_user_of_this_name_under_another_prefix_is_named(backend):
    """A tenant's own, or the facts of a tree with a prefix: only the caller knows whose."""
    for prefix in (("acme",), ("kb", "facts")):
        manager = LLMMemoryManager(backend.store, namespace_prefix=prefix)
        for user in ("ada", "ada2", "*"):
            await manager.for_user(user).remember("I keep a quill.")
    report = await forget(backend, user_id="ada")
    why = "a user of this name under another prefix, which has to be named"
    assert report.kept == ((("acme", "users", "ada"), why), (("kb", "facts", "users", "ada"), why))
    assert await forget(backend, user_id="ada", prefix=("kb", "facts"))
    assert await manager.for_user("ada").retrieve() == []
    star = await forget(backend, user_id="*", dry_run=True)
    assert [space[-1] for space, _ in star.kept] == ["*", "*"]
    assert (await forget(backend, user_id="ada2", key="k", dry_run=True)).kept == ()
