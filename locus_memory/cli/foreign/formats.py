"""The formats of `import` that are databases of other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from locus_memory.cli.conversations.transcripts import Format
from locus_memory.cli.foreign.adk import adk_importer
from locus_memory.cli.foreign.family import Asked, Importer, import_from
from locus_memory.cli.foreign.langgraph import saver_importer, store_importer
from locus_memory.cli.foreign.mem0 import memory_importer, osaurus_importer
from locus_memory.cli.foreign.openai_agents import session_importer
from locus_memory.inspection.errors import UsageError

if TYPE_CHECKING:
    from locus_memory.cli.options.session import Session

__all__ = ["FOREIGN", "import_foreign"]


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A format: its import, and the options that it takes besides `--from`."""

    importer: Callable[[Asked], Importer[Any]]
    options: frozenset[str] = frozenset()
    takes_file: bool = False


FOREIGN: Final = {
    Format.LANGGRAPH: _Foreign(saver_importer, frozenset({"thread"})),
    Format.LANGGRAPH_STORE: _Foreign(store_importer, frozenset({"embedder"})),
    Format.OPENAI_AGENTS: _Foreign(session_importer, frozenset({"thread"})),
    Format.ADK: _Foreign(adk_importer, frozenset({"thread"})),
    Format.MEM0: _Foreign(memory_importer, frozenset({"user", "trust"}), takes_file=True),
    Format.OSAURUS: _Foreign(osaurus_importer, frozenset({"user", "trust"})),
}
"""The formats that `--from` is for."""


def import_foreign(session: Session, kind: Format, asked: Asked) -> None:
    """Import from the database of another framework.

    Raises:
        UsageError: There is no database.
    """
    foreign = FOREIGN[kind]
    if foreign.takes_file:
        if len(asked.files) > 1 or not (asked.files or asked.where):
            raise UsageError(f"--format {kind} takes a database with --from, one FILE, or both")
    elif not asked.where or asked.files:
        raise UsageError(f"--format {kind} takes a database with --from, and no FILE")
    import_from(session, foreign.importer(asked))
