"""A serializer that copies values: an object of a class stays the bytes that it was."""

from __future__ import annotations

from typing import Any, Final

import ormsgpack
from langgraph.checkpoint.serde import jsonplus

from locus_memory.integrations.langgraph.checkpoints.values import DeltaSnapshot

__all__ = ["COPIED", "OpaqueSerializer"]

COPIED: Final = ("null", "bytes", "bytearray", "msgpack")
"""The types of stored bytes that are copied; others are pickled, encrypted or of old releases."""

_KEYS: Final = ormsgpack.OPT_NON_STR_KEYS


class _Object:
    """An encoded object, which is not built; no dataclass, of which ormsgpack writes the fields."""

    __slots__ = ("code", "content")

    def __init__(self, code: int, content: bytes) -> None:
        self.code = code
        self.content = content


class OpaqueSerializer:
    """Reads and writes LangGraph's own format; lists and dicts are lists and dicts meanwhile."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a value, its objects as they are encoded.

        Raises:
            ValueError: The bytes are damaged, or of another type.
        """
        kind, content = data
        if kind == "null":
            return None
        if kind == "msgpack":
            return ormsgpack.unpackb(content, ext_hook=_loaded, option=_KEYS)
        if kind not in COPIED:
            raise ValueError(f"a value of the type {kind!r} is not copied")
        return bytearray(content) if kind == "bytearray" else bytes(content)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the typed bytes of a value that `loads_typed` returned."""
        if obj is None:
            return "null", b""
        if isinstance(obj, bytes | bytearray):
            return type(obj).__name__, bytes(obj)
        return "msgpack", ormsgpack.packb(obj, default=_dumped, option=_KEYS)


def _loaded(code: int, content: bytes) -> Any:
    if code == jsonplus.EXT_DELTA_SNAPSHOT:
        return DeltaSnapshot(ormsgpack.unpackb(content, ext_hook=_loaded, option=_KEYS))
    return _Object(code, bytes(content))


def _dumped(value: Any) -> ormsgpack.Ext:
    if isinstance(value, DeltaSnapshot):
        content = ormsgpack.packb(value.value, default=_dumped, option=_KEYS)
        return ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, content)
    if isinstance(value, _Object):
        return ormsgpack.Ext(value.code, value.content)
    raise TypeError(f"a value of the type {type(value).__name__} is not LangGraph's")
