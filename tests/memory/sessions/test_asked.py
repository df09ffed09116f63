"""A turn is read with the assistant's turn before it, and an answer that may be a secret is not."""

from __future__ import annotations

import json

import pytest

from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.extraction.thread import CONTEXT
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.memory.secrets.detection import WITHHELD, answers_in, asks_for_secret
from locus_memory.messages import Message
from tests.memory.sessions.conftest import LONG, SCOPE, run_of

QUESTION = "What is your password?"
ANSWER = "I love bluebirds42"
SAID = [
    Message.user("Log me in."),
    Message.assistant(QUESTION),
    Message.user(ANSWER),
    Message.assistant("Thank you: bluebirds42 it is."),
    Message.user("I live in Lyon."),
    Message.assistant("Noted."),
]


class Gullible:
    """A model that believes all that it is shown."""

    name = "gullible"

    def __init__(self):
        self.shown = []

    async def extract(self, messages, memories):
        self.shown.append(list(messages))
        return [
            MemoryChange(
                op="add",
                type=MemoryType.USER,
                key=f"{each.content[:60]}",
                content=f"The user says: {each.content}",
                sources=(place,),
            )
            for place, each in enumerate(messages)
            if each.role == "user"
        ]

    async def distill(self, messages, memories):
        changes = await self.extract(messages, memories)
        summary = " / ".join(each.content for each in messages)
        return Distillate(changes=changes, notes=(NoteDraft(summary),))

    @property
    def texts(self):
        return [each.content for messages in self.shown for each in messages]


async def everything(store):
    """All that the store holds of a scope, as one text."""
    spaces = (SCOPE.current, SCOPE.episodes, SCOPE.transcript("t"), SCOPE.queue, SCOPE.cursors)
    items = [item for space in spaces for item in await store.scan(space, 100)]
    return json.dumps([[item.value, item.metadata] for item in items])


async def by_runs(manager, reopen):
    for count in (2, 4, 6):
        await manager.on_session_end(run_of(SAID[:count]))


async def one_call_a_run(manager, reopen):
    for count in (2, 4, 6):
        await manager.on_session_end(run_of(SAID[:count]))
        await manager.sync_now()


async def after_restarts(manager, reopen):
    for count in (2, 4, 6):
        await manager.on_session_end(run_of(SAID[:count]))
        await manager.close()
        manager = reopen()


async def message_by_message(manager, reopen):
    """What the assistant repeats in a later call than the answer is not known as such."""
    for message in [*SAID[:3], Message.assistant("Thank you."), *SAID[4:]]:
        await manager.add([message], thread_id="t")
        await manager.sync_now()


TURNS = [
    {"user": user.content, "assistant": assistant.content}
    for user, assistant in zip(SAID[::2], SAID[1::2], strict=True)
]


async def ingested_at_once(manager, reopen):
    await manager.ingest("agent", "t", TURNS)


async def ingested_as_it_grows(manager, reopen):
    for count in (1, 2, 3):
        await manager.ingest("agent", "t", TURNS[:count])


async def ingested_turn_by_turn(manager, reopen):
    for turn in TURNS:
        await manager.ingest("agent", "t", [turn])


async def recorded_first(manager, reopen):
    for count in (1, 2, 3):
        await manager.ingest("agent", "t", TURNS[:count], skip_extraction=True)
    await manager.ingest("agent", "t", TURNS)


