"""The work of a hook of a coding agent: what it shows of an event, and what it keeps.

What it could not keep in its time, the next hook keeps, of whatever session it is.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from getpass import getuser
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory.errors import VersionConflictError
from locus_memory.memory import LLMMemoryManager, Memory, MemoryOptions, MemoryType, Origin
from locus_memory.memory.batch import insisting
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import said_at
from locus_memory.messages import Message
from locus_memory.plug import journal
from locus_memory.plug.data_folder import data_folder, log, log_file
from locus_memory.plug.hosts import HOSTS, KEEPING, Host, Moment
from locus_memory.plug.projects import project_of
from locus_memory.plug.settings import COMMAND, plug_file
from locus_memory.plug.transcripts import Said, new_turns, read_json, turns_of
from locus_memory.registry import get_store
from locus_memory.state import AgentState
from locus_memory.store import BaseStore
from locus_memory.store.base import all_keys
from locus_memory.store.item import Namespace

__all__ = ["Settings", "answer", "distil", "give", "here", "show", "work"]

_SHARES: Final = (1_500, 500)
"""The tokens of what is shown of a project, and of a person. Hosts cut what is longer than 10,000
characters."""

_KNOWN: Final = 1_000
"""The messages of a session without a file whose ids are remembered: one taken back may return."""

_LATE: Final = 3_600.0
"""The seconds for which a status line tells of a failure."""

_SPACE: Final = ("locus_memory", "plug", "transcripts")
_FIRST: Final = ("locus_memory", "plug", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the settings of a host tell a hook.

    Attributes:
        url: The database.
        person: Whose memories are shown in every project.
        by_remote: Whether clones of the same remote are one project, see `project_of`.
        model: The model that extracts facts and notes; `None`: words and phrases only.
    """

    url: str
    person: str
    by_remote: bool = False
    model: str | None = None

    @classmethod
    def read(cls, arguments: list[str]) -> Settings:
        """Read options; all have a value but `--by-remote`. `--options` is a file of them.

        Raises:
            OSError: The file cannot be read.
        """
        given = dict(pairwise(arguments))
        if "--options" in given:
            return cls.read(orjson.loads(Path(given["--options"]).read_bytes()))
        return cls(
            url=given.get("--url") or f"sqlite:{data_folder() / 'agents.db'}",
            person=given.get("--person") or f"person:{_login()}",
            by_remote="--by-remote" in arguments,
            model=given.get("--model"),
        )

    @classmethod
    def of(cls, folder: Path) -> Settings | None:
        """Return the settings with which a host is plugged in a folder or above; `None`: none is.

        Those of a folder come first. Nothing in the folder itself is read: anybody may have
        written it.

        Raises:
            OSError: A file of the user cannot be read.
        """
        places = [folder, *folder.parents, None]
        files = (plug_file(host, place) for place in places for host in HOSTS)
        return next((cls.read(["--options", f"{each}"]) for each in files if each.exists()), None)

    def opened(self) -> BaseStore:
        """Return the store. A process that searches once needs no cache, nor numpy to make one."""
        quick = {"vector_cache_bytes": 0} if self.url.startswith("sqlite:") else {}
        return get_store(self.url, **quick)

    def project(self, folder: str) -> str:
        """Return the name of the project of a folder."""
        return project_of(Path(folder), by_remote=self.by_remote)


def _login() -> str:
    """Return the login of the user, or its number, where a container gives it no name."""
    try:
        return getuser()
    except (KeyError, OSError):
        return f"{os.getuid()}"


def here(arguments: list[str]) -> list[str]:
    """Return the arguments of a command with the database and the user of the project around.

    They stay as they are if they name a database, or the environment does, if there is a
    `locus.db`, or if no host is plugged.

    Args:
        arguments: Those of a command that has a `--user`.
    """
    named = {each.partition("=")[0] for each in arguments}
    place = next((n for n, each in enumerate(arguments, 1) if not each.startswith("-")), 0)
    # `forget --user` without a key erases all of a user: somebody has to ask for that.
    first = arguments[place] if place < len(arguments) else "-"
    has_key = "--query" in named or not first.startswith("-")
    is_open = arguments[place - 1] == "forget" and not has_key
    is_named = is_open or bool(named & {"--user", "--all-users"})
    if "--url" in named or "LOCUS_MEMORY_URL" in os.environ or Path("locus.db").exists():
        return arguments
    # A `RuntimeError`: the user has no home folder.
    with suppress(OSError, ValueError, TypeError, RuntimeError):
        if (settings := Settings.of(Path.cwd())) is not None:
            user = [] if is_named else ["--user", settings.project(".")]
            if user and arguments[place - 1] in {"recall", "why"} and "--person" not in named:
                user += ["--person", settings.person]
            return ["--url", settings.url, *arguments[:place], *user, *arguments[place:]]
    return arguments


