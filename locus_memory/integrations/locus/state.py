"""States of the Locus SDK as plain JSON, and back: exact, and the same in every process."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from locus.core.state import AgentState

__all__ = ["StateFormat"]

_WRITTEN_OUT: Final = "$written_out"
"""The field of a document that holds a written-out value that JSON cannot hold."""

_TEXT, _INTEGER, _FLOAT, _OBJECT = "$text", "$integer", "$float", "$object"
_MARKS: Final = frozenset({_TEXT, _INTEGER, _FLOAT, _OBJECT})
_HALF: Final = re.compile("[\ud800-\udfff]")
"""Half a character, a lone surrogate."""
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1


class StateFormat:
    """The format of the states of one class, used in its place as a `state_type`.

    Args:
        state_type: The SDK's `AgentState` or a subclass.
    """

    def __init__(self, state_type: type[AgentState]) -> None:
        self.state_type = state_type
        self.__name__ = state_type.__name__

    def document(self, state: AgentState) -> dict[str, Any]:
        """Return the state in the SDK's JSON, with its sets in order.

        A set has another order in each process, which would enlarge a delta.
        """
        document = state.to_checkpoint()
        for name, value in state:
            if isinstance(value, frozenset | set):
                document[name] = sorted(document[name], key=repr)
        return document

    def written_out(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the document with the values that JSON cannot hold written out.

        These are half of a surrogate pair, an integer of more than 64 bits, and a float that is NaN
        or infinite: a model or a tool may return one.
        """
        return {**{key: _write_out(value) for key, value in document.items()}, _WRITTEN_OUT: True}

    def from_checkpoint(self, document: dict[str, Any]) -> AgentState:
        """Return the state of a document.

        Raises:
            pydantic.ValidationError: It is not such a state.
        """
        if document.get(_WRITTEN_OUT) is True:
            document = {k: _read(v) for k, v in document.items() if k != _WRITTEN_OUT}
        return self.state_type.from_checkpoint(document)


def _write_out(value: Any) -> Any:
    if isinstance(value, dict):
        return _write_out_object(value)
    if isinstance(value, list):
        return [_write_out(part) for part in value]
    if isinstance(value, str) and _HALF.search(value):
        return {_TEXT: json.dumps(value)}
    if isinstance(value, int) and not _LOWEST <= value <= _HIGHEST:
        return {_INTEGER: hex(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    return value


def _write_out_object(value: dict[str, Any]) -> dict[str, Any]:
    written = {key: _write_out(part) for key, part in value.items()}
    return (
        written if _MARKS.isdisjoint(value) else {_OBJECT: [list(pair) for pair in written.items()]}
    )


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(part) for part in value]
    if not isinstance(value, dict):
        return value
    if _MARKS.isdisjoint(value):
        return {key: _read(part) for key, part in value.items()}
    ((mark, written),) = value.items()
    if mark == _OBJECT:
        return {key: _read(part) for key, part in written}
    if mark == _TEXT:
        return json.loads(written)
    return int(written, 16) if mark == _INTEGER else float(written)
