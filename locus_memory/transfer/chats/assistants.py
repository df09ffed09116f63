"""Readers of what assistants and their tools export: ChatGPT, Claude and LangSmith."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

from locus_memory.conversation.roles import REMEMBER
from locus_memory.transfer.chats.conversation import (
    Asked,
    Conversation,
    Entry,
    Unread,
    UnreadError,
    checked,
    field_of,
    moment_in,
    named,
)
from locus_memory.transfer.chats.openai import read_message

__all__ = ["read_chatgpt", "read_claude", "read_runs"]


def read_chatgpt(entry: Any, where: str) -> Conversation | None:
    """Return a conversation of ChatGPT: the branch of its tree that the user saw last.

    Raises:
        UnreadError: It is none.
    """
    mapping = field_of(entry, "mapping", dict, where)
    said = [_of_node(node, where) for node in _branch(mapping, entry.get("current_node"))]
    return _told(entry, [each for each in said if each], where, "title", "create_time")


def _branch(mapping: Mapping[str, Any], last: Any) -> list[dict[str, Any]]:
    """Return the nodes from the root to the current one, or else to the newest leaf."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    if not isinstance(last, str) or last not in nodes:
        parents = {str(node.get("parent")) for node in nodes.values()}
        leaves = [name for name in nodes if name not in parents]
        last = max(leaves, key=lambda name: _moment_of(nodes[name]) or "", default=None)
    found: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in nodes and last not in found:
        found[last] = nodes[last]
        last = nodes[last].get("parent")
    return list(found.values())[::-1]


def _moment_of(node: Mapping[str, Any]) -> str | None:
    message = node.get("message")
    return moment_in(message.get("create_time")) if isinstance(message, dict) else None


