"""A filter that keeps events out of the log, for a command that prints its own notes."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["unlogged"]


@contextmanager
def unlogged(*prefixes: str) -> Generator[None]:
    """Keep events whose name starts with one of the prefixes out of the log."""
    logger = logging.getLogger("locus_memory")

    def is_kept(record: logging.LogRecord) -> bool:
        return not str(getattr(record, "event", "\0")).startswith(prefixes)

    logger.addFilter(is_kept)
    try:
        yield
    finally:
        logger.removeFilter(is_kept)
