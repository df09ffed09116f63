"""The state of an agent, which checkpoints hold and from which an agent resumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from locus_memory._internal.message_documents import MessageDocuments
from locus_memory._internal.notebook import table
from locus_memory._internal.quoting import quote
from locus_memory._internal.sameness import own_copy
from locus_memory.errors import InvalidMessageError
from locus_memory.messages import Message

__all__ = ["AgentState", "shared_checkpoint"]


class AgentState(BaseModel):
    """An immutable agent state; every change returns a new one that shares the rest.

    Attributes:
        run_id: Names the run.
        agent_id: Names the agent, if there are several.
        messages: The conversation, oldest first.
        iteration: How many model calls the run has made.
        metadata: The caller's own state, plain JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str = Field(default_factory=lambda: uuid4().hex)
    agent_id: str | None = None
    messages: tuple[Message, ...] = ()
    iteration: int = 0
    metadata: dict[str, Any] = Field(default_factory=dict)

    @override
    def __repr__(self) -> str:
        """Return the fields, long ones shortened, and the number of messages."""
        fields = ((name, value) for name, value in self if name != "messages" and value is not None)
        shown = "".join(f", {name}={quote(value)}" for name, value in fields)
        return f"<{type(self).__name__}: {len(self.messages)} messages{shown}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        said = [(message.role.value, message.content or "") for message in self.messages]
        return table([("run_id", self.run_id), ("metadata", self.metadata), *said])

    def with_message(self, message: Message) -> Self:
        """Return the state with one more message.

        Raises:
            InvalidMessageError: It is not a message.
        """
        return self.with_messages((message,))

    def with_messages(self, messages: Iterable[Message]) -> Self:
        """Return the state with more messages at the end.

        Raises:
            InvalidMessageError: One of them is not a message, or a single message is given.
        """
        longer = _documents(self).extended(_checked(messages))
        state = self.model_copy(update={"messages": longer.messages})
        vars(state)["_documents"] = longer
        return state

    def with_iteration(self, iteration: int) -> Self:
        """Return the state with another iteration count."""
        return self.model_copy(update={"iteration": iteration})

    def with_metadata(self, **changes: Any) -> Self:
        """Return the state with `changes` merged into its metadata."""
        return self.model_copy(update={"metadata": {**self.metadata, **changes}})

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the state as plain JSON, with a subclass's fields; the caller may change it."""
        copied: dict[str, Any] = own_copy(shared_checkpoint(self))
        return copied

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any]) -> Self:
        """Return the state that `to_checkpoint` wrote.

        Messages are validated one at a time, so that loading a long thread in a worker thread
        never blocks the event loop.

        Raises:
            pydantic.ValidationError: The document is not an agent state.
        """
        messages = tuple(map(Message.from_checkpoint, document.get("messages", ())))
        return cls.model_validate({**document, "messages": messages})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with `update` applied, without the cached serialised messages."""
        copied = super().model_copy(update=update, deep=deep)
        if update is not None and "messages" in update:
            vars(copied).pop("_documents", None)
        return copied


def _checked(messages: Any) -> tuple[Message, ...]:
    if isinstance(messages, Message | str) or not isinstance(messages, Iterable):
        raise InvalidMessageError(
            f"with_messages takes a list of messages, not {type(messages).__name__}:"
            " with_message takes one"
        )
    added = tuple(messages)
    for each in added:
        if not isinstance(each, Message):
            raise InvalidMessageError(
                f"a state holds Message objects, not {type(each).__name__}:"
                ' Message.user("...") makes one from text'
            )
    return added


def shared_checkpoint(state: AgentState) -> dict[str, Any]:
    """Return the result of `AgentState.to_checkpoint` without a copy; it must not be changed.

    The messages in it, and the list of them, are the same objects until a message changes.
    """
    verbatim = {"run_id", "messages", "metadata"}
    rest = state.model_dump(mode="json", exclude_defaults=True, exclude=verbatim)
    documents = vars(state)["_documents"] = _documents(state).current()
    document = {"run_id": state.run_id, "messages": documents.documents, **rest}
    # Not with pydantic, which converts values that JSON cannot hold instead of refusing them.
    if state.metadata:
        document["metadata"] = state.metadata
    return document


def _documents(state: AgentState) -> MessageDocuments:
    """Return the documents of the messages, which are computed once."""
    documents: MessageDocuments | None = vars(state).get("_documents")
    if documents is None or documents.messages is not state.messages:
        documents = MessageDocuments().extended(state.messages)
    return documents
