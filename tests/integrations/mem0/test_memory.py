"""The verbs of mem0: what a script says that was written for its `Memory`."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from locus_memory import AgentState, Message, ScriptedModel, open_backend
from locus_memory.errors import ConfigurationError, InvalidArgumentError, UnknownProviderError
from locus_memory.integrations.mem0 import AsyncMemory, Memory
from locus_memory.integrations.mem0.export import read_export
from locus_memory.integrations.mem0.importing import MemorySource, import_memories
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.models import Memory as Fact
from locus_memory.memory.models import MemoryChange, MemoryType, Origin, origin_of
from locus_memory.sync import blocking


@pytest.fixture
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
async def memory():
    async with AsyncMemory("memory") as memory:
        yield memory


@pytest.fixture
async def stored(provider):
    """The verbs over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend, AsyncMemory(backend) as memory:
        yield memory


def texts(found):
    return [each["memory"] for each in found["results"]]


async def kept(memory, text, **who):
    """The id of a text that is kept as it is."""
    found = await memory.add(text, infer=False, **who)
    return found["results"][0]["id"]


class TestAdd:
    async def test_messages_are_kept_as_they_are(self, stored):
        said = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "My cat is Mia.", "name": "Ada"},
            {"role": "assistant", "content": [{"type": "text", "text": "A fine name."}]},
        ]
        found = await stored.add(said, user_id="ada", metadata={"topic": "pets"}, infer=False)
        first, second = found["results"]
        assert (first["memory"], first["event"]) == ("My cat is Mia.", "ADD")
        assert (second["role"], second["actor_id"]) == ("assistant", None)
        one = await stored.get(first["id"])
        assert str(UUID(one["id"])) == first["id"] == one["id"]
        assert (one["user_id"], one["actor_id"], one["role"]) == ("ada", "Ada", "user")
        assert (one["metadata"], one["score"]) == ({"topic": "pets"}, None)
        assert one["created_at"] == one["updated_at"]
        assert len(one["hash"]) == 32

    async def test_an_extractor_adds_updates_and_deletes(self, stored):
        first = await stored.add("I live in Vienna.", user_id="ada")
        [added] = first["results"]
        assert (added["memory"], added["event"]) == ("The user lives in Vienna.", "ADD")
        [moved] = (await stored.add("I live in Graz.", user_id="ada"))["results"]
        assert (moved["id"], moved["event"]) == (added["id"], "UPDATE")
        assert moved["previous_memory"] == "The user lives in Vienna."
        assert (await stored.add("I live in Graz.", user_id="ada"))["results"] == []
        [gone] = (await stored.add("I don't live in Graz.", user_id="ada"))["results"]
        assert (gone["id"], gone["event"]) == (added["id"], "DELETE")

    async def test_the_words_are_in_the_transcript(self, memory):
        found = await memory.add("The train was late, as ever.", user_id="ada")
        assert found == {"results": []}
        turns = await memory.manager.for_user("ada").search_transcript("train")
        assert [hit.item.value["text"] for hit in turns] == ["The train was late, as ever."]

    async def test_what_a_model_notes_is_a_memory_as_well(self):
        answer = """{"changes": [{"op": "add", "type": "user", "key": "sport", "sources": [1],
            "content": "Ada rows."}], "notes": [{"text": "Ada won a race.", "sources": [1]}]}"""
        extractor = LLMExtractor(ScriptedModel([answer]))
        async with AsyncMemory("memory", extract_fn=extractor) as memory:
            found = await memory.add("I row, and won a race.", user_id="ada", run_id="r")
            assert texts(found) == ["Ada rows.", "Ada won a race."]
            assert texts(await memory.get_all(filters={"run_id": "r"})) == texts(found)[::-1]

    async def test_agents_and_runs_are_apart(self, stored):
        await stored.add("I live in Vienna.", user_id="ada", agent_id="bot")
        await stored.add("I live in Graz.", user_id="ada", run_id="r1")
        await stored.add("I live in Vienna.", user_id="ada", run_id="r2")
        await stored.add("I live in Rome.", user_id="ada", run_id="r2")
        here = {"agent_id": "bot"}, {"run_id": "r1"}, {"run_id": "r2"}
        homes = [texts(await stored.get_all(filters=each)) for each in here]
        places = "Vienna", "Graz", "Rome"
        assert homes == [[f"The user lives in {each}."] for each in places]
        [gone] = (await stored.add("I don't live in Rome.", user_id="ada", run_id="r2"))["results"]
        assert gone["event"] == "DELETE"
        assert len(texts(await stored.get_all(filters={"user_id": "ada"}))) == 2

    async def test_the_same_words_are_one_memory_of_an_agent_and_a_run(self, stored):
        one = await kept(stored, "Tea", user_id="ada", metadata={"a": 1, "origin": "web"})
        again = {"user_id": "ada", "metadata": {"a": 2, "sequence": 5}, "infer": False}
        [twin] = (await stored.add("tea", **again))["results"]
        assert (twin["id"], twin["memory"], twin["event"]) == (one, "Tea", "NONE")
        told = {"a": 2, "origin": "web", "sequence": 5}
        assert (await stored.get(one))["metadata"] == told
        assert await kept(stored, "Tea", user_id="ada", agent_id="bot") != one
        assert len(texts(await stored.get_all(filters={"user_id": "ada"}))) == 2

    async def test_an_agent_of_the_same_memory_is_shown_it(self, memory):
        await memory.add("Ada's boat is red.", user_id="ada", agent_id="bot", infer=False)
        run = AgentState(messages=(Message.user("The boat?"),), metadata={"user_id": "ada"})
        shown = await memory.manager.on_session_start(run)
        assert "Ada's boat is red." in str(shown.messages)

    async def test_metadata_give_no_orders(self, memory):
        name = await kept(memory, "Printer jammed", user_id="ada", metadata={"fixed": False})
        await kept(memory, "Bug closed", user_id="ada", metadata={"fixed": True})
        await memory.update(name, "Printer repaired", metadata={"fixed": True})
        assert (await memory.get(name))["metadata"] == {"fixed": True}
        assert len(texts(await memory.get_all(filters={"user_id": "ada", "fixed": True}))) == 2
        assert (await memory.manager.for_user("ada").identity.read()).overrides == ()

    async def test_the_roles_of_others_have_their_authority(self, memory):
        roles = {
            "user": Origin.USER,
            "human": Origin.USER,
            "ai": Origin.ASSISTANT,
            "function": Origin.TOOL,
            "developer": Origin.IMPORT,
            "person": Origin.IMPORT,
        }
        said = [{"role": each, "content": f"The {each} said it."} for each in roles]
        await memory.add(said, user_id="ada", infer=False)
        found = [each async for each in memory.manager.for_user("ada").memories()]
        assert {each.metadata["role"]: origin_of(each) for each in found} == roles
        await memory.add([{"role": "human", "content": "I live in Graz."}], user_id="bo")
        assert texts(await memory.get_all(user_id="bo")) == ["The user lives in Graz."]

    async def test_messages_without_a_text_are_skipped(self, memory):
        image = {"type": "image_url", "image_url": {"url": "x"}}
        said = [
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "assistant", "tool_calls": []},
            {"role": "user", "content": " "},
            {"role": "user", "content": image},
            {"role": "user", "content": [image]},
            {"role": "user", "content": {"type": "text", "text": "Tea"}},
        ]
        assert texts(await memory.add(said, user_id="ada", infer=False)) == ["Tea"]
        assert (await memory.add(said, user_id="ada"))["results"] == []

    async def test_a_memory_has_one_row(self):
        def colours(messages):
            said = [each.content for each in messages]
            return [Fact(MemoryType.USER, "colour", each) for each in said]

        async with AsyncMemory("memory", extract_fn=colours) as memory:
            for words, event in (("red", "blue"), "ADD"), (("green", "grey"), "UPDATE"):
                said = [{"role": "user", "content": each} for each in words]
                [one] = (await memory.add(said, user_id="ada"))["results"]
                assert (one["memory"], one["event"]) == (words[-1], event)
            # The first is the same as another memory, and the second is written.
            await kept(memory, "Tea", user_id="bo")
            said = [{"role": "user", "content": each} for each in ("Tea", "blue")]
            assert texts(await memory.add(said, user_id="bo")) == ["blue"]

    async def test_a_history_is_of_one_agent(self, memory):
        there = {"user_id": "ada", "agent_id": "x"}
        [old] = (await memory.add("I live in Rome.", **there))["results"]
        await memory.delete(old["id"])
        [new] = (await memory.add("I live in Graz.", user_id="ada", agent_id="y"))["results"]
        assert [each["event"] for each in await memory.history(new["id"])] == ["ADD"]
        [again] = (await memory.add("I live in Oslo.", **there))["results"]
        assert again["id"] == old["id"] != new["id"]

    @pytest.mark.parametrize("who", [{}, {"user_id": "a b"}, {"user_id": " "}])
    async def test_somebody_is_named(self, memory, who):
        for call in (memory.add, memory.search):
            with pytest.raises(InvalidArgumentError, match="user_id"):
                await call("x", **who)
        with pytest.raises(ValueError, match="user_id"):
            await memory.delete_all(**who)

    @pytest.mark.parametrize("messages", [3, None, [3], [{"role": "user"}]])
    async def test_what_is_no_message_is_refused(self, memory, messages):
        with pytest.raises(InvalidArgumentError, match="message"):
            await memory.add(messages, user_id="ada")

    @pytest.mark.parametrize("more", [{"prompt": "p"}, {"memory_type": "procedural_memory"}])
    async def test_what_is_not_supported_is_refused(self, memory, more):
        with pytest.raises(InvalidArgumentError, match="not supported"):
            await memory.add("x", user_id="ada", **more)

    async def test_numbers_are_ids_too(self, memory):
        await kept(memory, "x", user_id=7)
        assert texts(await memory.get_all(filters={"user_id": " 7 "})) == ["x"]


