"""The pages of memories: users and scopes, lists and searches, one memory, and the layers.

A scope is a namespace with memories of its own; without the field `namespace`, it is the server's.
Every page passes `user` and `namespace` on.

Read `place.py` first, then `lists.py`, `memory.py` and `layers.py`.
"""

from __future__ import annotations

from typing import Final

from locus_memory.web.pages.frame.visit import Group, get, post
from locus_memory.web.pages.memories import forgetting, layers, lists, memory

__all__ = ["GROUP"]

GROUP: Final = Group(
    "/memories",
    "Memories",
    (
        get("/memories", lists.show_scopes),
        get("/memories/list", lists.show_memories),
        post("/memories/remember", lists.remember_text),
        get("/memories/memory", memory.show_memory),
        post("/memories/edit", memory.edit),
        post("/memories/undo", memory.undo),
        post("/memories/retire", memory.retire),
        post("/memories/trust", memory.trust),
        get("/memories/forget", forgetting.preview),
        post("/memories/forget", forgetting.erase),
        get("/memories/identity", layers.show_identity),
        post("/memories/identity/add", layers.add_sentence),
        post("/memories/identity/remove", layers.remove_sentence),
        get("/memories/episodes", layers.show_episodes),
        get("/memories/transcript", layers.show_transcript),
    ),
)
"""The group of the pages of memories."""
