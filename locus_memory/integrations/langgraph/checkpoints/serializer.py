"""The serializer: LangGraph's bytes become objects, but only of classes the program names."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, Final, Self, cast

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import (
    SAFE_MSGPACK_TYPES,  # pyright: ignore[reportPrivateLocalImportUsage] - its only place
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import (
    _DeltaSnapshot as DeltaSnapshot,  # pyright: ignore[reportPrivateUsage] - its only name
)
from typing_extensions import override

from locus_memory._internal.quoting import quote, shorten
from locus_memory.errors import CheckpointCorruptError, StateTypeError
from locus_memory.integrations.langgraph.checkpoints.messages import (
    MESSAGES,
    as_validated,
    packed,
)
from locus_memory.integrations.langgraph.checkpoints.schemas import (
    ClassName,
    Graph,
    calling_graph,
    classes_of,
    living_classes,
)

__all__ = ["DeltaSnapshot", "StrictSerializer", "informed"]

_OWN_TYPES: Final = frozenset({"null", "bytes", "bytearray", "msgpack"})


class _UnbuildableError(StateTypeError):
    """A value that its class refuses, or that has no bytes of its own."""


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's own serializer, restricted to its own format and to known classes.

    Known classes are the built-in types on LangGraph's list, LangChain's messages, the classes that
    the schemas of the reading graph name, and those that `BaseCheckpointSaver.with_allowlist` adds.
    Any other class is an error. Nothing is pickled. No module is imported because of a stored name.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self._allowed: dict[ClassName, type | None] = {}
        self._named: Callable[[], Mapping[ClassName, type]] | None = None

    @override
    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> Self:
        extra: dict[ClassName, type | None] = {}
        for each in extra_allowlist:
            if isinstance(each, type):
                extra[each.__module__, each.__name__] = each
            else:
                extra.setdefault(cast("ClassName", tuple(each)), None)
        new = {
            name: kind
            for name, kind in extra.items()
            if name not in SAFE_MSGPACK_TYPES and (kind or name not in self._allowed)
        }
        if not new:
            return self
        clone = copy.copy(self)
        clone._allowed = {**self._allowed, **new}  # noqa: SLF001
        return clone

    def read_by(self, graph: Graph | None) -> Self:
        """Return this serializer with the classes that the schemas of a graph name.

        Without a graph, the schemas are those of the last graph given, or else of all graphs of
        this process.
        """
        if graph is None and self._named is not None:
            return self
        clone = copy.copy(self)
        clone._named = living_classes() if graph is None else partial(classes_of, graph)  # noqa: SLF001
        return clone

    @override
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the type and the bytes of a value.

        Raises:
            StateTypeError: As for `dumps_other`.
        """
        plain = packed(obj)
        return self.dumps_other(obj) if plain is None else ("msgpack", plain)

    def dumps_other(self, obj: Any) -> tuple[str, bytes]:
        """Return the type and the bytes of a value for which `packed` has none.

        Raises:
            StateTypeError: It could not be read again: an array of objects, or a set with a member
                that has a list in the place of a tuple then.
        """
        kind, content = super().dumps_typed(obj)
        if kind == "msgpack" and any(mark in content for mark in _DOUBTFUL):
            try:
                _READS_BACK.loads_typed((kind, content))
            except _UnbuildableError as error:
                raise StateTypeError(f"a value cannot be saved: {error}") from error
            except StateTypeError:
                # Its class is known to the graph alone.
                pass
        return kind, content

    @override
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data
        if kind not in _OWN_TYPES:
            raise NotImplementedError(f"a value of the type {quote(kind)} is not read")
        if kind != "msgpack":
            return super().loads_typed(data)
        try:
            return self._unpacked(content)
        except RecursionError as error:
            reason = "a value of it is nested too deep"
            raise CheckpointCorruptError("", None, reason) from error

    def _unpacked(self, content: bytes) -> Any:
        failures: list[Exception] = []

        def revived(code: int, data: bytes) -> Any:
            try:
                return self._revived(code, unpack(data, ext_hook=revived, option=_KEYS))
            except Exception as error:
                failures.append(error)
                raise

        unpack = ormsgpack.unpackb
        try:
            return unpack(content, ext_hook=revived, option=_KEYS)
        except ValueError as error:
            if failures and not isinstance(failures[0], ormsgpack.MsgpackDecodeError):
                # Otherwise the error has no details.
                raise failures[0] from None
            raise CheckpointCorruptError("", None, "a value of it is not MessagePack") from error

    def _revived(self, code: int, parts: Any) -> Any:
        if code == jsonplus.EXT_DELTA_SNAPSHOT:
            return DeltaSnapshot(parts)
        if code == jsonplus.EXT_NUMPY_ARRAY:
            return _array(parts)
        build = _BUILDERS.get(code)
        if build is None or not (isinstance(parts, list) and len(parts) >= _PARTS):
            raise CheckpointCorruptError("", None, f"a value of it has the unknown form {code}")
        name, stored = (str(parts[0]), str(parts[1])), parts[2]
        if code == jsonplus.EXT_PYDANTIC_V2 and name in MESSAGES:
            message = as_validated(MESSAGES[name], stored)
            if message is not None:
                return message
        if code == jsonplus.EXT_METHOD_SINGLE_ARG and parts != [*_DATETIME, stored, _PARSER]:
            raise _unknown(name)
        kind = self._class(name)
        try:
            return build(kind, stored)
        except Exception as error:
            raise _UnbuildableError(
                f"a stored value of the class {_shown(name)} cannot be built: the class refuses "
                f"its fields ({type(error).__name__}); read it with the version of the class that "
                "wrote it"
            ) from error

    def _class(self, name: ClassName) -> Callable[..., Any]:
        if name in SAFE_MSGPACK_TYPES:
            return _imported(name)
        kind = None if self._named is None else self._named().get(name)
        if kind is not None:
            return kind
        if name not in self._allowed:
            raise _unknown(name)
        return self._allowed[name] or _imported(name)


