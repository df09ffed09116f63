"""A conversation as the summarising manager reads it, with digests of its messages."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, takewhile
from typing import Any

from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.groups import Group
from locus_memory.conversation.roles import is_memory_block, role_of
from locus_memory.conversation.summary.text import (
    MAX_LENGTH,
    cleaned,
    fenced,
    is_summary,
    root_of_summary,
    summary_message,
    text_of_summary,
)

__all__ = ["Summary", "Thread", "message_digest", "read_groups", "root_digest"]

_DIGEST_SIZE = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the first messages of a conversation.

    Attributes:
        covered: The number of messages it covers, without pinned ones.
        digest: The digest of exactly these messages.
        text: The summary; empty when it covers nothing.
        message: The message that shows it, unless it is empty.
        root: The `root_digest` of the conversation.
        about: What its maker keeps beside the text, as plain JSON.
    """

    covered: int
    digest: str
    text: str
    message: Any | None = None
    root: str | None = None
    about: Any = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation in parts.

    Attributes:
        pinned: The system messages that are always shown.
        leading: The number of messages before the place of a summary.
        groups: The groups that may be summarised, oldest first.
        bounds: The numbers of messages in the first groups: `bounds[n]` for the first `n`.
        base: The summary that the conversation contains, or an empty one.
        digests: The digest of each message of the groups.
        sample: Any message, of the class of new messages.
        root: Its `root_digest`.
        longest: The limit of a summary, in characters.
    """

    pinned: list[Group]
    leading: int
    groups: list[Group]
    bounds: list[int]
    base: Summary
    digests: list[bytes]
    sample: Any
    root: str | None
    longest: int = MAX_LENGTH

    @property
    def total(self) -> int:
        """The number of messages that may be summarised."""
        return self.bounds[-1]

    def digests_at(self, bounds: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield ascending bounds, each with the digest of all messages before it."""
        state = blake2b(self.base.digest.encode(), digest_size=_DIGEST_SIZE)
        done = 0
        for bound in bounds:
            state.update(b"".join(self.digests[done:bound]))
            done = bound
            yield bound, state.hexdigest() if bound else self.base.digest

    def digest_at(self, bound: int) -> str:
        """Return the digest of all messages before a bound."""
        return next(self.digests_at([bound]))[1]

    def newest_of(self, covered: Mapping[str, int], after: int = -1) -> str | None:
        """Return the digest that covers most of the conversation's messages.

        Args:
            covered: The number of messages that each digest covers.
            after: The digest must cover more messages than this.
        """
        bounds = set(covered.values()).intersection(self.bounds)
        ascending = sorted(bound for bound in bounds if bound > after)
        named = [key for bound, key in self.digests_at(ascending) if covered.get(key) == bound]
        return named[-1] if named else None

    def summary_of(self, bound: int, text: str, about: Any = None) -> Summary:
        """Return a summary with this text for all messages before a bound."""
        text = cleaned(text, self.longest)
        message = summary_message(self.sample, text, self.root) if text else None
        return Summary(bound, self.digest_at(bound), text, message, self.root, about)

    def groups_after(self, bound: int) -> list[Group]:
        """Return the groups from a bound on."""
        return self.groups[bisect_left(self.bounds, bound) :]

    def messages_between(self, start: int, end: int) -> list[Any]:
        """Return the messages between two bounds."""
        chosen = self.groups[bisect_left(self.bounds, start) : bisect_left(self.bounds, end)]
        return [message for group in chosen for message in group.messages]

    def latest_user_before(self, bound: int) -> Group | None:
        """Return the latest user message before a bound."""
        before = self.groups[: bisect_left(self.bounds, bound)]
        return next((group for group in reversed(before) if group.role == "user"), None)


def read_groups(
    groups: Sequence[Group], digests: MessageCache[bytes], *, preserve_system: bool
) -> Thread:
    """Split a conversation without faults into its parts.

    Args:
        groups: The conversation; not empty.
        digests: Computes `message_digest`.
        preserve_system: Whether system messages are pinned.
    """
    pinned: list[Group] = []
    others: list[Group] = []
    base = Summary(0, _digest_of(""), "")
    for group in groups:
        if is_summary(group.messages[0]):
            # It covers all messages before it.
            others.clear()
            base = _summary_in(group.messages[0])
        else:
            stays = group.stays(preserve_system=preserve_system)
            (pinned if stays else others).append(group)
    bounds = [0, *accumulate(len(group.messages) for group in others)]
    told = [message for group in others for message in group.messages]
    systems = takewhile(lambda group: preserve_system and group.role == "system", groups)
    leading = len(list(systems))
    sample = groups[0].messages[0] if groups else None
    root = root_digest(message for group in groups for message in group.messages)
    return Thread(pinned, leading, others, bounds, base, digests.values(told), sample, root)


def _summary_in(message: Any) -> Summary:
    """Return the summary in a message; one that was changed is fenced again."""
    text = text_of_summary(message)
    shown = message
    if message.content != fenced(text):
        shown = summary_message(message, text, root_of_summary(message))
    return Summary(0, _digest_of(text), text, shown)


def _digest_of(text: str) -> str:
    encoded = text.encode("utf-8", "surrogatepass")
    return blake2b(encoded, digest_size=_DIGEST_SIZE).hexdigest()


def root_digest(messages: Iterable[Any]) -> str | None:
    """Return the digest that all summaries of a conversation share; it is stored with each.

    It is a digest of the first message that is neither a system message nor a block of memories. So
    it is the same for every beginning of the conversation, for its forks, for the result of
    `repair` and, since a summary holds it, for the result of `apply`. Two conversations with the
    same opening, such as "hi", share it. Deleting by it may also delete a summary of the other
    conversation, which is then computed again.

    Args:
        messages: The conversation, or its beginning.

    Returns:
        The digest; `None` if there is no such message.
    """
    for message in messages:
        if is_summary(message):
            if root := root_of_summary(message):
                return root
        # `repair` may drop a result that comes first, and rename calls.
        elif role_of(message) not in {"system", "tool"} and not is_memory_block(message):
            return _digest([role_of(message), message.content, message.name]).hex()
    return None


def message_digest(message: Any) -> bytes:
    """Return a digest of the parts of a message that a model sees."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls or ()]
    seen = [role_of(message), message.content, message.name, message.tool_call_id, calls]
    return _digest(seen)


def _digest(seen: list[Any]) -> bytes:
    try:
        written = json.dumps(seen, sort_keys=True, default=str)
    except (TypeError, ValueError):
        # Keys of several types, or of types that JSON does not have.
        written = repr(seen)
    return blake2b(written.encode(errors="replace"), digest_size=_DIGEST_SIZE).digest()