class TestSearch:
    async def test_both_forms(self, stored):
        for text in ("Ada rows on Mondays.", "Ada has a red boat.", "It rains."):
            await kept(stored, text, user_id="ada")
        await kept(stored, "Bo has a boat.", user_id="bo")
        for who in ({"filters": {"user_id": "ada"}}, {"user_id": "ada"}):
            found = await stored.search("a red boat", **who)
            assert texts(found)[0] == "Ada has a red boat."
            assert all(0.1 <= each["score"] <= 1 for each in found["results"])
            assert "Bo has a boat." not in texts(found)
        assert texts(await stored.search("boat", user_id="ada", limit=0)) == []
        assert len(texts(await stored.get_all(user_id="ada", limit=2))) == 2

    async def test_a_threshold_and_details(self, memory):
        for text in ("Ada has a red boat.", "Red is fine."):
            await kept(memory, text, user_id="ada")
        given = {"filters": {"user_id": "ada"}, "explain": True}
        found = await memory.search("red boat", threshold=1.0, **given)
        assert texts(found) == ["Ada has a red boat."]
        details = found["results"][0]["score_details"]
        assert details == {"final_score": 1.0, "threshold": 1.0}
        for wrong in ({"threshold": 2}, {"top_k": -1}, {"filters": 3}):
            with pytest.raises(ValueError, match="not"):
                await memory.search("x", **({"user_id": "ada"} | wrong))
        with pytest.raises(ValueError, match="query"):
            await memory.search(" ", user_id="ada")

    async def test_the_limits_of_both_forms(self, memory):
        for number in range(25):
            await kept(memory, f"Note {number}", user_id="ada")
        assert len(texts(await memory.get_all(filters={"user_id": "ada"}))) == 20
        assert len(texts(await memory.get_all(user_id="ada"))) == 25
        assert len(texts(await memory.search("note", filters={"user_id": "ada"}))) == 20
        assert len(texts(await memory.search("note", user_id="ada"))) == 25

    @pytest.mark.parametrize(
        ("filters", "wanted"),
        [
            ({"user_id": "ada"}, "abc"),
            ({"agent_id": "bot"}, "bd"),
            ({"user_id": "ada", "agent_id": "bot"}, "b"),
            ({"user_id": "ada", "run_id": "r"}, "c"),
            ({"user_id": "ada", "size": {"gte": 2}}, "bc"),
            ({"user_id": "ada", "size": {"gt": 1, "lt": 3}}, "b"),
            ({"user_id": "ada", "size": {"in": [1, 3]}}, "ac"),
            ({"user_id": "ada", "kind": {"ne": "x"}}, "bc"),
            ({"user_id": "ada", "kind": {"contains": "y"}}, "b"),
            ({"user_id": "ada", "kind": "*"}, "ab"),
            ({"user_id": "ada", "importance": "high"}, "a"),
            ({"user_id": "ada", "OR": [{"size": 1}, {"size": 3}]}, "ac"),
            ({"user_id": "ada", "NOT": [{"size": 1}, {"size": 3}]}, "b"),
            ({"AND": [{"user_id": "ada"}, {"OR": [{"kind": "x"}, {"run_id": "r"}]}]}, "ac"),
            ({"agent_id": "bot", "NOT": [{"user_id": "ada"}]}, "d"),
            ({"agent_id": "bot", "user_id": {"in": ["ada", "cy"]}}, "b"),
            ({"user_id": "*", "agent_id": "bot"}, "b"),
            ({"user_id": "nobody"}, ""),
        ],
    )
    async def test_filters(self, stored, filters, wanted):
        a = {"size": 1, "kind": "x", "importance": "high"}
        await kept(stored, "a note", user_id="ada", metadata=a)
        more = {"agent_id": "bot", "metadata": {"size": 2, "kind": "xyz"}}
        await kept(stored, "b note", user_id="ada", **more)
        await kept(stored, "c note", user_id="ada", run_id="r", metadata={"size": 3})
        await kept(stored, "d note", agent_id="bot")
        expected = [f"{each} note" for each in wanted]
        assert sorted(texts(await stored.get_all(filters=filters))) == expected
        assert sorted(texts(await stored.search("note", filters=filters))) == expected

    @pytest.mark.parametrize(
        "more", [{"OR": []}, {"NOT": 3}, {"AND": [3]}, {"a": {"icontains": "x"}}, {"a": {"b": 1}}]
    )
    async def test_an_unknown_filter_is_refused(self, memory, more):
        with pytest.raises(ValueError, match=r"filters|known"):
            await memory.get_all(filters={"user_id": "ada"} | more)

    async def test_what_has_expired_is_shown_on_request(self, memory):
        await kept(memory, "An old note", user_id="ada", expiration_date="2020-01-01")
        who = {"filters": {"user_id": "ada"}}
        for call in (memory.get_all, lambda **more: memory.search("note", **more)):
            assert texts(await call(**who)) == []
            [found] = (await call(**who, show_expired=True))["results"]
            assert found["expiration_date"] == "2020-01-01"


