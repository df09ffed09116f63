"""The rolling summary: old messages as a summary, the latest ones word for word."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import Backend
from locus_memory.conversation.base import ConversationManager, sound_groups
from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.groups import Group
from locus_memory.conversation.roles import is_off_record
from locus_memory.conversation.selection import Size, newest_run
from locus_memory.conversation.summary.room import SummaryRoom
from locus_memory.conversation.summary.stored_summaries import SummaryStore
from locus_memory.conversation.summary.summarizer import (
    SummarizeFunction,
    as_summarizer,
    summarize,
    summarize_async,
)
from locus_memory.conversation.summary.thread import Summary, Thread, message_digest, read_groups
from locus_memory.conversation.tokens import as_token_counter
from locus_memory.conversation.window import check_positive, token_cache, windowed
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.registry import as_store
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace

if TYPE_CHECKING:
    from locus_memory.chat.base import ChatModel

__all__ = ["SummarizingManager"]

_CACHED = 1_024
_SHARE_OF_SUMMARY = 4


class _Job(NamedTuple):
    """The messages to summarise: from the end of a good summary to a cut."""

    start: Summary
    cut: int
    messages: list[Any]

    @property
    def asked(self) -> list[Any]:
        """The messages for the summarizer, behind the summary of those before."""
        before = [] if self.start.message is None else [self.start.message]
        return [*before, *self.messages]


class _StandIn(NamedTuple):
    """The summary shown after a failed attempt, and the length of the conversation then."""

    summary: Summary
    total: int


class SummarizingManager(ConversationManager):
    """Old messages as a rolling summary, the latest ones word for word.

    When the summary leaves more than `threshold` messages uncovered, a new one covers all but about
    the last `keep_recent`. Tool calls and their results stay together. Each message is passed to
    `summarize_fn` once. A summary is only used for a conversation that starts with exactly the
    messages it covers, so edits, forks and many threads are safe.

    The summary is a system message after the leading ones, its text fenced as data. If the
    messages shown word for word hold no user message, the latest one before them is shown too.

    A failing `summarize_fn` never fails the run. The event `conversation.summary_failed` reports
    it, and the last good summary and the beginnings of the messages since replace the new one.
    After `keep_recent` more messages, the function is called again for all messages that the good
    summary does not cover.

    Args:
        threshold: Summarise when more messages than this are not covered.
        keep_recent: About how many messages stay word for word; groups are not split.
        summarize_fn: Returns a summary of messages, sync or async. The first message holds the
            previous summary, if there is one. Or a model that is asked for one, such as an
            `OpenAIChat`, or its string for `get_model`, whose model `close` closes. `None`, or a
            model that follows no instructions: the beginnings of the messages.
        preserve_system: Keep all system messages, in place; otherwise they are summarised.
            Blocks of memories always stay, and are never summarised.
        max_tokens: The limit of tokens for all returned messages. Reaching it also causes a
            summary. A summary takes at most a quarter of it, with its fence of about 40 tokens, or
            is not shown. If the result is still too long, groups are dropped, the oldest first.
        token_counter: Counts the tokens; see `as_token_counter`.
        start_on_user: Whether the first message after the system messages is a user message; see
            `SlidingWindowManager`.
        store: A store, a backend or a provider string: `async_apply` keeps the summaries there,
            so that none is computed again after a restart. One of messages that are off the
            record is never kept there.
        namespace: The namespace of the summaries in the store.

    Attributes:
        threshold: As given.
        keep_recent: As given.
        preserve_system: As given.

    Raises:
        InvalidArgumentError: A number that is not positive, or a `keep_recent` that is not less
            than `threshold`.
        ConfigurationError: `store` is not a store, or `summarize_fn` is no function, model or
            string of a model.
    """

    def __init__(
        self,
        threshold: int = 30,
        keep_recent: int = 10,
        summarize_fn: SummarizeFunction | ChatModel | str | None = None,
        preserve_system: bool = True,  # noqa: FBT001, FBT002 - the signature users know
        *,
        max_tokens: int | None = None,
        token_counter: object | None = None,
        start_on_user: bool = False,
        store: str | BaseStore | Backend | None = None,
        namespace: Namespace = ("locus_memory", "summaries"),
    ) -> None:
        _check_sizes(threshold, keep_recent)
        check_namespace(namespace)
        self.threshold = threshold
        self.keep_recent = keep_recent
        self._summarize_fn, self._model = as_summarizer(summarize_fn)
        self.preserve_system = preserve_system
        self._start_on_user = start_on_user
        self._max_tokens = check_positive("max_tokens", max_tokens)
        room = None if max_tokens is None else max_tokens // _SHARE_OF_SUMMARY
        self._room = SummaryRoom(room, as_token_counter(token_counter))
        self._fitted = MessageCache(self._room.fitted)
        self._tokens = token_cache(max_tokens, token_counter)
        self._digests = MessageCache(message_digest)
        self._opened: BaseStore | None = None
        self._stored: SummaryStore | None = None
        if store is not None:
            target, is_ours = as_store(store)
            self._opened = target if is_ours else None
            self._stored = SummaryStore(target, namespace)
        self._summaries = RecentlyUsed[Summary](_CACHED)
        self._stand_ins = RecentlyUsed[_StandIn](_CACHED)
        self._in_flight: dict[tuple[Any, str], asyncio.Task[Summary]] = {}

    @override
    def apply(self, messages: Sequence[Any]) -> list[Any]:
        """Return the messages to send; an async `summarize_fn` runs in the loop of another thread.

        It waits for the summary, which blocks a running event loop, and it does not use the store.
        In async code, use `async_apply`.

        Args:
            messages: The conversation, oldest first; it is not changed.
        """
        thread = self._read(messages)
        summary = self._known(thread)
        if job := self._job(thread, summary):
            summary = self._summarized(thread, job)
        return self._output(thread, summary)

    @override
    async def async_apply(self, messages: Sequence[Any]) -> list[Any]:
        """Return the result of `apply`; a sync `summarize_fn` runs in a worker thread.

        Concurrent calls for the same conversation share one summary.

        Args:
            messages: The conversation, oldest first; it is not changed.
        """
        thread = self._read(messages)
        summary = self._known(thread)
        if job := self._job(thread, summary):
            summary = await self._shared(thread, job)
        return self._output(thread, summary)

    @override
    async def close(self) -> None:
        """Cancel running summaries, and close the store and the model that the manager opened.

        For a caller that waits for a summary, the summary has failed.
        """
        loop = asyncio.get_running_loop()
        tasks = [task for (owner, _), task in self._in_flight.copy().items() if owner is loop]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            if self._model is not None:
                await self._model.close()
        finally:
            if self._opened is not None:
                await self._opened.close()

    @override
    def _settings(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "keep_recent": self.keep_recent,
            "preserve_system": self.preserve_system,
            "max_tokens": self._max_tokens,
            **({"start_on_user": True} if self._start_on_user else {}),
        }

    def _read(self, messages: Sequence[Any]) -> Thread:
        groups = sound_groups(messages)
        return read_groups(groups, self._digests, preserve_system=self.preserve_system)

    def _known(self, thread: Thread) -> Summary:
        """Return this process's good summary that covers most of the conversation."""
        summaries = self._summaries.all()
        digest = thread.newest_of({key: good.covered for key, good in summaries.items()})
        if digest is None:
            return thread.base
        self._summaries.touch(digest)
        return summaries[digest]

    def _stand_in(self, thread: Thread, good: Summary) -> _StandIn | None:
        """Return the stand-in that a failed attempt after a good summary left, if any."""
        stand_ins = self._stand_ins.all()
        covered = {key: each.summary.covered for key, each in stand_ins.items()}
        digest = thread.newest_of(covered, after=good.covered)
        return None if digest is None else stand_ins[digest]

    def _job(self, thread: Thread, good: Summary) -> _Job | None:
        """Return the messages to summarise now, if any."""
        stand_in = self._stand_in(thread, good)
        if stand_in is None:
            is_due = self._is_long(thread, good)
        else:
            uncovered = thread.total - stand_in.summary.covered
            grown = thread.total - stand_in.total
            is_due = uncovered > self.threshold or grown >= self.keep_recent
        if not is_due:
            return None
        cut = self._cut(thread, good)
        messages = thread.messages_between(good.covered, cut)
        return _Job(good, cut, messages) if messages else None

    def _is_long(self, thread: Thread, shown: Summary) -> bool:
        if thread.total - shown.covered > self.threshold:
            return True
        if self._max_tokens is None:
            return False
        groups = [*self._pinned(thread, shown), *thread.groups_after(shown.covered)]
        return sum(self._size(group).tokens for group in groups) > self._max_tokens

    def _cut(self, thread: Thread, good: Summary) -> int:
        """Return how many messages a new summary would cover."""
        if good.covered == thread.total:
            return good.covered
        room = math.inf
        if self._max_tokens is not None:
            pinned = sum(self._size(group).tokens for group in thread.pinned)
            room = (self._max_tokens - pinned) / 2
        groups = thread.groups_after(good.covered)
        first, _ = newest_run(groups, self._size, Size(self.keep_recent, room))
        return thread.bounds[len(thread.groups) - len(groups) + first]

    def _size(self, group: Group) -> Size:
        tokens = 0 if self._tokens is None else sum(map(self._tokens.value, group.messages))
        return Size(len(group.messages), tokens)

    def _summarized(self, thread: Thread, job: _Job) -> Summary:
        try:
            text = (
                self._room.extract(job.start.text, job.messages)
                if self._summarize_fn is None
                else summarize(self._summarize_fn, job.asked)
            )
        # A sync function cannot be cancelled: the error is its own.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported
            return self._fail(thread, job, error)
        return self._succeed(thread, job, text)

    async def _shared(self, thread: Thread, job: _Job) -> Summary:
        """Summarise, or wait for the running call; a cancelled caller does not stop the others."""
        key = (asyncio.get_running_loop(), thread.digest_at(job.cut))
        task = self._in_flight.get(key)
        if task is None:
            task = asyncio.create_task(self._advance(thread, job))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            raise_if_cancelled(error)
            # The manager was closed.
            return self._fail(thread, job, error)

    async def _advance(self, thread: Thread, job: _Job) -> Summary:
        """Return a new summary, or a stored one that is new enough."""
        if self._stored is not None:
            found = await self._stored.newest(thread, job.start.covered)
            if found is not None:
                self._summaries.put(found.digest, found)
                further = self._job(thread, found)
                if further is None:
                    return found
                job = further
        summary = await self._summarized_async(thread, job)
        is_good = self._summaries.get(summary.digest) is summary
        is_told = not any(map(is_off_record, thread.messages_between(0, job.cut)))
        if self._stored is not None and is_good and summary.text and is_told:
            await self._stored.save(summary)
        return summary

    async def _summarized_async(self, thread: Thread, job: _Job) -> Summary:
        try:
            text = (
                self._room.extract(job.start.text, job.messages)
                if self._summarize_fn is None
                else await summarize_async(self._summarize_fn, job.asked)
            )
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported
            raise_if_cancelled(error)
            return self._fail(thread, job, error)
        return self._succeed(thread, job, text)

    def _succeed(self, thread: Thread, job: _Job, text: str) -> Summary:
        summary = thread.summary_of(job.cut, text)
        self._summaries.put(summary.digest, summary)
        emit(
            "conversation.summarized",
            messages=job.cut - job.start.covered,
            covered=job.cut,
            kept=thread.total - job.cut,
        )
        return summary

    def _fail(self, thread: Thread, job: _Job, error: BaseException) -> Summary:
        text = self._room.stand_in(job.start.text, job.messages)
        summary = thread.summary_of(job.cut, text)
        self._stand_ins.put(summary.digest, _StandIn(summary, thread.total))
        emit("conversation.summary_failed", error=error, messages=job.cut - job.start.covered)
        return summary

    def _output(self, thread: Thread, good: Summary) -> list[Any]:
        stand_in = self._stand_in(thread, good)
        shown = stand_in.summary if stand_in else good
        recent = thread.groups_after(shown.covered)
        request = thread.latest_user_before(shown.covered)
        if request is not None and not any(group.role == "user" for group in recent):
            recent.insert(0, request)
        limit = Size(math.inf, self._max_tokens or math.inf)
        return windowed(
            self._pinned(thread, shown),
            recent,
            limit,
            self._tokens,
            start_on_user=self._start_on_user,
        )

    def _pinned(self, thread: Thread, shown: Summary) -> list[Group]:
        message = None if shown.message is None else self._fitted.value(shown.message)
        if message is None:
            return thread.pinned
        # Sorting is stable: the summary comes after the leading message at this place.
        return [*thread.pinned, Group(thread.leading - 1, "system", (message,))]


def _check_sizes(threshold: int, keep_recent: int) -> None:
    for name, value in (("threshold", threshold), ("keep_recent", keep_recent)):
        check_positive(name, value, needed=True)
    if keep_recent >= threshold:
        raise InvalidArgumentError(
            f"keep_recent ({keep_recent}) is less than threshold ({threshold}): what is summarized"
            " are the messages between them"
        )
