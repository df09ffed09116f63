"""The transcript of queued turns: what is written together with a job."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from locus_memory._internal.offload import in_thread
from locus_memory.memory.extraction.thread import MarkedTurn, roles_and_texts
from locus_memory.memory.layers.transcript import transcript_puts
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.answers import WITHHELD, answers_in
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.item import Delete, Put

__all__ = ["Transcriber"]

# In more characters, finding secrets takes more than a few milliseconds.
_LARGE: Final = 5_000


class _Said(NamedTuple):
    """The part of a message that is recorded; a whole `Message` takes longer to make."""

    role: str
    content: str
    id: str | None


class Transcriber:
    """A function from a job to the puts of its turns in the transcript.

    An ingested message is recorded unless it was before; any other one if the memory is passive,
    that is if it records what runs say. The words of an answer to a request for a secret never
    are. Finding other secrets takes too long for the end of a turn: a recorded message that looks
    like it holds one is deleted when its session is distilled, or begins to wait for that.

    Args:
        is_passive: Whether the turns of runs are recorded.
        allow_secrets: Whether messages that look like they hold a secret stay.
    """

    def __init__(self, *, is_passive: bool, allow_secrets: bool) -> None:
        self._is_passive = is_passive
        self._allow_secrets = allow_secrets

    def __call__(self, job: Job) -> Sequence[Put]:
        """Return the puts; always the same for the same job."""
        return self._puts(job, self._answers(job))

    async def secrets(self, jobs: Iterable[Job]) -> list[tuple[Delete, str]]:
        """Return the deletions of messages that may not be recorded, each with its kind."""
        if self._allow_secrets:
            return []
        found = [(put, job) for job in jobs for put in self._puts(job, frozenset())]
        size = sum(len(put.value["text"]) for put, _ in found)
        puts = [put for put, _ in found]
        kinds = _kinds(puts) if size < _LARGE else await in_thread(_kinds, puts)
        answers = {job.key: self._answers(job) for _, job in found}
        return [
            (Delete(namespace=put.namespace, key=put.key), kind or "answer")
            for (put, job), kind in zip(found, kinds, strict=True)
            if kind is not None or (put.metadata or {}).get("number") in answers[job.key]
        ]

    def _puts(self, job: Job, hidden: Container[int]) -> Sequence[Put]:
        """Return the puts of the messages that are recorded, without the words of hidden ones."""
        found = [each for each in job.messages if self._is_recorded(each.get("recorded"))]
        if not found or job.queued_at is None:
            return ()
        messages = [
            _Said(
                each["role"], WITHHELD if each["number"] in hidden else each["content"], each["id"]
            )
            for each in found
        ]
        first = found[0]["number"]
        return transcript_puts(Scope(job.namespace), job.thread, messages, first, job.queued_at)

    def _answers(self, job: Job) -> frozenset[int]:
        """Return the numbers of the answers to requests for a secret."""
        if self._allow_secrets:
            return frozenset()
        hidden = answers_in(roles_and_texts(job.messages), asked=job.asked)
        told = zip(job.messages, hidden, strict=True)
        return frozenset(each["number"] for each, is_hidden in told if is_hidden)

    async def without_secrets(self, turns: Sequence[MarkedTurn]) -> list[MarkedTurn]:
        """Return turns to record only, without the messages that look like they hold a secret."""
        if self._allow_secrets:
            return list(turns)
        texts = [each["content"] for turn in turns for each in turn.messages]
        kinds = iter(await in_thread(lambda: [find_secret(text) for text in texts]))
        return [
            replace(turn, messages=tuple(each for each in turn.messages if next(kinds) is None))
            for turn in turns
        ]

    def _is_recorded(self, recorded: bool | None) -> bool:  # noqa: FBT001 - a value, not a flag
        return self._is_passive if recorded is None else not recorded


def _kinds(puts: Sequence[Put]) -> list[str | None]:
    return [find_secret(put.value["text"]) for put in puts]
