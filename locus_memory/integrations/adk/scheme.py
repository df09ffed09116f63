"""The scheme `locus` for the command line of ADK; public as `integrations.adk`."""

from __future__ import annotations

from typing import Any, Final

from google.adk.cli.service_registry import get_service_registry

from locus_memory.integrations.adk.memories import LocusMemoryService
from locus_memory.integrations.adk.sessions import LocusSessionService
from locus_memory.registry import list_stores

__all__ = ["register"]

_SCHEME: Final = "locus"


def register() -> None:
    """Let `--session_service_uri` and `--memory_service_uri` take our databases.

    Call it in the file `services.py` beside the agents, which ADK imports when it starts:

    ```python
    from locus_memory.integrations.adk import register

    register()
    ```

    Two forms are known: `locus://` before any provider string, such as
    `locus://sqlite:./agent.db`, and `locus+` before a URL, such as
    `locus+postgresql://ada:secret@db/agents`. ADK writes the URI to its log, and removes a password
    only from the second form.
    """
    registry = get_service_registry()
    for scheme in (_SCHEME, *(f"{_SCHEME}+{name}" for name in list_stores())):
        registry.register_session_service(scheme, _sessions)
        registry.register_memory_service(scheme, _memories)


def _sessions(uri: str, **options: Any) -> LocusSessionService:
    del options
    return LocusSessionService(_provider(uri))


def _memories(uri: str, **options: Any) -> LocusMemoryService:
    del options
    return LocusMemoryService(_provider(uri))


def _provider(uri: str) -> str:
    """Return the provider string of a URI."""
    return uri.removeprefix(f"{_SCHEME}://").removeprefix(f"{_SCHEME}+")