def _of_node(node: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """Return the message of a node, unless it is hidden, or one between the model and a tool."""
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    author, content, metadata = (
        each if isinstance(each, dict) else {}
        for each in map(message.get, ("author", "content", "metadata"))
    )
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if is_hidden or message.get("recipient") not in (None, "all"):
        return None
    parts = content.get("parts")
    texts = parts if isinstance(parts, list) else [content.get("text")]
    return _said(
        author.get("role"), texts, message.get("id"), _moment_of(node), where=where, extra={}
    )


def read_claude(entry: Any, where: str) -> Conversation | None:
    """Return a conversation of Claude.

    Raises:
        UnreadError: It is none.
    """
    listed = field_of(entry, "chat_messages", list, where)
    said = [_of_claude(each, where) for each in listed if isinstance(each, dict)]
    return _told(entry, [each for each in said if each], where, "name", "created_at")


def _of_claude(message: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    blocks = message.get("content")
    texts = blocks if isinstance(blocks, list) else []
    if not any(isinstance(each, dict) and each.get("text") for each in texts):
        texts = [message.get("text")]
    role = "user" if message.get("sender") == "human" else message.get("sender")
    files = message.get("attachments")
    extra = {"attachments": files} if isinstance(files, list) and files else {}
    moment = moment_in(message.get("created_at"))
    return _said(role, texts, message.get("uuid"), moment, where=where, extra=extra)


def _said(
    role: Any,
    texts: Iterable[Any],
    name: Any,
    moment: str | None,
    *,
    where: str,
    extra: dict[str, Any],
) -> dict[str, Any] | None:
    """Return a message of the user or the assistant; `None` if it is none, or has no text."""
    parts = [each.get("text") if isinstance(each, dict) else each for each in texts]
    text = "\n".join(part for part in parts if isinstance(part, str) and part)
    if role not in ("user", "assistant") or not (text.strip() or extra):
        return None
    metadata = extra | ({"said_at": moment} if moment else {})
    message = {"role": role, "content": text}
    message |= {"id": name} if isinstance(name, str) and name else {}
    return checked(message | ({"metadata": metadata} if metadata else {}), where)


def _told(
    entry: Mapping[str, Any], said: list[dict[str, Any]], where: str, title: str, began: str
) -> Conversation | None:
    """Return a conversation; `None` if nothing was said, as in one that was never begun."""
    if not said:
        return None
    name = next(filter(None, map(entry.get, ("conversation_id", "id", "uuid"))), "")
    if not isinstance(name, str):
        raise UnreadError(f"{where}: its id is not a string")
    about = entry.get(title)
    metadata = {"title": about} if isinstance(about, str) and about else {}
    return Conversation(name, said, metadata, moment=moment_in(entry.get(began)))


_FIELDS: Final = (
    "messages",
    "generations",
    "choices",
    "message",
    "output",
    "answer",
    "input",
    "question",
    "query",
    "text",
)
"""The fields of inputs and outputs that hold messages or a text, in the order of preference."""
_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_DEEP: Final = 6


def read_runs(entries: Iterable[Entry], asked: Asked) -> Iterator[Conversation | Unread]:
    """Yield the threads of LangSmith's runs: of each root run, the last turn.

    Runs of a thread stand anywhere in an export, so the turns of all are kept until its end; what
    came before them, which a run repeats, is not. A thread of several users is a conversation of
    each, and keeps its name in that of the first.
    """
    turns: dict[tuple[str, str], list[tuple[str, list[dict[str, Any]]]]] = {}
    for entry in entries:
        where = asked.source + entry.place("run")
        try:
            run = entry.read(where)
            said = _of_run(run, where)
        except UnreadError as error:
            yield Unread(str(error))
            continue
        if said:
            moment = moment_in(run.get("start_time")) or ""
            known = _metadata_of(run)
            threads = (run.get("thread_id"), *map(known.get, _THREADS))
            name = _first_of(*threads, run.get("trace_id"), run.get("id"))
            key = (name, _first_of(known.get("user_id")))
            turns.setdefault(key, []).append((moment, said))
    seen: set[str] = set()
    for (name, user), found in sorted(turns.items(), key=lambda each: min(at for at, _ in each[1])):
        said = [message for _, each in sorted(found, key=itemgetter(0)) for message in each]
        thread = f"{name}-{user}" if name in seen else name
        seen.add(name)
        yield named(Conversation(thread, said, {"user_id": user} if user else {}), asked, 0)


def _metadata_of(run: Mapping[str, Any]) -> dict[str, Any]:
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _first_of(*names: Any) -> str:
    """Return the text of the first that is a name: a text or a number."""
    found = (each for each in names if isinstance(each, str | int) and not isinstance(each, bool))
    return next(filter(None, map(str, found)), "")


def _of_run(run: Any, where: str) -> list[dict[str, Any]]:
    """Return what the user said in a run, and what was answered; nothing of one inside another.

    The turn begins with the last message of the user in the inputs. A human message with a name
    that only the outputs have is another agent's.
    """
    if not isinstance(run, dict):
        raise UnreadError(f"{where}: not an object")
    if run.get("parent_run_id"):
        return []
    asked, answered = (
        [read_message(each, where) for each in _messages_in(run.get(name), role)]
        for name, role in (("inputs", "user"), ("outputs", "assistant"))
    )
    known = [_words_of(each) for each in asked]
    # The state of a graph has its inputs as well.
    is_state = [_words_of(each) for each in answered[: len(asked)]] == known
    whole = [
        each | {"role": "assistant"}
        if each["role"] == "user" and each.get("name") and _words_of(each) not in known
        else each
        for each in (answered if is_state else asked + answered)
    ]
    users = [each for each in asked if each["role"] == "user"]
    starts = [
        place
        for place, each in enumerate(whole)
        if each["role"] == "user" and (not users or _words_of(each) == _words_of(users[-1]))
    ]
    # LangSmith's moments are in UTC, without saying so.
    began = run.get("start_time")
    moment = moment_in(f"{began}+00:00") or moment_in(began)
    mark: dict[str, Any] = {"said_at": moment} if moment else {}
    mark |= {REMEMBER: False} if _metadata_of(run).get(REMEMBER) is False else {}
    told: list[dict[str, Any]] = []
    for each in whole[starts[-1] if starts else 0 :]:
        metadata: Any = each.get("metadata") or {}
        told.append(checked({**each, "metadata": {**metadata, **mark}}, where))
    return told


def _words_of(message: Mapping[str, Any]) -> list[Any]:
    return [message.get(name) for name in ("role", "name", "content")]


def _messages_in(value: Any, role: str, depth: int = 0) -> list[Any]:
    """Return the messages in the inputs or outputs of a run; a text is one of that role."""
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list) and depth < _DEEP:
        return [each for part in value for each in _messages_in(part, role, depth + 1)]
    if not isinstance(value, dict) or depth >= _DEEP:
        return []
    if "content" in value or "kwargs" in value or "data" in value:
        return [
            value
            if "role" in value or "type" in value or "id" in value
            else {**value, "role": role}
        ]
    inner = next((value[name] for name in _FIELDS if value.get(name)), None)
    return _messages_in(inner, role, depth + 1)
