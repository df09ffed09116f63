"""Files in a store, with all their versions; every change is one transaction where there are any.

A file is an item whose key is its path, a folder an item whose key ends with `/`. The versions of a
file are in a namespace of its own, so they stay when the file is deleted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NoReturn

from anthropic.lib.tools import ToolError

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.reading import (
    DAMAGE,
    NOT_OURS,
    labels_below,
    readable,
    tell_unreadable,
)
from locus_memory.integrations.writing import written
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Namespace, Put, StoreItem, quick_put

__all__ = ["File", "FileVersion", "Files"]

_LEVELS: Final = 2
"""The depth of a listing."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A version of a file.

    Attributes:
        number: 1 for the first version of this path, one more for each change.
        command: The command that made it: `create`, `str_replace`, `insert`, `rename` or `delete`.
        text: The text of the file; `None`: there is no file since then, or it was redacted.
        redacted: Whether the text was erased by `redact`.
        created_at: When the change was made, UTC.
    """

    number: int
    command: str
    text: str | None
    redacted: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is stored: its text, the number of its version, and the version of its item."""

    path: str
    text: str
    number: int
    stored: int


class Files:
    """The files and folders of one memory, by their paths below its root.

    Args:
        store: The store of the files.
        namespace: The namespace of this memory alone.
    """

    def __init__(self, store: BaseStore, namespace: Namespace) -> None:
        self.store = store
        self._files = (*namespace, "files")
        self._versions = (*namespace, "versions")

    async def find(self, path: str) -> File | None:
        """Return a file, or `None` if there is none at this path.

        Raises:
            ToolError: It is damaged.
        """
        if not path:
            return None
        try:
            item = await self.store.get_item(self._files, path)
        except DAMAGE as error:
            self._refuse_damaged(path, error)
        try:
            return None if item is None else _file(item)
        except NOT_OURS as error:
            self._refuse_damaged(path, error)

    async def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at this path; the root always is one."""
        return not path or bool(await self.store.list_keys(self._files, 1, prefix=f"{path}/"))

    async def below(self, path: str) -> tuple[int, list[tuple[int, str]]]:
        """Return the bytes of all files in a folder, and those of each entry of its listing.

        Hidden entries, whose names begin with a period, are left out. A folder ends with `/`.
        """
        sizes: dict[tuple[str, ...], int] = {}
        folders: set[tuple[str, ...]] = set()
        total = 0
        async for item, file in self._tree(path):
            parts = tuple(item.key[len(path) + 1 if path else 0 :].rstrip("/").split("/"))
            count = 0 if file is None else len(file.text.encode())
            total += count
            folders.update(parts[:depth] for depth in range(1, len(parts)))
            if file is None:
                folders.add(parts)
            for depth in range(1, min(len(parts), _LEVELS) + 1):
                sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + count
        return total, [
            (sizes[parts], "/".join(parts) + ("/" if parts in folders else ""))
            for parts in sorted(sizes)
            if not any(part.startswith(".") for part in parts)
        ]

    async def create(self, path: str, text: str, shown: str) -> None:
        """Create a file and its folders.

        Raises:
            ToolError: There is something at this path, or a file where a folder must be.
        """

        async def attempt() -> tuple[None, list[Put | Delete]]:
            if not path or await self._exists(path):
                raise ToolError(f"File {shown} already exists")
            return None, [*await self._folders(path), *await self._new(path, text, "create")]

        await written(self.store, attempt)

    async def change(
        self, path: str, shown: str, command: str, edit: Callable[[str], tuple[str, str]]
    ) -> str:
        """Replace the text of a file with that of `edit`; return the answer of `edit`.

        `edit` is called again if another writer was first.

        Raises:
            ToolError: There is no file, or `edit` refuses its text.
        """

        async def attempt() -> tuple[str, list[Put | Delete]]:
            file = await self.find(path)
            if file is None:
                await self._refuse(path, shown)
            text, answer = edit(file.text)
            return answer, self._writes(path, text, command, file.number + 1, file.stored)

        return await written(self.store, attempt)

    async def delete(self, path: str, shown: str) -> None:
        """Delete a file, or a folder with all that is in it.

        Raises:
            ToolError: There is nothing at this path.
        """

        async def attempt() -> tuple[None, list[Put | Delete]]:
            if not path:
                raise ToolError("Cannot delete the /memories directory itself")
            found = [each async for each in self._moved(path)]
            if not found:
                raise ToolError(f"The path {shown} does not exist")
            return None, [
                each for key, file in found for each in self._removal(key, file, "delete")
            ]

        await written(self.store, attempt)

    async def rename(self, old: str, new: str, shown_old: str, shown_new: str) -> None:
        """Move a file, or a folder with all that is in it, to a path where nothing is.

        Raises:
            ToolError: There is nothing to move, something at the new path, or a file where a
                folder must be.
        """

        async def attempt() -> tuple[None, list[Put | Delete]]:
            if not old:
                raise ToolError("Cannot rename the /memories directory itself")
            if not new or await self._exists(new):
                raise ToolError(f"The destination {shown_new} already exists")
            if new.startswith(f"{old}/"):
                raise ToolError(f"The destination {shown_new} is below {shown_old}")
            found = [each async for each in self._moved(old)]
            if not found:
                raise ToolError(f"The path {shown_old} does not exist")
            changes = await self._folders(new)
            for key, file in found:
                target = new + key[len(old) :]
                if file is None:
                    changes.append(self._folder(target))
                else:
                    changes += await self._new(target, file.text, "rename")
                changes += self._removal(key, file, "rename")
            return None, changes

        await written(self.store, attempt)

    async def clear(self) -> None:
        """Delete all files, all folders and all versions."""
        await self.store.clear_namespace(self._files)
        for path in [each async for each in labels_below(self.store, self._versions)]:
            await self.store.clear_namespace((*self._versions, path))

    async def versions(self, path: str) -> list[FileVersion]:
        """Return the versions of a path, the oldest first."""
        history = (*self._versions, path)
        return [version async for _, version in readable(self.store, history, _version)]

    async def redact(self, path: str, number: int) -> None:
        """Erase the text of a version for good; the version stays.

        Raises:
            InvalidArgumentError: There is no such version, or it is the text that the file has.
        """
        history = (*self._versions, path)
        file = await self.find(path)
        if file is not None and file.number == number:
            raise InvalidArgumentError(
                f"version {number} is what the file has now: change or delete the file first"
            )
        item = await self.store.get_item(history, _key(number)) if type(number) is int else None
        if item is None:
            raise InvalidArgumentError(f"there is no version {quote(number)} of this path")
        value = {**item.value, "text": None, "redacted": True}
        await self.store.put(history, item.key, value, if_version=item.version, text="")
        await self.store.compact()

    async def _tree(self, path: str) -> AsyncIterator[tuple[StoreItem, File | None]]:
        """Yield the files and folders below a folder; a folder is `None`."""
        prefix = f"{path}/" if path else None
        async for item, file in readable(self.store, self._files, _file, prefix=prefix):
            if item.key != prefix:
                yield item, file

    async def _moved(self, path: str) -> AsyncIterator[tuple[str, File | None]]:
        """Yield the keys and files of a file or of a folder, the folder's own included."""
        if await self.is_folder(path):
            async for item, file in readable(self.store, self._files, _file, prefix=f"{path}/"):
                yield item.key, file
        elif (file := await self.find(path)) is not None:
            yield path, file

    async def _exists(self, path: str) -> bool:
        return await self.is_folder(path) or await self.store.exists(self._files, path)

    def _refuse_damaged(self, path: str, error: Exception) -> NoReturn:
        tell_unreadable(self._files, path, error)
        raise ToolError(f"The file /memories/{path} is damaged and cannot be read.") from error

    async def _refuse(self, path: str, shown: str) -> NoReturn:
        if await self.is_folder(path):
            raise ToolError(f"The path {shown} is not a file.")
        raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")

    async def _folders(self, path: str) -> list[Put | Delete]:
        """Return the puts of the folders above a path.

        Raises:
            ToolError: A file is where a folder must be.
        """
        parts = path.split("/")[:-1]
        above = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        taken = await self.store.get_batch([(self._files, each) for each in above])
        for _, each in taken:
            raise ToolError(f"The path /memories/{each} is not a directory.")
        return [self._folder(each) for each in above]

    def _folder(self, path: str) -> Put:
        return quick_put(self._files, f"{path.rstrip('/')}/", {"folder": True}, text="")

    async def _new(self, path: str, text: str, command: str) -> list[Put | Delete]:
        last = await self.store.scan((*self._versions, path), 1, descending=True)
        return self._writes(path, text, command, int(last[0].key) + 1 if last else 1, 0)

    def _writes(
        self, path: str, text: str, command: str, number: int, stored: int
    ) -> list[Put | Delete]:
        value = {"text": text, "number": number}
        return [
            quick_put(self._files, path, value, if_version=stored),
            self._record(path, number, text, command),
        ]

    def _removal(self, key: str, file: File | None, command: str) -> Iterable[Put | Delete]:
        if file is None:
            return [Delete(namespace=self._files, key=key)]
        return [
            Delete(namespace=self._files, key=key, if_version=file.stored),
            self._record(key, file.number + 1, None, command),
        ]

    def _record(self, path: str, number: int, text: str | None, command: str) -> Put:
        value = {"text": text, "command": command, "redacted": False}
        history = (*self._versions, path)
        return quick_put(history, _key(number), value, if_version=0, text="")


def _key(number: int) -> str:
    return f"{number:010d}"


def _file(item: StoreItem) -> File | None:
    """Return a file, or `None` for a folder.

    Raises:
        TypeError: It is neither.
    """
    if item.key.endswith("/"):
        return None
    text, number = item.value["text"], item.value["number"]
    if not isinstance(text, str) or type(number) is not int:
        raise TypeError("a file has a text and a number")
    return File(item.key, text, number, item.version)


def _version(item: StoreItem) -> FileVersion:
    value = item.value
    number = int(item.key)
    return FileVersion(number, value["command"], value["text"], value["redacted"], item.created_at)
