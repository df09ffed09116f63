"""The import of the sessions that `SQLiteSession` of the OpenAI Agents SDK keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.foreign.family import Asked, Importer, Show

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.integrations.openai_agents.importing import BranchSource, CopiedBranch

__all__ = ["session_importer"]

_COLUMNS: Final = {
    "session_id": "session",
    "branch": "branch",
    "items": ">items",
    "saved": ">new items",
}
_FAULTS: Final = {
    "conflicts": "sessions with other items stay as they are: {}",
    "unreadable": "items that cannot be read are left out: {}",
}


def session_importer(asked: Asked) -> Importer[Any]:
    """Return the import of the sessions of a `SQLiteSession`."""
    require("agents.memory", "openai-agents", needed_by="the import of sessions")
    from locus_memory.integrations.openai_agents.importing import open_source  # noqa: PLC0415 - an extra

    async def copy(source: BranchSource, backend: Backend, show: Show) -> list[CopiedBranch]:
        from locus_memory.integrations.openai_agents.importing import (  # noqa: PLC0415 - an extra
            import_sessions,
        )

        return await import_sessions(source, backend, session_id=asked.thread, on_item=show)

    return Importer(
        listed="sessions",
        source=open_source(asked.where),
        copy=copy,
        columns=_COLUMNS,
        sums=("items", "saved", "unreadable", "conflicts"),
        faults=_FAULTS,
        only=asked.thread,
    )
