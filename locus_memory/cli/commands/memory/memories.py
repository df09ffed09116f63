"""The memory commands: memories, remember, history and undo."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory._internal.quoting import LONGEST
from locus_memory.cli.options.common import Limit, Offset
from locus_memory.cli.options.memories import (
    DEFAULT_PREFIX,
    AsOf,
    At,
    KeyArgument,
    Kind,
    Origin,
    Prefix,
    TypeOption,
    UserOption,
    moments,
)
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.memories import print_memories, print_versions
from locus_memory.cli.printing.output import note, remark
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.memories import (
    Row,
    describe,
    earlier,
    elsewhere,
    history_of,
    open_manager,
    remember_sentence,
    scoped_manager,
    secret_in,
    undo_change,
    users,
)
from locus_memory.inspection.names import near, parse_namespace
from locus_memory.inspection.sources import Sources
from locus_memory.inspection.text import snippet, visible_name
from locus_memory.store.item import check_text

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Memory

__all__ = [
    "collect",
    "history",
    "list_memories",
    "remember",
    "render_memories",
    "undo",
]

_ALL = 2**31
_NAMED = 5
_WORD = re.compile(r"\w{3,}")


def list_memories(
    session: Session,
    *,
    user: UserOption = None,
    all_users: Annotated[
        bool, typer.Option("--all-users", help="Memories of all users, and of no user.")
    ] = False,
    kind: TypeOption = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="WORDS", help="Only with one of these words, now or earlier."
        ),
    ] = None,
    as_of: AsOf = None,
    at: At = None,
    origin: Annotated[
        Origin | None, typer.Option("--origin", help="Only with this origin.")
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Also show the source messages.")
    ] = False,
    limit: Limit = 100,
    offset: Offset = 0,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """List the memories, with their sources.

    The newest memories come first; with --query, the best matches. Below each memory is the
    version that it replaced.
    """
    if all_users and user is not None:
        raise UsageError("give --user or --all-users, not both")

    async def work(backend: Backend) -> tuple[dict[str, Any], str]:
        manager = open_manager(backend.store, parse_namespace(prefix))
        known = await users(backend.store, manager)
        document = await collect(
            backend,
            manager,
            [None, *known] if all_users else [user],
            kind=kind,
            origin=origin,
            query=query,
            then=moments(as_of, at),
            page=slice(offset, offset + limit),
        )
        if not document["total"] and not all_users:
            alike = get_close_matches((user or "")[:LONGEST], known)
            document["others"] = [] if user in known else alike or known
        if document["total"] or all_users:
            return document, ""
        scoped = manager if user is None else manager.for_user(user)
        if query:
            return document, await _nearest_word(scoped, query)
        words = await backend.store.list_namespaces((*scoped.namespace, "transcript"), 1)
        return document, "; recall QUERY finds what was said" if words else ""

    document, hint = session.run(work)
    render = partial(
        render_memories,
        document=document,
        with_user=all_users,
        with_sources=sources,
        hint=hint,
    )
    session.answer(document, render)
    session.tell_more(document["more"], offset=document["next"])


async def _scoped(
    backend: Backend,
    *,
    work: Callable[..., Awaitable[Any]],
    key: str | None,
    user: str | None,
    prefix: str,
) -> Any:
    """Do something with a memory of a user; an error says where else it may be."""
    manager = scoped_manager(backend.store, parse_namespace(prefix), user)
    try:
        return await work(manager, Sources(backend))
    except CommandError as error:
        root = open_manager(backend.store, parse_namespace(prefix))
        told = await elsewhere(backend.store, root, key, user)
        raise CommandError(f"{error}{told}") from None


async def collect(
    backend: Backend,
    manager: LLMMemoryManager,
    wanted: list[str | None],
    *,
    kind: Kind | None = None,
    origin: Origin | None = None,
    query: str | None = None,
    then: Mapping[str, Any] | None = None,
    page: slice = slice(100),
) -> dict[str, Any]:
    """Return the memories of some users; `None` means memories without a user."""
    found: list[tuple[str | None, Memory]] = []
    for user in wanted:
        scoped = manager if user is None else manager.for_user(user)
        recalled = await _recall(scoped, kind, query, then or {}, origin and {origin.value})
        found += [(user, each) for each in recalled]
    if query is None:
        from locus_memory.memory.validity import said_at  # noqa: PLC0415 - help must be quick

        found.sort(key=lambda each: said_at(each[1]), reverse=True)
    sources = Sources(backend)
    rest = found[page.stop :]
    rows = [
        await describe(manager if user is None else manager.for_user(user), sources, memory, user)
        for user, memory in found[page]
    ]
    return {
        "namespace": list(manager.namespace),
        "total": len(found),
        "memories": rows,
        "more": len(rest),
        "next": page.stop if rest else None,
    }


async def _recall(
    manager: LLMMemoryManager,
    kind: Kind | None,
    query: str | None,
    then: Mapping[str, Any],
    origins: Collection[str] | None,
) -> list[Memory]:
    if query is None:
        return [memory async for memory in manager.memories(kind, origins=origins, **then)]
    check_text(query, "--query")
    # `retrieve` fills its result up with the newest memories: these are left out here.
    return [
        memory
        for memory in await manager.retrieve(query, _ALL, origins=origins, **then)
        if (kind is None or memory.type.value == kind.value)
        and await _mentions(manager, memory, query)
    ]


async def _mentions(manager: LLMMemoryManager, memory: Memory, query: str) -> bool:
    """Return whether a memory or an earlier version has a word of the query."""
    from locus_memory.store.text import query_words, stem, tokens  # noqa: PLC0415 - help must be quick

    words = {stem(word) for word in query_words(query)}
    if words.intersection(tokens(f"{memory.key}\n{memory.content}")):
        return True
    past = await earlier(manager, memory)
    return any(words.intersection(tokens(each.content)) for each in past)


async def _nearest_word(manager: LLMMemoryManager, query: str) -> str:
    """Return the end of a remark: the memories' word that is like one of a query, or nothing."""
    contents = " ".join([each.content async for each in manager.memories()])
    known = sorted(set(_WORD.findall(contents.casefold())))
    return next(filter(None, (near(each, known) for each in query.casefold().split())), "")


