"""The translation of the errors of the `openai` package, by one table."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from types import ModuleType
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import (
    ModelAnswerError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)

__all__ = ["translated"]

_TABLE: Final[tuple[tuple[str, type[ModelError]], ...]] = (
    ("APITimeoutError", ModelUnavailableError),
    ("APIConnectionError", ModelUnavailableError),
    ("RateLimitError", ModelUnavailableError),
    ("InternalServerError", ModelUnavailableError),
    ("ConflictError", ModelUnavailableError),
    ("APIResponseValidationError", ModelAnswerError),
    ("APIStatusError", ModelRequestError),
    # Reported inside a stream that began without an error.
    ("APIError", ModelUnavailableError),
    ("OpenAIError", ModelRequestError),
)
"""The first class that matches decides."""

_REQUEST_TIMEOUT: Final = 408
_LONGEST: Final = 300


@contextmanager
def translated(openai: ModuleType, model: str, secrets: Sequence[str]) -> Generator[None]:
    """Raise the client's errors as a `ModelError`, with no secret in its text.

    Args:
        openai: The package.
        model: The model's name, for the text.
        secrets: Strings that no error may contain.
    """
    try:
        yield
    except openai.OpenAIError as error:
        raised, reason = _class(openai, error), _reason(error)
        cause: Exception | None = error
    except _transport_errors() as error:
        # The client translates these only before a stream begins.
        raised, reason = ModelUnavailableError, f"the connection was lost: {error}"
        cause = error
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raised, reason = ModelAnswerError, "the endpoint's answer is not JSON"
        cause = error
    except (ModelAnswerError, ModelUnavailableError) as error:
        raised, reason, cause = type(error), str(error), None
    else:
        return
    text = _scrubbed(reason, secrets)
    # A traceback shows the cause, so a cause with a secret is dropped.
    safe = all(secret not in str(cause) for secret in secrets)
    raise raised(f"model {quote(model)}: {text}") from (cause if safe else None)


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return what the client's HTTP library raises: httpx, or httpx2 since version 3."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(module.HTTPError for module in loaded if module is not None)


def _class(openai: ModuleType, error: Any) -> type[ModelError]:
    if getattr(error, "status_code", None) == _REQUEST_TIMEOUT:
        return ModelUnavailableError
    return next(ours for name, ours in _TABLE if isinstance(error, getattr(openai, name)))


def _reason(error: Any) -> str:
    said = _said(getattr(error, "body", None)) or str(error)
    status = getattr(error, "status_code", None)
    return said if status is None else f"HTTP {status}: {said}"


def _said(body: Any) -> str | None:
    """Return the endpoint's own message, from any of the places where servers put it."""
    while isinstance(body, dict):
        body = body.get("message") or body.get("error") or body.get("detail")
    return body if isinstance(body, str) and body.strip() else None


def _scrubbed(reason: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        reason = reason.replace(secret, "***")
    line = re.sub(r"\s+", " ", reason).strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
