"""The command `chat`: a conversation with an agent that remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.common import Url
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.outcome import UsageError

if TYPE_CHECKING:
    from locus_memory.cli.commands.chat_session import Model

__all__ = ["chat"]

_WINDOW = 100


def chat(
    context: typer.Context,
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="A thread to go on with; else a new one.")
    ] = None,
    *,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="Who talks, and whose memories.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="A model of an OpenAI-compatible endpoint."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Its endpoint, which gets no key."),
    ] = None,
    scripted: Annotated[
        bool, typer.Option("--scripted", help="No model but a few rules; so without --model.")
    ] = False,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="The system prompt.")
    ] = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Recall nothing, remember nothing.")
    ] = False,
    window: Annotated[
        int,
        typer.Option("--window", metavar="N", min=1, help="The model sees the last N messages."),
    ] = _WINDOW,
    prefix: Prefix = DEFAULT_PREFIX,
    url: Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document for each answer, on a line.")
    ] = False,
) -> None:
    """Talk with an agent that remembers.

    Each line is a message, on a terminal or from a pipe; on a pipe, nothing but the answers is
    printed on stdout. The conversation is a thread of the database, saved at each step, and
    what is worth keeping is remembered. On a terminal, /help shows what else there is.

    OPENAI_API_KEY and OPENAI_BASE_URL are what they are to OpenAI's own client.
    """
    if scripted and model is not None:
        raise UsageError("give --model or --scripted, not both")
    if base_url is not None and model is None:
        raise UsageError("--base-url needs --model")
    from locus_memory.cli.commands.chat_session import ChatSession  # noqa: PLC0415 - help must be quick

    ChatSession(
        session=Session.of(context, url, as_json=as_json),
        model=_open_model(model, base_url),
        thread_id=thread,
        user=user,
        system=system,
        prefix=None if no_memory else prefix,
        window=window,
        quiet=scripted or model is not None,
    ).run()


def _open_model(name: str | None, base_url: str | None) -> Model:
    from locus_memory.chat.openai.model import OpenAIChat  # noqa: PLC0415 - help must be quick
    from locus_memory.chat.scripted import ScriptedModel  # noqa: PLC0415
    from locus_memory.errors import ConfigurationError, MissingDriverError  # noqa: PLC0415

    if name is None:
        return ScriptedModel()
    try:
        return OpenAIChat(name, base_url=base_url)
    except MissingDriverError:
        raise
    except ConfigurationError:
        raise UsageError(
            "set OPENAI_API_KEY, or name an endpoint of your own by --base-url"
        ) from None
