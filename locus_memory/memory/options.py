"""The checks on the options of a memory manager."""

from __future__ import annotations

from locus_memory.errors import ConfigurationError

__all__ = ["check_at_least"]


def check_at_least(least: int, **options: object) -> None:
    """Check that each option is a number of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise ConfigurationError(f"{name} is a number of at least {least}, not {value!r}")
