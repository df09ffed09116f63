"""The command `doctor`: checks of the installation and of the database."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rich.text import Text

from locus_memory import __version__
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.tables import Cell, Cut, print_table
from locus_memory.cli.printing.unlogged import unlogged
from locus_memory.errors import ConfigurationError
from locus_memory.events import subscribe
from locus_memory.inspection.damage import Walk, look_at
from locus_memory.inspection.errors import CommandError

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.events import Event

__all__ = ["doctor"]

_DETAIL = 400

Check = dict[str, Any]

_PATIENCE = 5.0
"""Seconds to spend on the check of stored data."""


def doctor(session: Session) -> None:
    """Check the installation and the database.

    The checks write test data and delete it again. A line marked `!` is a note: an event during the
    checks, or a part of the configuration that is unsafe or slow, with the remedy. A database of an
    earlier version of the library is only read: its first use brings it up to date.
    """
    checks = [_check("python", _python), _check("url", _url(session))]
    if all(check["ok"] for check in checks):
        checks += _check_database(session)
    failed = [check["check"] for check in checks if not check["ok"]]
    session.answer({"ok": not failed, "checks": checks}, partial(_render, checks=checks))
    if failed:
        names = ", ".join(failed)
        message = f"{len(failed)} of {len(checks)} checks failed: {names}"
        raise CommandError(message, answered=True)


def _check(name: str, probe: Callable[[], str]) -> Check:
    try:
        return _ok(name, probe())
    except Exception as error:  # noqa: BLE001 - after any error, the other checks still run
        return {"check": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}


def _python() -> str:
    import sqlite3  # noqa: PLC0415 - help must be quick

    python, system = platform.python_version(), platform.system()
    return f"{python} on {system}, SQLite {sqlite3.sqlite_version}, locus-memory {__version__}"


def _url(session: Session) -> Callable[[], str]:
    def probe() -> str:
        address, _ = session.resolve()
        path = session.path
        if path is None:
            return str(address)
        there = "exists" if path.exists() else "is created on first use"
        return f"{address} ({path.absolute()} {there})"

    return probe


def _check_database(session: Session) -> list[Check]:
    """Return the checks of the database, or of a scratch one in its future folder."""
    path = session.path
    if path is None or path.exists():
        return _probe(session)
    parent = next(each for each in path.absolute().parents if each.exists())
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".locus-doctor-", dir=parent))
    except OSError as error:
        return [{"check": "writable", "ok": False, "detail": f"{parent}: {error.strerror}"}]
    try:
        address, _ = session.resolve()
        return _probe(Session(f"{address.provider}:{scratch / path.name}", session.as_json))
    finally:
        shutil.rmtree(scratch)


def _probe(session: Session) -> list[Check]:
    notes: list[Check] = []
    stop = subscribe(lambda event: notes.append(_note(event)))
    try:
        with unlogged(""):
            behind = session.run(partial(_advice, outdated=True), create=True, opened=False)
            return [*(behind or session.run(_probe_backend, create=True)), *notes]
    except Exception as error:  # noqa: BLE001 - any error is a finding
        detail = f"{type(error).__name__}: {error}"
        return [{"check": "database", "ok": False, "detail": detail}, *_reasons(session)]
    finally:
        stop()


def _reasons(session: Session) -> list[Check]:
    """Return the advice on a database that failed: the reason may be in it."""
    try:
        with unlogged(""):
            return session.run(_advice, create=True, opened=False)
    except Exception:  # noqa: BLE001 - the first error is told
        return []


def _note(event: Event) -> Check:
    """Return an event as a check, such as a warning that the database may evict keys."""
    facts = [f"{name} {value}" for name, value in event.attributes.items()]
    if event.error is not None:
        facts.append(f"{type(event.error).__name__}: {event.error}")
    return _ok("note", f"{event.name}: {', '.join(facts)}")


async def _probe_backend(backend: Backend) -> list[Check]:
    threads, able = await _checkpoint_round_trip(backend), list[Check]()
    try:
        capabilities = backend.store.capabilities
    except ConfigurationError as error:
        items = str(error)
    else:
        items = await _store_round_trip(backend)
        able = [
            _ok("store can", _claims(asdict(capabilities))),
            _ok("checkpoints can", _claims(asdict(backend.checkpointer.capabilities))),
        ]
    checks = [_ok("store", items), _ok("checkpoints", threads), await _look(backend)]
    return [*checks, *await _advice(backend), *able]


def _ok(name: str, detail: str) -> Check:
    return {"check": name, "ok": True, "detail": detail}


async def _advice(backend: Backend, *, outdated: bool = False) -> list[Check]:
    """Return what is configured badly, each with its remedy; or why other checks would migrate."""
    found = await (backend.outdated() if outdated else backend.advice())
    return [_ok(each.name, each.finding) | {"remedy": each.remedy} for each in found]


async def _look(backend: Backend) -> Check:
    """Check the stored data, or a part of it in a large database."""
    walk = Walk()
    await look_at(backend, walk=walk, seconds=_PATIENCE)
    if walk.damaged:
        first = walk.damaged[0]
        detail = f"{len(walk.damaged)} damaged, {walk.summary}; the first: {first.reason}"
        return {"check": "data", "ok": False, "detail": f"{detail}; run locus-memory verify"}
    rest = "" if walk.is_through else "; locus-memory verify checks the rest"
    return _ok("data", f"{walk.summary}{rest}")


def _claims(capabilities: dict[str, Any]) -> str:
    return ", ".join(name for name, value in capabilities.items() if value)


async def _store_round_trip(backend: Backend) -> str:
    namespace = ("locus-memory-doctor", uuid4().hex)
    try:
        await backend.store.put(namespace, "probe", {"text": "a word to find"})
        item = await backend.store.get_item(namespace, "probe")
        # A store may have no text search, but each has a search without a query.
        query = "word" if backend.store.capabilities.search else None
        found = await backend.store.search(namespace, query)
    finally:
        await backend.store.clear_namespace(namespace)
    if item is None or item.value != {"text": "a word to find"} or len(found) != 1:
        raise RuntimeError("the store did not return the item that was put")
    return "put, get, search and delete work"


async def _checkpoint_round_trip(backend: Backend) -> str:
    thread = f"locus-memory-doctor-{uuid4().hex}"
    state = {"messages": [{"role": "user", "content": "probe"}]}
    try:
        first = await backend.checkpointer.save(state, thread)
        await backend.checkpointer.save({**state, "more": True}, thread)
        loaded = await backend.checkpointer.load(thread, first)
    finally:
        await backend.checkpointer.delete(thread)
    if loaded != state:
        raise RuntimeError("the loaded state differs from the saved one")
    return "save, load and delete work"


def _render(console: Console, checks: list[Check]) -> None:
    rows: list[list[Cell]] = [
        [_mark(check), check["check"], Cut(_said(check), _DETAIL)] for check in checks
    ]
    print_table(console, ["", "check", "*finding"], rows)


def _said(check: Check) -> str:
    remedy = check.get("remedy")
    return f"{check['detail']}. Do this: {remedy}" if remedy else check["detail"]


def _mark(check: Check) -> Text:
    if not check["ok"]:
        return Text("FAILED", style="bold red")
    is_note = check["check"] == "note" or "remedy" in check
    return Text("!", style="yellow") if is_note else Text("ok", style="green")
