"""The settings of the memory of a profile: whether an agent recalls and extracts, and how much."""

from __future__ import annotations

from dataclasses import dataclass

from locus_memory._internal.options import check_fields
from locus_memory.memory.options import check_whole

__all__ = ["MemorySettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Settings of the memory of one profile; an agent accepts them as `memory_settings=`.

    Attributes:
        enabled: Whether the agent has a memory at all.
        provider: The string of a memory provider (see `get_memory_manager`), for an agent that is
            given no `memory_manager`; `None`: none.
        sync_turns: Whether to extract facts from each turn.
        prefetch: Whether to recall memories before each turn.
        max_prompt_chars: The most characters of the recalled block, its fence included. What is
            too long is cut at whole lines.

    Raises:
        ConfigurationError: A value of another type, or a negative number.
    """

    enabled: bool = True
    provider: str | None = None
    sync_turns: bool = True
    prefetch: bool = True
    max_prompt_chars: int = 6000

    def __post_init__(self) -> None:
        check_fields(self)
        check_whole(0, max_prompt_chars=self.max_prompt_chars)
