"""Messages of LangChain to their stored fields and back, without pydantic where it changes nothing.

Validation takes most of the time of a load. It returns the fields as they are if their names are
those of the class, in its order, and their types need no conversion. Then the message is made as
pydantic makes it after the validation. All other messages are validated. In a save, pydantic
changes nothing in fields of plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import product
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NamedTuple

import ormsgpack
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde import jsonplus

__all__ = ["MESSAGES", "as_validated", "packed", "told_apart"]

MESSAGES: Final[Mapping[tuple[str, str], type[BaseMessage]]] = {
    (kind.__module__, kind.__name__): kind
    for kind in (HumanMessage, AIMessage, ToolMessage, SystemMessage)
}
"""The classes of messages, by their names in LangGraph's serializer."""

_KINDS: Final = {kind: name for name, kind in MESSAGES.items()}
_BYTES: Final = (bytes, bytearray)
_ONLY_PLAIN: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "content": (str,),
    "response_metadata": (dict,),
    "name": (str, NoneType),
    "id": (str, NoneType),
    "tool_call_id": (str,),
    "tool_calls": (list,),
    "usage_metadata": (NoneType, dict),
}
"""The types of the fields that may have another value than their defaults."""
_DEFAULTS: Final = (str, dict, list, NoneType)

_VALIDATORS: Final = frozenset({"_backwards_compat_tool_calls", "coerce_args"})
"""The validators that change nothing in fields of these types."""


def _are_calls(value: list[Any]) -> bool:
    return all(map(_is_call, value))


def _is_call(call: Any) -> bool:
    if type(call) is not dict or [*call] != ["name", "args", "id", "type"]:
        return False
    name, args, call_id, kind = call.values()
    types = type(name), type(args), kind, type(call_id)
    return types in _CALLS and all(type(key) is str for key in args)


def _is_usage(value: dict[Any, Any]) -> bool:
    names = ["input_tokens", "output_tokens", "total_tokens"]
    return [*value] == names and set(map(type, value.values())) == {int}


_CALLS: Final = ((str, dict, "tool_call", str), (str, dict, "tool_call", NoneType))
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "tool_calls": _are_calls,
    "usage_metadata": _is_usage,
}
_EMPTY: Final[tuple[Any, ...]] = ([], None)


class _Form(NamedTuple):
    names: list[str]
    types: set[tuple[type, ...]]
    others: Callable[[dict[str, Any]], tuple[Any, ...]]
    defaults: tuple[Any, ...]
    checks: list[tuple[str, Callable[[Any], bool]]]


@lru_cache(maxsize=16)
def _form(kind: type[BaseMessage], _: object) -> _Form | None:
    """Return the form of the fields that need no validation; `None` if the class is unknown."""
    fields, validators = kind.model_fields, kind.__pydantic_decorators__
    known = (
        validators.model_validators.keys() <= _VALIDATORS
        and not (validators.field_validators or validators.validators)
        and not (validators.root_validators or kind.__private_attributes__)
        and kind.__pydantic_post_init__ is None
    )
    others = [name for name in fields if name not in _TYPES]
    defaults = {name: fields[name].get_default(call_default_factory=True) for name in others}
    if not known or any(type(each) not in _DEFAULTS for each in defaults.values()):
        return None
    types = [_TYPES.get(name) or (type(defaults[name]),) for name in fields]
    checks = [(name, check) for name, check in _CHECKS.items() if name in fields]
    return _Form([*fields], {*product(*types)}, itemgetter(*others), (*defaults.values(),), checks)


def as_validated(kind: type[BaseMessage], fields: Any) -> BaseMessage | None:
    """Return the message of `kind` with these fields; `None` if they need validation.

    Args:
        kind: One of `MESSAGES`.
        fields: Its fields, which then belong to the message.
    """
    form = _form(kind, kind.__pydantic_validator__)
    if form is None or type(fields) is not dict or [*fields] != form.names:
        return None
    if (*map(type, fields.values()),) not in form.types or form.others(fields) != form.defaults:
        return None
    for name, check in form.checks:
        if fields[name] not in _EMPTY and not check(fields[name]):
            return None
    made = kind.__new__(kind)
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", set(fields))
    object.__setattr__(made, "__pydantic_extra__", {})
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def packed(value: Any) -> bytes | None:
    """Return plain data and messages as the MessagePack that LangGraph's serializer writes.

    Returns:
        `None` for a value that is, or holds, something else, or is of a type that the serializer
        writes in another way: `None` and bytes.
    """
    if value is None or type(value) in _BYTES:
        return None
    try:
        return ormsgpack.packb(value, default=_packed_message, option=_ONLY_PLAIN)
    except ormsgpack.MsgpackEncodeError:
        return None


def _packed_message(value: Any) -> ormsgpack.Ext:
    name = _KINDS.get(type(value))
    if name is None or value.__pydantic_extra__:
        raise TypeError
    parts = *name, value.__dict__, "model_validate_json"
    return ormsgpack.Ext(jsonplus.EXT_PYDANTIC_V2, ormsgpack.packb(parts, option=_ONLY_PLAIN))


def told_apart(value: Any) -> bytes | None:
    """Return bytes that two values of plain data and messages share only if they are alike.

    In `packed`, a tuple is the same as a list.

    Returns:
        `None` for a value that is, or holds, something else.
    """
    option = _ONLY_PLAIN | ormsgpack.OPT_PASSTHROUGH_TUPLE
    try:
        return ormsgpack.packb(value, default=_told_apart, option=option)
    except ormsgpack.MsgpackEncodeError:
        return None


def _told_apart(value: Any) -> ormsgpack.Ext:
    kind: type = type(value)
    is_message = kind in _KINDS and not value.__pydantic_extra__
    if not is_message and kind is not tuple:
        raise TypeError
    parts = [kind.__module__, kind.__name__, value.__dict__] if is_message else [*value]
    content = told_apart(parts)
    if content is None:
        raise TypeError
    return ormsgpack.Ext(int(is_message), content)
