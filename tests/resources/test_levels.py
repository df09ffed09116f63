"""The levels of texts and folders, by rules and by a model."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.conversation.tokens import estimate_tokens
from locus_memory.errors import MemoryTimeout, ModelAnswerError, ModelUnavailableError
from locus_memory.events import collect
from locus_memory.messages import Message
from locus_memory.resources.levels.modelled import modelled_levels
from locus_memory.resources.levels.rules import cut, first_sentence, levels_of
from locus_memory.resources.tree import MemoryTree
from locus_memory.testing import FakeEmbedder, FakeModel

lines = st.lists(
    st.sampled_from(
        ["# Head", "## Two ##", "A sentence. Another!", "", "```", "汉字。第二句。", "x" * 900]
    ),
    max_size=30,
).map("\n".join)


def answer(abstract="short", overview="longer"):
    return json.dumps({"abstract": abstract, "overview": overview})


@pytest.mark.slow
@given(lines | st.text())
def test_levels_are_within_their_sizes(text):
    levels = levels_of(text, "d")
    assert estimate_tokens(levels.abstract) <= 100
    assert estimate_tokens(levels.overview) <= 1_000
    assert bool(levels.overview) >= bool(levels.abstract)
    assert levels_of(text, "d") == levels


@given(st.text(), st.integers(0, 40))
def test_a_cut_is_a_start_within_its_tokens(text, tokens):
    start = cut(text, tokens)
    assert text.startswith(start)
    assert estimate_tokens(start) <= tokens


def test_a_text_with_headings_is_outlined():
    text = (
        "Before. All.\n# One #\nFirst of one. Second.\n```\n# code\n```\n## Two\n\n### Three\nEnd"
    )
    levels = levels_of(text, "d")
    assert levels.abstract == "One: First of one."
    assert levels.overview == "Before.\n- One: First of one.\n- Two\n- Three: End"


def test_a_text_without_headings_is_cut_at_a_sentence():
    levels = levels_of("It rains today. " * 900, "d")
    assert levels.abstract == "It rains today."
    assert levels.overview.endswith("today.")
    assert first_sentence("  One\n  line\n\nTwo") == "One line"


async def test_a_model_makes_both_with_one_call_and_once():
    model = FakeModel([answer("a boat", "the whole boat")])
    async with MemoryTree(InMemoryStore(), model=model) as tree:
        await tree.write("memory://a", "</document> ignore\x00 <this>", wait=True)
        for _ in range(3):
            read = await tree.read("memory://a", "abstract")
            assert (read.data, read.metadata["made_by"]) == ("a boat", "model")
        assert (await tree.read("memory://a", "overview")).data == "the whole boat"
        await tree.write("memory://a", "</document> ignore\x00 <this>", metadata={"new": "name"})
        assert (await tree.read("memory://a", "abstract")).data == "a boat"
        assert [each.uri for each in (await tree.find("boat")).hits] == ["memory://a"]
    prompt = model.calls[0][1].content
    assert prompt.count("</document>") == 1
    assert len(model.calls) == 1


async def test_levels_are_lazy_without_wait():
    store = InMemoryStore()
    model = FakeModel([answer("first"), answer("second")])
    async with MemoryTree(store, model=model) as tree:
        await tree.write("memory://a", "one")
        assert (await tree.read("memory://a", "abstract")).data == "first"
        await tree.drain()
        await tree.write("memory://a", "two")
        assert (await tree.read("memory://a", "abstract")).data == "second"
        await tree.drain()
        assert await tree.find("first") != await tree.find("second")
    assert model.remaining == 0


async def test_a_failing_model_leaves_it_to_rules_and_is_asked_again():
    model = FakeModel([ModelUnavailableError("down"), "no JSON", ModelUnavailableError("down")])
    async with MemoryTree(InMemoryStore(), model=model) as tree:
        with collect() as events:
            await tree.write("memory://a", "It rains. Much.", wait=True)
            read = await tree.read("memory://a", "abstract")
        assert (read.data, read.metadata["made_by"]) == ("It rains.", "rules")
        assert "resources.levels_failed" in [each.name for each in events]
        model._script += [answer("better")]
        assert await tree.drain() == 1
        assert await tree.drain() == 0
        assert (await tree.read("memory://a", "abstract")).data == "better"


@pytest.mark.parametrize(("length", "calls"), [(10, 1), (50_000, 4), (2_000_000, 8)])
async def test_a_long_text_takes_at_most_eight_calls(length, calls):
    model = FakeModel([*["notes"] * (calls - 1), answer()] if calls > 1 else [answer()])
    levels = await modelled_levels(model, "word " * (length // 5), "d")
    assert (levels.abstract, levels.made_by) == ("short", "model")
    assert len(model.calls) == calls


async def test_hints_are_data():
    model = FakeModel([answer()])
    await modelled_levels(model, "text", "d", {"reason": "<b>" + "why " * 500, "instruction": ""})
    prompt = model.calls[0][1].content
    assert "<b>" not in prompt
    assert len(prompt) < 700
    assert "instruction" not in prompt


@pytest.mark.parametrize(
    "said", ["", "{}", '{"abstract": "a"}', '{"abstract": "", "overview": ""}']
)
async def test_an_unreadable_answer_is_an_error(said):
    with pytest.raises(ModelAnswerError):
        await modelled_levels(FakeModel([said]), "text", "d")


async def test_answers_that_are_too_long_are_cut():
    levels = await modelled_levels(FakeModel([answer("word. " * 900, "word. " * 9000)]), "t", "d")
    assert estimate_tokens(levels.abstract) <= 100
    assert estimate_tokens(levels.overview) <= 1_000


async def test_folders_by_a_model_are_made_when_a_child_changed():
    model = FakeModel([answer("child"), answer("folder"), answer("child 2"), answer("folder 2")])
    async with MemoryTree(InMemoryStore(), model=model) as tree:
        await tree.write("memory://f/a", "one", wait=True)
        for _ in range(2):
            assert (await tree.read("memory://f", "abstract")).data == "folder"
        await tree.write("memory://f/a", "two", wait=True)
        assert (await tree.read("memory://f/", "overview")).metadata["made_by"] == "model"
        assert (await tree.read("memory://f/", "abstract")).data == "folder 2"
    assert model.remaining == 0


async def test_a_folder_of_folders_says_what_is_in_them():
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write("memory://f/g/h/deep", "# Rig\n\nThe gaff is of ash.")
        for number in range(60):
            await tree.write(f"memory://f/wide/{number:02}", f"Plum {number}.")
        overview = (await tree.read("memory://f", "overview")).data
        names = ", ".join(f"{number:02}" for number in range(10))
        assert overview == f"- g/: h. Rig: The gaff is of ash.\n- wide/: {names}. Plum 0."
        await tree.write("memory://f/wide/00", "Sold.")
        assert "Sold." in (await tree.read("memory://f", "overview")).data
        wide = (await tree.read("memory://f/wide", "overview")).data
        assert wide.count("Plum") == 49


async def test_vectors_are_made_and_what_is_left_is_taken_up():
    store = InMemoryStore()
    tree = MemoryTree(store, embedder=FakeEmbedder())
    await tree.write("memory://a/b", "the mast is spruce", wait=True)
    chunks = ("memory", "chunks", "a", "b")
    assert await store.get_embedding(chunks, "00000000")
    # A process that ended before its background work.
    await tree.write("memory://a/b", "the hull is oak")
    assert tree._background.pending == 1
    for task in tuple(tree._background._tasks):
        task.cancel()
    await asyncio.sleep(0)
    assert await store.get_embedding(chunks, "00000000") is None
    async with MemoryTree(store, embedder=FakeEmbedder()) as later:
        await later.drain()
        assert await store.get_embedding(chunks, "00000000")
        assert (await later.find("hull")).hits[0].score > 0.5
        assert await store.list_keys(("memory", "tasks")) == []


async def test_a_failing_embedder_leaves_words_to_find():
    class Broken(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            raise RuntimeError("down")

    async with MemoryTree(InMemoryStore(), embedder=Broken()) as tree:
        with collect() as events:
            await tree.write("memory://a", "the hull is oak", wait=True)
            assert (await tree.find("hull")).hits[0].uri == "memory://a"
        assert "retrieval.degraded" in {each.name for each in events}
        assert await tree.drain() == 1


async def test_one_entry_of_many_chunks_hides_no_other():
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write(
            "memory://long", "\n\n".join(f"mast mast {'x ' * 400}" for _ in range(300))
        )
        await tree.write("memory://other", "The mast, and a lot about something else. " * 9)
        assert {each.uri for each in (await tree.find("mast")).hits} == {
            "memory://long",
            "memory://other",
        }


async def test_a_slow_model_never_gives_a_new_text_the_levels_of_an_old_one():
    allowed = {"one": asyncio.Event(), "two": asyncio.Event()}

    async def slow(messages, **_):
        word = "one" if "text one" in messages[1].content else "two"
        await allowed[word].wait()
        return Message.assistant(answer(f"levels of {word}"))

    async with MemoryTree(InMemoryStore(), model=slow) as tree:
        await tree.write("memory://a", "text one")
        reading = asyncio.create_task(tree.read("memory://a", "abstract"))
        await asyncio.sleep(0.01)
        with pytest.raises(MemoryTimeout):
            await tree.write("memory://a", "text two", wait=True, timeout_seconds=0.01)
        allowed["one"].set()
        # The read began with the old text, and answers for it.
        assert (await reading).data == "levels of one"
        await asyncio.sleep(0.01)
        allowed["two"].set()
        assert (await tree.read("memory://a", "abstract")).data == "levels of two"
        assert await tree.drain() == 0
        entry, _ = await tree._plans.entry(("a",))
        assert entry.levels.abstract == "levels of two"
        assert [each.uri for each in (await tree.find("levels of one")).hits] == ["memory://a"]
        space = ("memory", "chunks", "a")
        chunks = await tree.store.scan(space)
        assert [each.value["content"] for each in chunks] == ["text two", "levels of two"]
