"""The import of the memories of mem0, with their past versions, and of those of Osaurus."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from locus_memory.cli.foreign.family import Asked, Importer, Show
from locus_memory.errors import InvalidArgumentError
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.memories import open_manager
from locus_memory.inspection.names import parse_namespace
from locus_memory.transfer.chats.exact_json import parse_json

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.integrations.mem0.export import Exported
    from locus_memory.integrations.mem0.importing import CopiedMemories, MemorySource

__all__ = ["memory_importer", "osaurus_importer"]

_COLUMNS: Final = {
    "user": "user",
    "memories": ">memories",
    "changes": ">changes",
    "saved": ">new or changed",
}
_FAULTS: Final = {
    "unreadable": "changes that cannot be read are left out: {}",
    "unknown": "memories of an unknown user are left out: {}; name the user with --user",
}


def memory_importer(
    asked: Asked, source: AbstractAsyncContextManager[MemorySource] | None = None
) -> Importer[Any]:
    """Return the import of memories with their users.

    Args:
        asked: The options of the command.
        source: Opens them; `None`: the history of mem0, and the memories in a file of `get_all`.
    """

    async def copy(source: MemorySource, backend: Backend, show: Show) -> list[CopiedMemories]:
        from locus_memory.integrations.mem0.importing import import_memories  # noqa: PLC0415 - help must be quick

        def count(user: str | None, completed: int) -> None:
            show(user or "-", completed)

        manager = open_manager(backend.store, parse_namespace(asked.prefix))
        return await import_memories(
            source, manager, user=asked.user, trust=asked.trust, on_user=count
        )

    return Importer(
        listed="users",
        source=source or _opened(asked),
        copy=copy,
        columns=_COLUMNS,
        sums=("memories", "changes", "saved", "unreadable", "unknown"),
        faults=_FAULTS,
    )


@asynccontextmanager
async def _opened(asked: Asked) -> AsyncGenerator[MemorySource]:
    from locus_memory.integrations.mem0.history import open_history  # noqa: PLC0415 - help must be quick
    from locus_memory.integrations.mem0.importing import MemorySource  # noqa: PLC0415 - the same

    exported = _exported(asked.files[0]) if asked.files else None
    with ExitStack() as stack:
        history = stack.enter_context(open_history(asked.where)) if asked.where else None
        yield MemorySource(history, exported)


def osaurus_importer(asked: Asked) -> Importer[Any]:
    """Return the import of the memory of Osaurus."""
    return memory_importer(asked, _osaurus(asked.where))


@asynccontextmanager
async def _osaurus(where: str) -> AsyncGenerator[MemorySource]:
    from locus_memory.integrations.mem0.osaurus import open_osaurus  # noqa: PLC0415 - help must be quick

    with open_osaurus(where) as source:
        yield source


def _exported(name: str) -> list[Exported]:
    """Return the memories of a file.

    Raises:
        CommandError: It is no JSON of mem0; the error names the file and the memory.
    """
    from locus_memory.integrations.mem0.export import read_export  # noqa: PLC0415 - help must be quick

    source = "stdin" if name == "-" else name
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return read_export(parse_json(content.removeprefix(b"\xef\xbb\xbf")))
    except UnicodeDecodeError:
        raise CommandError(f"{source}: not UTF-8") from None
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{source}: not JSON: {error}") from None
    except InvalidArgumentError as error:
        raise CommandError(f"{source}: {error}") from None
