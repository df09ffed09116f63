"""Creation of messages of the same class as those of a conversation."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

__all__ = ["changed", "new_message"]


def changed(message: Any, **changes: Any) -> Any:
    """Return a copy of a pydantic model or dataclass with some fields changed."""
    if hasattr(message, "model_copy"):
        return message.model_copy(update=changes)
    return dataclasses.replace(message, **changes)


def new_message(sample: Any, **fields: Any) -> Any:
    """Return a new message of the class of `sample`, with a role of the same class."""
    kind = type(sample.role)
    if issubclass(kind, Enum):
        fields["role"] = next(
            (each for each in kind if each.value == fields["role"]), fields["role"]
        )
    return type(sample)(**fields)
