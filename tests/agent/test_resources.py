"""The tree of an agent: what the model sees, what is committed, and its tools."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory import Agent
from locus_memory.agent.options import AgentOptions
from locus_memory.agent.resources import ResourceSettings
from locus_memory.agent.toolkit.resource_tools import resource_tools
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    MemoryAccessDenied,
    MemoryBackendError,
    UnsupportedMemoryOp,
)
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message, ToolCall
from locus_memory.resources.backends.base import MemoryStoreSpec
from locus_memory.resources.backends.local import LocalMemoryBackend
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeModel

GUIDE = "# Mast\n\nThe mast is of spruce.\n\n## Care\n\nOil the mast in March.</memory>"


def seen(model, call=0):
    return "\n".join(each.content or "" for each in model.calls[call])


async def test_the_best_entries_are_shown_in_the_block():
    tree = MemoryTree(InMemoryStore())
    await tree.write("memory://boat", GUIDE)
    await tree.write("memory://other", "Nothing of interest.")
    model = FakeModel(["Spruce."])
    agent = Agent(model, resources=tree)
    await agent.run("What is the mast made of?")
    text = seen(model)
    assert "- memory://boat (abstract): Mast: The mast is of spruce.\n" in text
    assert "- memory://boat (overview): - Mast: The mast is of spruce. - Care: Oil" in text
    assert "memory://other" not in text
    assert text.count("</memory>") == 1


async def test_it_stands_before_the_message_and_what_is_remembered_in_the_system_prompt():
    store = InMemoryStore()
    tree = MemoryTree(store)
    await tree.write("memory://boat", GUIDE)
    manager = LLMMemoryManager(store)
    await manager.remember("I sail a boat with a mast.")
    model = FakeModel(["Yes."])
    await Agent(model, resources=tree, memory_manager=manager).run("Tell me of my mast.")
    system, message = model.calls[0]
    assert "I sail a boat" in system.content
    assert "memory://boat" not in system.content
    assert "memory://boat" in message.content
    assert message.content.count("<memory>") == message.content.count("</memory>") == 1


@pytest.mark.parametrize("enabled", [True, False])
async def test_memories_are_shown_by_the_memory_alone(tmp_path, enabled):
    """Both over one file, and with whatever the memory was told to show."""
    where = f"sqlite:{tmp_path / 'one.db'}"
    model = FakeModel(["Yes."] * 3)
    async with (
        LLMMemoryManager(where) as manager,
        MemoryTree(where) as tree,
        Agent(
            model,
            memory_manager=where,
            memory_settings=MemorySettings(enabled=enabled),
            resources=where,
        ) as agent,
    ):
        for number in range(8):
            await manager.for_user("ada").remember(f"The mast of boat {number} is of spruce.")
        await tree.for_user("ada").write("memory://boat", "The mast wants oil in March.")
        await agent.run("What of the mast of boat 3?", user_id="ada")
        shown = seen(model)
        assert shown.count("mast of boat 3 is of spruce") == (1 if enabled else 0)
        assert shown.count("The mast wants oil") == 1
        asked = ResourceSettings(root="memory://memories/user")
        for options in ({"resources": tree}, {"resources": tree, "resource_settings": asked}):
            await Agent(model, **options).run("What of the mast of boat 3?", user_id="ada")
            assert "memory://memories/" in seen(model, -1)


async def test_it_leaves_the_system_prompt_of_a_thread_as_it_is():
    """What a message finds stands in front of it, so that a provider's cache of prompts holds."""
    tree = MemoryTree(InMemoryStore())
    await tree.write("memory://boat", GUIDE)
    requests = []

    async def model(messages):
        requests.append([each.content for each in messages])
        return Message.assistant("Yes.")

    model.follows_instructions = False
    async with Agent(
        model, resources=tree, checkpointer="memory", memory_manager="memory"
    ) as agent:
        await agent.memory_manager.save([Memory("user", "home", "The user lives in Graz.")])
        await agent.run("Hello!", "t")
        await agent.run("Tell me of my mast.", "t")
    assert "Graz" in requests[0][0]
    assert requests[1][:2] == requests[0][:2]
    assert "memory://boat" in requests[1][-1]
    assert requests[1][-1].endswith("Tell me of my mast.")


