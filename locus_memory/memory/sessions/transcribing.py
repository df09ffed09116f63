"""The transcript of queued turns: what is written together with a job."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from locus_memory.events import emit
from locus_memory.memory.extraction.thread import roles_and_texts
from locus_memory.memory.layers.transcript import transcript_puts
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.answers import secrets_in
from locus_memory.store.item import Put

__all__ = ["transcribed"]


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
    said = roles_and_texts(job.messages)
    kinds = [] if allow_secrets else await secrets_in(said, asked=job.asked)
    told = zip(job.messages, kinds, strict=bool(kinds))
    secrets = {each["number"]: kind for each, kind in told if kind is not None and each in found}
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
    return transcript_puts(Scope(job.namespace), job.thread, messages, first, job.queued_at)
