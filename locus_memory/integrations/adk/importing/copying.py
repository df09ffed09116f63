"""The copy of sessions with their events, and of the states of apps and users."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from locus_memory.backends.base import Backend
from locus_memory.integrations.adk.importing.sources import Original, SessionSource, State
from locus_memory.integrations.adk.importing.target import Target
from locus_memory.integrations.adk.sessions import SessionIds
from locus_memory.integrations.reading import tell_unreadable
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["CopiedSession", "import_sessions"]

_NAMESPACE: Final = ("adk",)


@dataclass(frozen=True, slots=True)
class CopiedSession:
    """The result of the import of one session, or of the states of an app.

    Attributes:
        app_name: The app.
        user_id: The user; `None`: the row tells of the states of the app and its users.
        session_id: The session, likewise.
        events: Number of events of the original that can be read.
        saved: Number of events that this import stored.
        unreadable: Number of events and keys of states that cannot be read, and are left out.
        conflicts: 1 if the target has other events in the session, which stay as they are.
        saved_keys: Number of keys of the app's and its users' states that this import stored.
    """

    app_name: str
    user_id: str | None
    session_id: str | None
    events: int = 0
    saved: int = 0
    unreadable: int = 0
    conflicts: int = 0
    saved_keys: int = 0


async def import_sessions(
    source: SessionSource,
    where: str | BaseStore | Backend,
    *,
    session_id: str | None = None,
    namespace: Namespace = _NAMESPACE,
    on_session: Callable[[str, int], None] = lambda _, __: None,
) -> list[CopiedSession]:
    """Copy sessions; a `LocusSessionService` returns the same sessions, events and states.

    A session that has the first events already gets the others, and one that has gone on since
    stays as it is. So does one with other events: it is counted in `conflicts`. Of a key of an app
    or a user, the value that was written last stays.

    Args:
        source: See `open_source`.
        where: The target, as for `LocusSessionService`.
        session_id: Only sessions with this id, and no states of apps and users; `None`: all.
        namespace: The namespace of the sessions, as for `LocusSessionService`.
        on_session: Called after each session with its id and the number of sessions so far.

    Raises:
        InvalidArgumentError: An id is empty; nothing was written.
        BackendError: The target failed.
    """
    names = await source.names(session_id)
    states = [] if session_id is not None else await source.states()
    for name in names:
        SessionIds.checked(name.app, name.user, name.session.strip())
    for state in states:
        SessionIds.checked(state.app, "-" if state.user is None else state.user, "-")
    done: list[CopiedSession] = []
    async with Target(where, namespace=namespace) as target:
        await target.open()
        for number, name in enumerate(names, 1):
            done.append(await _session(await source.session(name), target, namespace))
            on_session(name.session, number)
        return [*done, *(await _states(states, target, namespace))]


async def _session(original: Original, target: Target, namespace: Namespace) -> CopiedSession:
    name = original.name
    saved = await target.restored(original)
    _tell((*namespace, name.app, name.user), name.session, original.errors)
    numbers = len(original.events), saved or 0, len(original.errors), int(saved is None)
    return CopiedSession(name.app, name.user, name.session, *numbers)


async def _states(
    states: Iterable[State], target: Target, namespace: Namespace
) -> Iterable[CopiedSession]:
    """Copy the states of apps and users; return the counts of each app."""
    found: dict[str, CopiedSession] = {}
    for state in states:
        known = found.get(state.app) or CopiedSession(state.app, None, None)
        saved = known.saved_keys + await target.restored_state(state)
        _tell((*namespace, state.app), state.user or "", state.errors)
        unreadable = known.unreadable + len(state.errors)
        found[state.app] = replace(known, saved_keys=saved, unreadable=unreadable)
    return found.values()


def _tell(namespace: Namespace, key: str, errors: Iterable[Exception]) -> None:
    for error in errors:
        tell_unreadable(namespace, key, error)
