"""The memory store for Pydantic AI's harness; public as `integrations.pydantic_ai`."""

# The harness is installed in an environment of its own, for it needs another release of Pydantic AI
# than the conversation store.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from locus_memory._internal.providers.drivers import require
from locus_memory.backends.base import Backend
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import (
    DAMAGE,
    NOT_OURS,
    get_readable,
    readable,
    tell_unreadable,
)
from locus_memory.integrations.writing import written
from locus_memory.store.base import BaseStore
from locus_memory.store.item import (
    Namespace,
    Put,
    StoreItem,
    check_identifier,
    check_namespace,
    check_text,
    need_text,
    quick_put,
)

if TYPE_CHECKING:
    from pydantic_ai_harness.memory import (
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemorySearchResult,
    )

__all__ = ["LocusMemoryStore"]

_NAMESPACE: Final = ("pydantic_ai_memory",)
_DAY: Final = 86_400.0
_RECEIPTS: Final = 30 * _DAY
"""Seconds that the result of an operation is kept."""

_LAST: Final = "\U0010ffff"


def _harness() -> Any:
    """Return the module of the harness with its values, its errors and its checks.

    The checks are not public there, but every store of the harness shares them.
    """
    return require(
        "pydantic_ai_harness.memory._store", "pydantic-ai-harness", needed_by="LocusMemoryStore"
    )


@dataclass(frozen=True, slots=True)
class _File:
    """A stored file; a deleted one has no content, and keeps its place for a while."""

    content: str | None
    version: str | None
    operation: str | None
    metadata: str | None


