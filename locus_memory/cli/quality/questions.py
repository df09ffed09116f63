"""What `eval` does with a model that answers questions, or that judges answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from locus_memory._internal.resource import Resource
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.cli.options.models import open_embedder, open_model
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.cli.printing.tables import print_table
from locus_memory.evaluation.dataset import read_dataset
from locus_memory.evaluation.journal import Record, Run, read_journal
from locus_memory.evaluation.questions.answering import (
    Models,
    ask_all,
    digest_of,
    judge_all,
    sampled,
)
from locus_memory.evaluation.questions.asking import AskedModel
from locus_memory.evaluation.questions.costs import Purse, read_prices
from locus_memory.evaluation.questions.memories import MEMORIES
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.cli.options.session import Session

__all__ = ["Questions"]

_SAMPLE: Final = files("locus_memory.evaluation").joinpath("conversations.json")
_COUNTED: Final = {"answer": "answers", "judgement": "judgements", "failure": "failures"}
_LEAST: Final = 100
"""The fewest tokens of a block of memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The options of a run of questions, as the command has them.

    Attributes:
        path: The data set, or the file of a run that is judged again.
        answer: The model that answers; `None`: nothing is asked.
        out: The file of the run.
    """

    path: Path | None
    answer: str | None
    judge: str | None
    extract: str | None
    memory: list[str]
    budget: str
    sample: int | None
    seed: int
    out: Path
    resume: bool
    concurrency: int
    prices: Path | None
    max_cost: float | None
    embedder: str | None
    base_url: str | None
    judge_url: str | None

    def run(self, session: Session) -> None:
        """Ask and judge, or judge a run that is there, and print what was done.

        Raises:
            CommandError: The run is there already, or the budget is spent.
            UsageError: An option is invalid.
        """
        if self.answer is None and self.path is None:
            raise UsageError("--judge needs --answer, or the file of a run in place of FILE")
        counts, purse = Counter[str](), Purse(self.max_cost)
        ended = asyncio.run(self._run(purse, counts, quiet=session.as_json))
        document = {
            "run": str(self._journal),
            **{name: counts[kind] for kind, name in _COUNTED.items()},
            "spent": round(purse.spent, 6) if purse.is_known else None,
            "ended": ended,
        }
        session.answer(document, partial(_render, document=document))
        if ended is not None:
            raise CommandError(f"{ended}; call it again with --resume for the rest", answered=True)
        if counts["failure"]:
            raise CommandError(
                f"failures, which {self._journal} names: {number(counts['failure'])}; call it"
                " again with --resume for these",
                answered=True,
            )

    @property
    def _journal(self) -> Path:
        return self.out if self.answer is not None or self.path is None else self.path

    async def _run(self, purse: Purse, counts: Counter[str], *, quiet: bool) -> str | None:
        async with AsyncExitStack() as stack:
            progress = stack.enter_context(shown_progress(quiet=quiet))
            task = progress.add_task("asking" if self.answer else "judging", total=None)

            def told(record: Record) -> None:
                counts[record.kind] += 1
                progress.update(task, completed=counts.total())

            if self.answer is None:
                # A file that is no run gets no calls beside it.
                next(read_journal(self._journal), None)
                opened = await self._opener(stack, purse)
                judge = opened("--judge", str(self.judge), self.judge_url)
                return await judge_all(self._journal, judge, width=self.concurrency, told=told)
            if self.out.exists() and not self.resume:
                raise CommandError(f"{self.out} is there: take it up with --resume, or name --out")
            path = Path(str(_SAMPLE)) if self.path is None else self.path
            chosen = sampled(read_dataset(path), self.sample, self.seed)
            asked = Run(
                file=path.name,
                digest=digest_of(path),
                seed=self.seed,
                sample=self.sample,
                answer=self.answer,
                judge=self.judge,
                extract=self.extract,
                embedder=self.embedder,
                memories=tuple(self._memories()),
                budgets=tuple(self._budgets()),
            )
            opened = await self._opener(stack, purse)
            answer = opened("--answer", self.answer, self.base_url)
            models = Models(
                answer=answer,
                judge=opened("--judge", self.judge, self.judge_url) if self.judge else None,
                extract=opened("--extract", self.extract, self.base_url)
                if self.extract
                else answer,
                embedder=None if self.embedder is None else open_embedder(self.embedder),
                width=self.concurrency,
            )
            return await ask_all(self.out, asked, chosen, models, told=told)

    def _memories(self) -> list[str]:
        unknown = [each for each in self.memory if each not in MEMORIES]
        if unknown:
            raise UsageError(f"--memory is one of {', '.join(MEMORIES)}, not {unknown[0]!r}")
        return list(dict.fromkeys(self.memory))

    def _budgets(self) -> list[int]:
        told = [each.strip() for each in self.budget.split(",")]
        if not all(each.isdecimal() and int(each) >= _LEAST for each in told):
            raise UsageError(f"--budget is numbers of at least {_LEAST}, such as 1000,4000")
        return list(dict.fromkeys(map(int, told)))

    async def _opener(
        self, stack: AsyncExitStack, purse: Purse
    ) -> Callable[[str, str, str | None], AskedModel]:
        """Return what opens the model of an option; it is closed with the stack."""
        prices = {} if self.prices is None else read_prices(self.prices)
        calls = await stack.enter_async_context(SQLiteStore(f"{self._journal}.calls"))
        slots = asyncio.Semaphore(self.concurrency)

        def opened(option: str, name: str, base_url: str | None) -> AskedModel:
            price = prices.get(name)
            if price is None and self.max_cost is not None:
                raise UsageError(f"--max-cost needs the price of {name!r} in the file of --prices")
            purse.is_known &= price is not None
            endpoint = "--judge-url" if option == "--judge" else "--base-url"
            model = open_model(name, base_url, option=option, endpoint=endpoint)
            if isinstance(model, Resource):
                stack.push_async_callback(model.close)
            return AskedModel(
                name=name, model=model, calls=calls, slots=slots, purse=purse, price=price
            )

        return opened


def _render(console: Console, document: dict[str, Any]) -> None:
    spent = [] if document["spent"] is None else [("spent", f"${document['spent']:.4f}")]
    told = {**{name: document[name] for name in _COUNTED.values()}, **dict(spent)}
    columns = ["run", *(f">{name}" for name in told)]
    print_table(console, columns, [[document["run"], *told.values()]])
