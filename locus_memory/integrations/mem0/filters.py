"""The filters of mem0, as filters of the library; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.mem0.shapes import entities, path_of
from locus_memory.store.filters import matches, parse_filter

__all__ = ["checked_filters", "condition", "required"]

_OPERATORS: Final = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains")


def checked_filters(filters: object, **given: str | None) -> dict[str, Any]:
    """Return the filters of a call together with the ids that are arguments of their own.

    Raises:
        InvalidArgumentError: They are no object, or name no user, agent or run.
    """
    stated: object = {} if filters is None else filters
    if not isinstance(stated, Mapping):
        raise InvalidArgumentError(f"filters are an object, not {quote(filters)}")
    found = {**stated, **entities(given)}
    if not required(found):
        raise InvalidArgumentError("name a user_id, an agent_id or a run_id, such as in filters")
    return found


def required(filters: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids that each memory must have that matches filters."""
    found = entities({n: v for n, v in filters.items() if not isinstance(v, Mapping) and v != "*"})
    for each in _listed("AND", filters.get("AND", ())):
        found |= required(each)
    return found


def condition(filters: Mapping[str, Any], user: str | None) -> dict[str, Any]:
    """Return the filter of the library for the memories of a user, or of those of nobody.

    Raises:
        InvalidArgumentError: An operator is unknown, or a combination no list of filters.
    """
    return {"$and": [{}, *(_term(name, filters[name], user) for name in filters)]}


def _term(name: str, given: Any, user: str | None) -> dict[str, Any]:
    if name in ("AND", "OR", "NOT"):
        parts = [condition(each, user) for each in _listed(name, given)]
        joined: dict[str, Any] = {"$and" if name == "AND" else "$or": parts or [{}]}
        return {"$not": joined} if name == "NOT" else joined
    wanted = _wanted(name, given)
    if name != "user_id":
        return {path_of(name): wanted}
    # The user is where a memory is, and not in it.
    fields = {} if user is None else {name: user}
    return {} if matches(parse_filter({name: wanted}), fields, {}) else {"$not": {}}


def _listed(name: str, given: Any) -> list[Mapping[str, Any]]:
    listed: list[Any] = list(given) if isinstance(given, list | tuple) else [None]
    if not all(isinstance(each, Mapping) for each in listed) or (name != "AND" and not listed):
        raise InvalidArgumentError(f"{name} takes a list of filters, not {quote(given)}")
    return listed


def _wanted(name: str, given: Any) -> dict[str, Any]:
    """Return the operators of a field."""
    if given == "*":
        return {"$exists": True}
    if not isinstance(given, Mapping):
        return {"$eq": entities({name: given}).get(name, given)}
    for each in given:
        if each not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise InvalidArgumentError(f"the operator {quote(each)} on {name}; known: {known}")
    return {f"${each}": value for each, value in given.items()}
