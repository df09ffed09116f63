"""The tool `search_memory`: a model reads one layer of a user's memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from locus_memory._internal.quoting import quote
from locus_memory.agent.toolkit.scope import MOST_FOUND, AsOf, At, Row, managed, packed, shown
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import OriginName, origin_of
from locus_memory.memory.validity import said_at, stated
from locus_memory.tools import Tool, tool

__all__ = ["memory_tools"]

Layer = Literal["pinned", "episodes", "transcript"]
_Choice = Mapping[str, Any]

_LAYERS: Final = get_args(Layer)
_DAY: Final = 10
_DIGITS: Final = 3
_TEXT: Final = (
    "Search what is remembered about this user: pinned has facts and rules, episodes has a digest"
    " of each earlier session, transcript has earlier messages word for word."
)


def memory_tools(manager: object, *, user_id: str | None = None) -> list[Tool]:
    """Return the tool `search_memory(scope, query, ...)` for one user, for `Agent(tools=...)`.

    The user is bound here: no argument of a call names one. An answer is a list of at most 10
    objects with `text`, `date`, `score` and `thread_id`, and for facts `salience` and `origin`, of
    at most 800 tokens together. The score is the relevance, from 0 to 1, of the same scale in all
    layers; what has nearly none is left out. With `origins`, only what these told is found: that of
    a turn is its speaker. With `as_of` or `at`, only what was known or true at that moment is
    found. A refused call is a text for the model and never an exception.

    Args:
        manager: An `LLMMemoryManager`.
        user_id: The user; `None`: the scope of the manager itself.

    Raises:
        ConfigurationError: It is another object.
        InvalidArgumentError: The user id is invalid.
    """
    bound = managed(manager, user_id)
    layers: dict[str, Callable[[LLMMemoryManager, str, _Choice], Awaitable[list[Row]]]] = {
        "pinned": _facts,
        "episodes": _episodes,
        "transcript": _turns,
    }

    @tool(name="search_memory", description=_TEXT)
    async def search_memory(
        scope: Annotated[Layer, Field(description="the layer to search")],
        query: Annotated[str, Field(description="the subject, in a few words")],
        origins: Annotated[
            list[OriginName] | None, Field(description="only what these told; by default, all")
        ] = None,
        as_of: AsOf = None,
        at: At = None,
    ) -> object:
        said: object = query
        if scope not in _LAYERS:
            return f"refused: scope is of {', '.join(_LAYERS)}, not {quote(scope)}"
        if not isinstance(said, str):
            return f"refused: query is a text, not {quote(said)}"
        try:
            choice = {"origins": origins, "as_of": as_of or None, "at": at or None}
            found = await layers[scope](bound, said, choice)
        except InvalidArgumentError as error:
            return f"refused: {error}"
        return packed(found, bound.token_counter)

    return [search_memory]


async def _facts(manager: LLMMemoryManager, query: str, choice: _Choice) -> list[Row]:
    found = await manager.search_memories(query, MOST_FOUND, **choice)
    vitals = await manager.vitals([memory for memory, _ in found])
    return [
        _row(memory.content, said_at(memory) or None, score, facts.get("thread_id"))
        | {
            "salience": round(signs.salience, _DIGITS),
            "origin": origin_of(memory).value,
            **stated(memory),
        }
        for (memory, score), signs in zip(found, vitals, strict=True)
        for facts in [memory.metadata]
    ]


async def _episodes(manager: LLMMemoryManager, query: str, choice: _Choice) -> list[Row]:
    return [
        _row(episode.text, episode.ended_at, score, episode.session_id)
        for episode, score in await manager.search_episodes(query, MOST_FOUND, **choice)
    ]


async def _turns(manager: LLMMemoryManager, query: str, choice: _Choice) -> list[Row]:
    return [
        _row(hit.text, facts.get("date"), hit.relevance, facts.get("session"))
        for hit in await manager.search_transcript(query, MOST_FOUND, **choice)
        for facts in [hit.item.metadata]
    ]


def _row(text: str, moment: Any, score: float, thread_id: Any) -> Row:
    return {
        "text": shown(text),
        "date": moment[:_DAY] if isinstance(moment, str) else None,
        "score": round(score, _DIGITS),
        "thread_id": thread_id,
    }