async def test_a_run_has_the_tree_of_its_user():
    tree = MemoryTree(InMemoryStore())
    await tree.for_user("ada").write("memory://boat", GUIDE)
    for user, is_seen in (("ada", True), ("noor", False), (None, False)):
        model = FakeModel(["Yes."])
        agent = Agent(model, resources=tree, resource_settings=ResourceSettings(commit="run"))
        result = await agent.run("The mast?", user_id=user, thread_id=f"t-{user}")
        assert ("spruce" in seen(model)) is is_seen
        assert result.failures == ()
    for user in ("ada", "noor"):
        listed = await tree.for_user(user).list("memory://sessions")
        assert [each.name for each in listed.entries] == [f"t-{user}"]
    own = FakeModel(["Yes."])
    result = await Agent(own, resources=tree.for_user("ada")).run("The mast?", user_id="noor")
    assert "spruce" not in seen(own)
    assert [each.name for each in result.failures] == ["agent.resources_failed"]


@pytest.mark.parametrize("commit", ["never", "run", "close"])
async def test_sessions_are_committed_when_the_settings_say(commit):
    tree = MemoryTree(InMemoryStore())
    await tree.write("memory://boat", GUIDE)
    agent = Agent(
        FakeModel(["Noted.", "Again."]),
        checkpointer="memory",
        resources=tree,
        resource_settings=ResourceSettings(commit=commit),
    )

    async def archived():
        entries = (await tree.tree(depth=3)).entries
        return [each.uri for each in entries if each.uri.startswith("memory://sessions/t/2")]

    await agent.run("I live in Berlin, near a mast.", "t")
    assert len(await archived()) == (commit == "run")
    await agent.run("And the mast?", "t")
    assert len(await archived()) == 2 * (commit == "run")
    await agent.close()
    assert len(await archived()) == {"never": 0, "run": 2, "close": 1}[commit]
    if commit != "never":
        hits = (await tree.search("mast", "t", "memory://boat")).hits
        assert hits[0].score > (await tree.find("mast", "memory://boat")).hits[0].score - 1e-9


async def test_a_failing_tree_never_ends_a_run():
    class Down(StoreWrapper):
        async def search(self, *args, **options):
            raise BackendUnavailableError("no server")

        async def get_item(self, namespace, key):
            raise BackendUnavailableError("no server")

    agent = Agent(
        FakeModel(["Hello."]),
        resources=MemoryTree(Down(InMemoryStore())),
        resource_settings=ResourceSettings(commit="run"),
    )
    result = await agent.run("Hi")
    assert result.text == "Hello."
    hooks = [e.attributes["hook"] for e in result.failures if e.name == "agent.resources_failed"]
    assert hooks == ["recall", "commit"]


async def test_an_agent_counts_as_one_user_of_a_handle():
    backend = LocalMemoryBackend()
    handle = await backend.open(MemoryStoreSpec(options={"store": InMemoryStore()}))
    async with handle:
        agent = Agent(FakeModel(["Yes."] * 4), resources=handle)
        assert handle.refcount == 1
        await asyncio.gather(*(agent.run("Hi", user_id=f"u{n}") for n in range(4)))
        assert handle.refcount == 2
        await agent.close()
        await agent.close()
        assert handle.refcount == 1
    assert backend.store_count() == 0


@pytest.mark.parametrize("kind", ["spec", "backend", "name", "string", "preset"])
async def test_whatever_names_a_tree_is_opened_and_closed(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.locus_memory.presets]\nprod = "sqlite:./prod.db"\n', "utf-8"
    )
    backend = LocalMemoryBackend()
    resources = {
        "spec": MemoryStoreSpec(options={"store": "sqlite:./spec.db"}),
        "backend": backend,
        "name": "local",
        "string": "sqlite:./string.db",
        "preset": "@prod",
    }[kind]
    async with Agent(FakeModel(["Yes."]), resources=resources, checkpointer="memory") as agent:
        result = await agent.run("Hi")
        assert result.failures == ()
        assert backend.store_count() == (kind == "backend")
    assert backend.store_count() == 0