def work(name: str, options: list[str], text: bytes) -> bytes:
    """Do what an event asks for; returns what a host expects as the answer, of JSON.

    Args:
        name: The name of the host.
        options: Those of the hook, see `Settings.read`.
        text: The event, of JSON.

    Raises:
        LocusMemoryError: The database failed.
        ValueError: The event is no JSON.
        KeyError: It lacks what its host documents.
        OSError: The transcript cannot be read.
    """
    if shown := show([name, *options], text):
        return shown
    event, settings = read_json(text), Settings.read(options)
    opened = journal.write(name, options, event)
    asyncio.run(answer(HOSTS[name], event, settings))
    journal.close(opened)
    is_end = HOSTS[name].moments[event["hook_event_name"]] is Moment.END
    if is_end and settings.model is not None:
        _begin_distilling(event["cwd"], options)
    _make_up()
    return b"{}"


def show(arguments: Sequence[str], text: bytes) -> bytes:
    """Return the answer to an event that asks for what is known; empty: it asks to keep something.

    Args:
        arguments: The name of the host, or `status` for a status line, and the options of the hook.
        text: The event, as for `work`, which names the errors.
    """
    name, *options = arguments
    event, settings = read_json(text), Settings.read(options)
    if name == "status":
        return asyncio.run(_status(settings, event["cwd"])).encode()
    moment = HOSTS[name].moments[event["hook_event_name"]]
    if moment in KEEPING:
        return b""
    output = asyncio.run(answer(HOSTS[name], event, settings))
    if moment is Moment.START and journal.left():
        output["systemMessage"] = f"locus-memory has yet to keep a session: see {log_file()}"
    return orjson.dumps(output)


async def _status(settings: Settings, folder: str) -> str:
    """Return a line that tells how much is known, and whether hooks failed of late."""
    users = {"project": settings.project(folder), "person": settings.person}
    async with settings.opened() as store:
        spaces = [
            Scope(LLMMemoryManager(store).for_user(each).namespace) for each in users.values()
        ]
        counts = [len(await all_keys(store, each.current)) for each in spaces]
    told = ", ".join(f"{count} of the {name}" for name, count in zip(users, counts, strict=True))
    path = log_file()
    failed = journal.left() or (path.exists() and time.time() - path.stat().st_mtime < _LATE)
    return f"memories: {told}" + (f" | a hook failed: see {path}" if failed else "")


def _make_up() -> None:
    """Keep what hooks before left: they failed, ran out of time, or were killed."""
    for path in journal.left():
        with suppress(Exception):
            name, options, event = journal.read(path)
            try:
                asyncio.run(answer(HOSTS[name], event, Settings.read(options)))
            except FileNotFoundError as error:
                log(error)
            journal.close(path)


def _begin_distilling(folder: str, options: Sequence[str]) -> None:
    """Start a process that outlives the hook, and the host."""
    command = [*COMMAND, "distil", *options]
    nothing = subprocess.DEVNULL
    subprocess.Popen(  # noqa: S603 - the command of this process itself
        command, cwd=folder, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )


def distil(settings: Settings) -> None:
    """Have the model read what waits of the project of the working folder."""

    async def read() -> None:
        async with (
            settings.opened() as store,
            LLMMemoryManager(store, extract_fn=settings.model) as manager,
        ):

            async def is_own(memory: Memory) -> bool:
                found = await store.get(_SPACE, str(memory.metadata.get("thread_id"))) or {}
                return bool(found.get("person", settings.person) == settings.person)

            project = manager.for_user(settings.project("."))
            await project.sync_now()
            await give(project, manager.for_user(settings.person), is_own)

    try:
        asyncio.run(read())
    except Exception as error:  # noqa: BLE001 - nobody waits for this process
        log(error)


async def give(
    project: LLMMemoryManager,
    person: LLMMemoryManager,
    is_own: Callable[[Memory], Awaitable[bool]] | None = None,
) -> None:
    """Move what the user said of himself, and how he wants to be served, to every project.

    What the assistant, a tool or a document told stays, and so does what a person saved by hand.
    What is older than the person's own memory of the same key replaces nothing. Repeating it, after
    a kill as well, changes nothing.

    Args:
        project: The memories of a project.
        person: Those of the person.
        is_own: Whether this person told a memory: others may share the project; `None`: nobody
            does.

    Raises:
        BackendError: The store failed.
    """
    for kind in (MemoryType.USER, MemoryType.FEEDBACK):
        told = [each async for each in project.memories(kind, origins={Origin.USER})]
        told = [each for each in told if is_own is None or await is_own(each)]
        known = {each.key: said_at(each) async for each in person.memories(kind)}
        await person.save([each for each in told if said_at(each) >= known.get(each.key, "")])
        for each in told:
            await project.delete(each.id)


