"""What was there before the plug: the transcripts of a host, and the documents of a project."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.documents.ingest.files import File
from locus_memory.documents.ingest.formats import read_text
from locus_memory.documents.ingest.reading import read_bytes
from locus_memory.errors import InvalidArgumentError, LocusMemoryError
from locus_memory.events import emit
from locus_memory.memory import LLMMemoryManager, Memory, MemoryType, Origin, find_secret
from locus_memory.plug.hosts import KEEPING, Host
from locus_memory.plug.projects import root_of
from locus_memory.plug.transcripts import read_json

__all__ = ["import_documents", "sessions_of"]

_SUFFIXES: Final = frozenset((".md", ".mdc"))
"""Those of the rules of Cursor, see https://cursor.com/docs/context/rules."""

_LARGEST: Final = 2**17
_MOST: Final = 1_000
"""The sections after which no file is read, and the folders and the files of rules looked at."""

_SECTION: Final = ChunkConfig(chunk_size=256, chunk_overlap=0)
_NEAR: Final = 100
"""The characters around a section that are searched for a secret, which may begin in another."""

_FIRST_RECORDS: Final = 50
"""Among them is one that tells the folder of a session."""

_LONGEST_RECORD: Final = 2**20
_FILE: Final = "plugged_file"
"""The key in the metadata of what a document told: its path in the project."""


def sessions_of(host: Host, since: float) -> Iterator[dict[str, Any]]:
    """Yield the events that keep the sessions of a host, see `hook.answer`, the oldest first.

    What hooks have kept of a session, or keep meanwhile, is not kept again.

    Args:
        host: The host.
        since: Sessions without a change since then are left out, in seconds since the epoch.
    """
    found = host.files(None).hooks.parent.glob(host.sessions) if host.sessions else ()
    name = next(name for name, each in host.moments.items() if each in KEEPING)
    dated = sorted((path.stat().st_mtime, path) for path in found if path.is_file())
    for changed, path in dated:
        begun = _begun(host, path) if changed >= since else None
        if begun is not None:
            session, folder = begun
            yield {
                "hook_event_name": name,
                "session_id": session,
                "cwd": folder,
                "transcript_path": f"{path}",
            }


def _begun(host: Host, path: Path) -> tuple[str, str] | None:
    """Return the id and the folder of a session; `None`: its file does not tell."""
    with suppress(OSError), path.open("rb") as file:
        for _ in range(_FIRST_RECORDS):
            with suppress(LookupError, TypeError, ValueError, AttributeError, OSError):
                begun = host.begun(path, read_json(file.readline(_LONGEST_RECORD)))
                if begun is not None and all(_is_name(each) for each in begun):
                    return begun
    return None


def _is_name(told: Any) -> bool:
    return isinstance(told, str) and told != "" and "\0" not in told


async def import_documents(project: LLMMemoryManager, folder: Path, *, trust: bool) -> int:
    """Keep what `CLAUDE.md`, `AGENTS.md` and the rules of Cursor say, by sections.

    They are those of the root of the project, of a folder in it, and of the folders in between. A
    section that changed replaces the one before it, and what is there no more is retired. A section
    that may hold a secret is left out, with the event `memory.secret_dropped`. A file is left out,
    and keeps the sections of an earlier import, with `documents.skipped`: it is no regular file,
    not UTF-8 or UTF-16, has more than 128 KB, is one that a link leads out of the project to, or
    there are more than 1,000 sections with it.

    Args:
        project: The memories of the project.
        folder: A folder of the project.
        trust: Whether they count as a person's words. Otherwise they have the origin `document`.

    Returns:
        How many sections there are.

    Raises:
        BackendError: The store failed.
    """
    origin = Origin.PERSON if trust else Origin.DOCUMENT
    root = root_of(folder)
    found, read = await asyncio.to_thread(_sections, [*_files(root, folder)], origin)
    await project.save(found)
    keys = {each.key for each in found}
    for each in [each async for each in project.memories(MemoryType.REFERENCE)]:
        source = each.metadata.get(_FILE)
        # A file of another folder, or one that is skipped, is not read, but may be gone.
        is_known = source in read or not _is_file(root / f"{source}")
        if source is not None and is_known and each.key not in keys:
            await project.delete(each.id)
    return len(found)


def _files(root: Path, folder: Path) -> Iterator[File]:
    """Yield the documents of a project that are in its root, a folder or in between."""
    inner = Path(os.path.realpath(folder))
    for place in (*reversed(inner.parents), inner):
        rules = place / ".cursor" / "rules"
        # Of a folder elsewhere, such as `/`, a link may lead to all.
        is_inside = Path(os.path.realpath(rules)).is_relative_to(root)
        walk = islice(os.walk(rules), _MOST) if is_inside else ()
        found = (Path(within, name) for within, _, names in walk for name in names)
        few = sorted(each for each in islice(found, _MOST) if each.suffix in _SUFFIXES)
        for each in (place / "CLAUDE.md", place / "AGENTS.md", *few):
            if each.is_relative_to(root) and _is_file(each):
                yield File(each, each.relative_to(root).as_posix(), folder=root)


def _is_file(path: Path) -> bool:
    """Return whether a file is there, or a link to one, whatever the name."""
    return os.path.isfile(path)  # noqa: PTH113 - `Path` raises errors for a name that is too long


def _sections(files: list[File], origin: Origin) -> tuple[list[Memory], set[str]]:
    """Return the sections of files, and the names of the files that were read."""
    found, known = list[Memory](), set[str]()
    for file in files:
        try:
            if len(found) >= _MOST:
                raise InvalidArgumentError(f"there are {_MOST:,} sections without it")
            read = read_text(file.source, read_bytes(file, _LARGEST))
            if read.note or "\0" in read.text:
                raise InvalidArgumentError("it is neither UTF-8 nor UTF-16")
        except (OSError, RuntimeError, LocusMemoryError) as error:
            emit("documents.skipped", error=error, source=file.shown)
            continue
        known.add(file.shown)
        for each in chunk_text(read.text, config=_SECTION, kind="markdown"):
            start, end = each.metadata["start"], each.metadata["end"]
            around = read.text[max(0, start - _NEAR) : end + _NEAR]
            if (kind := find_secret(f"{each.text}\n\n{around}")) is not None:
                emit("memory.secret_dropped", type=MemoryType.REFERENCE.value, kind=kind)
                continue
            metadata = {"origin": origin.value, _FILE: file.shown}
            key = f"{file.shown}#{each.index}"
            found.append(Memory(MemoryType.REFERENCE, key, each.text, metadata))
    return found, known
