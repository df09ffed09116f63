"""The journal of a run of questions: a JSON object a line, for all that was asked and answered.

A line is written whole, with its `kind` first, and given to the operating system before the next
one. So a run that is killed loses at most the line that it was writing. Times are in seconds, and
costs in dollars; a cost is `null` where no price is known.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from locus_memory.errors import InvalidArgumentError

__all__ = [
    "Answered",
    "Failed",
    "Ingested",
    "Journal",
    "Judged",
    "Record",
    "Run",
    "Used",
    "read_journal",
]

_START: Final = b'{"kind":"run"'
"""How a journal begins; a file that does not is none, even if its only line is torn."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Used(_Line):
    """What the calls of a model took.

    Attributes:
        prompt_tokens: The tokens of all prompts.
        completion_tokens: The tokens of all answers.
        cached_tokens: The part of the prompts that the endpoint had in its cache.
        counted: Whether a count is the package's own estimate, because the model reports none.
        calls: The number of answers of the model, without failed attempts.
        seconds: The time that they took when they were made.
        cost: Dollars; `None`: the price of the model is not known.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    counted: bool = False
    calls: int = 1
    seconds: float = 0.0
    cost: float | None = None

    def __add__(self, other: Used) -> Used:
        known = self.cost is not None and other.cost is not None
        return Used(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            counted=self.counted or other.counted,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
            cost=(self.cost or 0) + (other.cost or 0) if known else None,
        )


class _Asked(Used):
    """A question that a memory helps to answer within a budget.

    Attributes:
        conversation: The id of the conversation.
        question: The id of the question in the conversation.
        memory: The name of the memory.
        budget: The tokens that the block may have; 0: any number.
    """

    conversation: str
    question: str
    memory: str
    budget: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from the other questions of a run."""
        return self.conversation, self.question, self.memory, self.budget


class Run(_Line):
    """The first line: the settings, which a run that is taken up must share.

    Attributes:
        version: The version of the format.
        file: The name of the data set.
        digest: The SHA-256 of its content, in hexadecimal digits.
        seed: The seed of the sample.
        sample: How many questions are asked; `None`: all.
        answer: The model that answers.
        judge: The model that judges; `None`: none.
        extract: The model that extracts memories; `None`: the one that answers.
        embedder: The embedder; `None`: words alone, or a journal of a version without this line.
        memories: The names of the memories.
        budgets: The tokens of a block; a question is asked once for each.
    """

    kind: Literal["run"] = "run"
    version: Literal[1] = 1
    file: str
    digest: str
    seed: int
    sample: int | None
    answer: str
    judge: str | None
    extract: str | None = None
    embedder: str | None = None
    memories: tuple[str, ...]
    budgets: tuple[int, ...]


class Ingested(Used):
    """A conversation is in a memory.

    Attributes:
        conversation: The id of the conversation.
        memory: The name of the memory.
    """

    kind: Literal["ingest"] = "ingest"
    conversation: str
    memory: str


class Answered(_Asked):
    """A question is answered.

    Attributes:
        category: The kind of question.
        asked: The question.
        expected: The right answers; one is enough.
        abstain: Whether the right answer is that it is not known.
        answer: The answer.
        block: What the model was shown.
        block_tokens: Its tokens, by the package's own counter.
        evidence: The share of the evidence in the block; `None`: it cannot be told.
    """

    kind: Literal["answer"] = "answer"
    category: str
    asked: str
    expected: tuple[str, ...]
    abstain: bool
    answer: str
    block: str
    block_tokens: int
    evidence: float | None


class Judged(_Asked):
    """An answer is judged.

    Attributes:
        judge: The model that judges.
        right: Whether the answer is right.
        reason: Why, in the judge's words.
    """

    kind: Literal["judgement"] = "judgement"
    judge: str
    right: bool
    reason: str


class Failed(_Line):
    """A step failed after its retries; a run that is taken up makes it again.

    Attributes:
        step: What failed.
        conversation: The id of the conversation.
        question: The id of the question; `None`: no question was asked.
        memory: The name of the memory.
        budget: The tokens that the block may have; `None`: no question was asked.
        judge: The model that judges; `None`: nothing was judged.
        error: The error's class and text.
    """

    kind: Literal["failure"] = "failure"
    step: Literal["ingest", "answer", "judgement"]
    conversation: str
    question: str | None = None
    memory: str
    budget: int | None = None
    judge: str | None = None
    error: str


Record = Run | Ingested | Answered | Judged | Failed
"""A line of a journal."""

_RECORD: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


def read_journal(path: str | Path) -> Generator[Record]:
    """Yield the records of a file, one after the other; a last line that is torn is left out.

    The first is the `Run`, and no other.

    Raises:
        OSError: The file cannot be read.
        InvalidArgumentError: A line is no record, or is not at its place.
    """
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            is_torn = not line.endswith(b"\n")
            if is_torn and (number > 1 or line.startswith(_START) or _START.startswith(line)):
                return
            try:
                record = _RECORD.validate_json(line)
            except ValidationError as error:
                problem = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(map(str, problem["loc"])) or "it"
                raise InvalidArgumentError(
                    f"{path}, line {number}: no record of a run: {where}: {problem['msg']}"
                ) from None
            if (number == 1) is not isinstance(record, Run):
                raise InvalidArgumentError(
                    f"{path}, line {number}: the settings of the run are the first line alone"
                )
            yield record


class Journal:
    """A journal that is written; what its file holds stays, but for a last line that is torn.

    Args:
        path: The file; it is made if there is none.

    Raises:
        OSError: The file cannot be opened or cut.
        InvalidArgumentError: It is no journal, and stays as it is.
    """

    def __init__(self, path: str | Path) -> None:
        with suppress(FileNotFoundError), closing(read_journal(path)) as records:
            next(records, None)
        self._file = Path(path).open("ab+")  # noqa: SIM115 - `close` closes it
        self._file.seek(0)
        self._file.truncate(sum(len(line) for line in self._file if line.endswith(b"\n")))

    @property
    def is_empty(self) -> bool:
        """Whether it has no line."""
        return self._file.seek(0, os.SEEK_END) == 0

    def write(self, record: Record) -> None:
        """Append a record.

        Raises:
            OSError: The file cannot be written.
        """
        told: dict[str, Any] = record.model_dump()
        self._file.write(orjson.dumps({"kind": told.pop("kind"), **told}) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
