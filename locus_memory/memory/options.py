"""The checks on the options of a memory manager."""

from __future__ import annotations

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["check_at_least", "check_callable", "check_embedder", "check_whole"]


def check_at_least(least: int, **options: object) -> None:
    """Check that each option is a number of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise ConfigurationError(f"{name} is a number of at least {least}, not {quote(value)}")


def check_whole(least: int, **options: object) -> None:
    """Check that each option is an integer of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigurationError(
                f"{name} is an integer of at least {least}, not {quote(value)}"
            )


def check_callable(**options: object) -> None:
    """Check that each option can be called.

    Raises:
        ConfigurationError: One cannot; the message names it.
    """
    for name, value in options.items():
        if not callable(value):
            raise ConfigurationError(f"{name} is a function, not {quote(value)}")


def check_embedder(embedder: object) -> None:
    """Check that an embedder can embed; `None` is none.

    Raises:
        ConfigurationError: It cannot.
    """
    embeds = callable(getattr(embedder, "embed", None)) and not isinstance(embedder, type)
    # What it is called is written beside each vector.
    named = isinstance(getattr(embedder, "name", None), str)
    if embedder is not None and not (embeds and named):
        raise ConfigurationError(
            f"embedder is an object with a name and embed(texts, kind=...), not {quote(embedder)}"
        )