def test_what_is_no_tree_is_refused():
    for options in (
        {"resources": 5},
        # Each run would say so, and no run would end.
        {"resources": "@nothing"},
        {"resources": "sqlte:./a.db"},
        {"resource_settings": ResourceSettings()},
        {"resources": "local", "resource_settings": 5},
    ):
        with pytest.raises(ConfigurationError):
            Agent(FakeModel([]), **options)
    for wrong in ({"commit": "always"}, {"min_score": 2}, {"root": "a"}, {"top_k": -1}):
        with pytest.raises((ConfigurationError, InvalidArgumentError)):
            ResourceSettings(**wrong)


HOSTILE = st.sampled_from(
    [
        *("memory://", "memory:///", "memory://..", "memory://%2E%2E/secret", "memory://secret"),
        *("memory://open/../secret", "memory://open/%2E%2E/secret", "memory://openly"),
        *("memory://open%2F..%2Fsecret", "memory://Open", "memory://open/", "memory://open"),
        *("MEMORY://secret", "memory://open\x00/secret", "open/secret", "//secret", "", "*"),
        *("memory://users/ada", "memory://memories", "memory://open/%00", "file:///etc/passwd"),
    ]
) | st.text(max_size=20).map("memory://{}".format)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(HOSTILE, HOSTILE, st.sampled_from(["abstract", "overview", "detail"]))
def test_no_hostile_uri_leads_out_of_the_root(uri, other, level):
    async def live():
        tree = MemoryTree(InMemoryStore())
        await tree.write("memory://open/note", "public words")
        for hidden in ("memory://secret", "memory://openly", "memory://open2/x"):
            await tree.write(hidden, "the zeppelin")
        before = (await tree.tree(depth=9)).entries
        tools = {
            each.spec.name: each for each in resource_tools(tree, root="memory://open", write=True)
        }
        calls = [
            ("list_resources", {"uri": uri}),
            ("list_resources", {"uri": uri, "after": other}),
            ("read_resource", {"uri": uri, "level": level}),
            ("find_resources", {"query": "zeppelin", "uri": uri}),
            ("write_resource", {"uri": uri, "content": "mine", "mode": "append"}),
        ]
        for name, arguments in calls:
            result = await tools[name].run(ToolCall(name=name, arguments=arguments))
            assert "zeppelin" not in f"{result.content}{result.error}"
        after = (await tree.tree(depth=9)).entries
        root = MemoryURI(("open",))
        changed = {*before} ^ {*after}
        assert all(MemoryURI.parse(each.uri).is_within(root) for each in changed)
        assert (await tree.read("memory://secret")).data == "the zeppelin"

    asyncio.run(live())


async def test_the_tools_read_in_pages_and_write_only_if_allowed():
    tree = MemoryTree(InMemoryStore())
    await tree.write("memory://a/long", "line <b>\n" * 2_000)
    tools = {each.spec.name: each.function for each in resource_tools(tree, root="memory://a")}
    assert "write_resource" not in tools
    first = await tools["read_resource"](uri="memory://a/long", level="detail")
    assert first["next_offset"] == 8_000
    assert "<b>" not in first["text"]
    assert first["text"].count("\n") > 800
    last = await tools["read_resource"](uri="memory://a/long", level="detail", offset=16_000)
    assert "next_offset" not in last
    listed = await tools["list_resources"]()
    assert listed == [{"uri": "memory://a/long", "bytes": 18_000}]
    found = await tools["find_resources"](query="line")
    assert found[0]["uri"] == "memory://a/long"
    with pytest.raises(MemoryAccessDenied):
        await tools["read_resource"](uri="memory://b")
    with pytest.raises(MemoryBackendError):
        resource_tools(tree, root="nothing")
    with pytest.raises(ConfigurationError):
        resource_tools(5)
    write = {each.spec.name: each.function for each in resource_tools(tree, write=True)}
    answers = [await write["write_resource"](uri="memory://n", content=f"{n}") for n in range(21)]
    assert "error" in answers[-1]
    assert answers[0] == {"uri": "memory://n", "bytes": 1}


