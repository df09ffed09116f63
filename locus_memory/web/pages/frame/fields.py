"""Fields of forms and queries, as the requests that the functions take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_origin

from starlette.datastructures import ImmutableMultiDict

from locus_memory.web.models import Asked

__all__ = ["read_fields"]

_Model = TypeVar("_Model", bound=Asked)


def read_fields(
    model: type[_Model], fields: ImmutableMultiDict[str, Any], fixed: Mapping[str, Any]
) -> _Model:
    """Return a request, from the fields that have the names of its own; others are ignored.

    A browser sends every field of a form, so an empty one counts as missing.

    Raises:
        ValidationError: A field is missing or invalid.
    """
    given: dict[str, Any] = {}
    for name, each in model.model_fields.items():
        found = [_as_written(value) for value in fields.getlist(name) if value != ""]
        if found:
            given[name] = tuple(found) if get_origin(each.annotation) is tuple else found[-1]
    return model.model_validate({**given, **fixed})


def _as_written(value: Any) -> Any:
    """Return a text with the line ends that its writer sees: a browser sends others."""
    return value.replace("\r\n", "\n") if isinstance(value, str) else value
