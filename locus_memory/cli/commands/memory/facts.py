"""Memories as facts: `import --format facts` and `export --facts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.memories import open_manager, scoped_manager, whose
from locus_memory.inspection.names import parse_namespace
from locus_memory.transfer.chats.exact_json import parse_json

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend

__all__ = ["export_facts", "holds_facts", "import_facts", "read_facts", "render_imported"]

_LONGEST = 2**20

_Facts = Mapping[str, object]
"""The facts by the places that errors name."""


def holds_facts(name: str) -> bool:
    """Return whether the first line of a file is a fact, as `export --facts` writes it."""
    if name == "-":
        return False
    with Path(name).open("rb") as file:
        line = file.readline(_LONGEST)
    try:
        value = parse_json(line.removeprefix(b"\xef\xbb\xbf"))
    except (UnicodeDecodeError, orjson.JSONDecodeError):
        return False
    return isinstance(value, dict) and {"type", "key", "content"} <= value.keys()


def read_facts(content: bytes, source: str) -> _Facts:
    """Return the facts of a file, by their places: `FILE, line 3`.

    Raises:
        CommandError: A line is not a fact; the error names the file and the line.
    """
    from locus_memory.memory.facts import read_fact  # noqa: PLC0415 - help must be quick

    found: dict[str, object] = {}
    names: dict[Any, str] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        try:
            found[place] = value = parse_json(line)
            fact = read_fact(value).memory
        except UnicodeDecodeError:
            raise CommandError(f"{place}: not UTF-8") from None
        except orjson.JSONDecodeError as error:
            raise CommandError(f"{place}: not JSON: {error}") from None
        except InvalidArgumentError as error:
            raise CommandError(f"{place}: {error}") from None
        first = names.setdefault((fact.type, fact.key), place)
        if first != place:
            raise CommandError(f"{place}: the key {fact.key!r} is also in {first}")
    if not found:
        raise CommandError(f"{source}: there are no facts in it")
    return found


async def import_facts(
    backend: Backend, *, facts: _Facts, user: str | None, prefix: str, trust: bool
) -> dict[str, Any]:
    """Write facts as memories, and return how many are new, and how many were refused."""
    from locus_memory.events import subscribe  # noqa: PLC0415 - help must be quick

    manager = scoped_manager(backend.store, parse_namespace(prefix), user)
    # Not by `collect`, which keeps 1,000 events.
    events = Counter[str]()
    unsubscribe = subscribe(lambda event: events.update([event.name]))
    try:
        written = await manager.import_facts(facts.values(), trust=trust)
    finally:
        unsubscribe()
    refused = events["memory.change_refused"]
    return {"user": user, "facts": len(facts), "saved": len(written), "refused": refused}


async def export_facts(
    backend: Backend, *, user: str | None, prefix: str
) -> tuple[list[dict[str, Any]], str]:
    """Return the memories as facts, and whose there are if there are none."""
    manager = open_manager(backend.store, parse_namespace(prefix))
    scoped = manager if user is None else manager.for_user(user)
    found = [fact async for fact in scoped.export_facts()]
    return found, "" if found else await whose(backend, manager, user)


def render_imported(console: Console, document: Mapping[str, Any]) -> None:
    """Print the result of an import."""
    saved, refused = document["saved"], document["refused"]
    known = f"saved: {saved}, known: {document['facts'] - saved - refused}"
    more = f", refused: {refused}; --trust takes rules, and replaces" if refused else ""
    console.out(known + more, highlight=False)