def render_memories(
    console: Console,
    *,
    document: dict[str, Any],
    with_user: bool,
    with_sources: bool,
    hint: str = "",
) -> None:
    """Print the table of memories; `hint` ends the remark that there are none."""
    rows: list[Row] = document["memories"]
    if rows:
        print_memories(console, rows, with_user=with_user, with_sources=with_sources)
    elif not document["total"]:
        remark(console, f"no memories{hint}")
    others = document.get("others") or []
    if others:
        named = ", ".join(visible_name(each) for each in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        remark(console, f"memories of users exist: {named}{more}; pass --user or --all-users")


def remember(
    session: Session,
    content: Annotated[
        str, typer.Argument(metavar="CONTENT", help="Sentence, such as 'Ada is a vegetarian.'")
    ],
    *,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="Key of the memory; generated by default."),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--type", help="Type of the memory; user by default.")
    ] = None,
    user: UserOption = None,
    valid_from: Annotated[
        str | None,
        typer.Option(
            "--valid-from", metavar="DAY", help="True since this day or moment, ISO 8601."
        ),
    ] = None,
    valid_to: Annotated[
        str | None,
        typer.Option("--valid-to", metavar="DAY", help="True to the end of this day, or moment."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Save it even if it looks like a secret.")
    ] = False,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Save a sentence as a memory; it replaces the memory with the same key.

    Without --key, a fact that the rules of the scripted chat know, such as a home, gets the
    key of these rules. Any other sentence gets a key of its first words, with a mark.
    """
    if not content.strip():
        raise UsageError("CONTENT is empty: give a sentence to remember")
    found = None if force else secret_in(content, key)
    if found is not None:
        raise CommandError(f"this looks like a secret ({found}): pass --force to save it")
    work = partial(
        _remember,
        content=content,
        key=key,
        kind=None if kind is None else kind.value,
        user=user,
        validity={"valid_from": valid_from, "valid_to": valid_to},
    )
    session.show(
        partial(_scoped, work=work, key=key, user=user, prefix=prefix),
        _render_remembered,
        create=True,
    )


async def _remember(
    manager: LLMMemoryManager, sources: Sources, *, key: str | None, **asked: Any
) -> Row:
    """Save a memory; a note tells of a new user or a new key that is like another."""
    known = [each.key async for each in manager.memories()]
    user: str | None = asked["user"]
    if user is not None and not known:
        others = await users(manager.store, manager)
        if user not in others and (told := near(user, others)):
            note(f"a new user{told}")
    saved = await remember_sentence(manager, sources, key=key, **asked)
    if key is not None and saved["key"] not in known and (told := near(saved["key"], known)):
        note(f"a new key{told}")
    return saved


def _render_remembered(console: Console, *, document: dict[str, Any]) -> None:
    name = f"{document['type']} {visible_name(document['key'])}"
    if not document["changed"]:
        line = f"{name}: already known"
    elif document["replaced"] is None:
        line = f"{name}: saved"
    else:
        line = f"{name}: saved, replaces: {snippet(document['replaced']['content'])}"
    console.out(line, highlight=False)


def history(
    session: Session,
    key: KeyArgument,
    *,
    user: UserOption = None,
    kind: TypeOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """List all versions of a memory, the newest first."""
    work = partial(history_of, key=key, kind=kind, user=user)
    rows = session.run(partial(_scoped, work=work, key=key, user=user, prefix=prefix))
    document = {"user": user, "key": key, "versions": rows}
    session.answer(document, lambda console: print_versions(console, rows))


def undo(
    session: Session,
    key: KeyArgument,
    *,
    user: UserOption = None,
    kind: TypeOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Undo the last change of a memory; repeat the command to go further back.

    A replaced or deleted memory becomes current again. A new memory is deleted.
    """
    work = partial(undo_change, key=key, kind=kind, user=user)
    session.show(partial(_scoped, work=work, key=key, user=user, prefix=prefix), _render_undone)


def _render_undone(console: Console, *, document: dict[str, Any]) -> None:
    rows = [("undone", document["taken_back"]), ("now", document["current"])]
    name = next(row for _, row in rows if row is not None)
    console.out(f"{name['type']} {visible_name(name['key'])}", highlight=False)
    for title, row in rows:
        content = "nothing" if row is None else snippet(row["content"])
        console.out(f"  {title + ':':<12}{content}", highlight=False)
