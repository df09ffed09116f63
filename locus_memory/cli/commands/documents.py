"""The commands `docs`: files are indexed, searched, listed and removed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory._internal.running.paging import paged
from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.common import Limit, MinScore, parse_object
from locus_memory.cli.options.confirmation import confirm, refuse_unasked
from locus_memory.cli.options.models import (
    EmbedderOption,
    RerankerOption,
    open_embedder,
    open_reranker,
)
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, remark
from locus_memory.cli.printing.tables import Cell, Cut, print_table
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.names import parse_namespace

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.documents.index import DocumentIndex
    from locus_memory.documents.values import Ingested, RetrievalResult, SourceInfo
    from locus_memory.events import Event

__all__ = ["commands"]

_PLACE = "documents"
_PAGE = 500
_COUNTS = ("added", "updated", "unchanged", "deleted", "chunks")

IndexNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Namespace of the documents."),
]


def _index(
    backend: Backend, place: str, embedder: str | None = None, reranker: str | None = None
) -> DocumentIndex:
    from locus_memory.documents.index import DocumentIndex  # noqa: PLC0415 - help must be quick

    return DocumentIndex(
        backend.store,
        namespace=parse_namespace(place),
        kind="text" if embedder is None else "hybrid",
        embedder=None if embedder is None else open_embedder(embedder),
        reranker=None if reranker is None else open_reranker(reranker),
    )


def documents(session: Session) -> None:
    """List the indexed documents, or add, search and remove some."""
    list_documents(session)


def add(
    session: Session,
    path: Annotated[str, typer.Argument(metavar="PATH", help="File or folder.")],
    *,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Text in front of each source.")
    ] = "",
    metadata: Annotated[
        str | None,
        typer.Option("--metadata", metavar="JSON", help="JSON object to store with each chunk."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete what is gone from the folder.")
    ] = False,
    embedder: EmbedderOption = None,
    place: IndexNamespace = _PLACE,
) -> None:
    """Index a file, or the files below a folder that have changed."""
    own = parse_object(metadata, "--metadata")
    if not path or not Path(path).exists():
        # Before a database comes into being for nothing.
        raise UsageError(f"there is no file and no folder {path!r}")

    async def work(backend: Backend) -> Ingested:
        index = _index(backend, place, embedder)
        with _bar(quiet=session.as_json):
            return await index.add_path(path, prefix=prefix, metadata=own, prune=prune)

    done = session.run(work, create=True)
    document: dict[str, Any] = {name: getattr(done, name) for name in _COUNTS}
    document["seconds"] = round(done.seconds, 3)
    document["skipped"] = [{"path": path, "reason": why} for path, why in done.skipped]
    document["notes"] = [{"path": path, "note": why} for path, why in done.notes]
    session.answer(document, partial(_print_added, done=done))


@contextmanager
def _bar(*, quiet: bool) -> Generator[None]:
    """Show a bar of the files on a terminal."""
    from locus_memory.cli.printing.progress import one_bar  # noqa: PLC0415 - help must be quick
    from locus_memory.events import subscribe  # noqa: PLC0415 - the same

    with one_bar("indexing", quiet=quiet) as show:

        def tell(event: Event) -> None:
            if event.name == "documents.ingested":
                done, total = event.attributes["number"], event.attributes["total"]
                show(completed=done, total=total)

        unsubscribe = subscribe(tell)
        try:
            yield
        finally:
            unsubscribe()


def _print_added(output: Console, done: Ingested) -> None:
    rows: list[list[Cell]] = [[getattr(done, name) for name in _COUNTS]]
    print_table(output, [f">{name}" for name in _COUNTS], rows)
    for path, why in done.skipped:
        note(f"skipped {path}: {why}", verbatim=True)
    for path, why in done.notes:
        note(f"{path}: {why}", verbatim=True)


def search(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Question, or any words.")],
    *,
    limit: Limit = 5,
    min_score: MinScore = None,
    condition: Annotated[
        str | None,
        typer.Option("--filter", metavar="JSON", help="Filter on the metadata, a JSON object."),
    ] = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    place: IndexNamespace = _PLACE,
) -> None:
    """Find the chunks that answer a question best."""
    matching = parse_object(condition, "--filter")

    async def work(backend: Backend) -> list[RetrievalResult]:
        index = _index(backend, place, embedder, reranker)
        if embedder is None and (model := await index.embedding_model()):
            note(f"words only: the index has vectors of {model}, which --embedder searches")
        return await index.retrieve(query, top_k=limit, min_score=min_score, filter=matching)

    found = session.run(work)
    document = {
        "query": query,
        "results": [
            {
                "content": each.content,
                "score": each.score,
                "source": each.source,
                "doc_id": each.doc_id,
                "index": each.index,
                "offset": each.offset,
                "metadata": each.metadata,
            }
            for each in found
        ],
    }
    session.answer(document, partial(_print_found, found=found))


def _print_found(output: Console, found: Sequence[RetrievalResult]) -> None:
    rows: list[list[Cell]] = [
        [f"{each.score:.2f}", _where(each), Cut(" ".join(each.content.split()))] for each in found
    ]
    print_table(output, [">score", "source", "~text"], rows, empty="nothing found")


def _where(found: RetrievalResult) -> str:
    source = found.source or found.doc_id
    return source if found.lines is None else f"{source}:{found.lines[0]}"


def list_documents(
    session: Session,
    *,
    limit: Limit = 100,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Only after this one.")
    ] = None,
    place: IndexNamespace = _PLACE,
) -> None:
    """List the indexed documents."""

    async def work(backend: Backend) -> list[SourceInfo]:
        return await _index(backend, place).sources(limit + 1, after)

    found = session.run(work)
    page, more = found[:limit], len(found) > limit
    cursor = page[-1].cursor if page and more else None
    document = {"documents": [_fields(each) for each in page], "next": cursor}
    session.answer(document, partial(_print_sources, found=page))
    if cursor is not None:
        session.tell_more(None, after=cursor)


def _fields(source: SourceInfo) -> dict[str, Any]:
    return {
        "source": source.source,
        "document": source.document,
        "chunks": source.chunks,
        "kind": source.kind,
        "digest": source.digest,
        "updated_at": source.updated_at.isoformat(),
    }


def _print_sources(output: Console, found: Sequence[SourceInfo]) -> None:
    rows: list[list[Cell]] = [
        [each.source or each.document, each.kind, each.chunks, each.updated_at] for each in found
    ]
    print_table(output, ["source", "kind", ">chunks", "updated"], rows, empty="no documents")


def remove(
    session: Session,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="Source, as 'docs ls' lists it.")
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Remove all documents.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    place: IndexNamespace = _PLACE,
) -> None:
    """Remove a document from the index; its file stays."""
    if (source is None) == (not everything):
        raise UsageError("name a SOURCE, or give --all")
    if everything and not yes:
        refuse_unasked("pass --yes to remove all documents")
        confirm("remove all documents of the index?")

    async def work(backend: Backend) -> int:
        index = _index(backend, place)
        return await (index.clear() if source is None else _removed(index, source))

    deleted = session.run(work)
    document = {"source": source, "chunks": deleted}
    session.answer(document, lambda output: remark(output, f"chunks removed: {deleted}"))


async def _removed(index: DocumentIndex, source: str) -> int:
    listed = paged(lambda after: index.sources(_PAGE, after), lambda each: each.cursor)
    async for each in listed:
        if source and source == each.source:
            return await index.delete_source(source)
        if source == each.document:
            # Others may have its source.
            await index.delete(source)
            return each.chunks
    raise CommandError(f"no document {source!r}: see locus-memory docs ls")


commands = subcommands(
    "docs",
    documents,
    {"add": add, "search": search, "ls": list_documents, "rm": remove},
)
