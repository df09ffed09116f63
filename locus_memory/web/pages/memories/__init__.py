"""The pages of memories: users and scopes, lists and searches, one memory, and the layers.

A scope is a namespace with memories of its own; without the field `namespace`, it is the server's.
Every page passes `user` and `namespace` on.

Read `place.py` first, then `lists.py` and `memory.py`.
"""

from __future__ import annotations

from typing import Final

from locus_memory.web.pages.frame.visit import Group, done, get, post, shown
from locus_memory.web.pages.memories import forgetting, lists, memory
from locus_memory.web.pages.memories.place import MemoriesVisit
from locus_memory.web.questions.editing import retire_memory, trust_memory
from locus_memory.web.questions.layers import (
    add_override,
    get_identity,
    list_episodes,
    remove_override,
)

__all__ = ["GROUP"]

_ADDED: Final = "Saved. It is in every context from now on."
_IDENTITY: Final = "/memories/identity"
_MEMORY: Final = "/memories/memory"

GROUP: Final = Group(
    "/memories",
    "Memories",
    (
        get("/memories", lists.show_scopes, MemoriesVisit),
        get("/memories/list", lists.show_memories, MemoriesVisit),
        post("/memories/remember", lists.remember_text, MemoriesVisit),
        get(_MEMORY, memory.show_memory, MemoriesVisit),
        post("/memories/edit", memory.edit, MemoriesVisit),
        post("/memories/undo", memory.undo, MemoriesVisit),
        done("/memories/retire", retire_memory, memory.tell_retired, MemoriesVisit),
        done("/memories/trust", trust_memory, memory.tell_trusted, MemoriesVisit),
        get("/memories/forget", forgetting.preview, MemoriesVisit),
        post("/memories/forget", forgetting.erase, MemoriesVisit),
        shown(_IDENTITY, get_identity, "memories/identity.html", "identity", MemoriesVisit),
        done(f"{_IDENTITY}/add", add_override, lambda *_: (_IDENTITY, _ADDED, {}), MemoriesVisit),
        done(
            f"{_IDENTITY}/remove",
            remove_override,
            lambda *_: (_IDENTITY, "Removed.", {}),
            MemoriesVisit,
        ),
        shown(
            "/memories/episodes", list_episodes, "memories/episodes.html", "found", MemoriesVisit
        ),
        get("/memories/transcript", lists.show_transcript, MemoriesVisit),
    ),
)
"""The group of the pages of memories."""
