"""Sessions of Strands: what an agent finds again, in which order, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strands import Agent
from strands.session import FileSessionManager, RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_memory import EncryptingStore
from locus_memory._internal.bridge import shared_bridge
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    BlockingCallError,
    InvalidArgumentError,
    ValueNotSerializableError,
)
from locus_memory.events import collect
from locus_memory.integrations.strands import LocusSessionRepository

PLACE = ("strands", "messages", "ada", "a")


def said(text, role="user"):
    return {"role": role, "content": [{"text": text}]}


def message(text, number=0):
    return SessionMessage.from_message(said(text), number)


def begun(repository, session="ada", agent="a"):
    """Return the repository with an agent of a session."""
    repository.create_session(Session(session, SessionType.AGENT))
    repository.create_agent(session, SessionAgent(agent, {}, {}))
    return repository


def texts(repository, session="ada", agent="a", **options):
    found = repository.list_messages(session, agent, **options)
    return [each.to_message()["content"][0]["text"] for each in found]


class TestRuns:
    async def test_an_agent_finds_its_session_again(self, repositories, model):
        def agent(*answers):
            manager = RepositorySessionManager("ada", repositories())
            said_by = model(*answers)
            return said_by, Agent(
                said_by, agent_id="a", session_manager=manager, callback_handler=None
            )

        _, first = agent("Hello Ada.")
        first.state.set("seen", [1, (2, 3)])
        await first.invoke_async("I am Ada, I live in Berlin.")
        model_of_second, second = agent("In Berlin.")
        result = await second.invoke_async("Where do I live?")
        assert str(result).strip() == "In Berlin."
        assert [each[0]["text"] for each in model_of_second.asked[0]] == [
            *("I am Ada, I live in Berlin.", "Hello Ada.", "Where do I live?")
        ]
        assert second.state.get("seen") == [1, [2, 3]]
        assert len(texts(repositories())) == 4

    def test_a_blocking_agent(self, tmp_path, model):
        with LocusSessionRepository(f"sqlite:{tmp_path / 'test.db'}") as repository:
            for _ in range(2):
                manager = RepositorySessionManager("ada", repository)
                agent = Agent(
                    model("Yes."), agent_id="a", session_manager=manager, callback_handler=None
                )
                agent("And then?")
            assert texts(repository) == ["And then?", "Yes.", "And then?", "Yes."]

    async def test_bytes_and_a_redacted_message(self, repositories):
        repository = begun(repositories())
        image = {"image": {"format": "png", "source": {"bytes": b"\xff\x00"}}}
        sent = SessionMessage.from_message({"role": "user", "content": [image]}, 0)
        repository.create_message("ada", "a", sent)
        assert repository.read_message("ada", "a", 0).to_message()["content"] == [image]
        sent.redact_message = said("[redacted]")
        repository.update_message("ada", "a", sent)
        assert texts(repository) == ["[redacted]"]

    async def test_a_graph_keeps_its_state(self, repositories):
        repository = begun(repositories())
        for number in range(2):
            graph = SimpleNamespace(id="g", serialize_state=lambda number=number: {"n": number})
            getattr(repository, ["create_multi_agent", "update_multi_agent"][number])("ada", graph)
            assert repository.read_multi_agent("ada", "g") == {"n": number}
        assert repository.read_multi_agent("ada", "other") is None
        with pytest.raises(SessionException):
            repository.update_multi_agent("ada", SimpleNamespace(id="other"))


IDS = st.sampled_from(["a", "b"])
CALLS = st.one_of(
    st.tuples(st.just("create_session"), IDS),
    st.tuples(st.just("read_session"), IDS),
    st.tuples(st.just("delete_session"), IDS),
    st.tuples(st.just("create_agent"), IDS, IDS),
    st.tuples(st.just("read_agent"), IDS, IDS),
    st.tuples(st.just("update_agent"), IDS, IDS),
    st.tuples(st.just("append"), IDS, IDS, st.text(max_size=3)),
    st.tuples(st.just("read_message"), IDS, IDS, st.integers(0, 4)),
    st.tuples(st.just("update_message"), IDS, IDS, st.integers(0, 4)),
    st.tuples(st.just("list_messages"), IDS, IDS, st.none() | st.integers(0, 3), st.integers(0, 4)),
)


class Driven:
    """Makes the calls of a repository, and tells what it answered."""

    def __init__(self, repository):
        self.repository = repository
        self.known = set()
        self.lengths = {}

    def call(self, name, *arguments):
        try:
            return _told(getattr(self, name, None) or getattr(self.repository, name), arguments)
        except SessionException:
            return SessionException

    def create_session(self, name):
        self.repository.create_session(Session(name, SessionType.AGENT))

    def delete_session(self, name):
        self.repository.delete_session(name)
        self.known = {each for each in self.known if each[0] != name}

    def create_agent(self, session, agent):
        # Theirs makes an agent of no session, and replaces one that is there; ours refuses both.
        if self.repository.read_session(session) and (session, agent) not in self.known:
            self.known.add((session, agent))
            self.lengths[session, agent] = 0
            self.repository.create_agent(session, SessionAgent(agent, {"n": 0}, {}))

    def update_agent(self, session, agent):
        self.repository.update_agent(session, SessionAgent(agent, {"n": 1}, {}))

    def append(self, session, agent, text):
        # Theirs appends to no agent as well.
        if (session, agent) in self.known:
            number = self.lengths[session, agent]
            self.lengths[session, agent] += 1
            self.repository.create_message(session, agent, message(text, number))

    def update_message(self, session, agent, number):
        self.repository.update_message(session, agent, message("new", number))


def _told(call, arguments):
    answer = call(*arguments)
    if isinstance(answer, list):
        return [(each.message_id, each.to_message()) for each in answer]
    document = answer.to_dict() if answer else {}
    return {name: document[name] for name in document if name not in {"created_at", "updated_at"}}


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(CALLS, max_size=16))
def test_it_answers_as_the_files_of_the_framework(calls, tmp_path_factory):
    theirs = Driven(FileSessionManager("none", str(tmp_path_factory.mktemp("theirs"))))
    ours = Driven(LocusSessionRepository("memory"))
    for name, *arguments in calls:
        assert ours.call(name, *arguments) == theirs.call(name, *arguments), (name, arguments)


class TestAppends:
    async def test_a_number_that_is_taken_is_not_overwritten(self, repositories):
        one, other = begun(repositories()), repositories()
        one.create_message("ada", "a", message("1", 0))
        late = message("2", 0)
        other.create_message("ada", "a", late)
        assert late.message_id == 1
        one.create_message("ada", "a", message("3", 1))
        assert texts(one) == ["1", "2", "3"]
        assert [each.message_id for each in one.list_messages("ada", "a")] == [0, 1, 2]

    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        with LocusSessionRepository(where) as repository:
            sessions = [f"session {number}" for number in range(20)]
            for each in sessions:
                begun(repository, each)
            append_together(where, ",".join(sessions))
            for each in sessions:
                assert_appended(texts(repository, each))

    async def test_a_part_of_a_session(self, repositories):
        repository = begun(repositories())
        for number in range(5):
            repository.create_message("ada", "a", message(f"{number}", number))
        assert texts(repository, limit=2, offset=1) == ["1", "2"]
        assert texts(repository, offset=4) == ["4"]
        assert texts(repository, offset=9) == texts(repository, limit=0) == []

    async def test_a_deleted_session_leaves_nothing(self, repositories):
        repository = begun(begun(repositories()), "*", "a")
        repository.create_message("ada", "a", message("1"))
        repository.create_message("*", "a", message("2"))
        repository.delete_session("*")
        assert texts(repository) == ["1"]
        repository.delete_session("ada")
        assert await repository.store.list_namespaces() == []
        with pytest.raises(SessionException):
            repository.create_message("ada", "a", message("3"))


class TestDamage:
    async def test_a_damaged_message_is_left_out_and_told(self, repositories):
        repository = begun(repositories())
        for number in range(3):
            repository.create_message("ada", "a", message(f"{number}", number))
        for damaged in ("text", {"message": {}}, {"message_id": 1, "message": {"role": "user"}}):
            await repository.store.put(PLACE, f"{1:016d}", damaged)
            with collect() as events:
                assert texts(repositories()) == ["0", "2"]
            assert [(each.name, each.attributes["key"]) for each in events] == [
                ("integrations.item_unreadable", f"{1:016d}")
            ]
        # What the conversation manager has removed is counted with it.
        assert texts(repositories(), offset=2) == ["2"]
        repository.update_message("ada", "a", message("new", 1))
        assert texts(repositories()) == ["0", "new", "2"]

    async def test_a_damaged_session_and_agent_are_made_again(self, repositories):
        repository = begun(repositories())
        repository.create_message("ada", "a", message("0"))
        await repository.store.put(("strands", "sessions"), "ada", "text")
        await repository.store.put(("strands", "agents", "ada"), "a", {"agent_id": "a"})
        again = repositories()
        assert again.read_session("ada") is None
        begun(again)
        again.create_message("ada", "a", message("1", 0))
        assert texts(again) == ["0", "1"]

    def test_a_message_that_no_key_decrypts(self):
        inner = InMemoryStore()
        stores = [EncryptingStore(inner, {"k": key * 32}, active="k") for key in (b"0", b"1")]
        ours = begun(LocusSessionRepository(stores[0]))
        ours.create_message("ada", "a", message("0"))
        other = LocusSessionRepository(stores[1])
        other.create_message("ada", "a", message("1"))
        ours.create_message("ada", "a", message("2", 1))
        with collect() as events:
            assert texts(ours) == ["0", "2"]
        assert {each.name for each in events} == {"integrations.item_unreadable"}


class TestRefusals:
    @pytest.mark.parametrize("value", [float("nan"), object(), "\ud800", 2**70])
    async def test_what_json_cannot_hold(self, value):
        repository = begun(LocusSessionRepository("memory"))
        content = [{"text": "1"}, {"text": value}]
        sent = SessionMessage.from_message({"role": "user", "content": content}, 0)
        with pytest.raises(
            ValueNotSerializableError, match=r"session_message\.message\.content\[1\]\.text"
        ):
            repository.create_message("ada", "a", sent)
        with pytest.raises(ValueNotSerializableError, match=r"session_agent\.state\.x"):
            repository.update_agent("ada", SessionAgent("a", {"x": value}, {}))
        assert repository.list_messages("ada", "a") == []
        assert repository.read_agent("ada", "a").state == {}

    @pytest.mark.parametrize("number", [-1, "../../secret", None, True, 1.0])
    async def test_a_number_of_a_message(self, number):
        repository = begun(LocusSessionRepository("memory"))
        for call in (
            lambda: repository.create_message("ada", "a", message("x", number)),
            lambda: repository.read_message("ada", "a", number),
        ):
            with pytest.raises(InvalidArgumentError, match="message_id"):
                call()

    @pytest.mark.parametrize("name", ["", 7, "\ud800"])
    async def test_names(self, name):
        repository = LocusSessionRepository("memory")
        with pytest.raises(InvalidArgumentError, match="session_id"):
            repository.read_session(name)
        with pytest.raises(InvalidArgumentError, match="agent_id"):
            repository.read_agent("ada", name)
        with pytest.raises(InvalidArgumentError, match="offset"):
            repository.list_messages("ada", "a", offset=-1)


WRITER = """
import sys
from locus_memory.integrations.strands import LocusSessionRepository
from strands.types.session import SessionMessage

where, name, sessions = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with LocusSessionRepository(where) as repository:
    for session in sessions.split(","):
        number = 0
        for turn in range(20):
            said = {"role": "user", "content": [{"text": f"{name}{turn}"}]}
            message = SessionMessage.from_message(said, number)
            repository.create_message(session, "a", message)
            number = message.message_id + 1
"""


def append_together(where, sessions="ada"):
    """Let two processes append to the same sessions, separated by commas, at the same time."""
    command = [sys.executable, "-c", WRITER, where]
    writers = [
        subprocess.Popen(
            [*command, name, sessions], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for each in writers:
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in writers:
        each.communicate(timeout=300)
    assert [each.returncode for each in writers] == [0, 0]


def assert_appended(found):
    """Assert that the messages of both processes are there, each process's in its order."""
    assert len(found) == 40
    for name in "ab":
        own = [text for text in found if text.startswith(name)]
        assert own == [f"{name}{turn}" for turn in range(20)]


def test_a_call_from_the_background_loop_is_refused():
    """It would wait for itself."""
    repository = LocusSessionRepository("memory")

    async def inside():
        return repository.read_session("ada")

    with pytest.raises(BlockingCallError):
        shared_bridge().run(inside())
    assert asyncio.run(inside()) is None
