"""A chat model of OCI Generative AI."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from typing_extensions import override

from locus_memory._internal.offload import in_thread
from locus_memory._internal.providers.construction import check_options
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.providers.oci_credentials import credentials
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.chat.base import ToolSpec
from locus_memory.chat.oci.wire import read_result, serving_mode, write_message, write_tool
from locus_memory.conversation.window import check_positive
from locus_memory.errors import (
    ConfigurationError,
    ModelAnswerError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)
from locus_memory.messages import Message

__all__ = ["OCIChat"]

_OURS: Final = frozenset(
    ("api_format", "messages", "tools", "is_stream", "stream_options", "num_generations")
)
_KINDS: Final = ("api_key", "security_token", "instance_principal", "resource_principal")
_PASSING: Final = frozenset((408, 409, 429))
_SERVER_ERRORS: Final = 500


class OCIChat(Resource):
    """A chat model of OCI Generative AI; it calls tools, and answers as a whole.

    It speaks the service's generic format, as the models of Meta, OpenAI, xAI and Google do there;
    the formats of Cohere are others. The SDK blocks, so each request runs in a worker thread.

    An answer's metadata holds `model`, `finish_reason`, `usage` and `invalid_arguments`, as with
    `OpenAIChat`.

    Args:
        model: The model's name or id, or the id of an endpoint of a dedicated cluster.
        compartment_id: The compartment; by default the tenancy of the profile.
        authentication: `"api_key"` and `"security_token"` read a profile of the configuration
            file; `"instance_principal"` and `"resource_principal"` need none.
        config_file: The configuration file; by default `~/.oci/config`.
        profile: The profile in it; by default `DEFAULT`.
        region: The region; by default that of the profile or principal.
        service_endpoint: The URL of the service, in place of the region's.
        client: Your own `GenerativeAiInferenceClient`, which is not closed here; it settles
            everything from `authentication` to `timeout`.
        max_retries: How often a request is sent again that failed for a moment.
        timeout: Seconds to wait for a connection, and for an answer.
        context_window: The tokens of the model's window, as for `OpenAIChat`.
        **options: Fields of `GenericChatRequest`, such as `temperature` or `max_tokens`.

    Raises:
        ConfigurationError: There is nothing to sign with, or no compartment.
        InvalidArgumentError: `context_window` is no positive number.
        UnknownOptionError: The chat API has no such option.
        MissingDriverError: The SDK is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        compartment_id: str | None = None,
        authentication: str = "api_key",
        config_file: str | None = None,
        profile: str | None = None,
        region: str | None = None,
        service_endpoint: str | None = None,
        client: Any = None,
        max_retries: int = 2,
        timeout: float = 120.0,
        context_window: int | None = None,
        **options: Any,
    ) -> None:
        if max_retries < 0 or timeout <= 0:
            raise ConfigurationError("OCIChat: needs max_retries >= 0 and timeout above 0")
        if authentication not in _KINDS:
            raise ConfigurationError(f"OCIChat: authentication is one of {', '.join(_KINDS)}")
        self.model = _checked_name(model)
        self.context_window = check_positive("context_window", context_window)
        self._models = require("oci.generative_ai_inference", "oci", needed_by="OCIChat").models
        self._oci = require("oci", "oci", needed_by="OCIChat")
        known = self._models.GenericChatRequest().attribute_map.keys() - _OURS
        check_options("OCIChat", options, known)
        self._options = options
        self._retries = _retries(self._oci, max_retries)
        self._owned = client is None
        config: dict[str, Any] = {}
        if client is None:
            with self._configured():
                config, signer = credentials(
                    self._oci,
                    authentication=authentication,
                    config_file=config_file,
                    profile=profile,
                    region=region,
                )
                client = _client(self._oci, config, signer, service_endpoint, timeout)
        self._client = client
        compartment = compartment_id or config.get("tenancy")
        if not compartment:
            raise ConfigurationError("OCIChat: pass compartment_id=")
        self._compartment = compartment

    async def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> Message:
        """Return the answer to the conversation, oldest message first.

        Raises:
            ModelUnavailableError: No connection, no answer in time, or overloaded.
            ModelRequestError: The service refused the request.
            ModelAnswerError: The service does not follow the protocol.
        """
        details = self._details(messages, tools)
        with self._translated():
            answer = await in_thread(self._client.chat, details, retry_strategy=self._retries)
            return read_result(answer.data)

    def _details(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Any:
        given = dict(self._options)
        if tools:
            given["tools"] = [write_tool(self._models, each) for each in tools]
        else:
            given.pop("tool_choice", None)
            given.pop("is_parallel_tool_calls", None)
        return self._models.ChatDetails(
            compartment_id=self._compartment,
            serving_mode=serving_mode(self._models, self.model),
            chat_request=self._models.GenericChatRequest(
                messages=[write_message(self._models, each) for each in messages], **given
            ),
        )

    @contextmanager
    def _configured(self) -> Generator[None]:
        theirs = self._oci.exceptions
        try:
            yield
        except (theirs.ClientError, ValueError) as error:
            said = str(error).partition("\n")[0]
            raise ConfigurationError(f"OCIChat: there is nothing to sign with: {said}") from error

    @contextmanager
    def _translated(self) -> Generator[None]:
        theirs = self._oci.exceptions
        try:
            yield
        except theirs.ServiceError as error:
            said = str(error.message or error.code or "").partition("\n")[0]
            raise self._error(_kind(error.status), f"HTTP {error.status}: {said}") from error
        except (theirs.RequestException, theirs.ConnectTimeout, OSError) as error:
            said = str(error).partition("\n")[0]
            raise self._error(ModelUnavailableError, f"no answer: {said}") from error
        except theirs.ClientError as error:
            raise self._error(ModelRequestError, str(error).partition("\n")[0]) from error
        except (ValueError, ModelAnswerError) as error:
            said = str(error).partition("\n")[0]
            raise self._error(ModelAnswerError, f"the answer cannot be read: {said}") from error

    def _error(self, kind: type[ModelError], said: str) -> ModelError:
        return kind(f"model {quote(self.model)}: {said[:300]}")

    @override
    async def close(self) -> None:
        """Close the client, unless the caller passed it in; calling it again is harmless."""
        if self._owned:
            self._client.base_client.session.close()

    def __repr__(self) -> str:
        return f"OCIChat({self.model!r})"


def _checked_name(model: object) -> str:
    if not isinstance(model, str) or not model:
        raise ConfigurationError(
            'OCIChat: give the name of a model, such as "meta.llama-3.3-70b-instruct"'
        )
    if model.startswith("cohere."):
        raise ConfigurationError(
            f"OCIChat: {quote(model)} has a format of its own, which is not supported"
        )
    return model


def _retries(oci: Any, max_retries: int) -> Any:
    if not max_retries:
        return oci.retry.NoneRetryStrategy()
    return oci.retry.RetryStrategyBuilder(
        max_attempts_check=True,
        max_attempts=max_retries + 1,
        service_error_check=True,
        service_error_retry_on_any_5xx=True,
    ).get_retry_strategy()


def _client(
    oci: Any, config: dict[str, Any], signer: Any, endpoint: str | None, timeout: float
) -> Any:
    given: dict[str, Any] = {} if signer is None else {"signer": signer}
    if endpoint is not None:
        given["service_endpoint"] = endpoint.rstrip("/")
    return oci.generative_ai_inference.GenerativeAiInferenceClient(
        config,
        timeout=(min(timeout, 10.0), timeout),
        # It would refuse requests for half a minute after some failures.
        circuit_breaker_strategy=oci.circuit_breaker.NoCircuitBreakerStrategy(),
        **given,
    )


def _kind(status: int) -> type[ModelError]:
    if status in _PASSING or status >= _SERVER_ERRORS:
        return ModelUnavailableError
    return ModelRequestError
