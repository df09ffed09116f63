"""A chat model on any endpoint with the OpenAI chat API: OpenAI, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Sequence
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from typing_extensions import override

from locus_memory._internal.providers.construction import check_options
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.resource import Resource
from locus_memory.chat.base import ToolSpec
from locus_memory.chat.openai.client import make_client, secrets_of
from locus_memory.chat.openai.errors import translated
from locus_memory.chat.openai.stream import EndListener
from locus_memory.chat.openai.wire import StreamedAnswer, read_answer, write_message
from locus_memory.conversation.window import check_positive
from locus_memory.errors import ConfigurationError
from locus_memory.messages import Message

__all__ = ["OpenAIChat"]

_OURS: Final = frozenset({"self", "model", "messages", "tools", "stream", "timeout"})


class OpenAIChat(Resource):
    """A chat model behind an OpenAI-compatible endpoint; it calls tools and streams.

    An answer's metadata holds the facts that the endpoint sent: `model`, `finish_reason`, `usage`
    (counts of tokens) and `refusal`. It also holds `invalid_arguments`: by the ids of the calls,
    the reason why the arguments of a call could not be read. If the endpoint is overloaded or
    cannot be reached, the `openai` package itself retries the request `max_retries` times.

    Args:
        model: The model's name.
        base_url: The endpoint; by default `OPENAI_BASE_URL`, else OpenAI's own.
        api_key: By default `OPENAI_API_KEY`, but never for a `base_url` given here, so the key
            reaches only the endpoint it is meant for. Endpoints other than OpenAI's may need none.
        client: Your own `openai.AsyncOpenAI`. It then determines `base_url`, `api_key`,
            `max_retries` and `timeout`, and it is not closed here.
        max_retries: How often a request is retried; the client's default is 2.
        timeout: Seconds until a request fails; the client's default is 600.
        context_window: The tokens of the model's window, if an agent shall show memories of at most
            an eighth of them.
        **options: Sent with every request, such as `temperature` or `extra_body`.

    Raises:
        ConfigurationError: No key for OpenAI's own endpoint, no model, no URL, or contradictory
            arguments.
        InvalidArgumentError: `context_window` is no positive number.
        UnknownOptionError: The chat API has no such option.
        MissingDriverError: The `openai` package is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: Any = None,
        max_retries: int | None = None,
        timeout: float | None = None,
        context_window: int | None = None,
        **options: Any,
    ) -> None:
        self.model = _checked_name(model)
        self.context_window = check_positive("context_window", context_window)
        self._openai = require("openai", "openai", needed_by="OpenAIChat")
        create = self._openai.resources.chat.completions.AsyncCompletions.create
        check_options("OpenAIChat", options, inspect.signature(create).parameters.keys() - _OURS)
        self._options = options
        self._owned = client is None
        settings = {
            "base_url": base_url,
            "api_key": api_key,
            "max_retries": max_retries,
            "timeout": timeout,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        self._client: Any = (
            make_client(self._openai, given, needed_by="OpenAIChat")
            if client is None
            else _checked_client(self._openai, client, given)
        )

    @property
    def client(self) -> Any:
        """The `openai.AsyncOpenAI` that is asked."""
        return self._client

    async def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> Message:
        """Return the answer to the conversation, oldest message first.

        Raises:
            ModelUnavailableError: No connection, no answer in time, or overloaded.
            ModelRequestError: The endpoint refused the request.
            ModelAnswerError: The endpoint does not follow the protocol.
        """
        request = self._request(messages, tools)
        request.pop("stream_options", None)
        with translated(self._openai, self.model, secrets_of(self._client)):
            return read_answer(await self._client.chat.completions.create(**request))

    async def stream(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | Message]:
        """Yield the pieces of the text as they arrive, then the whole message.

        Raises:
            ModelUnavailableError: As for a call; also when the connection is lost half-way, or
                the stream ends with neither a `finish_reason` nor `[DONE]`.
            ModelRequestError: As for a call.
            ModelAnswerError: As for a call.
        """
        request = self._request(messages, tools)
        answer = StreamedAnswer()
        with translated(self._openai, self.model, secrets_of(self._client)):
            stream = await self._client.chat.completions.create(**request, stream=True)
            end = EndListener(stream)
            async with stream:
                async for chunk in stream:
                    if piece := answer.add(chunk):
                        yield piece
            yield answer.message(done=end.heard)

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        request = {
            **self._options,
            "model": self.model,
            "messages": [write_message(message) for message in messages],
        }
        if tools:
            request["tools"] = [each.to_openai_format() for each in tools]
        else:
            # The API refuses an empty list of tools.
            request.pop("tool_choice", None)
            request.pop("parallel_tool_calls", None)
        return request

    @override
    async def close(self) -> None:
        """Close the client, unless the caller passed it in; calling it again is harmless."""
        if self._owned:
            await self._client.close()

    def __repr__(self) -> str:
        url = urlsplit(str(self._client.base_url))
        host = url.netloc.rpartition("@")[2]
        return f"OpenAIChat({self.model!r}, base_url='{url.scheme}://{host}{url.path}')"


def _checked_name(model: object) -> str:
    if not isinstance(model, str) or not model:
        raise ConfigurationError('OpenAIChat: give the name of a model, such as "qwen3"')
    return model


def _checked_client(openai: ModuleType, client: Any, given: dict[str, Any]) -> Any:
    if given:
        raise ConfigurationError(f"OpenAIChat: a client settles {', '.join(given)} itself")
    if isinstance(client, openai.OpenAI):
        raise ConfigurationError("OpenAIChat: the client is an AsyncOpenAI, not an OpenAI")
    return client
