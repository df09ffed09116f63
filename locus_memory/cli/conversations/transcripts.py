"""Conversations for commands: the formats of files, reading a file, and writing messages.

A message of a state has `role` and `content`, and optionally `name`, `id`, `tool_calls`,
`tool_call_id` and `metadata`, as `locus_memory.messages.Message` reads them. Other fields of the
OpenAI format are kept in the metadata under `openai`, so that an exported message equals the
imported one.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePath
from tempfile import SpooledTemporaryFile
from typing import Any, cast

from locus_memory.inspection.errors import CommandError
from locus_memory.transfer.chats.conversation import Asked, Conversation, Unread
from locus_memory.transfer.chats.entries import SMALL
from locus_memory.transfer.chats.files import read_file
from locus_memory.transfer.chats.formats import ChatFormat, read_chats

__all__ = ["Format", "chats_in", "read_conversations"]


class Format(StrEnum):
    """The format of a file; those of chats are the `ChatFormat`s."""

    AUTO = "auto"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    OPENAI = "openai"
    LANGSMITH = "langsmith"
    WHATSAPP = "whatsapp"
    SLACK = "slack"
    SESSIONS = "sessions"
    TURNS = "turns"
    FACTS = "facts"
    ARCHIVE = "archive"
    LANGGRAPH = "langgraph"
    LANGGRAPH_STORE = "langgraph-store"
    OPENAI_AGENTS = "openai-agents"
    ADK = "adk"
    MEM0 = "mem0"
    OSAURUS = "osaurus"


def chats_in(
    path: str, *, kind: Format = Format.AUTO, name: str | None = None, me: str | None = None
) -> Iterator[Conversation | Unread]:
    """Yield the conversations of a file, and what could not be read of it.

    Args:
        path: The file; `-` is stdin.
        kind: The format of the file, one of chats.
        name: The id of a conversation for which the file has none.
        me: The speaker who is the user, in a chat between people.
    """
    chosen = None if kind is Format.AUTO else ChatFormat(kind)
    if path != "-":
        yield from read_file(path, name=name, me=me, kind=chosen)
        return
    # A reader may look at it twice.
    with SpooledTemporaryFile(SMALL) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.seek(0)
        yield from read_chats(cast("Any", file), Asked("stdin", name or "stdin", me), chosen)


def read_conversations(content: bytes, source: str) -> list[Conversation]:
    """Return the conversations of the content of a file.

    Raises:
        CommandError: The file is not valid; the error names the file and the entry.
    """
    found: list[Conversation] = []
    for each in read_chats(io.BytesIO(content), Asked(source, PurePath(source).stem)):
        if isinstance(each, Unread):
            raise CommandError(each.why)
        found.append(each)
    return found
