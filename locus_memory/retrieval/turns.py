"""Index of conversations for search, one item per turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.retrieval.ranking.dates import day_in_words
from locus_memory.store.item import Namespace, Put, check_limit

__all__ = ["Turn", "index_turns", "turn_puts"]

_AROUND: Final = (-1, -2, 1, -3, -4, 2, 3)
"""The order in which neighbours are added: the turn before says more than the turn after."""

_WORDS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation.

    Attributes:
        text: The text.
        speaker: The speaker; `""`: unknown.
        said_at: The time; without a time zone, UTC.
        caption: The caption of a picture in the turn.
        id: The id in its source.
        metadata: Further metadata to store.
    """

    text: str
    speaker: str = ""
    said_at: datetime | None = None
    caption: str = ""
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def words(self) -> str:
        """The text, with the caption after it in brackets."""
        return f"{self.text} [{self.caption}]".lstrip() if self.caption else self.text

    @property
    def spoken(self) -> str:
        """The text after its speaker, which is the text to embed."""
        return f"{self.speaker}: {self.words}" if self.speaker else self.words


def turn_puts(
    namespace: Namespace,
    turns: Sequence[Turn],
    *,
    session: str = "",
    first: int = 0,
    words: int = _WORDS,
) -> list[Put]:
    """Return a put for each turn of a session, without vectors.

    The value is the turn's own `text`. Text search sees the turn with its neighbours, as whole
    turns of at most `words` words together, and the day: the words of a question are often in the
    turn before. The metadata holds `speaker`, `date`, `session`, `position` and `turn`, the id, if
    they are known: `HybridSearch` reads them.

    Keys are in the order of time: the time if it is known, the session and the position. The same
    turns always get the same keys, so indexing again replaces the items.

    Args:
        namespace: The namespace of the items.
        turns: One session in order; neighbours are always from it.
        session: The name of the session.
        first: The position of the first turn. To add to a session, pass its last few turns once
            more: they get their new neighbours.
        words: The limit of words of a turn with its neighbours.

    Raises:
        InvalidArgumentError: A position or a number of words that is not an integer of at least 0.
    """
    check_limit(first, "first")
    check_limit(words, "words")
    lengths = [len(turn.spoken.split()) for turn in turns]
    return [
        Put(
            namespace=namespace,
            key=_key(turn, session, first + place),
            value={"text": turn.words},
            metadata=_metadata(turn, session, first + place),
            text="\n".join(
                [turns[each].spoken for each in _with_neighbours(place, lengths, words)]
                + ([day_in_words(turn.said_at)] if turn.said_at else [])
            ),
        )
        for place, turn in enumerate(turns)
    ]


async def index_turns(
    namespace: Namespace,
    turns: Sequence[Turn],
    embedder: Embedder | None = None,
    *,
    session: str = "",
    first: int = 0,
    words: int = _WORDS,
) -> list[Put]:
    """Return a put for each turn of a session, with a vector of "Speaker: text".

    Pass the puts to `put_batch`. Without an embedder the result is that of `turn_puts`, which
    describes the items. With one, the metadata also holds the mark of the vector's model (see
    `locus_memory.retrieval.embedders.marks`), so that `reembed` can recompute the vector.

    Raises:
        InvalidArgumentError: As for `turn_puts`.
        InvalidEmbeddingError: The embedder did not return valid vectors.
    """
    puts = turn_puts(namespace, turns, session=session, first=first, words=words)
    if embedder is None:
        return puts
    # A picture alone, or an empty message, has nothing to embed.
    texts = [turn.spoken if turn.words.strip() else "" for turn in turns]
    return await embedded_puts(puts, embedder, texts, texts)


def _with_neighbours(place: int, lengths: Sequence[int], words: int) -> list[int]:
    chosen, total = [place], lengths[place]
    for step in _AROUND:
        other = place + step
        if 0 <= other < len(lengths) and total + lengths[other] <= words:
            chosen.append(other)
            total += lengths[other]
    return chosen


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _key(turn: Turn, session: str, position: int) -> str:
    moment = [_utc(turn.said_at).isoformat(timespec="microseconds")] if turn.said_at else []
    return "/".join([*moment, *([session] if session else []), f"{position:08}"])


def _metadata(turn: Turn, session: str, position: int) -> dict[str, Any]:
    known = {
        "speaker": turn.speaker,
        "date": turn.said_at.isoformat() if turn.said_at else "",
        "session": session,
        "turn": turn.id,
    }
    told = {name: value for name, value in known.items() if value}
    return {**turn.metadata, **told, "position": position}
