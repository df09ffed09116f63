"""Words that go in through any door are nowhere in the bytes of an encrypted database."""

from __future__ import annotations

import json

import pytest

from locus_memory import DocumentIndex, LLMMemoryManager, open_backend
from locus_memory.agent import Agent
from locus_memory.backends.remains import ByteSearch
from locus_memory.deletion import audit_deletion
from locus_memory.encryption import EncryptionKeys
from locus_memory.memory.models import Memory
from locus_memory.messages import Message
from locus_memory.resources import MemoryTree
from locus_memory.store.view import StoreContext
from locus_memory.testing import FakeEmbedder

KEYS = EncryptionKeys({"k": b"k" * 32}, "k")
SCRIPTS = ("zebrawood", "Sandelholz", "палисандр", "シタン紫檀", "רוזווד", "خشبالورد")
"""Words of several scripts that no program writes by itself."""


def marks(door):
    # Of a word of two scripts, each part is a word of the index: a short one is found by chance.
    return [f"{word}zq{door}borkum" for word in SCRIPTS]


async def memories(store, folder):
    said = marks("mem")

    async def extract(messages, existing=None):
        return [Memory("user", f"allergy:{word}", f"She fears {word}.") for word in said]

    for user in (None, "ada"):
        manager = LLMMemoryManager(store, extract_fn=extract, embedder=FakeEmbedder())
        scoped = manager if user is None else manager.for_user(user)
        for change in ("likes", "hates"):
            await scoped.save(
                [Memory("user", f"taste:{w}", f"{change} {w}", {"note": w}) for w in said]
            )
        assert {f"taste:{w}" for w in said} <= {each.key for each in await scoped.retrieve(50)}
        await scoped.undo(f"taste:{said[0]}")
        assert len(await scoped.history(f"taste:{said[1]}")) == 2
    return said


async def turns(store, folder):
    said = marks("turn")

    async def model(messages, **options):
        return Message(role="assistant", content=f"Noted: {said[1]}")

    async with Agent(model=model, memory_manager=LLMMemoryManager(store)) as agent:
        for word in said:
            await agent.run(f"Remember that I am allergic to {word}.", thread_id="t")
    return said


async def documents(store, folder):
    said = marks("doc")
    for word in said:
        (folder / f"{word}.md").write_text(f"# About {word}\n\n{word} is a wood.\n", "utf-8")
    index = DocumentIndex(store, embedder=FakeEmbedder(), kind="hybrid")
    await index.add_path(folder)
    await index.add(f"{said[0]} again", source=f"{said[1]}.txt", metadata={"title": said[2]})
    assert len(await index.sources()) == len(said) + 1
    found, *_ = await index.retrieve(f"About {said[0]}")
    assert said[0] in found.content
    assert await index.delete_source(f"{said[1]}.txt")
    return said


async def resources(store, folder):
    said = marks("res")
    async with MemoryTree(store, embedder=FakeEmbedder()) as tree:
        for word in said:
            for text in ("first", "second"):
                await tree.write(f"memory://{word}/{word}.md", f"# {word}\n\n{text} {word}")
        found = str((await tree.tree("memory://", 3)).entries)
        assert all(word in found for word in said)
        await tree.move(f"memory://{said[0]}/{said[0]}.md", f"memory://{said[1]}/moved.md")
        assert len((await tree.history(f"memory://{said[2]}/{said[2]}.md")).versions) >= 1
        await tree.delete(f"memory://{said[3]}", recursive=True)
    return said


async def context(store, folder):
    said = marks("ctx")
    user = StoreContext(store, user_id="ada", embedder=FakeEmbedder())
    for number, word in enumerate(said):
        await user.remember(f"r{number}", word)
    return said


async def values(store, folder):
    said = marks("val")
    for number, word in enumerate(said):
        await store.put(("mine",), f"k{number}", {word: [word]}, text=f"about {word}")
    (found,) = await store.search(("mine",), said[2], 1)
    assert found.key == "k2"
    return said


DOORS = (memories, turns, documents, resources, context, values)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_no_door_leaves_a_word_in_the_bytes(provider, tmp_path, door):
    where, options = provider
    folder = tmp_path / "docs"
    folder.mkdir()
    async with open_backend(where, state_type=None, encryption=KEYS, **options) as backend:
        said = await door(backend.store, folder)
        audit = await audit_deletion(backend.inner, said)
        assert audit.found == 0, [place for place in audit.places if place.found]
        seen = json.dumps(
            [
                (space, item.to_dict())
                for space in await backend.inner.store.list_namespaces(limit=10_000)
                for item in await backend.inner.store.scan(space, 10_000)
            ],
            ensure_ascii=False,
        )
        assert not [word for word in said if word in seen]
        readable = await audit_deletion(backend, said)
        assert readable.places[0].found > 0


async def test_no_word_of_a_checkpoint_is_in_the_bytes(provider):
    where, options = provider
    said = marks("state")
    async with open_backend(where, state_type=None, encryption=KEYS, **options) as backend:
        for number in range(12):
            state = {"messages": [{"content": " ".join(said), "n": n} for n in range(number)]}
            await backend.checkpointer.save(state, "t", f"c{number}", {"turn": number})
        places = await backend.inner.remains(ByteSearch(said))
        assert not [place for place in places if place.found]
        heads = await backend.inner.checkpointer.list_with_metadata("t", 100)
        assert heads[0].metadata == {"turn": 11}
