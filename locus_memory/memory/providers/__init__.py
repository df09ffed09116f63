"""Memory providers: memories behind an agent that get texts, and services of other makers.

A provider has hooks that an agent calls, and may implement only two of them. `ProviderManager`
makes a memory manager of a provider, and a string such as `hindsight:support` names one.

Read `base.py` first, then `manager.py` with `hooks.py` and `fence.py`, then `registry.py`;
`settings.py` is for agents. The adapters are `mem0.py`, `supermemory.py` and `hindsight.py`;
`service.py` has the part that they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.memory.providers.base import BaseMemoryProvider
    from locus_memory.memory.providers.hindsight import HindsightProvider
    from locus_memory.memory.providers.manager import ProviderManager
    from locus_memory.memory.providers.mem0 import Mem0Provider
    from locus_memory.memory.providers.registry import (
        MemoryOptions,
        MemoryProvider,
        get_memory_manager,
        list_memory_providers,
        register_memory_api,
        register_memory_provider,
    )
    from locus_memory.memory.providers.supermemory import SupermemoryProvider
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseMemoryProvider": "base",
            "HindsightProvider": "hindsight",
            "Mem0Provider": "mem0",
            "MemoryOptions": "registry",
            "MemoryProvider": "registry",
            "ProviderManager": "manager",
            "SupermemoryProvider": "supermemory",
            "get_memory_manager": "registry",
            "list_memory_providers": "registry",
            "register_memory_api": "registry",
            "register_memory_provider": "registry",
        },
    )

__all__ = [
    "BaseMemoryProvider",
    "HindsightProvider",
    "Mem0Provider",
    "MemoryOptions",
    "MemoryProvider",
    "ProviderManager",
    "SupermemoryProvider",
    "get_memory_manager",
    "list_memory_providers",
    "register_memory_api",
    "register_memory_provider",
]
