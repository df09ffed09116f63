"""Pages of the web, read with limits, and from no address that only this machine can reach.

A host is resolved once for each request. All of its addresses are checked, and the connection is
made to one of those that were checked: a name that resolves to another address a moment later, as
in an attack by DNS rebinding, changes nothing. Each redirect is a request of its own. Proxies of
the environment are not used: they would resolve the name again.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from codecs import BOM_UTF8
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from locus_memory._internal.offload import in_thread
from locus_memory.documents.ingest.reading import MOST_BYTES
from locus_memory.errors import (
    BackendUnavailableError,
    InvalidArgumentError,
    LocusMemoryError,
    MemoryAccessDenied,
    MemoryBackendError,
    MemoryNotFound,
    MemoryTimeout,
)
from locus_memory.memory.options import check_number, check_whole

__all__ = ["FetchOptions", "fetched", "shown"]

_SCHEMES: Final = {"http": HTTPConnection, "https": HTTPSConnection}
_HEADERS: Final = {"User-Agent": "locus_memory", "Connection": "close"}
_SUFFIXES: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "application/xml": ".xml",
    "application/octet-stream": "",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
"""The suffix of a file of each type that is a document; empty, and of other texts: its own."""

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_SAFE: Final = "/%:@!$&'()*+,;=?~"
_OTHERS: Final = [
    ip_network(each) for each in ("192.0.0.0/24", "168.63.129.16", "::/8", "2002::/16", "fec0::/10")
]
"""Addresses that Python may take for public: those of protocols and of Oracle's metadata, Azure's
platform service, and those of IPv6 that stand for one of IPv4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """What a URL that is ingested may take; a tree accepts them as `fetch=`.

    Attributes:
        max_bytes: The most bytes of a page.
        seconds: The most seconds for all of it, redirects included.
        redirects: The most redirects.
        allow_private: Whether private, loopback, link-local and other addresses may be read that
            are not public, such as those of a cloud's metadata service.

    Raises:
        ConfigurationError: A number is out of range.
    """

    max_bytes: int = MOST_BYTES
    seconds: float = 30.0
    redirects: int = 5
    allow_private: bool = False

    def __post_init__(self) -> None:
        check_whole(0, max_bytes=self.max_bytes, redirects=self.redirects)
        check_number(seconds=self.seconds)


async def fetched(url: str, options: FetchOptions) -> tuple[SplitResult, str, bytes]:
    """Return where a page was found in the end, the name of a file of its type, and its bytes.

    A text whose charset the server names begins with a byte order mark.

    Raises:
        InvalidArgumentError: It is no URL of http or https, or it has a password.
        MemoryAccessDenied: An address is not public, or a redirect leads from https to http.
        MemoryNotFound: The server has no such page.
        MemoryTimeout: It took too long.
        MemoryBackendError: The page is too large or no document, or there are too many redirects.
        BackendUnavailableError: The server cannot be reached, or failed.
    """
    reading = _Reading(options)
    try:
        async with asyncio.timeout(options.seconds):
            return await in_thread(reading.follow, url)
    except LocusMemoryError:
        raise
    except TimeoutError:
        raise MemoryTimeout(f"the page took more than {options.seconds:g} seconds") from None
    except (OSError, HTTPException, ValueError) as error:
        # Its text may quote the URL, which may hold a secret.
        raise BackendUnavailableError(f"no page: {type(error).__name__}") from None
    finally:
        reading.stop()