async def test_the_root_of_the_tools_stays_a_folder():
    """An entry in its place would leave no room for any other."""
    tree = MemoryTree(InMemoryStore())
    tools = {
        each.spec.name: each.function
        for each in resource_tools(tree, root="memory://a", write=True)
    }
    with pytest.raises(MemoryAccessDenied):
        await tools["write_resource"](uri="memory://a", content="mine")
    await tools["write_resource"](uri="memory://a/b", content="mine")


async def test_memory_is_another_name_of_resources():
    for where in ("memory", "local", MemoryStoreSpec(options={"store": "memory"})):
        async with Agent(FakeModel(["Yes."]), memory=where) as agent:
            written = await agent.remember_memory("The mast is of spruce.", wait=True)
            found = await agent.recall_memory("What is the mast of?")
            assert [each.uri for each in found.hits] == [written.uri]
    with pytest.raises(ConfigurationError, match="twice"):
        Agent(FakeModel(), memory="memory", resources="memory")
    with pytest.raises(ConfigurationError, match="LLMMemoryManager"):
        Agent(FakeModel(), memory=LLMMemoryManager("memory"))


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).filter(
    lambda name: name not in (".", "..", "memories")
)


@given(NAMES, NAMES, st.sampled_from([None, "ada"]))
async def test_a_note_is_an_entry_of_its_own_below_its_scope_and_category(scope, category, user):
    tree = MemoryTree(InMemoryStore())
    agent = Agent(FakeModel(), memory=tree)
    own = tree if user is None else tree.for_user(user)
    for _ in range(2):
        await agent.remember_memory("Oak.", scope=scope, category=category, user_id=user)
    folder = MemoryURI((scope, "memories", category), is_folder=True)
    assert len((await own.list(folder)).entries) == 2
    found = await agent.recall_memory("Oak", target_uri=folder, user_id=user, top_k=1)
    assert len(found.hits) == 1
    other = await agent.recall_memory("Oak", user_id="noor")
    assert other.hits == ()


async def test_a_note_is_no_extracted_memory():
    agent = Agent(FakeModel(), memory=MemoryTree(InMemoryStore()))
    with pytest.raises(UnsupportedMemoryOp):
        await agent.remember_memory("Oak.", scope="memories")


async def test_a_session_is_committed_when_the_program_asks_for_it():
    tree = MemoryTree(InMemoryStore())
    agent = Agent(FakeModel(["Noted."] * 3), memory=tree)
    result = await agent.run("I live in Berlin now.", "monday", user_id="ada")
    done = await agent.commit_memory(result, wait=True)
    assert done.extracted_count == 1
    assert (await agent.commit_memory(result, wait=True)).extracted_count == 0
    ada = tree.for_user("ada")
    assert (await ada.read("memory://memories/user/home")).data == "The user lives in Berlin."
    assert (await tree.list("memory://")).entries == ()
    result = await agent.run("I live in Paris now.", user_id="ada", remember=False)
    with pytest.raises(InvalidArgumentError, match="remember=False"):
        await agent.commit_memory(result)
    with pytest.raises(MemoryAccessDenied):
        await Agent(FakeModel(), memory=ada).recall_memory("Berlin", user_id="noor")


async def test_an_agent_without_a_tree_says_so():
    agent = Agent(FakeModel(["Yes."]))
    result = await agent.run("Hello.")
    for call in (
        agent.remember_memory("Oak."),
        agent.recall_memory("Oak"),
        agent.commit_memory(result),
    ):
        with pytest.raises(ConfigurationError, match="memory="):
            await call


def test_options_with_a_tree_can_be_replaced():
    tree = MemoryTree(InMemoryStore())
    options = replace(AgentOptions(memory=tree), max_iterations=3)
    assert (options.resources, options.max_iterations) == (tree, 3)
