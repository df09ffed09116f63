"""The transcript of queued turns: what is written together with a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from locus_memory._internal.offload import aside
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import SPEAKERS, roles_and_texts
from locus_memory.memory.moments import read_moment
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.answers import secrets_in
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.item import Put

__all__ = ["transcribed"]


async def transcribed(job: Job, *, is_on: bool, allow_secrets: bool) -> Sequence[Put]:
    """Return the puts of a job's turns in the transcript; always the same for the same job.

    That is one for each message of a user or an assistant that has text. The metadata of a turn
    names its message: its id, if it has one, and its number in the thread.

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
    turns = [
        Turn(
            text=text,
            speaker=_speaker_of(each),
            said_at=read_moment(each.get("at") or job.queued_at),
            id=each["id"],
            metadata={"number": each["number"]},
        )
        for each in found
        if each["role"] in SPEAKERS and each["number"] not in secrets
        if (text := each["content"].strip())
    ]
    space, first = Scope(job.namespace).transcript(job.thread), found[0]["number"]
    size = sum(len(each.text) for each in turns)
    return await aside(size, partial(turn_puts, space, turns, session=job.thread, first=first))


def _speaker_of(message: Mapping[str, Any]) -> str:
    """Return the role, or the name of somebody else than the user; in a run, it is an agent's."""
    is_named = message["role"] != "user" and "turn" in message and message["name"]
    return str(message["name" if is_named else "role"])
