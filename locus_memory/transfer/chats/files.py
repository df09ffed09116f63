"""Files of chats by name: as they are, and in the ZIP archives that exports come in."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePath
from typing import BinaryIO, cast
from zipfile import BadZipFile, ZipFile

from locus_memory.transfer.chats.conversation import Asked, Conversation, Unread
from locus_memory.transfer.chats.formats import ChatFormat, read_chats

__all__ = ["has_chats", "read_file"]

_ZIP = b"PK\x03\x04"
_IS_ENCRYPTED = 1


def has_chats(path: str) -> bool:
    """Return whether a file is a ZIP archive with chats in it."""
    try:
        with ZipFile(path) as archive:
            return bool(_chats_in(archive))
    except BadZipFile:
        return False


def _chats_in(archive: ZipFile) -> list[str]:
    """Return the files with chats in an export; others are about the account, or are pictures."""
    names = [each for each in archive.namelist() if not each.endswith("/")]
    names = [each for each in names if not each.startswith("__MACOSX/")]
    files = [(name, PurePath(name).name) for name in names]
    listed = [n for n, file in files if file.startswith("conversations") and file.endswith(".json")]
    return listed or [name for name, file in files if file.endswith(".txt")]


def read_file(
    path: str, *, name: str | None, me: str | None, kind: ChatFormat | None
) -> Iterator[Conversation | Unread]:
    """Yield the conversations of a file, and what could not be read of it.

    Args:
        path: The file; in a ZIP archive, the files with chats are read.
        name: The id of a conversation for which the file has none; `None`: its own name.
        me: The speaker who is the user, in a chat between people.
        kind: The format; `None`: found by looking at the file.

    Raises:
        OSError: The file cannot be opened.
    """
    with Path(path).open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            file.seek(0)
            yield from read_chats(file, Asked(path, name or PurePath(path).stem, me), kind)
            return
    try:
        with ZipFile(path) as archive:
            members = _chats_in(archive)
            if not members:
                yield Unread(f"{path}: the ZIP archive has no chats")
            for member in members:
                stem = PurePath(path).stem
                own = stem if len(members) == 1 else f"{stem}-{PurePath(member).stem}"
                asked = Asked(f"{path}, {member}", name or own, me)
                yield from _of_member(archive, member, asked, kind)
    except BadZipFile as error:
        yield Unread(f"{path}: the ZIP archive is damaged: {error}")


def _of_member(
    archive: ZipFile, member: str, asked: Asked, kind: ChatFormat | None
) -> Iterator[Conversation | Unread]:
    if archive.getinfo(member).flag_bits & _IS_ENCRYPTED:
        yield Unread(f"{asked.source}: it is encrypted with a password")
        return
    try:
        with archive.open(member) as file:
            yield from read_chats(cast("BinaryIO", file), asked, kind)
    except NotImplementedError as error:
        yield Unread(f"{asked.source}: {error}")
    except (BadZipFile, EOFError, LZMAError, OSError, zlib.error) as error:
        yield Unread(f"{asked.source}: the ZIP archive is damaged: {error}")
