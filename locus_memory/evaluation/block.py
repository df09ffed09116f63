"""What a run is shown of a conversation: the share of the evidence in the default block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from locus_memory.evaluation.dataset import Conversation
from locus_memory.evaluation.metrics import recall_at
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.turns import index_turns
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["Shown", "shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the block of a question shows.

    Attributes:
        recall: The share of the evidence turns that it quotes, a passage of each at least.
        tokens: Its tokens.
    """

    recall: float
    tokens: int


async def shown(
    conversation: Conversation, store: BaseStore, namespace: Namespace
) -> AsyncIterator[Shown]:
    """Yield what a run of a new thread is shown for each question, from the words alone.

    No model extracts, nothing is embedded, and the options are the defaults.

    Args:
        conversation: The conversation, whose sessions become threads of the transcript.
        store: The store.
        namespace: The namespace of the memory, which the caller clears.

    Raises:
        BackendError: The store failed.
    """
    scope, names = Scope(namespace), dict[str, str]()
    for session in conversation.sessions:
        place = scope.transcript(session.name)
        puts = await index_turns(place, session.turns, session=session.name)
        names |= {f"{place[-1]}/{put.key}": str((put.metadata or {})["turn"]) for put in puts}
        await store.put_batch(puts)
    async with LLMMemoryManager(store, namespace_prefix=namespace) as manager:
        for question in conversation.questions:
            plan = await manager.plan(question.text, explain=True)
            quoted = [names[each.name] for each in plan.lines if each.outcome in ("stable", "tail")]
            yield Shown(recall_at(quoted, question.evidence, len(quoted)), plan.tokens)
