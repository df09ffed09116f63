"""Pages of the web, read with limits, and from no address that only this machine can reach.

A host is resolved once for each request. All of its addresses are checked, and the connection is
made to one of those that were checked: a name that resolves to another address a moment later, as
in an attack by DNS rebinding, changes nothing. Each redirect is a request of its own. Proxies of
the environment are not used: they would resolve the name again.
"""

from __future__ import annotations

import asyncio
import codecs
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Final
from unicodedata import category
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

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

_SCHEMES: Final[Mapping[str, type[HTTPConnection]]] = {
    "http": HTTPConnection,
    "https": HTTPSConnection,
}
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

_SLOW: Final = {"idna", "punycode"}
"""Charsets of Python, and of no page, that take the square of the time."""

_PLAIN: Final = "identity"

_LONGEST_WAIT: Final = 86_400.0
"""Seconds: a socket takes no endless number of them."""

_LONGEST_NAME: Final = 80
_MOST_BYTES_OF_NAME: Final = 200
"""With a digest and a suffix below the 255 of file systems."""

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
        self._patience = min(options.seconds, _LONGEST_WAIT)
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
        # Without a port, the last part of an address of IPv6 would be taken for one.
        port = parts.port or kind.default_port
        link = kind(str(parts.hostname), port, timeout=self._patience)
        with closing(link):
            link.sock = self._connect(link.host, link.port, is_secure=kind is HTTPSConnection)
            where = f"{parts.path or '/'}{parts.query and '?'}{parts.query}"
            link.request("GET", quote(where, _SAFE), headers=_HEADERS)
            return self._answer(parts, link.getresponse())

    def _connect(self, host: str, port: int, *, is_secure: bool) -> socket.socket:
        found = socket.getaddrinfo(host.encode("idna"), port, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found]
        if not self._options.allow_private and not all(map(_is_public, addresses)):
            raise MemoryAccessDenied("the host has an address that is not public")
        link = self._kept(self._connected(list(dict.fromkeys(addresses)), port))
        if is_secure:
            context = ssl.create_default_context()
            link = self._kept(context.wrap_socket(link, server_hostname=host))
        return link

    def _connected(self, addresses: Sequence[str], port: int) -> socket.socket:
        """Return a connection to the first address that answers: `localhost` has two, say."""
        for address in addresses[:-1]:
            with suppress(OSError):
                return socket.create_connection((address, port), self._patience)
            if self._is_stopped:
                break
        return socket.create_connection((addresses[-1], port), self._patience)

    def _kept(self, link: socket.socket) -> socket.socket:
        """Keep a connection for `stop`, which may have come before it."""
        self._socket = link
        if self._is_stopped:
            self.stop()
        return link

    def _answer(self, parts: SplitResult, answer: HTTPResponse) -> tuple[str, bytes] | str:
        status, headers, most = answer.status, answer.headers, self._options.max_bytes
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST and "Location" in headers:
            return _location(str(headers["Location"]))
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise MemoryNotFound(shown(parts), f"the server says {status}")
        content = answer.read(most + 1)
        if status != HTTPStatus.OK or (answer.length and len(content) <= most):
            raise BackendUnavailableError(f"the server says {status}, or ended early")
        kind = headers.get_content_type()
        is_document = kind in _SUFFIXES or kind.startswith("text/")
        is_plain = str(headers.get("Content-Encoding", _PLAIN)).strip().lower() == _PLAIN
        if len(content) > most or not is_plain or not is_document:
            raise MemoryBackendError(
                f"the page is packed, or no document, but {kind}, or too large"
            )
        with suppress(LookupError, ValueError):
            charset = headers.get_content_charset() if kind.startswith("text/") else None
            if charset and codecs.lookup(charset).name not in _SLOW:
                text = content.decode(charset).removeprefix("\ufeff")
                content = codecs.BOM_UTF8 + text.encode()
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


def _location(header: str) -> str:
    """Return where a header leads, which the standard library reads as Latin-1.

    Bytes that are no UTF-8 remain the same bytes.
    """
    raw = header.encode("latin-1", "replace")
    with suppress(UnicodeError):
        return raw.decode()
    return quote(raw, f"{_SAFE}#[]")


def _name(parts: SplitResult, kind: str) -> str:
    """Return the name of a file of a type; each page of a folder has its own.

    What a name cannot hold, and a query, are told apart by a digest.
    """
    name = unquote(parts.path.rpartition("/")[2])
    own = PurePosixPath(name).suffix
    plain = own if own.isascii() and own[1:].isalnum() else ""
    suffix = _SUFFIXES.get(kind) or plain[:9] or ".txt"
    stem = name.removesuffix(own) if own.lower() == suffix.lower() else name
    # Marks are a part of words, as the vowels of Hindi and Thai are.
    kept = "".join(each if category(each)[0] in "LMN" or each in "._-" else " " for each in stem)
    safe = "-".join(kept.split()).strip(".-")[:_LONGEST_NAME]
    safe = safe.encode()[:_MOST_BYTES_OF_NAME].decode(errors="ignore")
    if parts.query or safe != stem:
        whole = f"{name}?{parts.query}".encode()
        safe = f"{safe or 'index'}-{blake2b(whole, digest_size=4).hexdigest()}"
    return f"{safe or 'index'}{suffix}"


def _is_public(text: str) -> bool:
    """Whether an address is one of the internet, for every machine the same."""
    address = ip_address(text.partition("%")[0])
    is_public = address.is_global and not address.is_multicast
    return is_public and not any(address in each for each in _OTHERS)
