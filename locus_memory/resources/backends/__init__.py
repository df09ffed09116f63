"""Memory backends: kinds of stores of `memory://` resources, behind one registry.

An open store is a handle with a count of its users, and the last one closes it. `local`, the
built-in backend, is a tree over any store of this library.

Read `base.py` first, then `handle.py`, `registry.py` and `local.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.resources.backends.base import (
        MemoryBackend,
        MemoryCapabilities,
        MemoryStoreSpec,
        ScopeModel,
    )
    from locus_memory.resources.backends.handle import (
        MemoryStoreHandle,
    )
    from locus_memory.resources.backends.local import (
        LocalMemoryBackend,
    )
    from locus_memory.resources.backends.registry import (
        current,
        get,
        get_class,
        is_available,
        list_names,
        preferred,
        register,
        set_default,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "LocalMemoryBackend": "local",
            "MemoryBackend": "base",
            "MemoryCapabilities": "base",
            "MemoryStoreHandle": "handle",
            "MemoryStoreSpec": "base",
            "ScopeModel": "base",
            "current": "registry",
            "get": "registry",
            "get_class": "registry",
            "is_available": "registry",
            "list_names": "registry",
            "preferred": "registry",
            "register": "registry",
            "set_default": "registry",
        },
    )

__all__ = [
    "LocalMemoryBackend",
    "MemoryBackend",
    "MemoryCapabilities",
    "MemoryStoreHandle",
    "MemoryStoreSpec",
    "ScopeModel",
    "current",
    "get",
    "get_class",
    "is_available",
    "list_names",
    "preferred",
    "register",
    "set_default",
]
