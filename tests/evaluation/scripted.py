"""Conversations whose answers are known, and models that answer by rules."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.evaluation.dataset import parse_dataset
from locus_memory.evaluation.journal import Record, Run
from locus_memory.evaluation.questions.answering import Models, ask_all, sampled
from locus_memory.evaluation.questions.asking import AskedModel
from locus_memory.evaluation.questions.costs import Price, Purse
from locus_memory.messages import Message

PRICE = Price(prompt=2.0, completion=8.0, cached=0.5)
PETS = {"Ada": "parrot Figaro", "Ben": "tortoise Otello", "Cleo": "mule Aida", "Dan": "crab Tosca"}
EMPTY = '{"changes":[],"notes":[]}'


def conversation(name, pets, *, filler=0):
    """A conversation in which people tell of their pets, a session each."""
    turns = [
        (person, f"I have a {pet} at home, and it sings.", f"D{n}:1")
        for n, (person, pet) in enumerate(pets.items(), 1)
    ]
    return {
        "id": name,
        "sessions": [
            {
                "date_time": f"2023-05-{number:02}T10:00:00+00:00",
                "turns": [
                    {"id": turn, "speaker": person, "text": text},
                    *(
                        {"id": f"{turn}f{k}", "speaker": person, "text": f"The weather is {k}."}
                        for k in range(filler)
                    ),
                ],
            }
            for number, (person, text, turn) in enumerate(turns, 1)
        ],
        "questions": [
            {
                "id": f"q{n}",
                "question": f"Which pet has {person}?",
                "answer": pet,
                "category": 4,
                "evidence": [f"D{n}:1"],
            }
            for n, (person, pet) in enumerate(pets.items(), 1)
        ]
        + [{"id": "none", "question": "Which pet has Zoe?", "category": 5, "abstain": True}],
    }


def dataset(count=2, **options):
    people = list(PETS.items())
    return parse_dataset(
        [conversation(f"c{n}", dict(people[n % 3 : n % 3 + 2]), **options) for n in range(count)]
    )


class Scripted:
    """A model that answers a question by the line of the block that names the person.

    `wrong` are questions that it answers wrong; `fails` how often it is unavailable first. A call
    that judges finds an answer right if it has the words of one that is right. One that extracts
    finds nothing.
    """

    def __init__(self, wrong=(), *, told=True, fails=(), delay=lambda text: 0.0):
        self.wrong, self.told, self.delay = wrong, told, delay
        self.fails = list(fails)
        self.calls = []

    async def __call__(self, messages):
        task, text = messages[0].content, messages[-1].content
        self.calls.append(text)
        await asyncio.sleep(self.delay(text))
        if self.fails:
            raise self.fails.pop(0)
        said = self.said(task, text)
        usage = {"prompt_tokens": len(text), "completion_tokens": len(said), "cached_tokens": 10}
        return Message.assistant(said).model_copy(
            update={"metadata": {"usage": usage} if self.told else {}}
        )

    def said(self, task, text):
        if "<right>" in text:
            parts = dict(re.findall(r"<(\w+)>\n(.*?)\n</\1>", text, re.DOTALL))
            right = any(each in parts["answer"] for each in parts["right"].splitlines())
            return json.dumps({"reason": "by its words", "right": right})
        if "long-term memory" in task:
            return EMPTY
        question = text.rpartition("Question: ")[2]
        if question in self.wrong:
            return "a goldfish"
        person = re.search(r"has (\w+)", question)
        found = person and re.search(rf"{person[1]}: I have a (.+?) at home", text)
        return found[1] if found else "It is not known."


async def no_wait(seconds):
    """Wait no time."""


@asynccontextmanager
async def asked_by(path, *, width=4, most=None, price=PRICE):
    """Yield a function that makes a model of a run, over the calls of a file."""
    purse, slots = Purse(most), asyncio.Semaphore(width)
    async with SQLiteStore(f"{path}.calls") as calls:

        def made(model, name, **options):
            return AskedModel(
                name=name, model=model, calls=calls, slots=slots, purse=purse, price=price,
                **{"sleep": no_wait} | options,
            )  # fmt: skip

        made.purse = purse
        yield made


def run_of(memories, budgets=(1000,), **settings):
    known = {"file": "pets.json", "digest": "d", "seed": 0, "sample": None}
    known |= {"answer": "answerer", "judge": "judge"}
    return Run(memories=memories, budgets=budgets, **known | settings)


async def answered(path, memories, model, judge, *, data=None, budgets=(1000,), **options):
    """Ask all of a data set; return why it ended early, if it did."""
    width = options.get("width", 4)
    run = run_of(memories, budgets, judge=None if judge is None else "judge")
    async with asked_by(path, **options) as made:
        models = Models(
            answer=made(model, "answerer"),
            judge=None if judge is None else made(judge, "judge"),
            extract=made(model, "answerer"),
            width=width,
        )
        chosen = sampled(dataset() if data is None else data, None, 0)
        return await ask_all(path, run, chosen, models, told=list[Record]().append)


def without_times(path):
    """The lines of a journal without their seconds."""
    return re.sub(rb'"seconds":[0-9.e-]+', b'"seconds":0', path.read_bytes())


MOMENT = datetime(2023, 6, 1, tzinfo=UTC)
