"""The arguments of tools that name a moment, with their descriptions for a model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["AsOf", "At", "ValidFrom", "ValidTo"]

AsOf = Annotated[str | None, Field(description="only what was known at this moment, ISO 8601")]
At = Annotated[str | None, Field(description="only what was true at this moment, ISO 8601")]
ValidFrom = Annotated[
    str | None, Field(description="the first day on which it is true, as in 2026-05-12, if said")
]
ValidTo = Annotated[str | None, Field(description="the last day on which it is true, likewise")]
