"""The notes of a memory in place of the older messages of a thread."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from locus_memory import Agent, AgentState, LLMExtractor, LLMMemoryManager, Message, NotesManager
from locus_memory.backends.inmemory.backend import InMemoryBackend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.validation import validate
from locus_memory.errors import ConfigurationError, InvalidArgumentError, ModelError
from locus_memory.events import subscribe
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.models import Memory
from locus_memory.messages import ToolCall

SMALL = NotesManager(None, 500, 150)
"""A manager whose notes soon outgrow their share."""

FILLER = (
    "and so it went on, with much more to tell about it than anybody would ever read at once, for"
    " there were trees and hills and a river, and a long way home in the rain after that"
)


class Told:
    """A model that notes each bird of a session, and answers a run at once.

    If it condenses, it makes one note of many, with the numbers of the first and the last bird.
    """

    def __init__(self, *, condenses=False):
        self.requests, self.extractions, self.fails, self.calls = [], 0, False, []
        self.condenses, self.condensed = condenses, []

    async def __call__(self, messages, tools=()):
        if "JSON" not in (messages[0].content or ""):
            self.requests.append(list(messages))
            if self.calls:
                return Message.assistant(None, [self.calls.pop(0)])
            return Message.assistant(f"All right, {FILLER}.")
        if messages[0].content.startswith("Condense"):
            self.condensed.append(messages[-1].content)
            return Message.assistant(self.digest(messages[-1].content))
        self.extractions += 1
        if self.fails:
            raise ModelError("it is out of order")
        lines = re.findall(r"^(\d+)\. .*?saw (\w+) today", messages[-1].content, re.MULTILINE)
        notes = [
            {"text": f"The user saw {bird}.", "kind": "event", "messages": [int(number)]}
            for number, bird in lines
        ]
        return Message.assistant(json.dumps({"changes": [], "notes": notes}))

    def digest(self, told):
        birds = [int(each) for each in re.findall(r"(?:bird|to )(\d+)", told)]
        text = f"The user saw bird{birds[0]} to {birds[-1]}."
        notes = [{"text": text, "kind": "event", "messages": [1, 2]}] if self.condenses else []
        return json.dumps({"notes": notes})


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    made = InMemoryBackend() if request.param == "memory" else SQLiteBackend(tmp_path / "a.db")
    async with made:
        yield made


@pytest.fixture
def names():
    """The names of what was emitted."""
    seen = []
    unsubscribe = subscribe(lambda event: seen.append(event.name))
    yield seen
    unsubscribe()


def an_agent(backend, model, manager=None, **options):
    chosen = {"extract_mode": "session_end", "gate": "off", **options}
    memory = LLMMemoryManager(backend.store, extract_fn=LLMExtractor(model), **chosen)
    return Agent(
        model,
        system_prompt="Be brief.",
        checkpointer=backend.checkpointer,
        memory_manager=memory,
        conversation_manager=manager or NotesManager(None, 900, 300),
        tools=[look],
    )


async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}, {FILLER}"


async def tell(agent, first, last, thread="t", **options):
    for number in range(first, last):
        await agent.run(f"I saw bird{number} today, {FILLER}.", thread, **options)


def notes_in(messages):
    """The lines of the notes, without their days."""
    found = [each.content for each in messages if "<summary>" in (each.content or "")]
    assert len(found) <= 1
    return re.findall(r"^- \d{4}-\d\d-\d\d: (.*)$", found[0], re.MULTILINE) if found else []


def birds_in(messages):
    told = "\n".join(each.content or "" for each in messages if each.role == "user")
    return [int(each) for each in re.findall(r"saw bird(\d+) today", told)]


async def test_a_short_thread_is_shown_as_it_is(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 4)
    assert birds_in(model.requests[-1]) == [0, 1, 2, 3]
    assert not notes_in(model.requests[-1])
    assert model.extractions == 0
    await agent.memory_manager.close()


async def test_older_turns_are_replaced_by_their_notes(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 20)
    for sent in model.requests:
        noted = [int(each[17:-1]) for each in notes_in(sent)]
        assert sorted({*noted, *birds_in(sent)}) == list(range(max(birds_in(sent)) + 1))
        assert count_tokens(sent) <= 900
        assert not validate(sent)
    assert notes_in(model.requests[-1])
    # A call for each time that the thread had become too long, and no other one.
    shown = {len(notes_in(sent)) for sent in model.requests}
    assert model.extractions <= len(shown) < 12
    await agent.memory_manager.close()


async def test_what_extraction_has_read_is_not_read_again(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 7)
    await agent.memory_manager.drain()
    assert model.extractions == 1
    await tell(agent, 7, 9)
    assert notes_in(model.requests[-1])
    assert model.extractions == 1
    await agent.memory_manager.close()


async def test_notes_are_only_appended(backend):
    """From call to call, the notes are the same, or the same with others after them."""
    model = Told()
    agent = an_agent(backend, model, NotesManager(None, 2_400, 600))
    await tell(agent, 0, 45)
    shown = [notes_in(sent) for sent in model.requests]
    grown = 0
    for earlier, later in pairwise(shown):
        assert later[: len(earlier)] == earlier
        grown += later != earlier
    assert 2 <= grown <= 5
    await agent.memory_manager.close()


async def test_notes_that_outgrow_their_share_lose_the_oldest(backend):
    model = Told()
    agent = an_agent(backend, model, NotesManager(None, 700, 200))
    await tell(agent, 0, 60)
    noted = [int(each[17:-1]) for each in notes_in(model.requests[-1])]
    assert noted[0] > 0
    assert noted == list(range(noted[0], noted[-1] + 1))
    episodes = await agent.memory_manager.episodes(100)
    assert "The user saw bird0." in [note.text for each in episodes for note in each.notes]
    await agent.memory_manager.close()


async def test_notes_that_outgrow_their_share_are_condensed(backend):
    """The first line stands for the oldest notes; all others follow, each once."""
    model = Told(condenses=True)
    agent = an_agent(backend, model, SMALL)
    await tell(agent, 0, 36)
    shown = [notes_in(sent) for sent in model.requests]
    heads = {lines[0] for lines in shown if lines and " to " in lines[0]}
    assert len(model.condensed) == len(heads) >= 2
    assert len(model.condensed) <= len(model.requests) // 5
    for earlier, later in pairwise(shown):
        if later[:1] == earlier[:1]:
            assert later[: len(earlier)] == earlier
    head, *others = shown[-1]
    first, last = map(int, re.findall(r"\d+", head))
    assert first == 0
    birds = [int(each[17:-1]) for each in others]
    assert birds == list(range(last + 1, last + 1 + len(birds)))
    assert birds_in(model.requests[-1])[0] == birds[-1] + 1
    assert all(count_tokens(sent) <= 500 for sent in model.requests)
    assert model.condensed
    await agent.memory_manager.close()


async def test_condensed_notes_outlive_processes_and_retired_facts(backend):
    model = Told(condenses=True)
    agent = an_agent(backend, model, SMALL)
    await tell(agent, 0, 20)
    known, calls = notes_in(model.requests[-1]), len(model.condensed)
    assert " to " in known[0]
    await agent.memory_manager.save(Memory("user", "home", "The user lives in Graz."))
    await agent.memory_manager.delete("user:home")
    await agent.memory_manager.drain()
    await agent.fork("t", new_thread_id="fork")
    for thread in ("t", "fork"):
        other = an_agent(backend, model, SMALL)
        await tell(other, 100, 101, thread)
        assert notes_in(model.requests[-1])[: len(known)] == known
    assert len(model.condensed) == calls
    await agent.memory_manager.close()


@pytest.mark.parametrize("number", [0, 7])
async def test_what_is_forgotten_leaves_condensed_notes(backend, number):
    """They are made again of what is left, also if somebody else condensed them meanwhile."""
    model = Told(condenses=True)
    agent = an_agent(backend, model, SMALL)
    await tell(agent, 0, 20)
    stale = notes_in(model.requests[-1])[0]
    assert " to " in stale
    before = len(model.condensed)
    await forget(backend.store, query=f"bird{number}")
    await tell(agent, 20, 21)
    shown = notes_in(model.requests[-1])
    assert " to " in shown[0]
    assert len(model.condensed) == before + 1
    assert f"bird{number}." not in model.condensed[-1]
    assert stale not in model.condensed[-1]
    await agent.memory_manager.close()


async def test_what_is_forgotten_while_a_model_condenses_is_not_kept(backend):
    model = Told(condenses=True)

    async def forgetful(messages, tools=()):
        if messages[0].content.startswith("Condense") and not model.condensed:
            await forget(backend.store, query="bird0")
        return await model(messages, tools)

    agent = an_agent(backend, forgetful, SMALL)
    await tell(agent, 0, 20)
    assert "bird0." in model.condensed[0]
    assert "bird0." not in model.condensed[1]
    head = notes_in(model.requests[-1])[0]
    assert " to " in head
    assert "bird0 " not in head
    await agent.memory_manager.close()


async def test_what_a_model_failed_to_condense_is_condensed_later(backend, names):
    model = Told()
    agent = an_agent(backend, model, SMALL)
    await tell(agent, 0, 20)
    assert "memory.condense_failed" in names
    assert notes_in(model.requests[-1])[0] != "The user saw bird0."
    model.condenses = True
    await tell(agent, 20, 30)
    assert notes_in(model.requests[-1])[0].startswith("The user saw bird0 to ")
    await agent.memory_manager.close()


async def test_a_run_off_the_record_condenses_nothing(backend):
    model = Told(condenses=True)
    agent = an_agent(backend, model, SMALL)
    await tell(agent, 0, 20)
    calls = len(model.condensed)
    await tell(agent, 20, 30, remember=False)
    assert len(model.condensed) == calls
    await agent.memory_manager.close()


async def test_another_process_and_a_fork_show_the_same(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 12)
    known = notes_in(model.requests[-1])
    assert known
    await agent.memory_manager.drain()
    extractions = model.extractions
    await agent.fork("t", new_thread_id="fork")
    for thread in ("t", "fork"):
        other = an_agent(backend, model)
        await tell(other, 100, 101, thread)
        assert notes_in(model.requests[-1])[: len(known)] == known
        assert model.extractions == extractions
    await agent.memory_manager.close()


async def test_a_fork_has_the_notes_of_what_it_shares(backend):
    """It was forked before its thread was too long, and goes on by itself."""
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 6)
    await agent.fork("t", new_thread_id="fork")
    await tell(agent, 50, 53)
    await tell(agent, 6, 14, "fork")
    noted = [int(each[17:-1]) for each in notes_in(model.requests[-1])]
    assert noted == list(range(noted[-1] + 1))
    assert len(noted) > 6
    await agent.memory_manager.close()


async def test_a_note_comes_with_its_message(backend):
    """What was read together is not told twice, as a note and word for word."""
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 14)
    for sent in model.requests:
        assert not {f"The user saw bird{n}." for n in birds_in(sent)} & {*notes_in(sent)}
    await agent.memory_manager.close()


async def test_off_the_record_stays_and_is_never_noted(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 2)
    await tell(agent, 2, 3, remember=False)
    await tell(agent, 3, 12)
    sent = model.requests[-1]
    assert 2 in birds_in(sent)
    noted = notes_in(sent)
    assert "The user saw bird1." in noted
    assert "The user saw bird2." not in noted
    assert "The user saw bird3." in noted
    await agent.memory_manager.close()


async def test_a_run_off_the_record_keeps_nothing(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 8)
    scope = ("locus_memory", "blocks", "notes")
    before = {item.key for item in await backend.store.scan(scope)}
    assert not notes_in(model.requests[-1])
    model.requests.clear()
    await tell(agent, 8, 14, remember=False)
    assert notes_in(model.requests[-1])
    assert {item.key for item in await backend.store.scan(scope)} == before
    await agent.memory_manager.close()


async def test_calls_stay_with_their_results(backend):
    model = Told()
    agent = an_agent(backend, model)
    for number in range(12):
        model.calls = [ToolCall(name="look", arguments={"where": f"tree {number}"})]
        await tell(agent, number, number + 1)
    assert notes_in(model.requests[-1])
    assert not any(validate(sent) for sent in model.requests)
    await agent.memory_manager.close()


async def test_a_failing_extraction_leaves_a_window(backend, names):
    model = Told()
    model.fails = True
    agent = an_agent(backend, model)
    await tell(agent, 0, 20)
    assert not notes_in(model.requests[-1])
    assert birds_in(model.requests[-1])[-1] == 19
    assert all(count_tokens(sent) <= 900 for sent in model.requests)
    assert "conversation.notes_failed" in names
    # One attempt a turn, however many steps it has.
    model.calls = [ToolCall(name="look", arguments={"where": str(n)}) for n in range(8)]
    before = model.extractions
    await tell(agent, 20, 21)
    assert model.extractions == before + 1
    model.fails = False
    await tell(agent, 21, 22)
    assert "The user saw bird19." in notes_in(model.requests[-1])
    await agent.memory_manager.close()


async def test_in_manual_mode_nothing_is_extracted_unasked(backend, names):
    model = Told()
    agent = an_agent(backend, model, extract_mode="manual")
    await tell(agent, 0, 15)
    assert model.extractions == 0
    assert not notes_in(model.requests[-1])
    assert "conversation.notes_failed" in names
    await agent.memory_manager.sync_now()
    await tell(agent, 15, 16)
    assert "The user saw bird0." in notes_in(model.requests[-1])
    await agent.memory_manager.close()


async def test_what_is_forgotten_leaves_the_notes(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 12)
    assert "The user saw bird0." in notes_in(model.requests[-1])
    await forget(backend.store, query="bird0")
    await tell(agent, 12, 13)
    assert not any("bird0." in each for each in notes_in(model.requests[-1]))
    await agent.memory_manager.close()


async def test_users_with_the_same_words_have_notes_of_their_own(backend):
    model = Told()
    agent = an_agent(backend, model)
    await tell(agent, 0, 12, "a", user_id="ada")
    noted = len(notes_in(model.requests[-1]))
    assert noted
    before = model.extractions
    await tell(agent, 0, 12, "b", user_id="bo")
    assert len(notes_in(model.requests[-1])) == noted
    assert model.extractions > before
    await agent.memory_manager.close()


async def test_without_notes_it_is_a_window(names):
    said = [Message.user(f"Number {n}, {FILLER}.") for n in range(60)]
    manager = NotesManager(None, 600, 200)
    unbound = manager.apply(said)
    assert said[-1] in unbound
    assert 0 < count_tokens(unbound) <= 600
    assert await manager.async_apply(said) == unbound
    async with LLMMemoryManager("memory") as memory:
        bound = manager.for_run(AgentState(messages=tuple(said)), memory)
        assert await bound.async_apply(said) == unbound
        with pytest.raises(ConfigurationError, match="makes notes"):
            NotesManager(memory)
    assert "conversation.notes_failed" not in names
    assert await manager.async_apply(said[:3]) == said[:3]
    assert await manager.async_apply([]) == []


@pytest.mark.parametrize(
    "options", [{"threshold_tokens": 0}, {"keep_tokens": -1}, {"keep_tokens": 30_001}]
)
def test_bad_sizes_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        NotesManager(**options)


@pytest.mark.slow
async def test_a_huge_thread_is_bounded():
    """A thread of an hour ago, and one of four scripts, each in one call."""
    model = Told()
    memory = LLMMemoryManager(
        InMemoryStore(), extract_fn=LLMExtractor(model), extract_mode="session_end"
    )
    said = [Message.user("saw 鳥 today " + "язык 漢字 كلام 😀" * 40) for _ in range(2_000)]
    state = AgentState(run_id="r", messages=tuple(said))
    await memory.on_session_end(state)
    manager = NotesManager(memory, 2_000, 500).for_run(state)
    shown = await manager.async_apply([*said, Message.user("now")])
    assert count_tokens(shown) <= 2_000
    assert shown[-1].content == "now"
    await memory.close()
