"""Provider strings, parsed once into a value that never shows a password."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote

from locus_memory.errors import ConfigurationError

__all__ = [
    "Address",
    "check_below_root",
    "is_path",
    "is_provider_name",
    "parse_address",
    "path_of_url",
    "split_hosts",
]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_SECRET = re.compile(
    r"(?i)(?<![\w-])((?=[\w-]*?(?:passw(?:or)?d|pwd|secret|token|key))[\w-]+=)[^&;\s]+"
)
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_USAGE = (
    "a provider string is 'provider', 'provider:hint' or a URL, "
    "such as 'memory' or 'sqlite:./agent.db'"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed provider string; its repr never shows a password.

    Attributes:
        provider: The name before the first colon, in lower case.
        hint: The text after it, the whole text if it is a URL, or `None`.
    """

    provider: str
    hint: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """Return the fields, passwords replaced by `***`."""
        hint = None if self.hint is None else _redact(self.hint)
        return f"Address(provider={self.provider!r}, hint={hint!r})"

    def __str__(self) -> str:
        """Return the provider string, passwords replaced by `***`."""
        if self.hint is None:
            return self.provider
        is_url = self.hint.lower().startswith(f"{self.provider}://")
        return _redact(self.hint) if is_url else f"{self.provider}:{_redact(self.hint)}"


def parse_address(where: str) -> Address:
    """Return the parts of a provider string.

    Raises:
        ConfigurationError: It is not one.
    """
    if not isinstance(where, str):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        raise ConfigurationError(f"{_USAGE}, not {type(where).__name__}")
    name, colon, rest = where.partition(":")
    if not _NAME.fullmatch(name):
        # The argument may hold a password: it is not quoted.
        raise ConfigurationError(_USAGE if where else f"{_USAGE}; it is empty")
    if colon and not rest:
        raise ConfigurationError(f"{name}: nothing follows the colon; {_USAGE}")
    hint = where if rest.startswith("//") else rest
    return Address(name.lower(), hint or None)


def is_provider_name(name: str) -> bool:
    """Whether `name` is valid before the colon of a provider string."""
    return _NAME.fullmatch(name) is not None


def is_path(where: str, suffixes: tuple[str, ...], known: Collection[str]) -> bool:
    """Whether a text is the path of a file, rather than a provider string.

    Args:
        where: The text.
        suffixes: The suffixes of such a file, unless the path begins with `./` or `../`.
        known: The names of providers, which never count as files.
    """
    if where.startswith(("./", "../", ".\\", "..\\")) and "://" not in where:
        return True
    if not where.lower().endswith(suffixes):
        return False
    name, colon, rest = where.partition(":")
    is_drive = len(name) == 1 and rest.startswith(("\\", "/")) and not rest.startswith("//")
    is_unknown = not colon and name.lower() not in known
    return is_drive or not is_provider_name(name) or is_unknown


def check_below_root(path: str, name: str) -> None:
    """Refuse a new file directly below the root, from a URL that other tools read as relative.

    Raises:
        ConfigurationError: It is such a file.
    """
    file = Path(path)
    if file.parent == Path(file.anchor) and not file.exists():
        raise ConfigurationError(
            f"{name}: '{name}://{path}' is the file {path} right below the root, and there is "
            f"none; write '{name}:.{path}' for a file in the current folder, or '{name}:{path}' "
            "for this one"
        )


def path_of_url(url: str, name: str) -> str:
    """Return the absolute path of `scheme:///path`; `name` is the provider's name.

    Raises:
        ConfigurationError: It has a host, a query or no path.
    """
    path = url.partition("://")[2]
    if not path.startswith("/") or not path.strip("/") or "?" in path or "#" in path:
        raise ConfigurationError(
            f"{name}: a URL is '{name}:///absolute/path'; options are keyword arguments"
        )
    return "/" + unquote(path).lstrip("/")


def split_hosts(url: str) -> SplitResult:
    """Return the parts of a URL of one or several hosts, as RFC 3986 splits it in its appendix B.

    Python 3.14 refuses several hosts in `urlsplit`, where one is an IPv6 address.
    """
    return SplitResult(*_PARTS.findall(url)[0])


def _redact(hint: str) -> str:
    scheme, separator, rest = hint.partition("://")
    if not separator:
        scheme, rest = "", hint
    if "@" in rest:
        rest = "***@" + rest.rpartition("@")[2]
    return _SECRET.sub(r"\1***", scheme + separator + rest)
