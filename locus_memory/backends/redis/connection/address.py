"""The address of Redis: one server, a cluster, or a primary that sentinels watch.

| form | meaning |
|---|---|
| `host`, `host:port`, `host:port/db`, a URL | a server, which may be one of a cluster |
| `redis+cluster://host:port,host:port` | a cluster, by some of its servers |
| `redis+sentinel://host:port,host:port/service/db` | the primary of a service, by its sentinels |

`rediss+...` is the same over TLS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import parse_url

from locus_memory._internal.providers.address import split_hosts
from locus_memory.errors import ConfigurationError

__all__ = ["Kind", "RedisAddress", "parse_redis_url"]

Kind = Literal["server", "cluster", "sentinel"]

_SCHEMES: Final = {"valkey": "redis", "valkeys": "rediss"}

_DEFAULT: Final = "redis://localhost:6379"

_DATABASE: Final = re.compile(r"(/([0-9]+/?)?)?")
"""The path of a URL; the driver takes what is no number for database 0."""

_SERVICE: Final = re.compile(r"/([\w.-]+)(/[0-9]+)?")
"""The path of a URL of sentinels: the name of the service, then a database."""

_PORTS: Final[dict[Kind, int]] = {"server": 6379, "cluster": 6379, "sentinel": 26379}

_OF_SENTINELS: Final = "sentinel_"
"""What the options for the sentinels themselves begin with."""

_CANNOT_BE_READ: Final = (
    "the url cannot be read; it is redis://, rediss:// or unix://, redis+cluster:// or "
    "redis+sentinel://, and a '/', '?', '#' or '@' in its password is percent-encoded"
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where Redis is; its `repr` has no password.

    Attributes:
        place: What may be shown: hosts and ports, then a database or a service.
        urls: A URL for each host, as the driver reads it; of sentinels the servers' options.
        kind: What is there.
        service: The name that the sentinels know the primary by.
        sentinels: The driver's options for the sentinels themselves.
    """

    place: str
    urls: tuple[str, ...] = field(repr=False)
    kind: Kind = "server"
    service: str = ""
    sentinels: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def plain_hosts(self) -> list[str]:
        """The hosts that are talked to without encryption."""
        parts = [urlsplit(url) for url in self.urls]
        return [part.hostname or "" for part in parts if part.scheme in ("redis", "valkey")]

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """The hosts with their ports."""
        parts = [urlsplit(url) for url in self.urls]
        return [(each.hostname or "localhost", each.port or _PORTS[self.kind]) for each in parts]


def parse_redis_url(where: str | None) -> RedisAddress:
    """Return the address of `host`, `host:port`, `host:port/db` or a URL; `None`: localhost.

    Raises:
        ConfigurationError: The driver cannot read it.
    """
    if where is None:
        where = _DEFAULT
    scheme, separator, rest = where.partition("://")
    base, plus, kind = scheme.lower().partition("+")
    base = _SCHEMES.get(base, base)
    if not plus:
        url = f"{base}://{rest}" if separator else where and f"redis://{where}"
        return RedisAddress(_place_of(_checked(url)), (url,))
    if base not in ("redis", "rediss") or not separator or kind not in ("cluster", "sentinel"):
        raise ConfigurationError(f"redis: {_CANNOT_BE_READ}")
    return (_cluster if kind == "cluster" else _sentinel)(base, *_split(rest))


def _cluster(scheme: str, user: str, hosts: list[str], path: str, query: str) -> RedisAddress:
    if path.strip("/"):
        raise ConfigurationError(
            "redis: a cluster has no databases; nothing but '?' follows the last host"
        )
    urls = tuple(_checked(f"{scheme}://{user}{host}{query and '?' + query}") for host in hosts)
    return RedisAddress(_listed(urls, "cluster"), urls, "cluster")


def _sentinel(scheme: str, user: str, hosts: list[str], path: str, query: str) -> RedisAddress:
    found = _SERVICE.fullmatch(unquote(path))
    if found is None:
        raise ConfigurationError(
            "redis: the service is missing after the sentinels; it is "
            "redis+sentinel://host:26379,host:26379/service or .../service/db"
        )
    own, theirs = _options(query)
    service, database = found[1], found[2] or ""
    urls = tuple(_checked(f"{scheme}://{user}{host}{database}{own}") for host in hosts)
    options = dict(parse_url(_checked(f"{scheme}://{hosts[0]}{theirs}")))
    sentinels = {name: options[name] for name in options if name not in ("host", "port")}
    listed = f"{_listed(urls, 'sentinel')}/{service}{database}"
    return RedisAddress(listed, urls, "sentinel", service, sentinels)


def _options(query: str) -> tuple[str, str]:
    """Return the options for the servers, and those for the sentinels, as queries of a URL."""
    found: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
    for name, value in parse_qsl(query, keep_blank_values=True):
        pair = name.removeprefix(_OF_SENTINELS), value
        found[name.startswith(_OF_SENTINELS)].append(pair)
    own, theirs = (f"?{urlencode(pairs)}" if pairs else "" for pairs in found.values())
    return own, theirs


def _split(rest: str) -> tuple[str, list[str], str, str]:
    """Return user and password with their `@`, the hosts, the path and the query of a URL."""
    parts = split_hosts(f"//{rest}")
    user, at, hosts = parts.netloc.rpartition("@")
    listed = hosts.split(",")
    if not all(listed) or parts.fragment or "@" in parts.path + parts.query:
        raise ConfigurationError(f"redis: {_CANNOT_BE_READ}")
    return user + at, listed, parts.path, parts.query


def _checked(url: str) -> str:
    """Return a URL that the driver can read.

    Raises:
        ConfigurationError: The driver cannot; it does not quote what may be the password.
    """
    problem = _problem(url)
    # Outside of any `except`: an error's context may quote the password.
    if problem is not None:
        raise ConfigurationError(f"redis: {problem}")
    return url


def _problem(url: str) -> str | None:
    """Return what the driver cannot make of a URL, without what may be its password."""
    try:
        ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except TypeError as error:
        return f"an option of the url is unknown: {error}"
    except Exception:  # noqa: BLE001 - an error of the driver or of urllib may quote the password
        return _CANNOT_BE_READ
    if parts.scheme != "unix" and not _DATABASE.fullmatch(unquote(parts.path)):
        return "the url cannot be read; what follows the port is the number of a database"
    return None


def _listed(urls: tuple[str, ...], kind: Kind) -> str:
    return ",".join(_host_of(url, _PORTS[kind]) for url in urls)


def _place_of(url: str) -> str:
    """Return what of a URL may be shown: host, port and database, or the socket's path."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    database = parts.path.strip("/")
    return _host_of(url, _PORTS["server"]) + (f"/{database}" if database else "")


def _host_of(url: str, port: int) -> str:
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{parts.port or port}"
