"""An embedder on any endpoint with the OpenAI embeddings API: OpenAI, vLLM, Ollama."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from typing_extensions import override

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.chat.openai.client import make_client, secrets_of
from locus_memory.chat.openai.errors import translated
from locus_memory.errors import ConfigurationError, ModelAnswerError

__all__ = ["OpenAIEmbedder"]

_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_CAN_BE_CUT: Final = "text-embedding-3-"


class OpenAIEmbedder(Resource):
    """An embedder on an OpenAI-compatible endpoint.

    If the endpoint is overloaded or cannot be reached, the `openai` package itself retries the
    request `max_retries` times.

    Args:
        model: The model's name.
        dimension: The length of its vectors; known for OpenAI's own models. Of those, the
            `text-embedding-3` models can shorten their vectors to a smaller one.
        base_url: The endpoint; by default `OPENAI_BASE_URL`, else OpenAI's own.
        api_key: By default `OPENAI_API_KEY`, but never for a `base_url` given here, so the key
            reaches only the endpoint it is meant for. Endpoints other than OpenAI's may need none.
        client: Your own `openai.AsyncOpenAI`. It determines `base_url`, `api_key`, `max_retries`
            and `timeout`, and it is not closed here.
        query_prefix: The prefix of queries, for models that need one.
        document_prefix: The prefix of documents.
        batch_size: At most this many texts in one request.
        max_retries: How often a request is retried.
        timeout: Seconds until a request fails.

    Attributes:
        name: The model's name.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: No key for OpenAI's own endpoint, an unknown dimension, no URL.
        MissingDriverError: The `openai` package is not installed.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        dimension: int | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        client: Any = None,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_size: int = 256,
        max_retries: int = 4,
        timeout: float = 60.0,
    ) -> None:
        self._openai = require("openai", "openai", needed_by="OpenAIEmbedder")
        self.name = model
        self.dimension = _dimension(model, dimension)
        self._extra: dict[str, Any] = {}
        if model.startswith(_CAN_BE_CUT) and self.dimension != _DIMENSIONS.get(model):
            self._extra["dimensions"] = self.dimension
        self._prefixes = {"query": query_prefix, "document": document_prefix}
        self._batch_size = batch_size
        self._owned = client is None
        if client is None:
            settings = {"base_url": base_url, "api_key": api_key}
            given: dict[str, Any] = {"max_retries": max_retries, "timeout": timeout}
            given |= {name: value for name, value in settings.items() if value is not None}
            client = make_client(self._openai, given, needed_by=type(self).__name__)
        self._client: Any = client

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order.

        Raises:
            ModelUnavailableError: No connection, no answer in time, or overloaded.
            ModelRequestError: The endpoint refused the request.
            ModelAnswerError: The endpoint did not return such vectors.
        """
        # The API refuses an empty text, and with it the whole batch.
        inputs = [(self._prefixes[kind] + text) or " " for text in texts]
        vectors: list[list[float]] = []
        for start in range(0, len(inputs), self._batch_size):
            vectors += await self._ask(inputs[start : start + self._batch_size])
        return vectors

    async def _ask(self, inputs: list[str]) -> list[list[float]]:
        with translated(self._openai, self.name, secrets_of(self._client)):
            answer = await self._client.embeddings.create(
                model=self.name, input=inputs, encoding_format="float", **self._extra
            )
            return self._read(answer, len(inputs))

    def _read(self, answer: Any, count: int) -> list[list[float]]:
        try:
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = [[float(part) for part in row.embedding] for row in rows]
            places = [row.index for row in rows]
        except (AttributeError, TypeError, ValueError):
            raise ModelAnswerError("the endpoint answered with no embeddings") from None
        if places != list(range(count)):
            raise ModelAnswerError(f"{len(vectors)} vectors for {count} texts")
        lengths = {len(vector) for vector in vectors}
        if lengths != {self.dimension}:
            raise ModelAnswerError(
                f"vectors of {sorted(lengths)} dimensions, not {self.dimension}: pass dimension="
            )
        return vectors

    @override
    async def close(self) -> None:
        """Close the client, unless the caller passed it in; calling it again is harmless."""
        if self._owned:
            await self._client.close()


def _dimension(model: str, dimension: int | None) -> int:
    found = dimension or _DIMENSIONS.get(model)
    if not found:
        raise ConfigurationError(
            f"openai: pass dimension=, the length of the vectors of {quote(model)}; known without: "
            f"{', '.join(_DIMENSIONS)}"
        )
    return found
