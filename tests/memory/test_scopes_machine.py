"""Several users on one manager, against a dict for each."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeEmbedder

TRICKY = ["a", "a/b", "users", "history", "user", "*", "queue", "\x01", "é", "e\u0301"]
USERS = st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
KINDS = st.sampled_from(MemoryType)
KEYS = st.sampled_from(["k", "users", "history", "000000000001"])


class Said:
    """Remembers the last word of what was said."""

    name = "said"

    def __init__(self):
        self.shown = []

    async def extract(self, messages, memories):
        owner, content = messages[0].content.split("|")[:2]
        self.shown.append((owner, [memory.content for memory in memories]))
        return [Memory(MemoryType.FEEDBACK, f"said{content}", f"{owner}|{content}")]


class ScopeMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.extractor = Said()
        self.manager = LLMMemoryManager(
            InMemoryStore(),
            extract_fn=self.extractor,
            extract_mode="background",
            embedder=FakeEmbedder(),
            max_memories=1000,
        )
        self.owners = {}
        self.count = 0

    def run(self, work):
        return self.runner.run(work)

    def _content(self, user):
        """Return a text nobody said before, which names its owner by number."""
        self.count += 1
        owner = self.owners.setdefault(user, f"owner{len(self.owners)}")
        return f"{owner}|{self.count}"

    @rule(user=USERS, kind=KINDS, key=KEYS)
    def save(self, user, kind, key):
        memory = Memory(kind, key, self._content(user))
        self.run(self.manager.for_user(user).save([memory]))

    @rule(user=USERS, thread=st.sampled_from(["t", "users"]))
    def say(self, user, thread):
        metadata = {"user_id": user, "thread_id": thread}
        messages = (Message.user(self._content(user)), Message.assistant("Ok"))
        state = AgentState(messages=messages, metadata=metadata)
        self.run(self.manager.on_session_end(state))

    @rule(user=USERS, key=KEYS)
    def undo(self, user, key):
        self.run(self.manager.for_user(user).undo(key))

    @rule(user=USERS, key=KEYS)
    def forget(self, user, key):
        self.run(self.manager.for_user(user).forget(key))

    @rule()
    def drain(self):
        assert self.run(self.manager.drain()) == 0

    @rule()
    def nobody_sees_what_another_one_said(self):
        for user, owner in self.owners.items():
            seen = self.run(self._seen(user))
            assert {content.split("|")[0] for content in seen} <= {owner}
        for owner, shown in self.extractor.shown:
            assert {content.split("|")[0] for content in shown} <= {owner}

    async def _seen(self, user):
        view = self.manager.for_user(user)
        found = [*await view.retrieve(100), *await view.retrieve(100, "owner0 owner1 owner2 1 2")]
        for key in ("k", "users", "history", "000000000001"):
            found += await view.history(key)
        found += [memory async for memory in view.memories()]
        return [memory.content for memory in found]

    def teardown(self):
        self.nobody_sees_what_another_one_said()
        self.run(self.manager.close())
        self.runner.close()


TestScopes = ScopeMachine.TestCase
TestScopes.settings = settings(deadline=None, max_examples=25, stateful_step_count=15)
