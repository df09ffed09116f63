"""The one place that tells a user which optional library is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from locus_memory.errors import MissingDriverError

__all__ = ["require"]


def require(module: str, extra: str, *, needed_by: str | None = None) -> ModuleType:
    """Import and return an optional module.

    Args:
        module: What to import, such as `redis.asyncio`.
        extra: The extra of locus-memory that installs it.
        needed_by: What needs it, for the message; the extra's name by default.

    Raises:
        MissingDriverError: It, or something it needs, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        from locus_memory._internal.providers.installing import install_command  # noqa: PLC0415 - it is slow to load

        raise MissingDriverError(
            f"{needed_by or extra}: needs the {extra!r} extra: {install_command(extra)}"
        ) from error
