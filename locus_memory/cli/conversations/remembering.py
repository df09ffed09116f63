"""Memories of a conversation: its messages are ingested as the sessions that they were."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from locus_memory.conversation.roles import REMEMBER
from locus_memory.transfer.chats.conversation import Conversation, is_off_record, said_at
from locus_memory.transfer.chats.messages import AGENT, TURN, day_of

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["COUNTS", "remember_conversation"]

COUNTS: Final = ("recorded", "episodes", "facts", "pending")
"""The counts of the answer."""

_PARTS: Final = ("role", "content", "name", "id")
_SAID: Final = frozenset(("user", "assistant"))
_DAY: Final = 10


async def remember_conversation(
    manager: LLMMemoryManager,
    conversation: Conversation,
    *,
    user: str | None,
    agent: str,
    date: str | None,
    skip_extraction: bool,
) -> dict[str, Any]:
    """Ingest the sessions of a conversation, and return what is new.

    Nothing is ingested of what is off the record: a message, or all of a conversation, with
    `remember: false` in its metadata.

    Args:
        manager: The manager.
        conversation: The conversation.
        user: The user of the memories; `None`: the `user_id` of the conversation's metadata, or
            nobody.
        agent: The agent, if the conversation names none.
        date: The moment of messages that have none, ISO 8601; `None`: now.
        skip_extraction: Whether messages are only recorded.

    Raises:
        InvalidArgumentError: A name or a moment is invalid.
    """
    owner = conversation.metadata.get("user_id") if user is None else user
    bound = manager if owner is None else manager.for_user(owner)
    row: dict[str, Any] = {
        "conversation_id": conversation.thread_id,
        "agent_id": conversation.agent or agent,
        "session_date": None,
        **dict.fromkeys(COUNTS, 0),
    }
    is_kept = conversation.metadata.get(REMEMBER) is not False
    for moment, named, turns in _sessions(conversation, date) if is_kept else ():
        done = await bound.ingest(
            named or agent,
            conversation.thread_id,
            turns,
            session_date=moment,
            skip_extraction=skip_extraction,
        )
        row["session_date"] = row["session_date"] or moment
        row["recorded"] += done["turns"]
        row["episodes"] += done["episodes"]
        row["facts"] += done["facts"]
        row["pending"] = done["pending"]
    return row


def _sessions(
    conversation: Conversation, date: str | None
) -> Iterator[tuple[str | None, str | None, list[dict[str, Any]]]]:
    """Yield the moment, the agent and the turns of each session: one told as such, or a day."""
    began = last = conversation.moment or date
    placed: list[tuple[str | None, Any, dict[str, Any]]] = []
    for message in conversation.messages:
        metadata = message.get("metadata") or {}
        own = said_at(message) or day_of(metadata.get("session_date"))
        session: tuple[Any, ...]
        if TURN in metadata:
            moment = own or began
            session = (moment, str(metadata[TURN]).rpartition(".")[0])
        else:
            moment = last = own or last
            session = ((moment or "")[:_DAY], metadata.get("session"))
        placed.append((moment, session, message))
    for _, group in groupby(placed, key=lambda each: each[1]):
        said = list(group)
        metadata = said[0][-1].get("metadata") or {}
        agent = metadata.get(AGENT, conversation.agent)
        yield said[0][0], agent, list(_turns([message for *_, message in said]))


def _turns(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what a manager ingests: a message, or the two of a turn that was told as one."""
    for turn, group in groupby(messages, key=lambda each: (each.get("metadata") or {}).get(TURN)):
        said = list(group)
        texts = {each["role"]: each.get("content") for each in said}
        is_told = turn is not None and len(texts) == len(said) and texts.keys() <= _SAID
        if is_told and all(texts.values()) and not any(map(is_off_record, said)):
            yield texts
            continue
        for each in said:
            moment = said_at(each)
            metadata: dict[str, Any] = {"said_at": moment} if moment else {}
            # It is a turn that is not kept, so the places of those after it stay.
            metadata |= {REMEMBER: False} if is_off_record(each) else {}
            parts = {name: each[name] for name in _PARTS if name in each}
            yield parts | ({"metadata": metadata} if metadata else {})
