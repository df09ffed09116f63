"""The memory tools for `anthropic`, blocking and async; public as `integrations.anthropic`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)
from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit
from locus_memory.integrations.anthropic import editing
from locus_memory.integrations.anthropic.editing import check_whole, relative
from locus_memory.integrations.anthropic.files import Files, FileVersion
from locus_memory.integrations.owned import OverStore
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace
from locus_memory.sync import blocking

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaFunctionToolResultType
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

__all__ = ["AsyncLocusMemoryTool", "LocusMemoryTool"]

_NAMESPACE: Final = ("anthropic_memory",)


@contextmanager
def _shown_to_the_model() -> Generator[None]:
    """Tell the model of a failure without its details, and the log of all of it."""
    try:
        yield
    except LocusMemoryError as error:
        emit("integrations.call_failed", error=error, call="memory")
        raise ToolError(
            f"The memory failed ({type(error).__name__}); what is stored may be as before. "
            "Try again later."
        ) from error


class AsyncLocusMemoryTool(OverStore, BetaAsyncAbstractMemoryTool):
    """The memory tool of `anthropic` that keeps its files in any store of the library.

    Its answers are those of the SDK's `BetaAsyncLocalFilesystemMemoryTool`; the size of a folder is
    that of the files in it. A path that leaves `/memories` is refused. Several processes may use
    one memory: a change that another writer overtook is made again from the new text. Every version
    of a file is kept, see `versions` and `redact`.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of this memory, such as `("users", "ada")`: each has its own files.
        cache_control: As for the SDK's tools.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        check_namespace(namespace)
        self._files = Files(self._take(where), namespace)

    @override
    async def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        """Run a command of the model.

        Raises:
            ToolError: It failed. A failure of the store is an event as well.
        """
        with _shown_to_the_model():
            return await super().execute(command)

    @override
    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or the files in a folder."""
        path = relative(command.path, "path")
        file = await self._files.find(path)
        if file is not None:
            return editing.numbered(command.path, file.text, command.view_range)
        if not await self._files.is_folder(path):
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return editing.listing(command.path, *await self._files.below(path))

    @override
    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        check_whole(command.file_text, "file_text")
        await self._files.create(relative(command.path, "path"), command.file_text, command.path)
        return f"File created successfully at: {command.path}"

    @override
    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that is in a file once."""
        check_whole(command.old_str, "old_str")
        check_whole(command.new_str, "new_str")
        return await self._files.change(
            relative(command.path, "path"),
            command.path,
            "str_replace",
            lambda text: editing.replaced(command.path, text, command.old_str, command.new_str),
        )

    @override
    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line of a file."""
        check_whole(command.insert_text, "insert_text")
        return await self._files.change(
            relative(command.path, "path"),
            command.path,
            "insert",
            lambda text: (
                editing.inserted(text, command.insert_line, command.insert_text),
                f"The file {command.path} has been edited.",
            ),
        )

    @override
    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all that is in it."""
        await self._files.delete(relative(command.path, "path"), command.path)
        return f"Successfully deleted {command.path}"

    @override
    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        old, new = relative(command.old_path, "old_path"), relative(command.new_path, "new_path")
        await self._files.rename(old, new, command.old_path, command.new_path)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    @override
    async def clear_all_memory(self) -> str:
        """Delete all files with all their versions; the model cannot call this."""
        await self._files.clear()
        return "All memory cleared"

    async def versions(self, path: str) -> list[FileVersion]:
        """Return the versions of a path such as `/memories/notes.md`, the oldest first.

        Raises:
            ToolError: The path is not below `/memories`.
        """
        return await self._files.versions(relative(path, "path"))

    async def redact(self, path: str, number: int) -> None:
        """Erase the text of a version for good; that there was one stays known.

        Raises:
            InvalidArgumentError: There is no such version, or it is the text that the file has.
            ToolError: The path is not below `/memories`.
        """
        await self._files.redact(relative(path, "path"), number)


class LocusMemoryTool(BetaAbstractMemoryTool):
    """`AsyncLocusMemoryTool` for blocking clients, with the same arguments and methods.

    Its calls run in the background event loop of `locus_memory.sync`; inside a running event loop
    they raise `BlockingCallError`.

    Args:
        where: As for `AsyncLocusMemoryTool`.
        namespace: As for `AsyncLocusMemoryTool`.
        cache_control: As for the SDK's tools.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = blocking(AsyncLocusMemoryTool(where, namespace=namespace))

    @override
    def execute(self, command: BetaMemoryTool20250818Command) -> BetaFunctionToolResultType:
        with _shown_to_the_model():
            return super().execute(command)

    @override
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return str(self._tool.view(command))

    @override
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return str(self._tool.create(command))

    @override
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return str(self._tool.str_replace(command))

    @override
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return str(self._tool.insert(command))

    @override
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return str(self._tool.delete(command))

    @override
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return str(self._tool.rename(command))

    @override
    def clear_all_memory(self) -> str:
        """Delete all files with all their versions; the model cannot call this."""
        return str(self._tool.clear_all_memory())

    def versions(self, path: str) -> list[FileVersion]:
        """Return what `AsyncLocusMemoryTool.versions` does."""
        versions: list[FileVersion] = self._tool.versions(path)
        return versions

    def redact(self, path: str, number: int) -> None:
        """Do what `AsyncLocusMemoryTool.redact` does."""
        self._tool.redact(path, number)

    def close(self) -> None:
        """Close the store of a provider string."""
        self._tool.close()

    def __enter__(self) -> Self:
        self._tool.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
