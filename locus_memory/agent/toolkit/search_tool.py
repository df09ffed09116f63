"""The tool `search_memory`: a model reads one layer of a user's memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from locus_memory._internal.quoting import quote
from locus_memory.agent.toolkit.scope import MOST_FOUND, Row, managed, packed, shown
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import origin_of
from locus_memory.tools import Tool, tool

__all__ = ["memory_tools"]

Layer = Literal["pinned", "episodes", "transcript"]

_LAYERS: Final = get_args(Layer)
_DAY: Final = 10
_DIGITS: Final = 3
_TEXT: Final = (
    "Search what is remembered about this user: pinned has facts and rules, episodes has a digest"
    " of each earlier session, transcript has earlier messages word for word."
)


def memory_tools(manager: object, *, user_id: str | None = None) -> list[Tool]:
    """Return the tool `search_memory(scope, query)` for one user, ready for `Agent(tools=...)`.

    The user is bound here: no argument of a call names one. An answer is a list of at most 10
    objects with `text`, `date`, `score` and `thread_id`, and for facts `salience` and `origin`, of
    at most 800 tokens together. A refused call is a text for the model and never an exception.

    Args:
        manager: An `LLMMemoryManager`.
        user_id: The user; `None`: the scope of the manager itself.

    Raises:
        ConfigurationError: It is another object.
        InvalidArgumentError: The user id is invalid.
    """
    bound = managed(manager, user_id)
    layers: dict[str, Callable[[LLMMemoryManager, str], Awaitable[list[Row]]]] = {
        "pinned": _facts,
        "episodes": _episodes,
        "transcript": _turns,
    }

    @tool(name="search_memory", description=_TEXT)
    async def search_memory(
        scope: Annotated[Layer, Field(description="the layer to search")],
        query: Annotated[str, Field(description="the subject, in a few words")],
    ) -> object:
        said: object = query
        if scope not in _LAYERS:
            return f"refused: scope is of {', '.join(_LAYERS)}, not {quote(scope)}"
        if not isinstance(said, str):
            return f"refused: query is a text, not {quote(said)}"
        return packed(await layers[scope](bound, said), bound.token_counter)

    return [search_memory]


async def _facts(manager: LLMMemoryManager, query: str) -> list[Row]:
    found = await manager.search_memories(query, MOST_FOUND)
    vitals = await manager.vitals([memory for memory, _ in found])
    return [
        _row(memory.content, facts.get("valid_from"), score, facts.get("thread_id"))
        | {"salience": round(signs.salience, _DIGITS), "origin": origin_of(memory).value}
        for (memory, score), signs in zip(found, vitals, strict=True)
        for facts in [memory.metadata]
    ]


async def _episodes(manager: LLMMemoryManager, query: str) -> list[Row]:
    return [
        _row(episode.text, episode.ended_at, score, episode.session_id)
        for episode, score in await manager.search_episodes(query, MOST_FOUND)
    ]


async def _turns(manager: LLMMemoryManager, query: str) -> list[Row]:
    return [
        _row(hit.text, hit.item.metadata.get("date"), hit.score, hit.item.metadata.get("session"))
        for hit in await manager.search_transcript(query, MOST_FOUND)
    ]


def _row(text: str, moment: Any, score: float | None, thread_id: Any) -> Row:
    return {
        "text": shown(text),
        "date": moment[:_DAY] if isinstance(moment, str) else None,
        "score": None if score is None else round(score, _DIGITS),
        "thread_id": thread_id,
    }
