"""The documents of an agent: what an index has on the user's message, put before the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

from locus_memory.agent.current import last_text
from locus_memory.documents.context import ContextConfig, find_context
from locus_memory.documents.fusion import Retriever
from locus_memory.documents.values import RetrievalResult
from locus_memory.errors import ConfigurationError
from locus_memory.memory.providers.hooks import call_hook
from locus_memory.messages import Message, Role
from locus_memory.state import AgentState

__all__ = ["documents_of", "with_documents"]

_SECONDS: Final = 5.0


def documents_of(where: Any) -> tuple[Retriever | None, bool]:
    """Return an agent's index, and whether the agent owns it and has to close it.

    Raises:
        ConfigurationError: It is neither an index nor a string, or an invalid provider string.
    """
    if isinstance(where, str):
        # Loaded only for agents with documents.
        from locus_memory.documents.registry import get_documents  # noqa: PLC0415

        return get_documents(where), True
    if where is None or callable(getattr(where, "retrieve", None)):
        return where, False
    raise ConfigurationError(
        f"documents are an index with retrieve, or a provider string, not {type(where).__name__}"
    )


async def with_documents(
    index: Retriever | None,
    state: AgentState,
    said: Sequence[Message],
    config: ContextConfig | Literal["openjarvis"] | None,
) -> tuple[AgentState, tuple[RetrievalResult, ...]]:
    """Return the state with documents in front of the user's last message, and these documents.

    A failure, or a search of more than 5 seconds, is the event `agent.documents_failed`, and the
    state stays as it is.

    Args:
        index: The index; `None`: nothing is changed.
        state: The messages that the model sees.
        said: The thread as it is saved, for the user's own words.
        config: How much to show.
    """
    if index is None:
        return state, ()
    work = partial(find_context, last_text(said, Role.USER), index, config=config)
    found = await call_hook("retrieve", work, seconds=_SECONDS, event="agent.documents_failed")
    if not found:
        return state, ()
    # Loaded only where there is something to show.
    from locus_memory.memory.inject import with_tail  # noqa: PLC0415

    messages = with_tail(state.messages, f"{found.text}\n")
    return state.model_copy(update={"messages": messages}), found.sources
