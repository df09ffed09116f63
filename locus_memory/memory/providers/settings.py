"""The settings of the memory of a profile: whether an agent recalls and extracts, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from locus_memory._internal.options import check_fields
from locus_memory.memory.options import check_one_of, check_whole

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
            too long is cut at whole lines. `None`: what the manager allows, and 6,000 of the text
            of a provider.
        placement: Where the model sees the block of memories. `"user"`: before the text of the
            user's latest message, so that all messages before it are the same in the next request,
            and a provider's cache of prompts holds; `"system"`: after the system prompt.
        on_error: `"raise"` ends a run with the first error of its memory: before the model is
            called, or after the answer is saved; `resume` tries again. Extraction in the background
            is not part of a run. `"report"`: the run continues.

    Raises:
        ConfigurationError: A value of another type, a negative number, or an unknown word.
    """

    enabled: bool = True
    provider: str | None = None
    sync_turns: bool = True
    prefetch: bool = True
    max_prompt_chars: int | None = None
    placement: Literal["system", "user"] = "user"
    on_error: Literal["report", "raise"] = "report"

    def __post_init__(self) -> None:
        check_fields(self)
        check_whole(0, max_prompt_chars=self.max_prompt_chars or 0)
        check_one_of(("system", "user"), placement=self.placement)
        check_one_of(("report", "raise"), on_error=self.on_error)