WAYS = [
    by_runs,
    one_call_a_run,
    after_restarts,
    message_by_message,
    ingested_at_once,
    ingested_as_it_grows,
    ingested_turn_by_turn,
    recorded_first,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("is_model", [True, False])
async def test_an_answer_to_a_request_for_a_secret_is_nowhere(tend, either, way, is_model):
    """A model and rules: no memory, no episode, no turn; what else was said is there."""
    model = Gullible() if is_model else None
    manager = tend(extract_fn=model)
    await way(manager, lambda: tend(extract_fn=model))
    await manager.sync_now()
    left = await everything(either)
    assert "bluebirds" not in left
    assert "Lyon" in left
    if model is not None:
        assert not any("bluebirds" in text for text in model.texts)
        assert model.texts.count("I live in Lyon.") == 1
    recorded = [item.value["text"] for item in await either.scan(SCOPE.transcript("t"), 10)]
    assert [text for text in recorded if text != WITHHELD] == [
        *(each.content for each in SAID[:2]),
        *(["Thank you."] if way is message_by_message else []),
        *(each.content for each in SAID[4:]),
    ]


@pytest.mark.parametrize("mode", ["inline", "background"])
@pytest.mark.parametrize("way", [by_runs, one_call_a_run, message_by_message])
async def test_so_it_is_without_tending(make, store, way, mode):
    model = Gullible()
    manager = make(extract_fn=model, extract_mode=mode)
    await way(manager, lambda: manager)
    assert await manager.drain() == 0
    assert "bluebirds" not in await everything(store)
    assert not any("bluebirds" in text for text in model.texts)
    assert "I live in Lyon." in model.texts


async def test_extract_alone_leaves_it_out(make):
    manager = make(extract_fn=Gullible())
    assert not any("bluebirds" in each.content for each in await manager.extract(SAID))


async def test_who_allows_secrets_keeps_it(tend, either):
    model = Gullible()
    manager = tend(extract_fn=model, allow_secrets=True)
    await by_runs(manager, None)
    await manager.sync_now()
    assert "bluebirds" in await everything(either)
    assert any("bluebirds" in text for text in model.texts)


async def test_the_turn_before_is_shown_and_is_no_source(tend, either, events):
    """It stands first, marked; no change comes from it alone, and it is never new."""

    class Eager(Gullible):
        async def distill(self, messages, memories):
            self.shown.append(list(messages))
            add = {"op": "add", "type": MemoryType.USER}
            return Distillate(
                changes=(
                    MemoryChange(**add, key="old", content="Ada sails.", sources=(0,)),
                    MemoryChange(**add, key="new", content="Ada likes tea.", sources=(0, 1)),
                )
            )

    model = Eager()
    manager = tend(extract_fn=Gullible())
    said = [Message.user(LONG), Message.assistant("What do you drink?")]
    await manager.on_session_end(run_of(said))
    await manager.sync_now()
    manager = tend(extract_fn=model)
    said += [Message.user("Tea."), Message.assistant(LONG)]
    await manager.on_session_end(run_of(said))
    await manager.sync_now()
    (shown,) = model.shown
    assert [each.content for each in shown] == ["What do you drink?", "Tea.", LONG]
    assert [bool(each.metadata.get(CONTEXT)) for each in shown] == [True, False, False]
    facts = {each.key: each async for each in manager.memories()}
    assert "old" not in facts
    assert facts["new"].metadata["message_ids"] == ["#3"]
    assert events.of("memory.change_refused")[-1].attributes["reason"] == (
        "a change comes from a new message"
    )
    assert events.of("memory.extracted")[-1].attributes["messages"] == 2


async def test_a_turn_in_the_same_call_is_not_shown_twice(tend):
    model = Gullible()
    manager = tend(extract_fn=model)
    await by_runs(manager, None)
    await manager.sync_now()
    assert len(model.texts) == 6


async def test_rules_see_the_question_of_the_run_before(either, clock):
    """The rules read each run at its end."""
    async with LLMMemoryManager(either, extract_mode="session_end", clock=clock) as manager:
        await by_runs(manager, None)
        contents = [each.content async for each in manager.memories()]
    assert contents == ["The user lives in Lyon."]


@pytest.mark.parametrize(
    "text",
    [
        "Please enter your PIN.",
        "Bitte gib dein Passwort ein.",
        "What's the door code?",
        "To continue I need your API key.",
        "Could you give me the credit card number?",
        "Security question: what was the name of your first pet?",
        "What is your mother's maiden name?",
        "\u00bfCu\u00e1l es tu contrase\u00f1a?",
        "Quel est votre mot de passe ?",
        "What is your password? I need it to log in.",
        "\u8bf7\u8f93\u5165\u5bc6\u7801\u3002",
        "\u0412\u0432\u0435\u0434\u0438\u0442\u0435 \u043f\u0430\u0440\u043e\u043b\u044c.",
        "Your card number:",
    ],
)
def test_what_asks_for_a_secret(text):
    assert asks_for_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "Your password was changed. Anything else?",
        "Which key is the piece in?",
        "Do you like card games?",
        "I stored the token in the file.",
        "What country code does Austria have?",
        "How many tokens does it cost?",
        "",
    ],
)
def test_what_asks_for_none(text):
    assert not asks_for_secret(text)


def test_answers_go_up_to_the_next_message_of_the_assistant():
    said = [
        ("user", "Hi"),
        ("assistant", QUESTION),
        ("user", "One moment"),
        ("tool", "bluebirds42 is unknown"),
        ("user", ANSWER),
        ("assistant", ""),
        ("user", "Again: i love BLUEBIRDS42"),
        ("assistant", "All right."),
        ("user", "Rain"),
    ]
    found = answers_in(said)
    assert found == [False, False, True, False, True, False, True, False, False]
    assert answers_in(said[4:5], asked=True) == [True]
