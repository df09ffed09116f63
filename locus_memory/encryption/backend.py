"""Both contracts over one connection, encrypted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from typing_extensions import override

from locus_memory._internal.resource import Forwarding, forwarded
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer, StateT
from locus_memory.encryption.checkpointer import EncryptingCheckpointer
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.errors import ConfigurationError, LocusMemoryError
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers.encrypting import EncryptingStore

__all__ = ["EncryptingBackend", "encrypted"]

_READABLE: Final = (
    "{} items have readable names: the library made them of memories, documents or resources "
    "before names were encrypted"
)
_REMEDY: Final = "run locus-memory rotate with the same keys"


class EncryptingBackend(Forwarding, Backend[StateT]):
    """A backend with an `EncryptingStore` and an `EncryptingCheckpointer` over another one.

    Args:
        backend: The backend of the encrypted data, which is opened and closed with this one.
        keys: The keys of both.
        clock: Returns seconds since the epoch; pass the clock of the backend.
    """

    def __init__(
        self,
        backend: Backend[StateT],
        keys: EncryptionKeys,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.inner = backend
        self.keys = keys
        self.provider = backend.provider
        self._clock = clock

    problems = forwarded(Backend.problems)
    outdated = forwarded(Backend.outdated)
    compact = forwarded(Backend.compact)
    remains = forwarded(Backend.remains)
    open = forwarded(Backend.open)
    close = forwarded(Backend.close)

    @cached_property
    @override
    def store(self) -> EncryptingStore:  # pyright: ignore[reportIncompatibleMethodOverride]
        return EncryptingStore(self.inner, self.keys, clock=self._clock)

    @cached_property
    @override
    def checkpointer(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> EncryptingCheckpointer[StateT]:
        return EncryptingCheckpointer(self.inner, self.keys)

    @override
    async def advice(self) -> list[Advice]:
        found = await self.inner.advice()
        # Not every provider has a store, and one that fails has told so already.
        with suppress(LocusMemoryError):
            if count := await self.store.count_readable():
                found.append(Advice("encryption.names", _READABLE.format(count), _REMEDY))
        return found


def encrypted(made: Any, encryption: object, options: Mapping[str, Any]) -> Any:
    """Return a new store, checkpointer or backend, encrypted, for `registry`.

    Args:
        made: The store, the checkpointer or the backend; the result closes it.
        encryption: The caller's option: `EncryptionKeys`, or a text for `EncryptionKeys.parse`.
        options: The caller's other options.

    Raises:
        ConfigurationError: `encryption` is neither, or the text is not valid.
    """
    keys = EncryptionKeys.parse(encryption) if isinstance(encryption, str) else encryption
    if not isinstance(keys, EncryptionKeys):
        raise ConfigurationError(
            "encryption is EncryptionKeys, or a text such as 2026=BASE64,2025=BASE64, not "
            f"{type(encryption).__name__}"
        )
    clock = options.get("clock", time.time)
    if isinstance(made, BaseStore):
        return EncryptingStore(made, keys, clock=clock)
    if isinstance(made, BaseCheckpointer):
        return EncryptingCheckpointer(made, keys)
    return EncryptingBackend(made, keys, clock=clock)
