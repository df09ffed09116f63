"""The first of several provider strings that can be used here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Final

from locus_memory.errors import (
    ConfigurationError,
    LocusMemoryError,
    MissingDriverError,
    UnsetVariableError,
)
from locus_memory.presets import is_preset
from locus_memory.registry import open_backend, resolve_address

__all__ = ["preferred"]

_SECONDS: Final = 1.0


def preferred(providers: Iterable[str], *, probe: bool = False) -> str:
    """Return the first provider string whose driver is installed, for `get_store` and the like.

    ```python
    get_store(preferred(["@prod", "postgresql:mydb", "sqlite:./agent.db"], probe=True))
    ```

    A preset that needs a variable which is not set is passed over.

    Args:
        providers: Provider strings, the best first.
        probe: Whether its server must answer within a second, too. The call waits for it, so
            async code calls `await asyncio.to_thread(preferred, [...], probe=True)`. A server that
            answers is set up as by its first use; a file is not opened.

    Raises:
        UnknownProviderError: A provider or preset is not known.
        ConfigurationError: None can be used; the message says why, for each. Or they are no list.
    """
    if isinstance(providers, str):
        raise ConfigurationError("the provider strings are a list, also a single one")
    reasons: list[str] = []
    for where in providers:
        try:
            address, provider = resolve_address(where)
            open_backend(where)
        except (MissingDriverError, UnsetVariableError) as error:
            reasons.append(str(error))
            continue
        if not probe or provider.is_path or _answers(where):
            return where
        shown = where if is_preset(where) else str(address)
        reasons.append(f"{shown} does not answer within {_SECONDS:g} second")
    raise ConfigurationError(f"no provider can be used: {'; '.join(reasons) or 'none was given'}")


def _answers(where: str) -> bool:
    """Whether a server answers; asked in a thread, since a loop may run in this one."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(_opens(where))), daemon=True)
    thread.start()
    # Closing what did not open may take a moment more.
    thread.join(2 * _SECONDS)
    return found == [True]


async def _opens(where: str) -> bool:
    backend = open_backend(where)
    try:
        async with asyncio.timeout(_SECONDS):
            await backend.open()
    except (LocusMemoryError, OSError, TimeoutError):
        return False
    else:
        return True
    finally:
        await backend.close()
