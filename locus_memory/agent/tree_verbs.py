"""What an agent writes to its tree, finds in it and commits to it when the program asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from locus_memory.agent.events import AgentResult
from locus_memory.conversation.roles import runs_off_record
from locus_memory.errors import ConfigurationError, InvalidArgumentError

if TYPE_CHECKING:
    from locus_memory.agent.resources import ResourceHooks
    from locus_memory.resources.results import (
        MemoryCommitResult,
        MemoryFindResult,
        MemoryWriteResult,
    )
    from locus_memory.resources.uri import MemoryURI

__all__ = ["TreeVerbs"]


class TreeVerbs:
    """The verbs of an agent over the tree that it got as `memory=` or `resources=`.

    They raise the errors of the tree: a failure is no event, since the program asked for it.
    """

    _resources: ResourceHooks | None

    async def remember_memory(
        self,
        content: str,
        *,
        scope: str = "user",
        category: str = "preferences",
        wait: bool = False,
        user_id: str | None = None,
    ) -> MemoryWriteResult:
        """Write a note as a new entry `memory://<scope>/memories/<category>/<id>`.

        Args:
            content: The text.
            scope: The top folder, such as `user`, `agent` or `session`.
            category: The folder of the note.
            wait: Whether to return only when its levels and vectors are made, too.
            user_id: The user whose tree it is; `None`: the tree as it was passed.

        Raises:
            ConfigurationError: The agent has no tree.
            MemoryAccessDenied: The tree belongs to another user.
            UnsupportedMemoryOp: The scope is `memories`, which a memory manager writes.
            InvalidMemoryURI: The scope or the category is no segment of a URI.
            BackendError: The store failed.
        """
        # Loaded only for agents with a tree.
        from locus_memory.resources.uri import MemoryURI  # noqa: PLC0415

        uri = MemoryURI((scope, "memories", category, uuid4().hex))
        return await (await self._tree.bound(user_id)).write(uri, content, wait=wait)

    async def recall_memory(
        self,
        query: str,
        *,
        top_k: int = 4,
        target_uri: str | MemoryURI | None = None,
        user_id: str | None = None,
    ) -> MemoryFindResult:
        """Find entries of the tree, the best first.

        Args:
            query: A question, or any words.
            top_k: At most this many.
            target_uri: Only entries here and below are found.
            user_id: The user whose tree it is; `None`: the tree as it was passed.

        Raises:
            ConfigurationError: The agent has no tree.
            MemoryAccessDenied: The tree belongs to another user.
            BackendError: The store failed.
        """
        return await (await self._tree.bound(user_id)).find(query, target_uri, top_k)

    async def commit_memory(
        self, session: AgentResult, *, wait: bool = False
    ) -> MemoryCommitResult:
        """Archive the thread of a result, and take memories from it; see `MemoryOpCommit`.

        Args:
            session: What a run returned; its user's tree is meant.
            wait: Whether to return only when the memories are extracted.

        Raises:
            ConfigurationError: The agent has no tree.
            InvalidArgumentError: The run was off the record.
            MemoryAccessDenied: The tree belongs to another user.
            BackendError: The store failed.
        """
        if runs_off_record(session.state):
            raise InvalidArgumentError("a run with remember=False is committed nowhere")
        tree = await self._tree.bound(session.state.metadata.get("user_id"))
        return await tree.commit(session.thread_id, session.state.messages, wait=wait)

    @property
    def _tree(self) -> ResourceHooks:
        if self._resources is None:
            raise ConfigurationError("the agent has no tree: pass it as memory=")
        return self._resources