async def answer(host: Host, event: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return what a host expects as the answer to an event, as a value of JSON; empty: nothing.

    Args:
        host: The host.
        event: What it sent: the session, the folder, and what belongs to the event.
        settings: The settings of the hook.

    Raises:
        LocusMemoryError: The database failed.
        KeyError: The event lacks what its host documents.
        OSError: The transcript cannot be read.
    """
    name = event["hook_event_name"]
    moment, project = host.moments[name], settings.project(event["cwd"])
    async with settings.opened() as store:
        if moment in KEEPING:
            await _keep(store, host, event, project, settings)
            return {}
        thread, prompt = event["session_id"], event.get("prompt") or ""
        prompt = prompt if moment is Moment.PROMPT else None
        users = zip((project, settings.person), _SHARES, strict=True)
        shown = [
            await _shown(_manager(store, settings, most), user, thread, prompt)
            for user, most in users
        ]
    text = "\n".join(filter(None, shown))
    output = {"hookEventName": name, "additionalContext": text}
    return {"hookSpecificOutput": output} if text else {}


def _manager(store: BaseStore, settings: Settings, tokens: int = 0) -> LLMMemoryManager:
    """Return a manager that shows so many tokens; what waits for a model, it leaves to the model.

    The stable part is that of the start of the session, which the host still has.
    """
    has_model = settings.model is not None
    options = MemoryOptions(
        memory_budget_tokens=tokens,
        cache_idle=86_400.0,
        extract_mode="manual" if has_model else "inline",
    )
    return LLMMemoryManager(store, extract_fn=_not_now if has_model else None, options=options)


async def _shown(made: LLMMemoryManager, user: str, thread: str, prompt: str | None) -> str:
    """Return what is known of a user: for a message what answers it, else the stable part.

    What is new since the stable part was made stands in what answers a message.
    """
    state = AgentState(metadata={"thread_id": thread, "user_id": user})
    if prompt is not None:
        state = state.with_message(Message.user(prompt))
    async with made as manager:
        told = (await manager.on_session_start(state)).messages
    if prompt is None:
        return told[0].content or "" if told else ""
    return (told[-1].content or "").removesuffix(prompt).rstrip()


async def _keep(
    store: BaseStore, host: Host, event: Mapping[str, Any], project: str, settings: Settings
) -> None:
    """Keep what was said since the last hook, once each, however often this is repeated.

    Args:
        store: The store.
        host: The host.
        event: What it sent.
        project: Whose words they become.
        settings: The settings of the hook.
    """
    session, path = event["session_id"], event.get("transcript_path")
    found = await store.get_item(_SPACE, session)
    value: dict[str, Any] = found.value if found else {"place": 0}
    version = found.version if found else 0
    place, known = value["place"], value.get("known", [])
    told = turns_of(event.get("messages") or (), host.turn)
    sent = [message for message in told if message.id not in known]
    known = [*known, *(message.id for message in sent)][-_KNOWN:]
    is_last = host.moments[event["hook_event_name"]] is Moment.END
    parts = _told(Path(path), place, host, is_last=is_last) if path else [Said(sent, place)]
    # The first message, which the sessions share that copy each other; `None`: nothing was read so
    # far, and empty: it tells nothing.
    first = value.get("first", None if host.copies and not found else "")
    async with _manager(store, settings) as manager:
        scope = Scope(manager.for_user(project).namespace)
        for messages, end in parts:
            if first is None and messages:
                # A record without an id has its place in the file, which tells no copy.
                first = "" if (messages[0].id or "").isdecimal() else messages[0].id
            # A fork may have kept already what this session could not, such as after a kill.
            kin = await _kin(store, session, first) if first and messages else ()
            spaces = [scope.transcript(each) for each in kin]
            fresh = await _uncopied(store, spaces, messages) if kin else messages
            if fresh:
                await manager.add(fresh, user_id=project, thread_id=session)
            now = {"place": end, "known": known, "first": first, "person": settings.person}
            if now == value:
                continue
            with suppress(VersionConflictError):
                # Another hook of the session was faster: the next one finds what is known.
                version = await store.put(_SPACE, session, now, text="", if_version=version)


@insisting
async def _kin(store: BaseStore, session: str, first: str) -> list[str]:
    """Return the other sessions that begin with the same message, as those of a fork do."""
    found = await store.get_item(_FIRST, first)
    known: list[str] = found.value["sessions"] if found else []
    if session not in known:
        sessions = {"sessions": [*known, session]}
        version = found.version if found else 0
        await store.put(_FIRST, first, sessions, text="", if_version=version)
    return [each for each in known if each != session]


async def _uncopied(
    store: BaseStore, kept: Sequence[Namespace], messages: list[Message]
) -> list[Message]:
    """Return what is behind the last message that other sessions have, where theirs are kept."""
    condition = {"turn": {"$in": [each.id for each in messages]}}
    found = [
        item.metadata["turn"]
        for space in kept
        for item in await store.search(space, None, len(messages), filter=condition)
    ]
    last = max((n for n, each in enumerate(messages, 1) if each.id in found), default=0)
    return messages[last:]


def _told(path: Path, place: int, host: Host, *, is_last: bool) -> Iterable[Said]:
    """Return what was said in a file; a session that ends before its first message has none."""
    return () if is_last and not path.exists() else new_turns(path, place, host.turn)


async def _not_now(messages: object, existing: object) -> list[Any]:
    """Stand for the model, which reads what waits in a process of its own."""
    del messages, existing
    raise RuntimeError("a hook has no model: `distil` reads what waits")
