"""The Agent Framework's history and context provider: what a run sees of the runs before."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("agent_framework", reason="it has an environment of its own: make frameworks")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    HistoryProvider,
    Message,
)

from locus_memory import open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.events import collect
from locus_memory.integrations.agent_framework import LocusContextProvider, LocusHistoryProvider


class Answering(BaseChatClient):
    """Stands for a model: it keeps what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def _inner_get_response(self, *, messages, options, **kwargs):
        said = [options.get("instructions") or "", *(each.text for each in messages)]
        self.asked.append("\n".join(said))
        return ChatResponse(messages=[Message("assistant", [f"Answer {len(self.asked)}."])])


@pytest.fixture
async def histories(provider):
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: LocusHistoryProvider(backend, **given)


def texts(messages):
    return [(each.role, each.text) for each in messages]


class TestHistory:
    async def test_a_run_sees_the_runs_before(self, histories):
        client = Answering()
        for question in ("I live in Berlin.", "Where do I live?"):
            agent = Agent(client=client, context_providers=[histories()])
            await agent.run(question, session=AgentSession(session_id="ada"))
        assert "I live in Berlin.\nAnswer 1.\nWhere do I live?" in client.asked[1]
        assert texts(await histories().get_messages("ada"))[-1] == ("assistant", "Answer 2.")
        assert await histories().get_messages("bob") == []
        await histories().delete_session("ada")
        assert await histories().get_messages("ada") == []

    async def test_messages_come_back_whole(self, histories):
        call = Content.from_function_call("c1", "weather", arguments={"city": "Österreich 北京"})
        result = Content.from_function_result("c1", result="☀️")
        messages = [
            Message("user", ["Wie ist das Wetter?", ""], author_name="Ada", message_id="m1"),
            Message("assistant", [call], additional_properties={"a": [1, None]}),
            Message("tool", [result]),
        ]
        await histories().save_messages(None, messages)
        read = await histories().get_messages(None)
        assert [each.to_dict() for each in read] == [each.to_dict() for each in messages]

    async def test_a_transcript_that_is_sent_again_is_kept_once(self, histories):
        said = [Message("user", ["one"]), Message("assistant", ["1"])]
        await histories().save_messages("ada", said)
        await histories().save_messages("ada", [*said, Message("user", ["two"])])
        assert [text for _, text in texts(await histories().get_messages("ada"))] == [
            *("one", "1", "two")
        ]

    async def test_calls_at_once_lose_nothing(self, histories):
        await asyncio.gather(
            *(histories().save_messages("ada", [Message("user", [f"{n}"])]) for n in range(12))
        )
        read = texts(await histories().get_messages("ada"))
        assert sorted(read) == sorted(("user", f"{n}") for n in range(12))

    async def test_a_damaged_message_is_left_out(self):
        store = InMemoryStore()
        history = LocusHistoryProvider(store)
        await history.save_messages("ada", [Message("user", ["one"])])
        await store.put(("agent_framework", "ada"), "0000000000000009", {"type": "message"})
        await store.put(("agent_framework", "ada"), "0000000000000010", {"contents": 5})
        with collect() as events:
            assert texts(await history.get_messages("ada"))[:1] == [("user", "one")]
        assert {each.name for each in events} <= {"integrations.item_unreadable"}

    def test_it_has_the_options_of_the_framework(self):
        history = LocusHistoryProvider("memory", "audit", load_messages=False, store_outputs=False)
        assert isinstance(history, HistoryProvider)
        assert (history.source_id, history.load_messages, history.store_outputs) == (
            *("audit", False, False),
        )
        with pytest.raises(ConfigurationError):
            LocusHistoryProvider("file:./x")


class TestContext:
    async def test_what_was_said_is_known_in_another_session(self):
        store = InMemoryStore()
        client = Answering()
        for session, user, text in (
            ("monday", "ada", "My name is Ada and I live in Vienna."),
            ("friday", "ada", "Where do I live?"),
            ("sunday", "bob", "Where do I live?"),
        ):
            async with LocusContextProvider(store, user_id=user) as memory:
                history = LocusHistoryProvider(store)
                agent = Agent(
                    client=client, instructions="Be brief.", context_providers=[history, memory]
                )
                await agent.run(text, session=AgentSession(session_id=session))
        assert "Vienna" in client.asked[1]
        assert "Be brief." in client.asked[1]
        assert "Vienna" not in client.asked[2]
        # What is shown is no part of the history.
        history = LocusHistoryProvider(store)
        assert texts(await history.get_messages("friday")) == [
            ("user", "Where do I live?"),
            ("assistant", "Answer 2."),
        ]

    async def test_a_session_names_its_user_and_may_be_off_the_record(self):
        store = InMemoryStore()
        client = Answering()
        for name, state in (
            ("1", {"user_id": "ada", "remember": False}),
            ("2", {"user_id": "ada"}),
            ("3", {"user_id": "ada"}),
            ("4", {}),
        ):
            async with LocusContextProvider(store, user_id="bob") as memory:
                session = AgentSession(session_id=name)
                session.state.update(state)
                city = "Paris" if name == "1" else "Vienna"
                text = f"I live in {city}." if name in "12" else "Where do I live?"
                await Agent(client=client, context_providers=[memory]).run(text, session=session)
        assert "Paris" not in client.asked[2]
        assert "Vienna" in client.asked[2]
        assert "Vienna" not in client.asked[3]

    async def test_a_failure_of_the_memory_fails_no_run(self):
        class Down(InMemoryStore):
            async def _fail(self, *_, **__):
                raise BackendUnavailableError("down")

            get_item = get_batch = scan = search = put_batch = write_batch = list_keys = _fail

        client = Answering()
        with collect() as events:
            async with LocusContextProvider(Down()) as memory:
                answer = await Agent(client=client, context_providers=[memory]).run(
                    "I live in Vienna.", session=AgentSession()
                )
        assert answer.text == "Answer 1."
        assert events

    def test_no_memory_is_refused(self):
        with pytest.raises(ConfigurationError, match="not None"):
            LocusContextProvider(None)
