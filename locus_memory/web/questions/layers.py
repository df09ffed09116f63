"""The layers of a memory that tends itself: identity, episodes, transcript, and their upkeep."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from locus_memory.memory.layers.episodes import Episode
from locus_memory.memory.layers.identity import Override
from locus_memory.memory.models import Origin
from locus_memory.store.item import StoreItem
from locus_memory.web.models import (
    Answer,
    Asked,
    Limit,
    PageAnswer,
    PageAsked,
    ThenAsked,
    ThreadAsked,
    UserAsked,
    cursor_key,
    cut,
)
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.items import Item

__all__ = [
    "AddOverride",
    "ConsolidateAsked",
    "Consolidated",
    "EpisodesAnswer",
    "EpisodesAsked",
    "IdentityAnswer",
    "IngestAnswer",
    "IngestAsked",
    "RemoveOverride",
    "SyncAnswer",
    "TranscriptAsked",
    "TranscriptPage",
    "TurnAsked",
    "add_override",
    "consolidate",
    "get_identity",
    "ingest",
    "list_episodes",
    "list_transcript",
    "remove_override",
    "sync_now",
]


class IdentityAnswer(Answer):
    """The sentences that a person fixed for a user."""

    overrides: list[Override]


class AddOverride(UserAsked):
    """A sentence that is always in the model's context."""

    text: str = Field(min_length=1, max_length=300)


class RemoveOverride(UserAsked):
    """A fixed sentence to remove."""

    id: str = Field(min_length=1)
    """Its id, or the beginning of it."""


class EpisodesAsked(ThenAsked):
    """How many episodes to return."""

    origin: Origin | None = None
    """Only notes that this one told."""
    limit: Limit = 20


class EpisodesAnswer(Answer):
    """The digests of the newest sessions."""

    episodes: list[Episode]


class TranscriptAsked(PageAsked, ThenAsked, ThreadAsked):
    """The recorded turns of a thread."""

    origin: Origin | None = None
    """Only turns of this speaker."""


class TranscriptPage(PageAnswer):
    """A page of recorded turns, oldest first."""

    turns: list[Item]


class TurnAsked(Asked):
    """A turn: what the user said, what the assistant said, or both."""

    user: str | None = None
    assistant: str | None = None


class IngestAsked(UserAsked):
    """A conversation of the past to ingest."""

    agent_id: str = Field(min_length=1)
    conversation_id: str = Field(min_length=1)
    """Its name, which is the thread of its episodes."""
    turns: list[TurnAsked] = Field(min_length=1)
    """Its turns, oldest first."""
    session_date: str | None = None
    """The moment of all turns, ISO 8601; now by default."""
    skip_extraction: bool = False
    """Only record the turns in the transcript."""


class IngestAnswer(Answer):
    """The result of an ingestion."""

    turns: int
    """The turns that were not ingested before."""
    episodes: int
    facts: int
    pending: int
    """The jobs of the conversation that still wait."""


class ConsolidateAsked(UserAsked):
    """A consolidation; without a user, of all memories."""

    dry_run: bool
    """Only count what would change."""


class Consolidated(Answer):
    """The numbers of a consolidation."""

    dry_run: bool
    evicted: int
    pruned_episodes: int
    pruned_turns: int
    purged: int
    duration_ms: float
    scopes: int
    busy: int


class SyncAnswer(Answer):
    """The result of a synchronisation."""

    pending: int
    """How many jobs still wait."""


async def get_identity(data: Data, asked: UserAsked) -> IdentityAnswer:
    """Return the sentences that a person fixed for a user."""
    identity = await data.scoped(asked.user).identity.read()
    return IdentityAnswer(overrides=list(identity.overrides))


async def add_override(data: Data, asked: AddOverride) -> IdentityAnswer:
    """Fix a sentence that is always in the model's context."""
    await data.scoped(asked.user).identity.add(asked.text)
    return await get_identity(data, UserAsked(user=asked.user))


async def remove_override(data: Data, asked: RemoveOverride) -> IdentityAnswer:
    """Retire a fixed sentence; it stays in the history of its memory."""
    await data.scoped(asked.user).identity.remove(asked.id)
    return await get_identity(data, UserAsked(user=asked.user))


async def list_episodes(data: Data, asked: EpisodesAsked) -> EpisodesAnswer:
    """Return the digests of the newest sessions."""
    told, origins = data.scoped(asked.user), asked.origin and [asked.origin]
    found = await told.episodes(asked.limit, origins=origins, **asked.moments)
    return EpisodesAnswer(episodes=found)


async def list_transcript(data: Data, asked: TranscriptAsked) -> TranscriptPage:
    """List the recorded turns of a thread, oldest first."""
    namespace = data.scope(asked.user).transcript(asked.thread)
    after, most, then = cursor_key(asked.cursor), asked.limit + 1, asked.then
    found = list[StoreItem]()
    while len(found) < most and (items := await data.store.scan(namespace, most, after=after)):
        told = (e for e in items if then is None or then.has(e.metadata.get("date"), {}))
        found += [e for e in told if asked.origin in (None, e.metadata.get("speaker"))]
        after = items[-1].key
    page, following = cut(found, asked.limit, lambda turn: turn.key)
    return TranscriptPage(turns=list(map(Item.model_validate, page)), next=following)


async def ingest(data: Data, asked: IngestAsked) -> IngestAnswer:
    """Ingest turns of a conversation of the past, and distil them at once.

    Turns that were ingested before are left out, so that a request can be repeated.
    """
    turns: list[dict[str, Any]] = [turn.model_dump(exclude_none=True) for turn in asked.turns]
    manager = data.ingesting
    if asked.user is not None:
        manager = manager.for_user(asked.user)
    done = await manager.ingest(
        asked.agent_id,
        asked.conversation_id,
        turns,
        session_date=asked.session_date,
        skip_extraction=asked.skip_extraction,
    )
    return IngestAnswer(**done)


async def consolidate(data: Data, asked: ConsolidateAsked) -> Consolidated:
    """Let memories end, and erase what is too old; see `locus-memory consolidate`."""
    manager = data.scoped(asked.user)
    report = await manager.consolidate(dry_run=asked.dry_run)
    return Consolidated(dry_run=asked.dry_run, **report.counts())


async def sync_now(data: Data, asked: UserAsked) -> SyncAnswer:
    """Distil the queued sessions now."""
    manager = data.ingesting
    if asked.user is not None:
        manager = manager.for_user(asked.user)
    return SyncAnswer(pending=await manager.sync_now())
