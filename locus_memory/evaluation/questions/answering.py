"""The run of questions: each memory is told the conversations, asked, and its answers are judged.

The lines of the journal have one order, whatever is asked at once: that of the conversations, of
the memories, of the budgets and of the questions. So a run that is killed and taken up ends with
the same lines as one that is not.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import (
    AsyncExitStack,
    ExitStack,
    aclosing,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from locus_memory._internal.locks import locked
from locus_memory._internal.neutral import neutralise
from locus_memory._internal.quoting import shorten
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    ModelError,
)
from locus_memory.evaluation.dataset import Conversation, Question
from locus_memory.evaluation.journal import (
    Answered,
    Failed,
    Ingested,
    Journal,
    Judged,
    Record,
    Run,
    Used,
    read_journal,
)
from locus_memory.evaluation.metrics import recall_at
from locus_memory.evaluation.questions.asking import AskedModel, Counted
from locus_memory.evaluation.questions.costs import PurseEmptyError
from locus_memory.evaluation.questions.judging import question_prompt, read_verdict, verdict_prompt
from locus_memory.evaluation.questions.memories import (
    FILLED_ONCE,
    MEMORIES,
    UNBOUNDED,
    Block,
    moment_of,
)
from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["Models", "ask_all", "digest_of", "judge_all", "sampled"]

_UNDATED: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The moment of sessions without one: always the same, as a run is to be repeated."""

_FILLED: Final = ("memories",)
"""The namespace of what filled memories show, beside that of the calls."""

_Record = TypeVar("_Record")
_Key = tuple[str, str, str, int]
_Channel = asyncio.Queue[Any]
_Show = Callable[[str, datetime, int], Awaitable[Block]]

Told = Callable[[Record], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a run.

    Attributes:
        answer: Answers the questions.
        judge: Judges the answers; `None`: nobody does.
        extract: Extracts memories.
        embedder: Finds by meaning; `None`: by words alone.
        width: How many questions are worked on at once.
    """

    answer: AskedModel
    judge: AskedModel | None
    extract: AskedModel
    embedder: Embedder | None = None
    width: int = 4


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files of JSON of a folder.

    What a run or its report writes beside these does not change it.

    Raises:
        OSError: A file cannot be read.
    """
    if path.is_file():
        return sha256(path.read_bytes()).hexdigest()
    found = sha256()
    for each in sorted(path.rglob("*.json")):
        name = each.relative_to(path).as_posix()
        found.update(f"{name}\0{digest_of(each)}\n".encode())
    return found.hexdigest()


def sampled(
    conversations: Sequence[Conversation], sample: int | None, seed: int
) -> list[tuple[Conversation, list[Question]]]:
    """Return the conversations with the questions that are asked, in the order of the file.

    A question without an answer is none, unless the right answer is that it is not known.

    Args:
        conversations: The conversations.
        sample: How many questions are drawn at random; `None`: all.
        seed: The seed of the draw: the same questions for the same seed.

    Raises:
        InvalidArgumentError: No question has an answer.
    """
    asked = [
        (place, number)
        for place, conversation in enumerate(conversations)
        for number, each in enumerate(conversation.asked)
        if each.expected or each.abstain
    ]
    if not asked:
        raise InvalidArgumentError("none of the questions has an answer to compare with")
    if sample is not None and sample < len(asked):
        asked = random.Random(seed).sample(asked, sample)  # noqa: S311 - not for secrets
    chosen = set(asked)
    found = [
        (each, [q for number, q in enumerate(each.asked) if (place, number) in chosen])
        for place, each in enumerate(conversations)
    ]
    return [(each, questions) for each, questions in found if questions]


async def ask_all(
    path: Path,
    run: Run,
    chosen: Sequence[tuple[Conversation, Sequence[Question]]],
    models: Models,
    *,
    told: Told,
) -> str | None:
    """Ask all questions that a journal does not answer yet, and judge all that it does not.

    Args:
        path: The journal; what it holds is not asked again.
        run: The settings.
        chosen: The conversations with the questions, as of `sampled`.
        models: The models.
        told: Called with each record that was written.

    Returns:
        Why it ended before all was asked: the budget is spent; `None`: all was.

    Raises:
        InvalidArgumentError: The journal is that of another run, it is damaged, or another run
            writes it.
        OSError: It cannot be read or written.
        ConfigurationError: A memory lacks what it needs.
        MissingDriverError: The package of a memory is not installed.
    """
    for name in run.memories:
        # What a memory lacks is told before there is a journal, and before anything is paid for.
        async with MEMORIES[name](Counted(models.extract), models.embedder):
            pass
    with _alone(path):
        ingested, answered = _done_before(path, run)
        # The judgement of the last answer may be missing, and it comes before the next answer.
        if models.judge is not None:
            ended = await _judge_left(path, models.judge, models.width, told)
            if ended is not None:
                return ended
        works = (
            _Work(conversation, name, asked, models, is_known=(conversation.id, name) in ingested)
            for conversation, questions in chosen
            for name in run.memories
            if (asked := [*_left(run, conversation, name, questions, answered)])
        )
        records = _in_order((work.records() for work in works), models.width)
        return await _written(path, records, told)


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keep other runs from a journal.

    Raises:
        InvalidArgumentError: Another run writes it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path.with_name(f"{path.name}.lock"), wait=False))
        except BlockingIOError:
            raise InvalidArgumentError(f"{path}: another run writes it") from None
        yield


