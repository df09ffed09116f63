"""One bucket of Object Storage, shared by tasks and event loops: requests, retries, errors.

A request that fails for a moment is sent again, with the pause that the service asks for or a
random one that grows. A write whose answer is lost may have had its effect. It is sent again under
the same condition, so it never has two effects. If the condition does not hold any more, the write
itself may be the reason, so a writer that gets `ChangedError` looks for its mark in the object.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from typing import Final, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.resource import warn_unless_closed
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.oci.connection import driver
from locus_memory.backends.oci.connection.address import parse_bucket
from locus_memory.backends.oci.connection.driver import Client, Found, Page, Place
from locus_memory.backends.oci.connection.driver_errors import (
    AbsentError,
    ChangedError,
    UnchangedError,
    answered,
    errors,
    is_refused,
    is_transient,
    refusal_of,
    retry_after,
)
from locus_memory.backends.oci.connection.pool import ThreadPool
from locus_memory.backends.oci.options import OCIKeywords, OCIOptions
from locus_memory.backends.oci.schema import Names
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit

__all__ = ["ChangedError", "OCIConnection"]

T = TypeVar("T")

_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 8.0
"""Seconds between attempts, if the service does not ask for more."""


class OCIConnection(SharedConnection):
    """A bucket of Object Storage, which any number of tasks and event loops share.

    Nothing is sent before the first call. The namespace is asked for once, unless it is given.

    Args:
        bucket: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.
        client: An `oci.object_storage.ObjectStorageClient` to use instead of own ones; it is
            neither closed nor changed.
        options: How to connect, and the prefix of the names.
        **keywords: The fields of `OCIOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        MissingDriverError: The SDK is not installed.
    """

    @checked
    def __init__(
        self,
        bucket: str | None = None,
        *,
        client: Client | None = None,
        options: OCIOptions | None = None,
        **keywords: Unpack[OCIKeywords],
    ) -> None:
        options = Keywords(self, keywords).all_into(OCIOptions, options=options)
        self._bucket, self._namespace = parse_bucket(bucket)
        self.place = self._bucket + (f"/{self._namespace}" if self._namespace else "")
        self.names = Names(options.prefix)
        self.options = options
        if client is None:
            make, end = driver.client_factory(options), driver.close_client
        else:
            driver.check_client(client)
            make, end = _GivenClient(client, self.place), _keep
        self._pool = ThreadPool(
            make,
            end,
            size=options.pool_size,
            acquire_timeout=options.acquire_timeout,
            place=self.place,
        )
        if client is None:
            warn_unless_closed(self, f"oci {self.place}", self._pool.is_open)

    def check_open(self) -> None:
        """Raise `BackendClosedError` after `close`."""
        self._pool.check_open()

    async def get(self, name: str, known: str | None = None) -> Found | None:
        """Return an object, or `None` if it does not exist.

        Args:
            name: Its name.
            known: An entity tag; the body is empty if the object still has it.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        get = partial(driver.get_object, name=name, newer_than=known)
        try:
            return await self._send(get, is_read=True)
        except AbsentError:
            return None
        except UnchangedError:
            return Found(b"", known or "")

    async def put(self, name: str, body: bytes, etag: str | None) -> str:
        """Write an object under a condition; return its new entity tag.

        Args:
            name: Its name.
            body: Its content.
            etag: The entity tag that it must have now; `None`: it must not exist.

        Raises:
            ChangedError: The condition does not hold.
            BackendError: See `locus_memory.errors`.
        """
        put = partial(driver.put_object, name=name, body=body, etag=etag, is_new=etag is None)
        return await self._send(put, is_read=False)

    async def put_new(self, name: str, body: bytes) -> None:
        """Write an object whose name no other write has, so that it may be sent twice."""
        put = partial(driver.put_object, name=name, body=body, etag=None, is_new=False)
        await self._send(put, is_read=False)

    async def delete(self, name: str, etag: str | None = None) -> bool:
        """Delete an object; return whether it existed.

        A delete whose answer was lost, and that finds no object when it is sent again, counts as
        the one that deleted it.

        Args:
            name: Its name.
            etag: The entity tag that it must have now; `None`: any.

        Raises:
            ChangedError: It has another one.
            BackendError: See `locus_memory.errors`.
        """
        try:
            await self._send(partial(driver.delete_object, name=name, etag=etag), is_read=False)
        except AbsentError as error:
            return error.unsure
        return True

    async def pages(
        self, prefix: str, *, start: str | None = None, end: str | None = None, limit: int = 1000
    ) -> AsyncIterator[Page]:
        """Yield the pages of a list, in the order of the names.

        Args:
            prefix: The start of the names.
            start: The first possible name, or `None`.
            end: The first name behind the last possible one, or `None`.
            limit: At most this many objects in the first page; more pages have as many as may be.
        """
        following = start
        while True:
            page = await self.page(prefix, start=following, end=end, limit=limit)
            yield page
            following, limit = page.next_start_with, 1000
            if following is None:
                return

    async def page(
        self, prefix: str, *, start: str | None = None, end: str | None = None, limit: int = 1000
    ) -> Page:
        """Return one page of a list; see `pages`."""
        ask = partial(driver.list_objects, prefix=prefix, start=start, end=end, limit=limit)
        return await self._send(ask, is_read=True)

    async def date(self) -> float | None:
        """Return the time of the service, even if it refuses the user; `None`: it does not tell."""
        return await self._repeated(driver.date_of, is_read=True)

    async def host(self) -> tuple[str, bool]:
        """Return the host of the service, and whether the connection to it is encrypted."""
        return await self._repeated(driver.host_of, is_read=True)

    async def look(self) -> driver.About:
        """Return what the bucket is like, as far as the user may know it."""
        return await self._send(driver.look_at, is_read=True)

    @override
    async def open(self) -> None:
        """Ask for the namespace, and whether the bucket can be read, rather than on first use.

        Raises:
            BackendUnavailableError: The service cannot be reached.
            ConfigurationError: There is no such bucket, or the service refuses the user.
        """
        await self.page(self.names.prefix, limit=1)

    @override
    async def close(self) -> None:
        """Finish the requests that were sent and end the threads; again, it is harmless."""
        await self._pool.close()

    async def _send(self, work: Callable[[Client, Place], T], *, is_read: bool) -> T:
        """Send a request for the bucket; the service is asked for its namespace once."""
        if self._namespace is None:
            self._namespace = await self._repeated(driver.get_namespace, is_read=True)
        place = self._namespace, self._bucket
        return await self._repeated(lambda client: work(client, place), is_read=is_read)

    async def _repeated(self, work: Callable[[Client], T], *, is_read: bool) -> T:
        """Send a request until it is answered, but not for ever.

        Raises:
            AbsentError: There is no such object.
            ChangedError: A condition does not hold.
            UnchangedError: The object still has the entity tag.
        """
        began, unsure = time.monotonic(), False
        with errors().translated(self.place):
            for attempt in count(1):
                try:
                    return await self._pool.run(work, is_read=is_read)
                except Exception as error:
                    if (refused := refusal_of(error)) is not None:
                        raise refused(unsure=unsure) from None
                    pause = _pause(error, attempt)
                    late = time.monotonic() + pause - began > self.options.retry_seconds
                    if late or attempt >= self.options.attempts or not is_transient(error):
                        raise
                    unsure = unsure or not is_refused(error)
                    emit("oci.retried", error=error, place=self.place, attempt=attempt)
                    await asyncio.sleep(pause)
        raise AssertionError


class _GivenClient:
    """A client that was passed in, and works only in the process that created it."""

    def __init__(self, client: Client, place: str) -> None:
        self._client = client
        self._place = place
        self._process = os.getpid()

    def __call__(self) -> Client:
        if self._process != os.getpid():
            raise ConfigurationError(
                f"oci {self._place}: the client belongs to the parent of this process, whose "
                "connections it uses; create one after the fork"
            )
        return self._client


def _keep(client: Client) -> None:
    del client


def _pause(error: Exception, attempt: int) -> float:
    """Return the seconds until the next attempt: random, unless the service asks for more."""
    if attempt == 1 and not answered(error):
        # A broken connection says nothing about the service, and a lost answer is best looked for
        # before others write.
        return 0.0
    most = min(_SHORTEST_PAUSE * 2.0**attempt, _LONGEST_PAUSE)
    return max(retry_after(error), random.uniform(most / 2, most))  # noqa: S311 - no secret
