"""The import of the sessions that ADK's own services keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.foreign.family import Asked, Importer, Show

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.integrations.adk.importing.copying import CopiedSession
    from locus_memory.integrations.adk.importing.sources import SessionSource

__all__ = ["adk_importer"]

_COLUMNS: Final = {
    "app_name": "app",
    "user_id": "user",
    "session_id": "session",
    "events": ">events",
    "saved": ">new events",
    "saved_keys": ">new keys",
}
_FAULTS: Final = {
    "conflicts": "sessions with other events stay as they are: {}",
    "unreadable": "events and keys of states that cannot be read are left out: {}",
}


def adk_importer(asked: Asked) -> Importer[Any]:
    """Return the import of the sessions of `SqliteSessionService` or `DatabaseSessionService`."""
    require("google.adk", "adk", needed_by="the import of sessions")
    from locus_memory.integrations.adk.importing.sources import open_source  # noqa: PLC0415 - an extra

    async def copy(source: SessionSource, backend: Backend, show: Show) -> list[CopiedSession]:
        from locus_memory.integrations.adk.importing.copying import import_sessions  # noqa: PLC0415 - an extra

        return await import_sessions(source, backend, session_id=asked.thread, on_session=show)

    return Importer(
        listed="sessions",
        source=open_source(asked.where),
        copy=copy,
        columns=_COLUMNS,
        sums=("events", "saved", "saved_keys", "unreadable", "conflicts"),
        faults=_FAULTS,
        only=asked.thread,
    )