class _ReadingBack(StrictSerializer):
    """The serializer for a value of this process, whose classes are there."""

    @override
    def _class(self, name: ClassName) -> Callable[..., Any]:
        return _imported(name)


def informed(serde: SerializerProtocol) -> SerializerProtocol:
    """Return a serializer with the classes that the calling graph names.

    This applies only to the library's serializer, alone or inside one that encrypts.
    """
    if isinstance(serde, StrictSerializer):
        return serde.read_by(calling_graph())
    if isinstance(serde, EncryptedSerializer) and isinstance(serde.serde, StrictSerializer):
        return EncryptedSerializer(serde.cipher, serde.serde.read_by(calling_graph()))
    return serde


@cache
def _imported(name: ClassName) -> Callable[..., Any]:
    """Return a class that the program names, not only the stored data."""
    module, attribute = name
    try:
        found: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise StateTypeError(
            f"a stored value has the class {_shown(name)}, which is allowed but not found: "
            "pass the class itself, rather than its name: "
            "LocusSaver(...).with_allowlist([TheClass])"
        ) from error
    return found


def _unknown(name: ClassName) -> StateTypeError:
    return StateTypeError(
        f"a stored value of the class {_shown(name)} is not built, because neither the "
        "schema of the graph nor an option names the class: annotate it in the schema, or allow "
        f"it: LocusSaver(...).with_allowlist([({quote(name[0])}, {quote(name[1])})])"
    )


def _shown(name: ClassName) -> str:
    return f"{shorten(name[0])}.{shorten(name[1])}"


def _array(parts: Any) -> Any:
    if isinstance(parts, list) and len(repr(parts[:1])) > _LONGEST_TYPE:
        raise CheckpointCorruptError("", None, "a value of it has an array of no type of numpy's")
    try:
        kind, shape, order, data = parts
        numpy = import_module("numpy")
        return numpy.frombuffer(data, dtype=numpy.dtype(kind)).reshape(shape, order=order)
    except (ImportError, TypeError, ValueError) as error:
        # For example an array of objects: only their addresses are stored.
        raise _UnbuildableError(
            f"a stored array of numpy's cannot be built ({type(error).__name__}): save arrays of "
            "numbers, or lists, instead of arrays of objects"
        ) from error


def _of_one(kind: Callable[..., Any], stored: Any) -> Any:
    if kind is set or kind is frozenset:
        return kind(map(_member, stored))
    return kind(stored)


def _member(stored: Any) -> Any:
    """Return a member of a set: MessagePack has no tuples, and no set has a list."""
    return tuple(map(_member, stored)) if isinstance(stored, list) else stored


def _of_several(kind: Callable[..., Any], stored: Any) -> Any:
    if len(stored) > _SEND_FIELDS and kind is _imported(_SEND):
        return kind(stored[0], stored[1], timeout=stored[2])
    return kind(*stored)


def _of_fields(kind: Any, stored: Mapping[str, Any]) -> Any:
    fields: dict[str, dataclasses.Field[Any]] = getattr(kind, "__dataclass_fields__", {})
    later = {name for name in stored if name in fields and not fields[name].init}
    made = kind(**{name: value for name, value in stored.items() if name not in later})
    for name in later:
        # `dataclasses.replace` cannot do this: these are not arguments, and the class may be
        # frozen.
        object.__setattr__(made, name, stored[name])
    return made


def _parsed(kind: Any, stored: str) -> Any:
    return getattr(kind, _PARSER)(stored)


def _of_model(kind: Any, stored: Mapping[str, Any]) -> Any:
    try:
        # Fields are stored under their names, which a class with aliases would ignore.
        if _has_aliases(kind, kind.__pydantic_validator__):
            return kind.model_validate(stored, by_name=True)
        return kind(**stored)
    except Exception:  # noqa: BLE001 - as in LangGraph: a value that was valid when stored stays valid
        return kind.model_construct(**stored)


@lru_cache(maxsize=128)
def _has_aliases(kind: Any, validator: object) -> bool:  # noqa: ARG001 - a part of the key
    """Whether a class reads a field from another name.

    A class that is completed later, or whose fields change, has another validator then.
    """
    return any(field.validation_alias for field in kind.model_fields.values())


def _of_old_model(kind: Any, stored: Mapping[str, Any]) -> Any:
    try:
        return kind(**stored)
    except Exception:  # noqa: BLE001 - as above
        return kind.construct(**stored)


_READS_BACK: Final = _ReadingBack()
_DOUBTFUL: Final = (b"\xa8builtins", b"\xa2|O")
"""Bytes of values that may be lost: sets, and arrays of objects. The first byte is MessagePack's
length of the text, so that prose with these words is seldom read back."""

_KEYS: Final = ormsgpack.OPT_NON_STR_KEYS
_PARTS: Final = 3
_SEND: Final = ("langgraph.types", "Send")
_SEND_FIELDS: Final = 2
_LONGEST_TYPE: Final = 64
"""The characters of the type of an array; a longer one takes numpy seconds to read."""
_DATETIME: Final = ("datetime", "datetime")
_PARSER: Final = "fromisoformat"
_BUILDERS: Final[Mapping[int, Callable[[Any, Any], Any]]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: _of_one,
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: _of_several,
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: _of_fields,
    jsonplus.EXT_METHOD_SINGLE_ARG: _parsed,
    jsonplus.EXT_PYDANTIC_V1: _of_old_model,
    jsonplus.EXT_PYDANTIC_V2: _of_model,
}
