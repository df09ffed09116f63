"""Making messages of whatever class a conversation is made of."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["changed", "new_message"]


def changed(message: Any, **changes: Any) -> Any:
    """Return a copy of a pydantic model or dataclass with other values in some fields."""
    if hasattr(message, "model_copy"):
        return message.model_copy(update=changes)
    return dataclasses.replace(message, **changes)


def new_message(sample: Any, **fields: Any) -> Any:
    """Return a new message of the class of `sample`."""
    return type(sample)(**fields)
