"""The client of an OpenAI-compatible endpoint, for models and embedders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from locus_memory.errors import ConfigurationError

__all__ = ["make_client", "secrets_of"]

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_NO_KEY: Final = "not-needed"


def make_client(openai: ModuleType, given: Mapping[str, Any], *, needed_by: str) -> Any:
    """Return an `openai.AsyncOpenAI`.

    `OPENAI_API_KEY` is sent only to OpenAI and to the endpoint that the environment names.
    Endpoints other than OpenAI's may need no key.

    Args:
        openai: The package.
        given: The arguments that the caller set, such as `base_url`.
        needed_by: The name of the class that needs the client, for messages.

    Raises:
        ConfigurationError: No key for OpenAI's own endpoint, or no URL.
    """
    url = given.get("base_url", os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL)
    _check_url(url, needed_by)
    key = given.get("api_key")
    if key is None and (_is_openai(url) or "base_url" not in given):
        key = os.environ.get("OPENAI_API_KEY")
    if not key and _is_openai(url):
        raise ConfigurationError(
            f"{needed_by}: pass api_key= or set OPENAI_API_KEY; for your own endpoint, "
            "pass base_url="
        )
    return openai.AsyncOpenAI(**{**given, "base_url": url, "api_key": key or _NO_KEY})


def secrets_of(client: Any) -> tuple[str, ...]:
    """Return the secrets of a client, which no message may show."""
    key, password = client.api_key, urlsplit(str(client.base_url)).password
    return tuple(each for each in (key, password) if each and each != _NO_KEY)


def _check_url(url: object, needed_by: str) -> None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        # Not shown: it may hold a password.
        raise ConfigurationError(
            f"{needed_by}: base_url is an address such as http://localhost:11434/v1"
        )


def _is_openai(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")
