"""Callers: whose memories a request reads and writes, and the bearer tokens that say so."""

from __future__ import annotations

import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self

from mcp.server.auth.provider import AccessToken
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.store.item import check_namespace

__all__ = ["Caller", "Callers", "TokenCallers"]

_DIGEST: Final = re.compile("[0-9a-f]{64}")
_SHORTEST: Final = 16
_TOKEN: Final = re.compile(f"[!-~]{{{_SHORTEST},}}")
_FIELDS: Final = frozenset({"sha256", "user", "read_only"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose memories a request works on.

    Attributes:
        user_id: The user; `None`: the memories without a user.
        read_only: Whether the tools that change something are missing.

    Raises:
        InvalidNamespaceError: The user id is no valid name.
    """

    user_id: str | None = None
    read_only: bool = False

    def __post_init__(self) -> None:
        if self.user_id is not None:
            check_namespace((self.user_id,))


class Callers(ABC):
    """Knows the caller of each bearer token; a `TokenVerifier` of the SDK that also says who."""

    @abstractmethod
    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token stands for; `None`: it is not valid."""

    @abstractmethod
    def caller(self, token: AccessToken) -> Caller:
        """Return the caller of a token that is valid."""


class TokenCallers(Callers):
    """Callers with a fixed token each. Only digests of the tokens are kept.

    Args:
        digests: The caller by the SHA-256 digest of the token, in lower-case hexadecimal.

    Raises:
        ConfigurationError: A digest is not one, or there are none.
    """

    def __init__(self, digests: Mapping[str, Caller]) -> None:
        if not digests or not all(map(_DIGEST.fullmatch, digests)):
            raise ConfigurationError(
                "tokens need one or more SHA-256 digests, each of 64 lower-case hexadecimal digits"
            )
        self._callers = dict(digests)

    @classmethod
    def of(cls, tokens: Mapping[str, Caller]) -> Self:
        """Return the callers of tokens that are given themselves.

        Raises:
            ConfigurationError: A token has fewer than 16 characters or one that no header holds.
        """
        if not all(map(_TOKEN.fullmatch, tokens)):
            raise ConfigurationError(
                f"a token has at least {_SHORTEST} printable ASCII characters and no space"
            )
        return cls({_digest(token): caller for token, caller in tokens.items()})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the callers of a TOML file with a table `[[token]]` each.

        A table has `sha256`, the digest of the token, and may have `user` and `read_only`.

        Raises:
            ConfigurationError: The file cannot be read, or has something else in it.
        """
        try:
            found = tomllib.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the tokens of {path} cannot be read: {type(error).__name__}"
            ) from error
        tables = found.get("token")
        if set(found) != {"token"} or not isinstance(tables, list):
            raise ConfigurationError(f"{path} has tables [[token]] and nothing else")
        callers: dict[str, Caller] = {}
        for number, table in enumerate(tables, 1):
            digest, caller = _entry(table, f"{path}: token {number}")
            if digest in callers:
                raise ConfigurationError(f"{path}: token {number} has the sha256 of another one")
            callers[digest] = caller
        return cls(callers)

    @override
    async def verify_token(self, token: str) -> AccessToken | None:
        # A dictionary of digests: how long a lookup takes tells nothing about a token.
        digest = _digest(token)
        if digest not in self._callers:
            return None
        return AccessToken(token=digest, client_id=digest, scopes=[])

    @override
    def caller(self, token: AccessToken) -> Caller:
        return self._callers[token.client_id]


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _entry(table: Any, where: str) -> tuple[str, Caller]:
    """Return the digest and the caller of a table of the file.

    Raises:
        ConfigurationError: A field is missing, unknown or of another type.
    """
    if not isinstance(table, dict) or not table.keys() <= _FIELDS:
        raise ConfigurationError(f"{where}: its fields are {', '.join(sorted(_FIELDS))}")
    digest, user, read_only = table.get("sha256"), table.get("user"), table.get("read_only", False)
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ConfigurationError(f"{where}: sha256 is 64 lower-case hexadecimal digits")
    if not isinstance(read_only, bool):
        raise ConfigurationError(f"{where}: read_only is true or false")
    if user is not None and (not isinstance(user, str) or not user):
        raise ConfigurationError(f"{where}: user is a name, not {quote(user)}")
    return digest, Caller(user, read_only)
