"""What was there before the plug: the transcripts of a host, and the documents of a project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.memory import LLMMemoryManager, Memory, MemoryType, Origin
from locus_memory.plug.hosts import KEEPING, Host
from locus_memory.plug.transcripts import read_json

__all__ = ["import_documents", "sessions_of"]

_DOCUMENTS: Final = ("CLAUDE.md", "AGENTS.md", ".cursor/rules/**/*.md*")
_LARGEST: Final = 2**20
_SECTION: Final = ChunkConfig(chunk_size=256, chunk_overlap=0)
_FIRST_RECORDS: Final = 50
"""Among them is one that tells the folder of a session."""

_FILE: Final = "file"
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
    dated = sorted((path.stat().st_mtime, path) for path in found)
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
    with path.open("rb") as file:
        for line in islice(file, _FIRST_RECORDS):
            try:
                begun = host.begun(path, read_json(line))
                if begun is not None and all(isinstance(each, str) for each in begun):
                    return begun
            except (LookupError, TypeError, ValueError, AttributeError, OSError):
                continue
    return None


async def import_documents(project: LLMMemoryManager, folder: Path, *, trust: bool) -> int:
    """Keep what `CLAUDE.md`, `AGENTS.md` and the rules of Cursor in a folder say, by sections.

    A section that changed replaces the one before it, and what is there no more is retired. A file
    of more than 1 MB, or one that a link leads out of the folder to, is left out.

    Args:
        project: The memories of the project.
        folder: The folder of the project.
        trust: Whether they count as a person's words. Otherwise they have the origin `document`.

    Returns:
        How many sections there are.

    Raises:
        OSError: A file cannot be read.
        BackendError: The store failed.
    """
    origin = Origin.PERSON if trust else Origin.DOCUMENT
    found = await asyncio.to_thread(_sections, folder, origin)
    await project.save(found)
    keys = {each.key for each in found}
    known = [each async for each in project.memories(MemoryType.REFERENCE)]
    for each in known:
        if _FILE in each.metadata and each.key not in keys:
            await project.delete(each.id)
    return len(found)


def _sections(folder: Path, origin: Origin) -> list[Memory]:
    root, found = folder.resolve(), list[Memory]()
    for path in sorted(each for name in _DOCUMENTS for each in root.glob(name)):
        if not path.resolve().is_relative_to(root) or path.stat().st_size > _LARGEST:
            continue
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [
            Memory(
                key=f"{name}#{each.index}",
                content=each.text,
                type=MemoryType.REFERENCE,
                metadata={"origin": origin.value, _FILE: name},
            )
            for each in chunk_text(text, config=_SECTION, kind="markdown")
        ]
    return found
