"""A conversation becomes a thread of checkpoints and stored, searchable turns.

Every turn is one checkpoint, whose id is its place and a digest of the conversation up to
it, and one item of the namespace `("turns", thread id)`, whose key is its place. So a second
import of the same conversation finds what is there and writes nothing, one that was killed
goes on where it stopped, and one whose file has grown adds what is new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from locus_memory.cli.conversations.transcripts import Conversation
from locus_memory.cli.printing.outcome import CommandError
from locus_memory.errors import CheckpointConflictError, ConfigurationError
from locus_memory.retrieval.embedders.marks import embedded_put, mark_of
from locus_memory.retrieval.embedding import embed
from locus_memory.retrieval.ranking.dates import find_dates
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Put
from locus_memory.store.json_values import encode_json

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
"""The first label of the namespaces that hold turns; the thread's id is the second."""

_BATCH = 64


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes:
        thread_id: The thread.
        source: The file.
        turns: How many turns the conversation has.
        saved: How many checkpoints this import wrote.
        stored: How many items this import wrote.
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
    """Import what is not there yet; with an embedder, vectors of its model as well.

    Turns are stored a batch at a time, each batch before its checkpoints; whatever a kill
    leaves missing of either, the next import adds.

    Args:
        backend: Where to.
        conversation: What.
        embedder: Makes a vector of each turn that has words.
        on_turn: Called with the number of turns that are in the thread, once a turn.
        batch: How many turns are stored at once.

    Raises:
        CommandError: The thread exists and holds something else.
    """
    ids = checkpoint_ids(conversation.messages)
    done = await _resume_at(backend.checkpointer, conversation, ids)
    store = _store_of(backend)
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
    """Return the id of each turn's checkpoint: its place and what was said up to there."""
    digest = b""
    ids = []
    for place, message in enumerate(messages, 1):
        digest = blake2b(digest + encode_json(message), digest_size=16).digest()
        ids.append(f"{turn_key(place)}-{digest.hex()[:12]}")
    return ids


def turn_key(place: int) -> str:
    """Return the key of a turn, counted from 1; keys sort as turns follow each other."""
    return f"{place:06d}"


def turn_value(message: dict[str, Any], place: int) -> dict[str, Any]:
    """Return what the store holds of a turn."""
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
    """Return how many turns of a conversation its thread holds.

    Raises:
        CommandError: The thread exists and holds something else.
    """
    return await _resume_at(checkpointer, conversation, checkpoint_ids(conversation.messages))


async def _resume_at(
    checkpointer: BaseCheckpointer, conversation: Conversation, ids: list[str]
) -> int:
    """Return how many turns the thread holds already."""
    newest = await checkpointer.list_checkpoints(conversation.thread_id, 1)
    if not newest:
        return 0
    if newest[0] in ids:
        return ids.index(newest[0]) + 1
    # The thread may have gone on since the import.
    if await checkpointer.exists(conversation.thread_id, ids[-1]):
        return len(ids)
    raise CommandError(
        f"{conversation.source}: thread {conversation.thread_id!r} exists and holds another "
        "conversation; choose another with --thread"
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
            f"{conversation.source}: somebody else writes thread {conversation.thread_id!r}; "
            "run the import again when they are done"
        ) from None


def _store_of(backend: Backend) -> BaseStore | None:
    """Return the store, if the provider has one."""
    try:
        return backend.store
    except ConfigurationError:
        return None


async def _missing_turns(
    store: BaseStore, conversation: Conversation, embedder: Embedder | None
) -> list[int]:
    """Return the places of the turns that are not stored as they are, counted from 1."""
    namespace = (TURNS, conversation.thread_id)
    there = {item.key: item async for item in scan_all(store, namespace)}
    return [
        place
        for place, message in enumerate(conversation.messages, 1)
        if not _is_stored(there.get(turn_key(place)), turn_value(message, place), embedder)
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
        puts = await _embedded(puts, embedder)
    if puts:
        await store.put_batch(puts)
    return len(puts)


async def _embedded(puts: list[Put], embedder: Embedder) -> list[Put]:
    spoken = {
        place: f"{put.value['speaker']}: {put.text}" for place, put in enumerate(puts) if put.text
    }
    vectors = await embed(embedder, list(spoken.values()), "document")
    made = list(puts)
    for (place, source), vector in zip(spoken.items(), vectors, strict=True):
        made[place] = embedded_put(puts[place], vector, embedder, source=source)
    return made


def _put(thread_id: str, message: dict[str, Any], place: int) -> Put:
    value = turn_value(message, place)
    day = _day(value.get("session_date"))
    return Put(
        namespace=(TURNS, thread_id),
        key=turn_key(place),
        value=value,
        metadata={} if day is None else {"date": day},
        text=_words(value),
    )


def _words(value: dict[str, Any]) -> str:
    seen = [value["text"], value.get("image_caption", "")]
    return "\n".join(part for part in seen if part)


def _day(moment: object) -> str | None:
    """Return the day that `9:05 pm on 17 February, 2025` is, as a search reads it."""
    found = find_dates(moment) if isinstance(moment, str) else ()
    if len(found) != 1 or found[0].every_year or found[0].first != found[0].last:
        return None
    return found[0].first.isoformat()
