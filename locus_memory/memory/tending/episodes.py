"""Episodes that say the same as an older one of the same agent; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.memory.layers.episodes import Episode
from locus_memory.memory.moments import days_between
from locus_memory.memory.tending.words import WordSet, content_words, near_pairs

__all__ = ["Merger", "merge", "recent"]

_SAME: Final = 0.9
_RECENT_DAYS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Merger:
    """The result of a merge.

    Attributes:
        kept: The episodes that stay, by key, with what they took over.
        gone: The keys of the other episodes, each with the key of the one that took it over.
    """

    kept: Mapping[str, Episode]
    gone: Mapping[str, str]


def merge(episodes: Sequence[Episode]) -> Merger:
    """Merge each episode into the first older one of its agent that says the same.

    Two say the same if the words of their summaries and topics have a Jaccard similarity of at
    least 0.9. A merge changes neither, so merging again, or from any point of an interrupted merge,
    has the same result.

    Args:
        episodes: The episodes, the oldest first.
    """
    sets = [_words(each) for each in episodes]
    near: dict[int, list[int]] = {}
    for older, newer in near_pairs(sets, _SAME):
        if episodes[older].agent_id == episodes[newer].agent_id:
            near.setdefault(newer, []).append(older)
    kept: dict[int, Episode] = {}
    gone: dict[str, str] = {}
    for place, episode in enumerate(episodes):
        into = next((older for older in near.get(place, ()) if older in kept), None)
        if into is None:
            kept[place] = episode
        else:
            kept[into] = kept[into].joined(episode)
            gone[episode.key] = kept[into].key
    return Merger({each.key: each for each in kept.values()}, gone)


def recent(episodes: Sequence[Episode], now: str) -> list[WordSet]:
    """Return the content words of the episodes of the last 30 days."""
    return [
        content_words(each.text)
        for each in episodes
        if days_between(each.ended_at, now) <= _RECENT_DAYS
    ]


def _words(episode: Episode) -> WordSet:
    return content_words("\n".join((episode.summary, *episode.topics)))
