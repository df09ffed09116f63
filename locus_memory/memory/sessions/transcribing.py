"""The transcript of queued turns: what is written together with a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from locus_memory._internal.offload import aside
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import roles_and_texts
from locus_memory.memory.layers.transcript import transcript_puts
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.answers import answers_in
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.item import Put

__all__ = ["transcribed"]

# In more characters, finding secrets takes more than a few milliseconds.


async def transcribed(job: Job, *, is_on: bool, allow_secrets: bool) -> Sequence[Put]:
    """Return the puts of a job's turns in the transcript; always the same for the same job.

    An ingested message is recorded unless it was before; any other one if the memory records what
    runs say. A message that looks like it holds a secret, or answers a request for one, never is,
    with an event.

    Args:
        job: The job.
        is_on: Whether the turns of runs are recorded.
        allow_secrets: Whether messages that look like they hold a secret are recorded.
    """
    found = [each for each in job.messages if not each.get("recorded", not is_on)]
    if not found:
        return ()
    secrets = {} if allow_secrets else await _secrets(job, found)
    for kind in secrets.values():
        emit("memory.secret_dropped", type="transcript", kind=kind)
    # A whole `Message` takes longer to make. In a run, the name is that of an agent.
    messages = [
        SimpleNamespace(
            role=each["role"],
            content="" if each["number"] in secrets else each["content"],
            id=each["id"],
            name=each["name"] if "turn" in each else None,
            at=each.get("at"),
        )
        for each in found
    ]
    first = found[0]["number"]
    size = sum(len(each["content"]) for each in found)
    made = partial(transcript_puts, Scope(job.namespace), job.thread, messages, first)
    return await aside(size, made, job.queued_at)


async def _secrets(job: Job, messages: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the numbers of the messages that may hold a secret, each with its kind."""
    hidden = answers_in(roles_and_texts(job.messages), asked=job.asked)
    told = zip(job.messages, hidden, strict=True)
    answers = {each["number"]: "answer" for each, is_answer in told if is_answer}
    texts = {each["number"]: each["content"] for each in messages}

    def search() -> dict[int, str | None]:
        return {number: find_secret(text) for number, text in texts.items()}

    found = await aside(sum(map(len, texts.values())), search)
    kinds = {number: kind or answers.get(number) for number, kind in found.items()}
    return {number: kind for number, kind in kinds.items() if kind is not None}
