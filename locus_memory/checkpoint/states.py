"""States of every kind as JSON, and back; pure.

The kind of a state is stored with its record, as one of the letters below and never as the name of
a class. `load` creates only the library's own `AgentState` and the caller's `state_type`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias

from pydantic import BaseModel, TypeAdapter

from locus_memory.checkpoint.base import Unset
from locus_memory.errors import InvalidArgumentError, StateTypeError, ValueNotSerializableError
from locus_memory.state import AgentState, shared_checkpoint

__all__ = [
    "AgentDocument",
    "BytesDocument",
    "Kind",
    "Written",
    "check_state_type",
    "readable",
    "restored",
    "write_state",
]

_REMEDY = "give it to_checkpoint() and a classmethod from_checkpoint(dict)"

StateType: TypeAlias = type[Any] | Unset | None


class Kind(Enum):
    """The kind of a saved state; the value is stored with the record."""

    AGENT = b"a"
    MAPPING = b"m"
    OBJECT = b"o"
    BYTES = b"b"
    UNSAID = b""
    """A record of a version without kinds, a subclass of `AgentState`, or JSON of one."""


class AgentDocument(dict[str, Any]):
    """The unvalidated JSON of an agent's state, loaded as an `AgentState` if it fits."""


class BytesDocument(dict[str, Any]):
    """A document of an integration: JSON, but for the entry `BYTES`, which maps names to bytes.

    It is saved as it is, without a check and without a copy, so it never changes again. Only
    `state_type=BytesDocument` loads the bytes; to any other reader they are text, each byte the
    Latin-1 character of its number.
    """

    BYTES: Final = "t"

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any]) -> Self:
        """Return the document that was saved."""
        return cls(document)

    @classmethod
    def of_text(cls, document: Mapping[str, Any]) -> Self:
        """Return the document that another reader has as JSON; what is no text of bytes stays."""
        given: Any = document.get(cls.BYTES)
        with suppress(AttributeError, UnicodeEncodeError):
            held = {name: text.encode("latin-1") for name, text in given.items()}
            return cls({**document, cls.BYTES: held})
        return cls(document)


def readable(document: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Return a document of a kind as JSON."""
    held = document.get(BytesDocument.BYTES) if kind is Kind.BYTES else None
    if not isinstance(held, dict):
        return document
    pairs: Iterable[tuple[str, Any]] = held.items()
    texts = {name: v.decode("latin-1") if type(v) is bytes else v for name, v in pairs}
    return {**document, BytesDocument.BYTES: texts}


@dataclass(frozen=True, slots=True)
class Written:
    """A state as JSON.

    Attributes:
        document: The JSON; parts of it may be the state's own.
        kind: The kind of the state.
        shared: The keys of its parts that never change.
        is_owned: Whether the document is JSON, or bytes, and never changes.
    """

    document: dict[str, Any]
    kind: Kind
    shared: tuple[str, ...] = ()
    is_owned: bool = False


def write_state(state: Any) -> Written:
    """Return a state as JSON; only JSON from pydantic is checked.

    Raises:
        StateTypeError: It is not a state.
        ValueNotSerializableError: A number in a model is not JSON; the error names the path.
    """
    if isinstance(state, AgentDocument):
        return Written(dict(state), Kind.UNSAID)
    if isinstance(state, BytesDocument):
        return Written(dict(state), Kind.BYTES, is_owned=True)
    if isinstance(state, Mapping):
        return Written(state if isinstance(state, dict) else dict(state), Kind.MAPPING)
    if isinstance(state, type):
        raise StateTypeError(f"a state is an object, not the class {state.__name__}")
    if isinstance(state, AgentState) and type(state).to_checkpoint is AgentState.to_checkpoint:
        kind = Kind.AGENT if type(state) is AgentState else Kind.UNSAID
        return Written(shared_checkpoint(state), kind, ("messages",))
    if hasattr(state, "to_checkpoint"):
        return Written(_checked(state, state.to_checkpoint()), Kind.OBJECT)
    if isinstance(state, BaseModel) or is_dataclass(state):
        return Written(_checked(state, _dumped(state)), Kind.OBJECT)
    raise StateTypeError(
        "a state is a dict, a pydantic model, a dataclass or an object with to_checkpoint(), not "
        f"{type(state).__name__}"
    )


def _checked(state: object, document: object) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise StateTypeError(
            f"{type(state).__name__} is written as {type(document).__name__}, and a state is "
            "written as a dict"
        )
    return document


def _dumped(state: Any) -> Any:
    """Return a pydantic model or a dataclass in the form of its JSON schema."""
    kind: Any = type(state)
    adapter = _adapter(kind)
    try:
        document = adapter.dump_python(state, mode="json", by_alias=True, round_trip=True)
        values = adapter.dump_python(state, by_alias=True, round_trip=True)
    except ValueError as error:
        raise StateTypeError(
            f"{type(state).__name__} cannot be written as JSON ({error}): {_REMEDY}"
        ) from error
    _refuse_lost(document, values, "$")
    return document


def _refuse_lost(document: Any, value: Any, path: str) -> None:
    """Raise where pydantic wrote `null` for something else, such as NaN."""
    if document is None and value is not None:
        raise ValueNotSerializableError(path, f"{value!r} is not JSON")
    if isinstance(document, dict) and isinstance(value, dict):
        for key in document.keys() & value.keys():
            _refuse_lost(document[key], value[key], f"{path}.{key}")
    elif isinstance(document, list) and isinstance(value, list | tuple):
        for index, (part, given) in enumerate(zip(document, value, strict=False)):
            _refuse_lost(part, given, f"{path}[{index}]")


@lru_cache(maxsize=64)
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(kind)
    except Exception as error:
        # pydantic raises unrelated errors for a class without a schema.
        raise StateTypeError(
            f"pydantic knows no JSON for {kind.__name__} ({error}): {_REMEDY}"
        ) from error


def check_state_type(state_type: Any) -> StateType:
    """Return the class that `load` creates, `None` for dicts.

    Raises:
        InvalidArgumentError: It is not a class that can be created from a dict.
    """
    if state_type is None or state_type is dict:
        return None
    is_model = isinstance(state_type, type) and (
        issubclass(state_type, BaseModel) or is_dataclass(state_type)
    )
    if isinstance(state_type, Unset) or is_model or hasattr(state_type, "from_checkpoint"):
        known: StateType = state_type
        return known
    raise InvalidArgumentError(
        "state_type is None for dicts, or a class: a pydantic model, a dataclass or one with "
        f"from_checkpoint(dict); not {state_type!r}"
    )


def restored(document: dict[str, Any], kind: Kind, state_type: StateType) -> Any:
    """Return the state of a document, in the class that the caller chose, or as it was saved.

    Raises:
        Exception: Any error of the class, if it refuses the document.
    """
    if state_type is not BytesDocument:
        document = readable(document, kind)
    if not isinstance(state_type, Unset):
        return document if state_type is None else _made(state_type, document)
    if kind is Kind.AGENT:
        return AgentState.from_checkpoint(document)
    return _guessed(document) if kind is Kind.UNSAID else document


def _made(state_type: Any, document: dict[str, Any]) -> Any:
    if hasattr(state_type, "from_checkpoint"):
        return state_type.from_checkpoint(document)
    return _adapter(state_type).validate_python(document)


def _guessed(document: dict[str, Any]) -> AgentState | dict[str, Any]:
    try:
        return AgentState.from_checkpoint(document)
    except (ValueError, TypeError, AttributeError):
        return document