class TestOne:
    async def test_an_id_stays_over_updates_and_processes(self, stored):
        found = await stored.add("I live in Vienna.", user_id="ada", metadata={"a": 1})
        ids = [found["results"][0]["id"], await kept(stored, "Tea", agent_id="bot")]
        for name in ids:
            told = await stored.update(name, "Better", metadata={"b": 2, "user_id": "bo"})
            assert list(told) == ["message"]
            await stored.update(name, data="Best")
            other = AsyncMemory(stored._store)
            one = await other.get(name.upper())
            assert (one["id"], one["memory"]) == (name, "Best")
            assert one["created_at"] < one["updated_at"]
            assert one["metadata"]["b"] == 2
            await other.delete(name)
            assert await stored.get(name) is None
            rows = await AsyncMemory(stored._store).history(name)
            assert [each["event"] for each in rows] == ["ADD", "UPDATE", "UPDATE", "DELETE"]
            assert [each["old_memory"] for each in rows[1:]] == [
                rows[0]["new_memory"],
                "Better",
                "Best",
            ]
            assert {each["memory_id"] for each in rows} == {name}
            assert [each["is_deleted"] for each in rows] == [False, False, False, True]
            assert {each["created_at"] for each in rows} == {one["created_at"]}
        assert "user_id" not in one

    async def test_an_expiry_is_changed_and_taken_back(self, memory):
        name = await kept(memory, "Tea", user_id="ada")
        await memory.update(name, expiration_date="2020-01-01")
        assert texts(await memory.get_all(user_id="ada")) == []
        assert (await memory.get(name))["expiration_date"] == "2020-01-01"
        await memory.update(name, expiration_date=None)
        assert texts(await memory.get_all(user_id="ada")) == ["Tea"]

    async def test_what_is_not_there(self, memory):
        for name in (str(uuid4()), "1f3a9c20", "", None):
            assert await memory.get(name) is None
            assert await memory.history(name) == []
            for call in (memory.update(name, "x"), memory.delete(name)):
                with pytest.raises(InvalidArgumentError, match="no memory"):
                    await call
        with pytest.raises(InvalidArgumentError, match="to change"):
            await memory.update(await kept(memory, "x", user_id="ada"))

    async def test_an_imported_memory_has_its_id(self, memory):
        name, who = str(uuid4()), {"user_id": "ada", "run_id": "r"}
        told = [{"id": name, "memory": "Ada rows.", "metadata": {"a": 1}, **who}]
        await import_memories(MemorySource(exported=read_export(told)), memory.manager)
        one = await memory.get(name)
        assert (one["memory"], one["metadata"], one["run_id"]) == ("Ada rows.", {"a": 1}, "r")

    async def test_a_memory_of_another_way_in_is_found(self, memory):
        await memory.manager.for_user("ada").remember("Ada collects stamps.")
        [found] = (await memory.search("stamps", filters={"user_id": "ada"}))["results"]
        assert await memory.get(found["id"]) == found | {"score": None}