class _Reading:
    """The requests for one page, in a worker thread."""

    def __init__(self, options: FetchOptions) -> None:
        self._options = options
        self._socket: socket.socket | None = None
        self._is_stopped = False

    def follow(self, url: str) -> tuple[SplitResult, str, bytes]:
        for _ in range(self._options.redirects + 1):
            parts = _split(url)
            found = self._get(parts)
            if not isinstance(found, str):
                return parts, *found
            url = urljoin(url, found)
            if parts.scheme == "https" and _split(url).scheme == "http":
                raise MemoryAccessDenied("the page leads from https to http")
        raise MemoryBackendError(f"more than {self._options.redirects} redirects")

    def stop(self) -> None:
        """End a request that nobody waits for."""
        # In this order: the thread that connects looks afterwards.
        self._is_stopped = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _get(self, parts: SplitResult) -> tuple[str, bytes] | str:
        """Return the page, or where it is."""
        kind = _SCHEMES[parts.scheme]
        link = kind(str(parts.hostname), parts.port, timeout=self._options.seconds)
        with closing(link):
            link.sock = self._connect(link.host, link.port, is_secure=kind is HTTPSConnection)
            where = urlunsplit(("", "", parts.path or "/", parts.query, ""))
            link.request("GET", quote(where, _SAFE), headers=_HEADERS)
            return self._answer(parts, link.getresponse())

    def _connect(self, host: str, port: int, *, is_secure: bool) -> socket.socket:
        found = socket.getaddrinfo(host.encode("idna"), port, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found]
        if not self._options.allow_private and not all(map(_is_public, addresses)):
            raise MemoryAccessDenied("the host has an address that is not public")
        # The system returns those first that can be reached.
        self._socket = socket.create_connection((addresses[0], port), self._options.seconds)
        if self._is_stopped:
            self.stop()
        if is_secure:
            context = ssl.create_default_context()
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        return self._socket

    def _answer(self, parts: SplitResult, answer: HTTPResponse) -> tuple[str, bytes] | str:
        status, headers, most = answer.status, answer.headers, self._options.max_bytes
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST and "Location" in headers:
            return str(headers["Location"])
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise MemoryNotFound(shown(parts), f"the server says {status}")
        content = answer.read(most + 1)
        if status != HTTPStatus.OK or (answer.length and len(content) <= most):
            raise BackendUnavailableError(f"the server says {status}, or ended early")
        kind = headers.get_content_type()
        is_document = kind in _SUFFIXES or kind.startswith("text/")
        if len(content) > most or "Content-Encoding" in headers or not is_document:
            raise MemoryBackendError(
                f"the page is packed, or no document, but {kind}, or too large"
            )
        with suppress(LookupError, UnicodeError):
            if kind.startswith("text/") and (charset := headers.get_content_charset()):
                content = BOM_UTF8 + content.decode(charset).encode()
        return _name(parts, kind), content


def _split(url: str) -> SplitResult:
    """Return the parts of a URL.

    Raises:
        InvalidArgumentError: It is no URL of http or https, or it has a password.
    """
    with suppress(ValueError):
        parts = urlsplit(url)
        is_valid = parts.scheme in _SCHEMES and parts.port != 0 and parts.username is None
        if is_valid and parts.hostname and parts.hostname.encode("idna"):
            return parts
    raise InvalidArgumentError("a source is a path, or a URL of http or https, without a user")


def shown(parts: SplitResult) -> str:
    """Return a URL without its query, which may hold a secret."""
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _name(parts: SplitResult, kind: str) -> str:
    """Return the name of a file of a type; pages of other queries have other names."""
    path = PurePosixPath(unquote(parts.path.rpartition("/")[2]))
    digest = blake2b(parts.query.encode(), digest_size=4).hexdigest() if parts.query else ""
    stem = _UNSAFE.sub("-", path.stem).strip(".-")[:80] or "index"
    suffix = _SUFFIXES.get(kind) or _UNSAFE.sub("", path.suffix)[:9] or ".txt"
    return f"{stem}{digest and '-'}{digest}{suffix}"


def _is_public(text: str) -> bool:
    """Whether an address is one of the internet, for every machine the same."""
    address = ip_address(text.partition("%")[0])
    is_public = address.is_global and not address.is_multicast
    return is_public and not any(address in each for each in _OTHERS)
