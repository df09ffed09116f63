"""The command `search`: text search, vector search and hybrid search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.common import Limit, MinScore, Offset, parse_object
from locus_memory.cli.options.memories import DEFAULT_PREFIX
from locus_memory.cli.options.models import (
    EMBEDDER_VARIABLE,
    EmbedderOption,
    RerankerOption,
    open_embedder,
    open_reranker,
)
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.hits import print_hits
from locus_memory.cli.printing.output import note, remark
from locus_memory.cli.printing.search_notes import search_notes
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.items import hit_fields, is_fact
from locus_memory.inspection.memories import known_user, open_manager, scoped_manager
from locus_memory.inspection.names import Labels, namespaces_below, parse_namespace

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.hybrid import Hit
    from locus_memory.store.base import BaseStore

__all__ = ["facts_first", "search"]

_SORTED = 100
"""How many of the best hits may change places."""

_SAME = 0.01
"""The difference of two relevances that counts as none."""

_LOOKED_AT = 20
"""Number of items per namespace to read the model of their vectors from."""


class Mode(StrEnum):
    """The search modes, without an import of the retrieval modules."""

    TEXT = "text"
    VECTOR = "vector"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The arguments of the command.

    Attributes:
        mode: The mode; `None` means every search that the embedder and the store support.
    """

    query: str
    user: str | None
    labels: Labels | None
    mode: Mode | None
    embedder: str | None
    reranker: str | None
    limit: int
    offset: int
    condition: dict[str, Any] | None
    min_score: float | None
    recursive: bool


def search(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Question, or any words.")],
    *,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="ID", help="Only what is kept of this user."),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode",
            help="Search mode; hybrid if --embedder names a model, else text.",
        ),
    ] = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the parts of each score.")
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="Only this namespace and those below; with --user, that of the agent's memories.",
        ),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Leave out the namespaces below.")] = False,
    condition: Annotated[
        str | None,
        typer.Option("--filter", metavar="JSON", help="Filter on the items, a JSON object."),
    ] = None,
    min_score: MinScore = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> None:
    """Find items by text search, vector search or both, the best first.

    Memories of users that answer the query as well as the best hit are listed before all others.

    """
    if exact and namespace is None:
        raise UsageError("--exact needs --namespace")
    if exact and user is not None:
        raise UsageError("give --exact or --user, not both")
    place = namespace or (user and DEFAULT_PREFIX)
    request = _Request(
        query=query,
        user=user,
        labels=None if place is None else parse_namespace(place),
        mode=Mode.TEXT if mode is None and embedder is None else mode,
        embedder=None if mode is Mode.TEXT else embedder,
        reranker=reranker,
        limit=limit,
        offset=offset,
        condition=parse_object(condition, "--filter"),
        min_score=min_score,
        recursive=not exact,
    )
    told, hits = session.run(partial(_search, request=request))
    items = [_described(hit, explain=explain) for hit in hits]
    following = told.pop("next")
    document = {"query": query, **told, "items": items, "next": following}
    session.answer(document, partial(_render, hits=hits, query=query, explain=explain))
    if following is not None:
        session.tell_more(None, offset=following)


async def _search(backend: Backend, *, request: _Request) -> tuple[dict[str, Any], Sequence[Hit]]:
    """Return the fields of the document, and the hits of the page."""
    from locus_memory.retrieval.hybrid import HybridSearch  # noqa: PLC0415 - help must be quick

    store = backend.store
    if request.labels is None:
        roots = [each async for each in namespaces_below(store, (), 1)]
    elif request.user is None:
        roots = [request.labels]
    else:
        roots = [scoped_manager(store, request.labels, request.user).namespace]
    if request.embedder is None and request.mode is not Mode.TEXT:
        raise UsageError(await _unnamed(store, roots, request.mode or Mode.HYBRID))
    embedder = None if request.embedder is None else open_embedder(request.embedder)
    reranker = None if request.reranker is None else open_reranker(request.reranker)
    told: dict[str, Any] = {"mode": request.mode or Mode.HYBRID, "embedder": None, "reranker": None}
    if not roots:
        return told | {"next": None}, []
    end = request.offset + request.limit
    hybrid = HybridSearch(store, embedder, reranker=reranker, fields=hit_fields())
    with search_notes(has_embedder=embedder is not None):
        result = await hybrid.search(
            roots,
            request.query,
            # One more hit than the page shows whether there is a next page.
            max(end + 1, _SORTED),
            filter=request.condition,
            recursive=request.recursive,
            explain=True,
            mode=None if request.mode is None else request.mode.value,
            min_score=request.min_score,
        )
    if embedder is not None and result.mode != "text":
        await _tell_of_no_vectors(store, roots, result, embedder)
    if not result and request.labels and request.user is not None:
        await known_user(store, open_manager(store, request.labels), request.user)
    hits = result if result.reranked else facts_first(result)
    told = {
        "mode": result.mode,
        "embedder": embedder.name if embedder and result.mode != "text" else None,
        "reranker": reranker.name if reranker and result.reranked else None,
        "next": end if len(hits) > end else None,
    }
    return told, hits[request.offset : end]


def facts_first(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return hits with the memories of users in front that are as relevant as the most relevant.

    A greeting that names somebody has a better score than a fact that answers the question.
    """
    first, rest = hits[:_SORTED], hits[_SORTED:]
    most = max((hit.relevance for hit in first), default=0.0) - _SAME
    return [*sorted(first, key=lambda hit: not is_fact(hit.item) or hit.relevance < most), *rest]


async def _unnamed(store: BaseStore, roots: Sequence[Labels], mode: Mode) -> str:
    """Return the error for a mode that needs a model, if none is named."""
    made_by = await _models(store, roots)
    told = f"; the stored vectors are of {' and of '.join(made_by)}" if made_by else ""
    return f"--mode {mode} needs a model: name one with --embedder or {EMBEDDER_VARIABLE}{told}"


async def _models(store: BaseStore, roots: Sequence[Labels]) -> list[str]:
    """Return the models of the newest vectors."""
    from locus_memory.retrieval.embedders.marks import (  # noqa: PLC0415 - help must be quick
        MARK,
        mark_of,
    )

    found: list[str] = []
    marked = {MARK: {"$exists": True}}
    for root in roots:
        for item in await store.search(root, None, _LOOKED_AT, filter=marked, recursive=True):
            mark = mark_of(item.metadata)
            told = mark and f"{mark.model} ({mark.dimension} dimensions)"
            if told and told not in found:
                found.append(told)
    return found


async def _tell_of_no_vectors(
    store: BaseStore, roots: Sequence[Labels], hits: Sequence[Hit], embedder: Embedder
) -> None:
    """Print a note if no item has a vector."""
    if any(hit.parts and hit.parts.vector_rank for hit in hits) or await _models(store, roots):
        return
    note(
        f"no item has a vector of {embedder.name}: "
        "create them with locus-memory reembed --include-unmarked"
    )


def _described(hit: Hit, *, explain: bool) -> dict[str, Any]:
    told = {"explanation": hit.parts.to_dict()} if explain and hit.parts else {}
    return hit.item.to_dict() | {"relevance": hit.relevance} | told


def _render(console: Console, *, hits: Sequence[Hit], query: str, explain: bool) -> None:
    if hits:
        print_hits(console, [hit.item for hit in hits], query, why=hits if explain else ())
    else:
        remark(console, "nothing found")