class TestErasure:
    async def test_what_is_deleted_is_erased(self, stored):
        who = [{"user_id": "ada"}, {"user_id": "ada", "run_id": "r"}, {"agent_id": "bot"}]
        ids = [await kept(stored, "Tea", **each) for each in who]
        [home] = (await stored.add("I live in Vienna.", user_id="ada", run_id="r"))["results"]
        await stored.delete_all(run_id="r")
        assert await stored.history(ids[1]) == await stored.history(home["id"]) == []
        assert await stored.manager.for_user("ada").search_transcript("Vienna") == []
        assert await stored.get(ids[0]) is not None
        await stored.add("The train was late.", user_id="ada")
        await stored.delete_all("ada")
        assert await stored.history(ids[0]) == []
        assert await stored.manager.for_user("ada").search_transcript("train") == []
        assert texts(await stored.get_all(agent_id="bot")) == ["Tea"]

    @pytest.mark.parametrize("user", [{}, {"user_id": "ada"}])
    async def test_what_was_retired_is_erased_as_well(self, stored, user):
        agents = {name: {**user, "agent_id": name} for name in ("x", "y")}
        ids = {}
        for name, who in agents.items():
            [home] = (await stored.add("I live in Vienna.", **who))["results"]
            ids[name] = [home["id"], await kept(stored, "Tea", **who)]
            for each in ids[name]:
                await stored.delete(each)
        await stored.delete_all(agent_id="x")
        assert [await stored.history(each) for each in ids["x"]] == [[], []]
        assert [len(await stored.history(each)) for each in ids["y"]] == [2, 2]

    async def test_a_key_that_another_one_has_now_stays(self, memory):
        scope, told = memory._slots.scope("ada"), {"agent_id": "x"}
        old = Fact(MemoryType.USER, "home", "Rome", told)
        await memory._ledger.apply(scope, [Statement(old), Retirement(old.type, old.key)])
        await memory._ledger.apply(scope, [Statement(Fact(MemoryType.USER, "home", "Graz"))])
        await memory.delete_all(**told)
        assert texts(await memory.get_all(user_id="ada")) == ["Graz"]

    async def test_a_reset_erases_all(self, stored):
        for who in ({"user_id": "ada"}, {"agent_id": "bot"}):
            await kept(stored, "Tea", **who)
            await stored.add("I live in Vienna.", **who)
        await stored._store.put(("mine",), "k", 1)
        await stored.reset()
        for who in ({"user_id": "ada"}, {"agent_id": "bot"}):
            assert texts(await stored.get_all(filters=who)) == []
        left = await stored._store.list_namespaces()
        assert ("mine",) in left
        assert [each for each in left if each[0] == "locus_memory"] == []
        assert await kept(stored, "Tea", user_id="ada")