def _done_before(path: Path, run: Run) -> tuple[set[tuple[str, str]], set[_Key]]:
    """Return the memories that a journal tells as filled, and the questions that it answers.

    An empty journal gets the settings of the run.

    Raises:
        InvalidArgumentError: The journal is that of another run, or it is damaged.
    """
    ingested, answered = set[tuple[str, str]](), set[_Key]()
    with closing(Journal(path)) as journal:
        if journal.is_empty:
            journal.write(run)
    for record in read_journal(path):
        match record:
            case Run():
                _check_same(path, record, run)
            case Ingested():
                ingested.add((record.conversation, record.memory))
            case Answered():
                answered.add(record.key)
            case _:
                pass
    return ingested, answered


def _left(
    run: Run,
    conversation: Conversation,
    memory: str,
    questions: Sequence[Question],
    answered: Collection[_Key],
) -> Iterator[tuple[Question, int]]:
    """Yield the questions to a memory that have no answer yet, each with its budget."""
    for budget in (0,) if memory in UNBOUNDED else run.budgets:
        for question in questions:
            if (conversation.id, question.id, memory, budget) not in answered:
                yield question, budget


async def judge_all(path: Path, judge: AskedModel, *, width: int, told: Told) -> str | None:
    """Judge all answers of a journal that a judge has not judged yet, beside those of others.

    Returns:
        Why it ended before all was judged: the budget is spent; `None`: all was.

    Raises:
        InvalidArgumentError: The journal is damaged, or another run writes it.
        OSError: It cannot be read or written.
    """
    with _alone(path):
        return await _judge_left(path, judge, width, told)


async def _judge_left(path: Path, judge: AskedModel, width: int, told: Told) -> str | None:
    done = {
        record.key
        for record in read_journal(path)
        if isinstance(record, Judged) and record.judge == judge.name
    }
    left = (
        _judged(judge, record)
        for record in read_journal(path)
        if isinstance(record, Answered) and record.key not in done
    )
    return await _written(path, _in_order(left, width), told)


def _check_same(path: Path, before: Run, now: Run) -> None:
    """Check that a run may be taken up with these settings.

    Raises:
        InvalidArgumentError: It has others.
    """
    asked = now.model_dump(exclude={"file"})
    # A journal of an earlier version does not tell all.
    for name, value in before.model_dump(exclude={"file"}, exclude_unset=True).items():
        if asked[name] != value:
            raise InvalidArgumentError(
                f"{path}: the {name} of this run is {value!r}, not {asked[name]!r}"
            )


async def _written(path: Path, records: AsyncGenerator[Record], told: Told) -> str | None:
    """Write records into a journal; return why they ended early, if they did."""
    with closing(Journal(path)) as journal:
        try:
            async with aclosing(records):
                async for record in records:
                    journal.write(record)
                    told(record)
        except PurseEmptyError as error:
            return str(error)
    return None


def _place(question: str, budget: int) -> str:
    return f"{budget} {question}"


