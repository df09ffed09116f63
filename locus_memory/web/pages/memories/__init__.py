"""The pages of memories: users and scopes, lists and searches, one memory, and the layers.

A scope is a namespace with memories of its own; without the field `namespace`, it is the server's.
Every page passes `user` and `namespace` on.

Read `place.py` first, then `lists.py` and `memory.py`.
"""

from __future__ import annotations

from typing import Final

from locus_memory.web.pages.frame.visit import Group, done, get, post, shown
from locus_memory.web.pages.memories import forgetting, lists, memory
from locus_memory.web.pages.memories.place import Place
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
        get("/memories", lists.show_scopes, Place),
        get("/memories/list", lists.show_memories, Place),
        post("/memories/remember", lists.remember_text, Place),
        get(_MEMORY, memory.show_memory, Place),
        post("/memories/edit", memory.edit, Place),
        post("/memories/undo", memory.undo, Place),
        done("/memories/retire", retire_memory, memory.tell_retired, Place),
        done("/memories/trust", trust_memory, memory.tell_trusted, Place),
        get("/memories/forget", forgetting.preview, Place),
        post("/memories/forget", forgetting.erase, Place),
        shown(_IDENTITY, get_identity, "memories/identity.html", "identity", Place),
        done(f"{_IDENTITY}/add", add_override, lambda *_: (_IDENTITY, _ADDED, {}), Place),
        done(f"{_IDENTITY}/remove", remove_override, lambda *_: (_IDENTITY, "Removed.", {}), Place),
        shown("/memories/episodes", list_episodes, "memories/episodes.html", "found", Place),
        get("/memories/transcript", lists.show_transcript, Place),
    ),
)
"""The group of the pages of memories."""
