"""The import of optional libraries, with the error for a missing one."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from locus_memory.errors import MissingDriverError

__all__ = ["require"]


def require(module: str, extra: str, *, needed_by: str | None = None) -> ModuleType:
    """Import and return an optional module.

    Args:
        module: The module, such as `redis.asyncio`.
        extra: The extra of locus-memory that installs it.
        needed_by: The name of the part that needs it, for the message; by default the extra's.

    Raises:
        MissingDriverError: It, or a module that it needs, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        from locus_memory._internal.providers.installing import install_command  # noqa: PLC0415 - it is slow to load

        raise MissingDriverError(
            f"{needed_by or extra}: needs the {extra!r} extra: {install_command(extra)}"
        ) from error