@dataclass(frozen=True, slots=True)
class _Work:
    """A conversation in a memory, and what is asked about it."""

    conversation: Conversation
    memory: str
    asked: Sequence[tuple[Question, int]]
    models: Models
    is_known: bool

    async def records(self) -> AsyncGenerator[Record]:
        """Yield the records in their order."""
        place: dict[str, Any] = {"conversation": self.conversation.id, "memory": self.memory}
        async with AsyncExitStack() as stack:
            try:
                show, used = await self._kept() or await self._filled(stack)
            except (PurseEmptyError, ConfigurationError):
                raise
            except Exception as error:  # noqa: BLE001 - reported; the others go on
                yield Failed(step="ingest", error=_text(error), **place)
                return
            if not self.is_known:
                yield Ingested(**place, **used.model_dump())
            *_, last = _UNDATED, *filter(None, map(moment_of, self.conversation.sessions))
            asked = (self._answer(show, *each, last) for each in self.asked)
            async with aclosing(_in_order(asked, self.models.width)) as records:
                async for record in records:
                    yield record

    async def _filled(self, stack: AsyncExitStack) -> tuple[_Show, Used]:
        """Return what a new memory shows that was told the conversation, and what that took."""
        model, moment = Counted(self.models.extract), _UNDATED
        made = MEMORIES[self.memory](model, self.models.embedder)
        memory = await stack.enter_async_context(made)
        for session in self.conversation.sessions:
            moment = moment_of(session) or moment
            await memory.ingest(session, moment)
            model.check()
        if self.memory in FILLED_ONCE:
            shown = dict[str, Any]()
            for question, budget in self.asked:
                # A question that fails here is asked again, and then it is reported.
                with suppress(Exception):
                    block = await memory.block(question.text, question.asked_at or moment, budget)
                    shown[_place(question.text, budget)] = block.text
            kept = {"used": model.used.model_dump(), "shown": shown}
            await self.models.extract.calls.put(_FILLED, self._key, kept, text="")
        return memory.block, model.used

    async def _kept(self) -> tuple[_Show, Used] | None:
        """Return what a memory showed that was filled before, if that is kept for all questions."""
        if self.memory not in FILLED_ONCE:
            return None
        kept: Any = await self.models.extract.calls.get(_FILLED, self._key)
        if kept is None or any(_place(q.text, n) not in kept["shown"] for q, n in self.asked):
            return None

        async def show(question: str, _: datetime, budget: int) -> Block:
            return Block(kept["shown"][_place(question, budget)])

        return show, Used(**kept["used"])

    @property
    def _key(self) -> str:
        embedder = self.models.embedder and self.models.embedder.name
        named = self.memory, self.models.extract.name, embedder, self.conversation.sessions
        return sha256(repr(named).encode(errors="surrogatepass")).hexdigest()

    async def _answer(
        self, show: _Show, question: Question, budget: int, last: datetime
    ) -> AsyncGenerator[Record]:
        """Yield the answer to a question, and its judgement."""
        place: dict[str, Any] = {
            "conversation": self.conversation.id,
            "question": question.id,
            "memory": self.memory,
            "budget": budget,
        }
        model, moment = Counted(self.models.answer), question.asked_at or last
        try:
            block = await show(question.text, moment, budget)
            said = await model(question_prompt(question.text, block.text, moment))
        except (PurseEmptyError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - reported; the others go on
            yield Failed(step="answer", error=_text(error), **place)
            return
        shown = block.turns if question.evidence else None
        answered = Answered(
            category=question.category,
            asked=question.text,
            expected=question.expected,
            abstain=question.abstain,
            answer=said.content or "",
            block=block.text,
            block_tokens=expected_tokens(block.text),
            evidence=None if shown is None else recall_at([*shown], question.evidence, len(shown)),
            **place,
            **model.used.model_dump(),
        )
        yield answered
        if self.models.judge is not None:
            async for record in _judged(self.models.judge, answered):
                yield record


async def _judged(judge: AskedModel, answered: Answered) -> AsyncGenerator[Record]:
    """Yield the judgement of an answer."""
    place = answered.model_dump(include={"conversation", "question", "memory", "budget"})
    model, prompt = Counted(judge), verdict_prompt(answered)
    try:
        right, reason = read_verdict((await model(prompt)).content or "")
    except ModelError as error:
        # Else a run that is taken up would get the same words once more.
        await judge.forget(prompt)
        yield Failed(step="judgement", judge=judge.name, error=_text(error), **place)
    else:
        used = model.used.model_dump()
        yield Judged(judge=judge.name, right=right, reason=reason, **place, **used)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {shorten(neutralise(str(error)))}"


async def _in_order(
    works: Iterable[AsyncGenerator[_Record]], width: int
) -> AsyncGenerator[_Record]:
    """Yield what works yield, one work after the other, while so many of them go on at once.

    An error of a work is raised where its next record would be, and ends those after it.
    """
    left, waiting, tasks = iter(works), deque[_Channel](), set[asyncio.Task[None]]()
    try:
        while True:
            for work in islice(left, width - len(waiting)):
                waiting.append(channel := _Channel())
                tasks.add(task := asyncio.create_task(_drain(work, channel)))
                task.add_done_callback(tasks.discard)
            if not waiting:
                return
            while (found := await waiting[0].get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
            waiting.popleft()
    finally:
        running = list(tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _drain(work: AsyncGenerator[Any], channel: _Channel) -> None:
    """Pass what a work yields, its error, and `None` at its end."""
    try:
        async with aclosing(work):
            async for record in work:
                channel.put_nowait(record)
    except asyncio.CancelledError:
        # A model may await what somebody else cancelled. Nobody reads this after the run's own end.
        channel.put_nowait(ModelError("a call of a model was cancelled"))
        raise
    except Exception as error:  # noqa: BLE001 - it is raised where it is read
        channel.put_nowait(error)
    channel.put_nowait(None)
