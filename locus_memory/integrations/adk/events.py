"""Events and states of ADK as JSON: pure functions, no store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.sessions.state import State
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from locus_memory.errors import ValueNotSerializableError
from locus_memory.integrations.reading import naming
from locus_memory.store.json_values import encode_json

__all__ = ["APP", "USER", "Json", "document_of", "json_of", "merged", "split", "state_of"]

Json = dict[str, Any]

APP: Final = State.APP_PREFIX
USER: Final = State.USER_PREFIX

_NUMBER: Final = "JSON has no such number: pass None"
_OBJECT: Final = "JSON has no such object: pass plain values, or keep it under a key 'temp:...'"


def document_of(event: Event) -> Json:
    """Return an event as JSON, without the state that is kept for one invocation only.

    Dates, bytes and models become texts and objects, as in ADK's own databases.

    Raises:
        ValueNotSerializableError: JSON cannot hold a field; the error names it.
    """
    kept = _without_temporary(event)
    # ADK would store the `repr` of an object there, and a null in place of a NaN anywhere.
    state_of(kept.actions.state_delta, "event.actions.state_delta")
    state_of(kept.actions.agent_state or {}, "event.actions.agent_state")
    return json_of(kept, "event")


def json_of(model: BaseModel, name: str) -> Json:
    """Return a model of ADK as JSON, without the fields that are not set.

    Raises:
        ValueNotSerializableError: JSON cannot hold a field; the error names it.
    """
    try:
        document = model.model_dump(mode="json", exclude_none=True)
    except ValueError:
        raise ValueNotSerializableError(f"{name}.{_field_of(model)}", _OBJECT) from None
    # Pydantic writes a null in place of NaN and infinity where a field takes any value.
    if b"null" in _encode(document, name):
        _refuse_numbers(model.model_dump(exclude_none=True), name)
    return document


def state_of(state: Mapping[Any, Any], name: str) -> Json:
    """Return the values of a state as JSON, without those that are temporary.

    Raises:
        ValueNotSerializableError: JSON cannot hold a value; the error names it.
    """
    found: Json = {}
    for key, value in state.items():
        if isinstance(key, str) and key.startswith(State.TEMP_PREFIX):
            continue
        try:
            found[key] = to_jsonable_python(value)
        except ValueError:
            raise ValueNotSerializableError(f"{name}.{key}", _OBJECT) from None
    _encode(found, name)
    return found


def split(state: Mapping[str, Any]) -> tuple[Json, Json, Json]:
    """Return the parts of a state: the app's and the user's without prefixes, the session's."""
    app: Json = {}
    user: Json = {}
    session: Json = {}
    for key, value in state.items():
        if key.startswith(APP):
            app[key.removeprefix(APP)] = value
        elif key.startswith(USER):
            user[key.removeprefix(USER)] = value
        else:
            session[key] = value
    return app, user, session


def merged(app: Json, user: Json, session: Json) -> Json:
    """Return the state that a session shows: the inverse of `split`."""
    prefixed = {APP + key: value for key, value in app.items()}
    return {**session, **prefixed, **{USER + key: value for key, value in user.items()}}


def _without_temporary(event: Event) -> Event:
    delta = event.actions.state_delta
    kept = {key: each for key, each in delta.items() if not key.startswith(State.TEMP_PREFIX)}
    if len(kept) == len(delta):
        return event
    actions = event.actions.model_copy(update={"state_delta": kept})
    return event.model_copy(update={"actions": actions})


def _field_of(model: BaseModel) -> str:
    """Return the name of the first field that cannot be written."""
    for name in type(model).model_fields:
        try:
            model.model_dump(mode="json", include={name})
        except ValueError:
            return name
    return "?"


def _refuse_numbers(value: Any, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueNotSerializableError(path, _NUMBER)
    elif isinstance(value, dict):
        for key, each in value.items():
            _refuse_numbers(each, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            _refuse_numbers(each, f"{path}[{index}]")


def _encode(document: Json, name: str) -> bytes:
    with naming(name):
        return encode_json(document)