class TestConfiguration:
    def test_stores_of_both_are_named_alike(self, tmp_path):
        path = str(tmp_path / "a.db")
        config = {"vector_store": {"provider": "sqlite", "config": {"path": path}}}
        with Memory.from_config(config) as memory:
            memory.add("Tea", user_id="ada", infer=False)
        with Memory(path) as memory:
            assert texts(memory.get_all(user_id="ada")) == ["Tea"]

    def test_another_store_is_a_warning(self, empty_directory):
        store = {"provider": "qdrant", "config": {"host": "localhost"}}
        config = {"vector_store": store, "version": "v1.1", "graph_store": {}}
        with pytest.warns(UserWarning, match="graph_store.*vector_store"):
            memory = Memory.from_config(config)
        with memory:
            memory.add("Tea", user_id="ada", infer=False)
        assert (empty_directory / "locus.db").exists()

    async def test_a_model_and_an_embedder_by_name(self):
        config = {
            "vector_store": {"provider": "memory"},
            "llm": {"provider": "openai", "config": {"model": "m", "api_key": "k"}},
            "embedder": {"config": {"api_key": "k", "embedding_dims": 8}},
            "custom_instructions": "Only food.",
        }
        memory = AsyncMemory.from_config(config)
        assert [type(each).__name__ for each in memory._owned] == [
            "InMemoryStore",
            "OpenAIChat",
            "OpenAIEmbedder",
        ]
        await memory.close()

    @pytest.mark.parametrize("name", ["custom_instructions", "custom_fact_extraction_prompt"])
    def test_instructions_without_a_model_are_a_warning(self, empty_directory, name):
        with pytest.warns(UserWarning, match=name):
            Memory.from_config({name: "Only food."}).close()

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            *(({each: "x"}, each) for each in ("vector_store", "llm", "embedder")),
            ({"llm": {"config": "x"}}, "llm"),
            ({"custom_fact_extraction_prompt": 5}, "prompt"),
        ],
    )
    def test_a_part_of_another_kind_is_refused(self, config, message):
        with pytest.raises(ConfigurationError, match=message):
            Memory.from_config(config)

    @pytest.mark.parametrize("section", ["llm", "embedder"])
    def test_an_unknown_model_is_refused(self, section):
        with pytest.raises(UnknownProviderError, match="gemini"):
            Memory.from_config({section: {"provider": "gemini", "config": {"model": "m"}}})

    def test_a_configuration_is_an_object(self):
        with pytest.raises(ConfigurationError, match="configuration"):
            Memory.from_config("sqlite")

    @pytest.mark.parametrize(
        ("config", "where"),
        [
            ({"connection_string": "postgresql://u@h/d"}, "postgresql:postgresql://u@h/d"),
            (
                {"host": "h", "port": 5432, "user": "u", "password": "p/", "dbname": "d"},
                "postgresql:postgresql://u:p%2F@h:5432/d",
            ),
            ({}, "postgresql"),
        ],
    )
    def test_the_address_of_postgresql(self, config, where):
        from locus_memory.integrations.mem0.configuration import arguments_of  # noqa: PLC0415

        store = {"provider": "pgvector", "config": config}
        assert arguments_of({"vector_store": store}) == ({"where": where}, [])


