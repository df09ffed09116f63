"""Any sequence of the verbs of mem0 does what a plain model of them does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.integrations.mem0 import AsyncMemory

USERS, AGENTS, RUNS = (None, "ada", "bo"), (None, "bot"), (None, "r1", "r2")
NAMES = ("user_id", "agent_id", "run_id")
TEXTS = ("red boat", "Red  boat", "blue boat", "green garden")


def named(names):
    return {name: value for name, value in zip(NAMES, names, strict=True) if value}


who = st.tuples(*map(st.sampled_from, (USERS, AGENTS, RUNS))).map(named).filter(bool)
moods = st.sampled_from((None, {"mood": 1}, {"mood": 2}, {"origin": "web", "mood": 1}))
places = st.integers(0, 9)
texts = st.sampled_from(TEXTS)
steps = st.one_of(
    st.tuples(st.just("add"), who, texts, moods),
    st.tuples(st.just("add"), who, texts, moods),
    st.tuples(st.just("update"), places, st.none() | texts, moods),
    st.tuples(st.just("delete"), places),
    st.tuples(st.just("delete_all"), who),
    st.tuples(st.just("reset")),
)


def folded(text):
    return text.casefold().split()


@dataclass
class Model:
    """What mem0 promises, in dicts; but for twins, of which there is one."""

    memories: dict = field(default_factory=dict)
    changes: dict = field(default_factory=dict)

    def twins(self, who, text):
        return {
            name
            for name, each in self.memories.items()
            if each["who"] == who and folded(each["memory"]) == folded(text)
        }

    def matching(self, who, mood=None):
        return {
            name: each
            for name, each in self.memories.items()
            if who.items() <= each["who"].items()
            and (mood is None or each["metadata"].get("mood") == mood)
        }

    def add(self, name, event, who, text, metadata):
        if twins := self.twins(who, text):
            assert (event, name in twins) == ("NONE", True)
            self.memories[name]["metadata"].update(metadata)
            return
        assert event == "ADD"
        assert name not in self.changes
        self.memories[name] = {"memory": text, "metadata": dict(metadata), "who": who}
        self.changes[name] = [("ADD", None, text)]

    def update(self, name, text, metadata):
        known = self.memories[name]
        known["metadata"].update(metadata)
        if text is not None and text.split() != known["memory"].split():
            self.changes[name].append(("UPDATE", known["memory"], text))
            known["memory"] = text

    def delete(self, name):
        self.changes[name].append(("DELETE", self.memories.pop(name)["memory"], None))

    def delete_all(self, who, owners):
        # What was deleted of them goes as well.
        for name in [name for name, each in owners.items() if who.items() <= each.items()]:
            self.memories.pop(name, None)
            self.changes.pop(name, None)


async def follow(sequence):
    """Do the steps on both, and compare them after each one."""
    model, owners = Model(), {}
    async with AsyncMemory("memory") as memory:
        for verb, *given_ in sequence:
            if verb == "add":
                who, text, mood = given_
                added = await memory.add(text, **who, metadata=mood, infer=False)
                [each] = added["results"]
                model.add(each["id"], each["event"], who, text, mood or {})
                owners.setdefault(each["id"], who)
            elif verb == "delete_all":
                await memory.delete_all(**given_[0])
                model.delete_all(given_[0], owners)
            elif verb == "reset":
                await memory.reset()
                model = Model()
            elif model.memories:
                place, *more = given_
                name = sorted(model.memories)[place % len(model.memories)]
                if verb == "delete":
                    await memory.delete(name)
                    model.delete(name)
                elif any(each is not None for each in more):
                    await memory.update(name, more[0], metadata=more[1])
                    model.update(name, more[0], more[1] or {})
            await compare(memory, model, owners)


async def compare(memory, model, owners):
    for filters in ({"user_id": "ada"}, {"agent_id": "bot"}, {"run_id": "r1"}):
        listed = await memory.get_all(filters=filters)
        wanted = model.matching(filters)
        assert {each["id"]: shown(each) for each in listed["results"]} == wanted
        glad = await memory.get_all(filters=filters | {"mood": 1})
        assert {each["id"] for each in glad["results"]} == set(model.matching(filters, 1))
        found = await memory.search("boat", filters=filters)
        boats = {name for name, each in wanted.items() if "boat" in each["memory"]}
        assert {each["id"] for each in found["results"]} == boats
    for name in owners:
        one = await memory.get(name)
        assert (one and shown(one)) == model.memories.get(name)
        rows = await memory.history(name)
        told = [(each["event"], each["old_memory"], each["new_memory"]) for each in rows]
        assert told == model.changes.get(name, [])


def shown(row):
    ids = {name: row[name] for name in NAMES if name in row}
    return {"memory": row["memory"], "metadata": row["metadata"] or {}, "who": ids}


@given(st.lists(steps, max_size=8))
@settings(max_examples=15)
def test_any_sequence_of_verbs(sequence):
    asyncio.run(follow(sequence))
