"""Import of a conversation as a thread of checkpoints and as searchable turns.

Every turn is one checkpoint and one item; what is off the record is no item. The checkpoint's id is
the turn's place and a digest of the conversation up to it. The item's namespace is
`("turns", thread id)` and its key is the place. So a second import of the same conversation writes
nothing, an import after a kill continues where the first one stopped, and an import of a longer
file adds the new turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from locus_memory.backends.base import store_of
from locus_memory.conversation.roles import REMEMBER
from locus_memory.errors import CheckpointConflictError
from locus_memory.inspection.errors import CommandError
from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Put
from locus_memory.store.json_values import encode_json
from locus_memory.transfer.chats.conversation import Conversation, is_off_record, said_at
from locus_memory.transfer.chats.messages import day_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.store.item import StoreItem

__all__ = [
    "TURNS",
    "Imported",
    "checkpoint_ids",
    "import_conversation",
    "turn_key",
    "turn_value",
    "turns_there",
]

TURNS = "turns"
"""The first label of the namespaces of turns; the second is the thread's id."""

_BATCH = 64
_DAY = 10
"""The length of the day in an ISO 8601 moment."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        thread_id: The thread.
        source: The file.
        turns: Number of turns of the conversation.
        saved: Number of checkpoints that this import wrote.
        stored: Number of items that this import wrote.
    """

    thread_id: str
    source: str
    turns: int
    saved: int
    stored: int


async def import_conversation(
    backend: Backend,
    conversation: Conversation,
    *,
    embedder: Embedder | None = None,
    on_turn: Callable[[int], None] = lambda _: None,
    batch: int = _BATCH,
) -> Imported:
    """Import the missing turns of a conversation; with an embedder, their vectors as well.

    Turns are stored in batches, each batch before its checkpoints. After a kill, the next
    import adds the missing items and checkpoints.

    Args:
        backend: The target.
        conversation: The conversation to import.
        embedder: Creates a vector of each turn that has text.
        on_turn: Called after each turn with the number of turns in the thread.
        batch: Number of turns per write.

    Raises:
        CommandError: The thread holds another conversation.
    """
    ids = checkpoint_ids(conversation.messages)
    done = await turns_there(backend.checkpointer, conversation)
    store = store_of(backend)
    missing = await _missing_turns(store, conversation, embedder) if store else []
    stored = 0
    for start in range(0, len(ids), batch):
        end = min(start + batch, len(ids))
        if store is not None:
            places = [place for place in missing if start < place <= end]
            stored += await _store_turns(store, conversation, places, embedder)
        for index in range(start, end):
            if index >= done:
                await _save_turn(backend.checkpointer, conversation, ids, index)
            on_turn(index + 1)
    return Imported(conversation.thread_id, conversation.source, len(ids), len(ids) - done, stored)


def checkpoint_ids(messages: list[dict[str, Any]]) -> list[str]:
    """Return the id of each turn's checkpoint: its place and a digest of the turns up to it."""
    digest = b""
    ids = []
    for place, message in enumerate(messages, 1):
        digest = blake2b(digest + encode_json(message), digest_size=16).digest()
        ids.append(f"{turn_key(place)}-{digest.hex()[:12]}")
    return ids


def turn_key(place: int) -> str:
    """Return the key of a turn, counted from 1; keys sort in the order of the turns."""
    return f"{place:06d}"


def turn_value(message: dict[str, Any], place: int) -> dict[str, Any]:
    """Return the stored value of a turn."""
    metadata = message.get("metadata", {})
    value = {
        "turn": place,
        "speaker": message.get("name", message["role"]),
        "role": message["role"],
        "text": message.get("content", ""),
    }
    if "id" in message:
        value["turn_id"] = message["id"]
    named = ("session", "session_date", "image_caption")
    return {**value, **{name: metadata[name] for name in named if name in metadata}}


async def turns_there(checkpointer: BaseCheckpointer, conversation: Conversation) -> int:
    """Return the number of turns of a conversation in its thread.

    Raises:
        CommandError: The thread holds another conversation.
    """
    ids = checkpoint_ids(conversation.messages)
    newest = await checkpointer.list_checkpoints(conversation.thread_id, 1)
    if not newest:
        return 0
    if newest[0] in ids:
        return ids.index(newest[0]) + 1
    # The thread may have continued since the import.
    if await checkpointer.exists(conversation.thread_id, ids[-1]):
        return len(ids)
    raise CommandError(
        f"{conversation.source}: thread {conversation.thread_id!r} exists and holds another "
        "conversation; name another thread with --thread"
    )


async def _save_turn(
    checkpointer: BaseCheckpointer, conversation: Conversation, ids: list[str], index: int
) -> None:
    from locus_memory.checkpoint.states import AgentDocument  # noqa: PLC0415 - pydantic is slow

    message = conversation.messages[index]
    metadata: dict[str, Any] = {"turn": index + 1}
    if "id" in message:
        metadata["turn_id"] = message["id"]
    state = AgentDocument(
        run_id=conversation.thread_id,
        messages=conversation.messages[: index + 1],
        metadata=conversation.metadata,
    )
    try:
        await checkpointer.save(
            state,
            conversation.thread_id,
            ids[index],
            metadata,
            expected_parent=ids[index - 1] if index else None,
        )
    except CheckpointConflictError:
        raise CommandError(
            f"{conversation.source}: another process writes thread {conversation.thread_id!r}; "
            "run the import again when that process has finished"
        ) from None


async def _missing_turns(
    store: BaseStore, conversation: Conversation, embedder: Embedder | None
) -> list[int]:
    """Return the places, from 1, of the turns whose stored items are missing or differ."""
    if conversation.metadata.get(REMEMBER) is False:
        return []
    namespace = (TURNS, conversation.thread_id)
    there = {item.key: item async for item in scan_all(store, namespace)}
    return [
        place
        for place, message in enumerate(conversation.messages, 1)
        if not is_off_record(message)
        and not _is_stored(there.get(turn_key(place)), turn_value(message, place), embedder)
    ]


def _is_stored(item: StoreItem | None, value: dict[str, Any], embedder: Embedder | None) -> bool:
    if item is None or item.value != value:
        return False
    mark = mark_of(item.metadata)
    return embedder is None or not _words(value) or (mark is not None and mark.made_by(embedder))


async def _store_turns(
    store: BaseStore, conversation: Conversation, places: list[int], embedder: Embedder | None
) -> int:
    puts = [
        _put(conversation.thread_id, conversation.messages[place - 1], place) for place in places
    ]
    if embedder is not None:
        spoken = [f"{each.value['speaker']}: {each.text}" if each.text else "" for each in puts]
        puts = await embedded_puts(puts, embedder, spoken, spoken)
    if puts:
        await store.put_batch(puts)
    return len(puts)


def _put(thread_id: str, message: dict[str, Any], place: int) -> Put:
    value = turn_value(message, place)
    day = day_of(value.get("session_date")) or (said_at(message) or "")[:_DAY]
    return Put(
        namespace=(TURNS, thread_id),
        key=turn_key(place),
        value=value,
        metadata={"date": day} if day else {},
        text=_words(value),
    )


def _words(value: dict[str, Any]) -> str:
    seen = [value["text"], value.get("image_caption", "")]
    return "\n".join(part for part in seen if part and isinstance(part, str))
