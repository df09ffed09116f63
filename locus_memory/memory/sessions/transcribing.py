"""The transcript of queued turns: what is written together with a job."""

from __future__ import annotations

from collections.abc import Sequence

from locus_memory.events import emit
from locus_memory.memory.extraction.thread import read_document, text_of
from locus_memory.memory.layers.transcript import transcript_puts
from locus_memory.memory.queue.queue import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.messages import Message
from locus_memory.store.item import Put

__all__ = ["Transcriber"]


class Transcriber:
    """A function from a job to the puts of its turns in the transcript.

    An ingested message is recorded unless it was before; any other one if the memory is passive,
    that is if it records what runs say.

    Args:
        is_passive: Whether the turns of runs are recorded.
        allow_secrets: Whether messages that look like they hold a secret are recorded.
    """

    def __init__(self, *, is_passive: bool, allow_secrets: bool) -> None:
        self._is_passive = is_passive
        self._allow_secrets = allow_secrets

    def __call__(self, job: Job) -> Sequence[Put]:
        """Return the puts; always the same for the same job."""
        found = [each for each in job.messages if self._is_recorded(each.get("recorded"))]
        messages = [read_document(each) for each in found]
        if not messages or job.queued_at is None:
            return ()
        said = [message for message in messages if self._may_record(message)]
        first = found[0]["number"]
        return transcript_puts(Scope(job.namespace), job.thread, said, first, job.queued_at)

    def _is_recorded(self, recorded: bool | None) -> bool:  # noqa: FBT001 - a value, not a flag
        return self._is_passive if recorded is None else not recorded

    def _may_record(self, message: Message) -> bool:
        kind = None if self._allow_secrets else find_secret(text_of(message))
        if kind is not None:
            emit("memory.secret_dropped", type="transcript", kind=kind)
        return kind is None