class LocusMemoryStore(OverStore):
    """A memory store of Pydantic AI's harness that keeps files in any store of the library.

    It is a `MemoryStore`, a `MetadataMemoryStore` and a `SearchableMemoryStore`; it answers and
    raises as the harness's `InMemoryStore`. A version is an opaque text that is never used twice. A
    damaged file is read as missing, and told by the event `integrations.item_unreadable`; a write
    that expects no version replaces it.

    With transactions, a change and the receipt of its operation are written together. Without, a
    crash between the two leaves a change without a receipt. Receipts are kept for 30 days where the
    store has a TTL, else for good.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of these memories alone.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
        MissingDriverError: The package `pydantic-ai-harness` is not installed.
    """

    def __init__(
        self, where: str | BaseStore | Backend, *, namespace: Namespace = _NAMESPACE
    ) -> None:
        check_namespace(namespace)
        _harness()
        self._take(where)
        self._files = (*namespace, "files")
        self._receipts = (*namespace, "receipts")

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return the file at `path`, or `None` if it does not exist.

        Raises:
            ValueError: The path is invalid, or `max_chars` is not positive.
        """
        _harness().validate_store_path(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        found = await get_readable(self.store, self._files, path, _file_of)
        file = found[1] if found else None
        if file is None or file.content is None or file.version is None:
            return None
        return _harness().MemoryFile(
            content=file.content[:max_chars],
            version=file.version,
            operation_id=file.operation,
            truncated=len(file.content) > max_chars,
            metadata=_harness().decode_metadata(file.metadata),
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return the result of an operation that was done before.

        Raises:
            MemoryOperationConflictError: Its id was used with another fingerprint.
        """
        check_identifier(operation.id, "operation.id")
        found = await get_readable(self.store, self._receipts, operation.id, _receipt_of)
        if found is None:
            return None
        fingerprint, mutation = found[1]
        if fingerprint != operation.fingerprint:
            raise _harness().MemoryOperationConflictError(
                f"operation id {operation.id!r} was reused with different arguments"
            )
        return mutation

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Create or replace a file if its version is `expected_version`; records no metadata.

        Raises:
            MemoryConflictError: The file has another version.
            MemoryOperationConflictError: The id of the operation was used with other arguments.
            ValueError: The path or the content is invalid. Nothing is written.
        """
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Do what `write` does, and record metadata of the write.

        Raises:
            MemoryConflictError: As for `write`.
            MemoryOperationConflictError: As for `write`.
            ValueError: As for `write`, or the metadata is invalid.
            TypeError: The metadata is not made of strings.
        """
        _harness().validate_store_path(path)
        file = _File(
            need_text(content, "content"),
            uuid4().hex,
            operation.id if operation else None,
            check_text(_harness().encode_metadata(metadata), "metadata"),
        )
        return await self._change(path, file, expected_version, operation)

    async def delete(
        self,
        path: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Delete a file if its version is `expected_version`.

        Raises:
            MemoryConflictError: The file has another version.
            MemoryOperationConflictError: The id of the operation was used with other arguments.
            ValueError: The path is invalid.
        """
        _harness().validate_store_path(path)
        return await self._change(path, None, expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the first paths that start with `prefix`, in ascending order.

        Raises:
            ValueError: The prefix is invalid, or the limit is not positive.
        """
        _harness().validate_store_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        paths: list[str] = []
        async for item, file in self._below(prefix):
            if file.content is not None:
                paths.append(item.key)
            if len(paths) == limit:
                break
        return paths

    async def search(
        self,
        prefix: str,
        query: str,
        *,
        limit: int,
        max_files: int,
        max_chars: int,
        max_file_chars: int,
    ) -> MemorySearchResult:
        """Search the files directly below `prefix`, as the harness's own stores do.

        Raises:
            ValueError: The prefix is invalid.
        """
        _harness().validate_store_prefix(prefix)
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return _harness().MemorySearchResult(matches=[], scanned=0, truncated=False)
        files = await self._directly_below(prefix, max_files + 1)
        scanned = files[:max_files]
        result = await _harness().lexical_search(
            [(path, content[:max_file_chars]) for path, content in scanned],
            query,
            limit=limit,
            max_files=max_files,
            max_chars=max_chars,
            score_prefix=prefix,
        )
        cut = len(files) > max_files or any(len(each) > max_file_chars for _, each in scanned)
        return _harness().MemorySearchResult(
            matches=result.matches, scanned=result.scanned, truncated=result.truncated or cut
        )

    async def _change(
        self,
        path: str,
        file: _File | None,
        expected: str | None,
        operation: MemoryOperation | None,
    ) -> MemoryMutation:
        """Write or delete a file, with the receipt of the operation."""

        async def attempt() -> tuple[MemoryMutation, list[Put]]:
            if (done := await self._done(operation)) is not None:
                return done, []
            current, stored = await self._current(path)
            existed = current is not None and current.content is not None
            if (current.version if current and existed else None) != expected:
                # The same operation may have been done since the first look.
                if (done := await self._done(operation)) is not None:
                    return done, []
                verb = "deleted" if file is None else "written"
                raise _harness().MemoryConflictError(
                    f"memory path {path!r} changed before it could be {verb}"
                )
            version = None if file is None else file.version
            mutation = _harness().MemoryMutation(version=version, replayed=False, existed=existed)
            puts = [] if file is None and not existed else [self._put(path, file, stored)]
            if operation is not None:
                puts.append(self._receipt(operation, mutation))
            return mutation, puts

        return await written(self.store, attempt)

    async def _done(self, operation: MemoryOperation | None) -> MemoryMutation | None:
        return None if operation is None else await self.get_operation(operation)

    async def _current(self, path: str) -> tuple[_File | None, int | None]:
        """Return a file and the version of its item, which is 0 if there is none.

        A damaged one is told and read as missing; its version is `None` if it cannot be read.
        """
        version: int | None = None
        try:
            item = await self.store.get_item(self._files, path)
            if item is None:
                return None, 0
            version = item.version
            return _file_of(item), version
        except (*DAMAGE, *NOT_OURS) as error:
            tell_unreadable(self._files, path, error)
            return None, version

    def _put(self, path: str, file: _File | None, stored: int | None) -> Put:
        """Return the put of a file, or of what a deleted one leaves: its version is not reused."""
        if file is None:
            return quick_put(
                self._files, path, None, ttl=self._ttl(_DAY), if_version=stored, text=""
            )
        value = {
            "content": file.content,
            "version": file.version,
            "operation": file.operation,
            "metadata": file.metadata,
        }
        return quick_put(self._files, path, value, if_version=stored, text=file.content)

    def _receipt(self, operation: MemoryOperation, mutation: MemoryMutation) -> Put:
        value = {
            "fingerprint": need_text(operation.fingerprint, "operation.fingerprint"),
            "version": mutation.version,
            "existed": mutation.existed,
        }
        ttl = self._ttl(_RECEIPTS)
        return quick_put(self._receipts, operation.id, value, ttl=ttl, if_version=0, text="")

    def _ttl(self, seconds: float) -> float | None:
        return seconds if self.store.capabilities.ttl else None

    def _below(self, prefix: str, after: str | None = None) -> Any:
        return readable(self.store, self._files, _file_of, prefix=prefix or None, after=after)

    async def _directly_below(self, prefix: str, limit: int) -> list[tuple[str, str]]:
        """Return paths and contents; whole deeper folders are skipped."""
        found: list[tuple[str, str]] = []
        after: str | None = None
        while True:
            async for item, file in self._below(prefix, after):
                if not _harness().is_direct_child(prefix, item.key):
                    after = item.key[: item.key.index("/", len(prefix)) + 1] + _LAST
                    break
                if file.content is not None:
                    found.append((item.key, file.content))
                if len(found) == limit:
                    return found
            else:
                return found


def _file_of(item: StoreItem) -> _File:
    """Return a stored file.

    Raises:
        TypeError, LookupError: The item is not a file.
    """
    value = item.value
    if value is None:
        return _File(None, None, None, None)
    if not isinstance(value["content"], str):
        raise TypeError("the content of a file is a string")
    return _File(value["content"], value["version"], value["operation"], value["metadata"])


def _receipt_of(item: StoreItem) -> tuple[str, MemoryMutation]:
    value = item.value
    mutation = _harness().MemoryMutation(
        version=value["version"], replayed=True, existed=value["existed"]
    )
    return value["fingerprint"], mutation
