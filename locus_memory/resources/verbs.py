"""The verbs of a tree: an operation each, with its result or an error."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from locus_memory.errors import MemoryBackendError
from locus_memory.resources.failures import as_error
from locus_memory.resources.operations import (
    Level,
    MemoryOp,
    MemoryOpCommit,
    MemoryOpDelete,
    MemoryOpFind,
    MemoryOpHistory,
    MemoryOpList,
    MemoryOpMove,
    MemoryOpRead,
    MemoryOpResource,
    MemoryOpSearch,
    MemoryOpTree,
    MemoryOpWrite,
    WriteMode,
)
from locus_memory.resources.results import (
    MemoryCommitResult,
    MemoryDeleteResult,
    MemoryExecutionFailure,
    MemoryFindResult,
    MemoryHistoryResult,
    MemoryListResult,
    MemoryMoveResult,
    MemoryReadResult,
    MemoryResourceResult,
    MemoryResult,
    MemoryWriteResult,
)
from locus_memory.resources.uri import ROOT, MemoryURI

__all__ = ["MemoryVerbs"]

_Result = TypeVar("_Result", bound=MemoryResult)


class MemoryVerbs:
    """The verbs of a tree and of a handle; each makes an operation and dispatches it.

    A failure is raised as the error of its kind: `MemoryNotFound`, `MemoryConflict`,
    `InvalidMemoryURI`, `UnsupportedMemoryOp`, `MemoryTimeout`, `MemoryAccessDenied`,
    `MemoryExtractionFailed`, `BackendUnavailableError`, or `MemoryBackendError` for all others.
    """

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """The name of the backend."""

    @abstractmethod
    async def dispatch(self, op: MemoryOp) -> MemoryResult | MemoryExecutionFailure:
        """Return the result of an operation, or its failure."""

    async def write(
        self,
        uri: str | MemoryURI,
        content: str,
        *,
        mode: WriteMode = "replace",
        wait: bool = False,
        timeout_seconds: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MemoryWriteResult:
        """Write the text of an entry; see `MemoryOpWrite`."""
        op = MemoryOpWrite(uri, content, mode, wait, timeout_seconds, metadata)
        return await self._done(op, MemoryWriteResult, uri)

    async def read(
        self,
        uri: str | MemoryURI,
        level: Level = "detail",
        *,
        encoding: str | None = "utf-8",
        version: int | None = None,
    ) -> MemoryReadResult:
        """Read an entry at a level, or the summary of a folder; see `MemoryOpRead`."""
        op = MemoryOpRead(uri, level, encoding, version)
        return await self._done(op, MemoryReadResult, uri)

    async def list(
        self,
        uri: str | MemoryURI = ROOT,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> MemoryListResult:
        """List the children of a folder; see `MemoryOpList`."""
        op = MemoryOpList(uri, limit=limit, after=after)
        return await self._done(op, MemoryListResult, uri)

    async def tree(
        self,
        uri: str | MemoryURI = ROOT,
        depth: int = 2,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> MemoryListResult:
        """List what is below a folder; see `MemoryOpTree`."""
        op = MemoryOpTree(uri, depth, limit=limit, after=after)
        return await self._done(op, MemoryListResult, uri)

    async def find(
        self,
        query: str,
        target_uri: str | MemoryURI | None = None,
        top_k: int = 8,
        *,
        without: str | MemoryURI | None = None,
    ) -> MemoryFindResult:
        """Find entries; see `MemoryOpFind`."""
        op = MemoryOpFind(query, target_uri, top_k, without)
        return await self._done(op, MemoryFindResult, target_uri or ROOT)

    async def search(
        self,
        query: str,
        session_id: str | None = None,
        target_uri: str | MemoryURI | None = None,
        top_k: int = 8,
    ) -> MemoryFindResult:
        """Find entries with regard to a session; see `MemoryOpSearch`."""
        op = MemoryOpSearch(query, session_id, target_uri, top_k)
        return await self._done(op, MemoryFindResult, target_uri or ROOT)

    async def add_resource(
        self,
        source: str,
        target_uri: str | MemoryURI | None = None,
        *,
        reason: str = "",
        instruction: str = "",
        wait: bool = True,
        timeout_seconds: float | None = None,
    ) -> MemoryResourceResult:
        """Ingest a file, a folder or a page of the web; see `MemoryOpResource`."""
        op = MemoryOpResource(str(source), target_uri, reason, instruction, wait, timeout_seconds)
        return await self._done(op, MemoryResourceResult, target_uri or ROOT)

    async def commit(
        self,
        session_id: str,
        messages: Sequence[Any],
        used_uris: Sequence[str] = (),
        *,
        wait: bool = False,
        timeout_seconds: float | None = None,
    ) -> MemoryCommitResult:
        """Archive a session, and take memories from it; see `MemoryOpCommit`."""
        op = MemoryOpCommit(session_id, messages, used_uris, wait, timeout_seconds)
        return await self._done(op, MemoryCommitResult, ROOT)

    async def delete(self, uri: str | MemoryURI, *, recursive: bool = False) -> MemoryDeleteResult:
        """Delete an entry or a folder; see `MemoryOpDelete`."""
        return await self._done(MemoryOpDelete(uri, recursive), MemoryDeleteResult, uri)

    async def move(self, uri: str | MemoryURI, target_uri: str | MemoryURI) -> MemoryMoveResult:
        """Move an entry or a folder; see `MemoryOpMove`."""
        return await self._done(MemoryOpMove(uri, target_uri), MemoryMoveResult, uri)

    async def history(self, uri: str | MemoryURI) -> MemoryHistoryResult:
        """List the versions of an entry; see `MemoryOpHistory`."""
        return await self._done(MemoryOpHistory(uri), MemoryHistoryResult, uri)

    async def _done(self, op: MemoryOp, kind: type[_Result], uri: str | MemoryURI) -> _Result:
        answer = await self.dispatch(op)
        if isinstance(answer, MemoryExecutionFailure):
            raise as_error(answer, self.backend_name, op, str(uri))
        if not isinstance(answer, kind):
            raise MemoryBackendError(
                f"{self.backend_name} answered with {type(answer).__name__}, not {kind.__name__}"
            )
        return answer