def test_a_face_is_a_memory():
    memory = AsyncMemory("memory")
    with blocking(memory) as face:
        assert type(face) is Memory
        face.add("Tea", user_id="ada", infer=False)
        assert texts(face.get_all(user_id="ada")) == ["Tea"]


class TestScripts:
    """What scripts for mem0 do, each beside its import line."""

    def test_a_first_script(self, empty_directory):
        def facts(messages):
            return [MemoryChange(op="add", type="user", key="plan", content="Ada plans a garden.")]

        memory = Memory(extract_fn=facts)
        said = [
            {"role": "user", "content": "I'm Ada, and I want to plant a garden."},
            {"role": "assistant", "content": "What shall grow in it?"},
        ]
        added = memory.add(said, user_id="ada", metadata={"category": "hobby"})
        [first] = added["results"]
        assert first["event"] == "ADD"
        found = memory.search("What does she want to plan?", filters={"user_id": "ada"}, top_k=3)
        assert [each["memory"] for each in found["results"]] == ["Ada plans a garden."]
        assert found["results"][0]["metadata"] == {"category": "hobby"}
        memory.update(first["id"], "Ada plans a rock garden.")
        assert memory.get(memory_id=first["id"])["memory"] == "Ada plans a rock garden."
        assert [each["event"] for each in memory.history(first["id"])] == ["ADD", "UPDATE"]
        memory.delete(memory_id=first["id"])
        assert memory.get_all(filters={"user_id": "ada"}) == {"results": []}
        memory.reset()
        memory.close()

    def test_a_chat_that_remembers(self):
        memory = Memory("memory")

        def answer(message, user_id="default"):
            known = memory.search(query=message, user_id=user_id, limit=3)
            lines = "\n".join(f"- {entry['memory']}" for entry in known["results"])
            said = [
                {"role": "system", "content": f"What you know:\n{lines}"},
                {"role": "user", "content": message},
            ]
            said.append({"role": "assistant", "content": "Noted."})
            memory.add(said, user_id=user_id)
            return lines

        assert answer("I live in Vienna.") == ""
        assert answer("Where do I live?") == "- The user lives in Vienna."
        assert answer("Where do I live?", user_id="bo") == ""
        memory.close()

    def test_a_desk_of_agents(self):
        memory = Memory("memory")
        for agent, text in (("sales", "Ada ordered a red boat."), ("support", "The boat leaks.")):
            told = {"category": agent, "priority": 2}
            memory.add(text, user_id="ada", agent_id=agent, metadata=told, infer=False)
        both = {"user_id": "ada", "OR": [{"agent_id": "sales"}, {"agent_id": "support"}]}
        assert len(memory.search("the boat", filters=both)["results"]) == 2
        mine = memory.get_all(filters={"user_id": "ada", "category": "support"})["results"]
        assert [(each["memory"], each["agent_id"]) for each in mine] == [
            ("The boat leaks.", "support")
        ]
        memory.delete_all(user_id="ada", agent_id="support")
        left = memory.get_all(filters={"user_id": "ada"})["results"]
        assert [each["memory"] for each in left] == ["Ada ordered a red boat."]
        memory.close()

    async def test_a_run_of_a_planner(self):
        config = {"vector_store": {"provider": "memory", "config": {}}}
        memory = await AsyncMemory.from_config(config)
        for step, text in enumerate(("Book the train.", "Find a hotel."), 1):
            said = [{"role": "assistant", "content": text, "name": "planner"}]
            told = {"step": step}
            await memory.add(said, agent_id="planner", run_id="trip", metadata=told, infer=False)
        later = {"run_id": "trip", "step": {"gt": 1}}
        [found] = (await memory.search("a hotel", filters=later))["results"]
        assert (found["actor_id"], found["role"]) == ("planner", "assistant")
        await memory.delete_all(run_id="trip")
        assert await memory.get_all(filters={"agent_id": "planner"}) == {"results": []}
        await memory.close()
