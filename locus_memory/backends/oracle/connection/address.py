"""The address of a database: its accepted forms, and its form in messages."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from locus_memory.errors import ConfigurationError

__all__ = ["Address", "parse_address"]

_SCHEME: Final = re.compile(r"oracle://", re.IGNORECASE)

_PLAIN: Final = re.compile(r"[\w.:/$-]*", re.ASCII)
"""An alias of tnsnames.ora, or `host:port/service`."""


class Address(NamedTuple):
    """A database, and who connects.

    Attributes:
        dsn: An alias, an Easy Connect string or a connect descriptor, as the driver takes it.
        user: The user; `None`: that of the options.
        password: The password; `None`: that of the options.
        place: The name in messages, without a password.
    """

    dsn: str
    user: str | None
    password: str | None
    place: str


def parse_address(where: str | None) -> Address:
    """Return the address of `alias`, `user@host:1521/service` or `user:password@...`.

    In a URL, `oracle://user:password@host:1521/service`, user and password are percent-decoded.
    What follows the last `@` goes to the driver untouched.

    Raises:
        ConfigurationError: There is no database in it.
    """
    text = where or ""
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    who, _, dsn = rest.rpartition("@")
    user, separator, password = who.partition(":")
    if not dsn:
        raise ConfigurationError(
            "oracle: names no database; write oracle:alias, with an alias of tnsnames.ora, or "
            "oracle:user:password@host:1521/service"
        )
    if scheme:
        user, password = unquote(user), unquote(password)
    # What follows a question mark may be the password of a wallet.
    plain = dsn.partition("?")[0]
    shown = f"oracle {plain}" if _PLAIN.fullmatch(plain) else "oracle"
    return Address(dsn, user or None, password if separator else None, shown)
