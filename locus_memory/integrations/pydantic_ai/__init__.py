"""Adapters for Pydantic AI: conversations (`pydantic-ai-slim`), memories (`pydantic-ai-harness`).

```python
from locus_memory.integrations.pydantic_ai import LocusConversationStore

async with LocusConversationStore("sqlite:./agent.db") as store:
    conversation = await store.load("ada") or Conversation(conversation_id="ada")
    result = await agent.run("Hello", conversation=conversation)
    await store.save(result)
```

Each needs its own package, and only that. Read `chains.py` first: where the messages of a
conversation and of its forks are. `conversations.py` keeps them; `memories.py` is apart from both.
It has over 400 lines since there are two stores in it, each with a contract of its own, and since
branches and forks share their messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

if TYPE_CHECKING:
    from locus_memory.integrations.pydantic_ai.conversations import LocusConversationStore
    from locus_memory.integrations.pydantic_ai.memories import LocusMemoryStore
else:
    _get, __dir__ = lazy_names(
        __name__,
        {"LocusConversationStore": "conversations", "LocusMemoryStore": "memories"},
    )

    # The other one needs another package; see its class.
    def __getattr__(name: str) -> Any:
        if name == "LocusConversationStore":
            require("pydantic_ai.conversation_store", "pydantic-ai", needed_by=__name__)
        return _get(name)


__all__ = ["LocusConversationStore", "LocusMemoryStore"]
