"""What a message is, whatever its class: who speaks, and whether it is a block of memories."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["BLOCK_MARK", "is_memory_block", "role_of"]

BLOCK_MARK: Final = "locus_memory_block"
"""The key of a message's metadata that says: this is a block of memories."""


def role_of(message: Any) -> str:
    """Return who speaks: `system`, `user`, `assistant` or `tool`.

    A role may be a text or any enum of texts; `developer` is OpenAI's newer word for `system`.
    """
    role = message.role
    if not isinstance(role, str):
        role = getattr(role, "value", role)
    return "system" if role == "developer" else role


def is_memory_block(message: Any) -> bool:
    """Whether a memory manager put the message there; another run puts another one there."""
    metadata = getattr(message, "metadata", None) or {}
    return metadata.get(BLOCK_MARK) is True
