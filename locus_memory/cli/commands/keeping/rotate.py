"""The command `rotate`: encrypts all items and checkpoints with the active key."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.progress import one_bar
from locus_memory.cli.printing.tables import Cell, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.encryption.rotation import RotationReport

__all__ = ["rotate"]


def rotate(
    session: Session,
    *,
    accept_plain: Annotated[
        bool,
        typer.Option("--accept-plain", help="Also encrypt data that is not encrypted yet."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be encrypted.")
    ] = False,
) -> None:
    """Encrypt all items and checkpoints with the active key.

    The keys are in LOCUS_MEMORY_ENCRYPTION_KEYS, as ID=BASE64 joined by commas, or in the preset;
    the first is active, the others decrypt. You can stop it at any time, and the database stays
    in use: the next call continues.
    """
    work = partial(_rotate, accept_plain=accept_plain, dry_run=dry_run, quiet=session.as_json)
    session.show(work, _render)


async def _rotate(
    backend: Backend, *, accept_plain: bool, dry_run: bool, quiet: bool
) -> dict[str, Any]:
    from locus_memory.encryption.backend import EncryptingBackend  # noqa: PLC0415 - help must be quick
    from locus_memory.encryption.rotation import rotate as run  # noqa: PLC0415 - the same

    if isinstance(backend, EncryptingBackend) and accept_plain:
        backend = EncryptingBackend(backend.inner, replace(backend.keys, accept_plain=True))
    with one_bar("rotate", quiet=quiet) as show:

        def count(so_far: RotationReport) -> None:
            show(completed=so_far.items + so_far.checkpoints)

        report = await run(backend, dry_run=dry_run, on_progress=count)
    active = backend.keys.active if isinstance(backend, EncryptingBackend) else None
    return {"active": active, **asdict(report)}


def _render(console: Console, *, document: dict[str, Any]) -> None:
    verb = "would encrypt" if document["dry_run"] else "encrypted"
    rows: list[list[Cell]] = [
        [name, document[name], document[f"{name}_encrypted"]] for name in ("items", "checkpoints")
    ]
    print_table(console, ["*what", ">seen", f">{verb}"], rows)
    if document["plain"]:
        remark(console, f"{document['plain']} of them were readable before, whole or in part")
