"""Contract of a memory provider: seven hooks that an agent calls, and the verbs of a memory tool.

A *manager* (`BaseMemoryManager`) decides about the memory of a run: it is asked with the state of
the run, at its start and at its end. A *provider* is a simpler thing behind it: it gets texts. It
may implement only `prefetch` and `on_turn_complete`. `ProviderManager` makes a manager of a
provider, and `Agent(memory_manager=provider)` does that by itself.

Both have a hook named `on_session_end`, and the two differ. A manager's gets the *state*, once a
run. A provider's gets the *messages*, once a session: when the thread is quiet or the manager is
closed. No class is both: whatever has `on_session_start` is a manager.

| hook | called | purpose |
|---|---|---|
| `prefetch` | before each turn | return the text to put before the model |
| `queue_prefetch` | after a turn | prepare the recall of the next turn |
| `on_turn_complete` | after each turn with an answer | extract and keep facts |
| `on_session_end` | once a session is over | the last extraction |
| `on_pre_compact` | before messages leave the model's view | keep their facts |
| `on_memory_write` | after a tool wrote a memory | mirror the write |
| `shutdown` | once the agent or the manager is closed | release resources |

A provider that serves several users has a method `for_user(user_id)`, which returns the provider
of one user. A provider without it serves one user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_memory.errors import StoreCapabilityError
from locus_memory.memory.models import MemorySearchResult

__all__ = ["BaseMemoryProvider", "TurnHooks", "is_provider"]


class TurnHooks:
    """The hooks that providers and managers have in common; by default they do nothing.

    `session_id` is the thread; it is empty if unknown.
    """

    async def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Prepare the recall of the next turn; the caller does not wait for it.

        Args:
            query: The user's message of the turn that is over.
            session_id: The thread.
        """

    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Keep the facts of a turn that came to an answer.

        Args:
            user: The user's message.
            assistant: The answer.
            session_id: The thread.
        """

    async def on_pre_compact(self, messages: Sequence[Any]) -> None:
        """Keep the facts of messages that the model no longer sees; each is told once.

        Args:
            messages: The messages that are left out for the first time, oldest first.
        """

    async def on_memory_write(self, action: str, target: str, content: str) -> None:
        """Mirror an explicit write of a memory tool.

        Args:
            action: `remember` or `forget`.
            target: The id of the memory.
            content: Its content; empty for `forget`.
        """

    async def shutdown(self) -> None:
        """Take note that the agent was closed; a provider releases all its resources.

        The `close` of a manager is another verb: an agent that is given a manager never closes it,
        and may not be its only one.
        """

    async def reflect(self, query: str) -> str:  # noqa: ARG002 - a default
        """Return an answer made from many memories; empty: not supported."""
        return ""


class BaseMemoryProvider(TurnHooks):
    """A memory behind an agent: hooks, and verbs for a tool. Every method has a default.

    A class of your own need not derive from this one: methods that it lacks have these defaults.
    An error of a hook never ends a run, and a hook may take a limited time only, see
    `ProviderManager`.
    """

    async def prefetch(self, query: str, *, session_id: str = "") -> str:  # noqa: ARG002 - a default
        """Return the text to put before the model; empty if there is nothing to say.

        The caller fences and neutralises it.

        Args:
            query: The user's message.
            session_id: The thread.
        """
        return ""

    async def on_session_end(self, messages: Sequence[Any]) -> None:
        """Keep what is left of a session that is over; it may be continued later.

        Args:
            messages: The conversation so far, oldest first, without system messages.
        """

    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:  # noqa: ARG002 - a default
        """Return the facts that match, the best first; none if the provider cannot search."""
        return []

    async def remember(self, content: str) -> str:  # noqa: ARG002 - a default
        """Keep a fact, and return its id.

        Raises:
            StoreCapabilityError: The provider has no such verb.
        """
        raise StoreCapabilityError("remember", type(self).__name__)

    async def forget(self, memory_id: str) -> bool:  # noqa: ARG002 - a default
        """Delete a fact; return whether it was there.

        Raises:
            StoreCapabilityError: The provider has no such verb.
        """
        raise StoreCapabilityError("forget", type(self).__name__)


def is_provider(where: object) -> bool:
    """Return whether an object is a memory provider, and not a memory manager or a class."""
    if isinstance(where, type) or hasattr(where, "on_session_start"):
        return False
    return callable(getattr(where, "prefetch", None)) or callable(
        getattr(where, "on_turn_complete", None)
    )
