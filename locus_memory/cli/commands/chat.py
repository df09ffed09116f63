"""The command `chat`: a conversation with an agent that has a memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix
from locus_memory.cli.options.models import BaseUrlOption, ModelOption, open_model
from locus_memory.cli.options.session import WithUrl
from locus_memory.inspection.errors import UsageError

if TYPE_CHECKING:
    from locus_memory.cli.commands.chat_session import Model
    from locus_memory.conversation.base import ConversationManager

__all__ = ["chat"]

_ConversationManager = Annotated[
    str,
    typer.Option(
        "--conversation-manager",
        metavar="NAME",
        help="What the model sees: a window, null, notes, or such as summarizing:openai:MODEL.",
    ),
]


def chat(
    session: WithUrl,
    thread: Annotated[
        str | None,
        typer.Argument(metavar="THREAD", help="Thread to continue; a new one by default."),
    ] = None,
    *,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="User who talks; none by default.")
    ] = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    scripted: Annotated[
        bool, typer.Option("--scripted", help="Answer by a few rules; the default without --model.")
    ] = False,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="System prompt; none by default.")
    ] = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Neither recall nor remember anything.")
    ] = False,
    off_record: Annotated[
        bool, typer.Option("--off-record", help="Begin off the record: recall, but keep nothing.")
    ] = False,
    conversation_manager: _ConversationManager = "sliding_window:100",
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document per answer, each on one line.")
    ] = False,
) -> None:
    """Chat with an agent that has a memory.

    Each line is a message, on a terminal or from a pipe. On a pipe, stdout holds only the
    answers. The conversation is a thread of the database, saved at each step, and the agent
    extracts memories from it. On a terminal, /help lists the commands of the chat.

    OPENAI_API_KEY and OPENAI_BASE_URL have the same meaning as for OpenAI's own client.
    """
    if scripted and model is not None:
        raise UsageError("give --model or --scripted, not both")
    if base_url is not None and model is None:
        raise UsageError("--base-url needs --model")
    from locus_memory.cli.commands.chat_session import ChatSession  # noqa: PLC0415 - help must be quick

    ChatSession(
        session=replace(session, as_json=as_json or session.as_json),
        model=_open_model(model, base_url),
        thread_id=thread,
        user=user,
        system=system,
        prefix=None if no_memory else prefix,
        off_record=off_record,
        trimmer=_open_trimmer(conversation_manager),
        quiet=scripted or model is not None,
    ).run()


def _open_trimmer(name: str) -> ConversationManager:
    from locus_memory.conversation.registry import get_conversation_manager  # noqa: PLC0415 - as above
    from locus_memory.errors import ConfigurationError, MissingDriverError  # noqa: PLC0415 - as above

    try:
        return get_conversation_manager(name)
    except MissingDriverError:
        raise
    except ConfigurationError as error:
        raise UsageError(f"--conversation-manager: {error}") from None


def _open_model(name: str | None, base_url: str | None) -> Model:
    from locus_memory.chat.scripted import ScriptedModel  # noqa: PLC0415 - help must be quick

    return ScriptedModel() if name is None else open_model(name, base_url)
