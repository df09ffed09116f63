"""`diff` and `apply`: the pure core of the checkpoints.

A delta is plain JSON that describes how one JSON document becomes another. Its size depends on
what changed: a list that grew by two messages is one splice with two messages.

| delta | meaning |
|---|---|
| `null` | nothing changed |
| `["=", value]` | replace by `value` |
| `["d", {key: delta, ...}, [key, ...]]` | patch or add these keys of an object, drop those |
| `["l", [step, ...]]` | walk a list: see below |
| `["s", start, dropped, text]` | in a string, replace `dropped` code points at `start` |

The steps of a list run over the old list: an integer `n > 0` keeps `n` elements, `-n` drops `n`,
an array inserts its elements, and an object `{"~": delta}` patches one element. The rest of the
old list after the last step is dropped.

Both functions are exact for any pair of JSON documents: `apply(old, diff(old, new)) == new`,
where `1`, `1.0` and `true` are three different values. Elements in the middle of a list are
matched as in a patience diff (https://bramcohen.livejournal.com/73318.html): by the longest
increasing run of elements that are unique on both sides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import compress, islice, repeat
from operator import eq, is_, ne
from typing import Any

import orjson
from typing_extensions import override

from locus_memory._internal.sameness import is_plain, same
from locus_memory.errors import CheckpointError

__all__ = ["apply", "common_prefix", "diff", "stays_plain"]

_SLICES = 1_024, 64
"""How many elements are compared at a time, down to the first that differs."""

_CHUNK = 256
"""The number of elements of a list that are compared at a time."""

_SHORT = 32
"""Strings up to this length are replaced, not spliced."""

_KEYED = orjson.OPT_SORT_KEYS


def diff(old: Any, new: Any, *, plain: bool = False, texts: Container[str] = ()) -> Any:
    """Return the delta that turns `old` into `new`; `None` if they are the same.

    Parts that are the same object in both are not compared. The delta shares parts with `new`:
    serialise it, or copy it, before `new` changes.

    Args:
        old: A JSON document.
        new: A JSON document.
        plain: Whether no list in `old` holds a number or a boolean, at any depth; see
            `sameness.is_plain`. Then equal lists need no further comparison.
        texts: The keys of `old` below which there is no number and no boolean at all. Then equal
            objects need no further comparison either.
    """
    if old is new:
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        return _diff_objects(old, new, plain=plain, texts=texts)
    if isinstance(old, list) and isinstance(new, list):
        return _diff_lists(old, new, plain=plain)
    if type(old) is str and type(new) is str:
        return _diff_strings(old, new)
    return None if same(old, new) else ["=", new]


def apply(document: Any, delta: Any, result: Any = None) -> Any:
    """Return `document` with `delta` applied; neither is changed, unchanged parts are shared.

    Args:
        document: A JSON document.
        delta: The delta.
        result: What it leads to, if that is known: an equal string of it is shared, so that a later
            comparison finds the same object. Whoever owns it may change it meanwhile.

    Raises:
        CheckpointError: The delta was not made for this document.
    """
    if delta is None:
        return document
    try:
        return _APPLY[delta[0]](document, result, *delta[1:])
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise CheckpointError("the delta does not fit the state it is applied to") from error


def stays_plain(delta: Any, *, in_list: bool = False) -> bool:
    """Whether a delta puts no number or boolean into a list."""
    if delta is None or delta[0] == "s":
        return True
    if delta[0] == "=":
        return is_plain(delta[1], in_list=in_list)
    if delta[0] == "d":
        return all(stays_plain(patch, in_list=in_list) for patch in delta[1].values())
    return all(
        stays_plain(step["~"], in_list=True) if isinstance(step, dict) else is_plain(step)
        for step in delta[1]
    )


class _All(Container[str]):
    """The keys of an object that holds no number and no boolean."""

    @override
    def __contains__(self, key: object) -> bool:
        return True


_ALL = _All()
_NOTHING = object()


def _diff_objects(
    old: dict[str, Any], new: dict[str, Any], *, plain: bool, texts: Container[str]
) -> Any:
    patches: dict[str, Any] = {}
    replaced = aligned = 0
    changed: Iterable[tuple[str, Any]] = new.items()
    if texts is _ALL:
        # Most objects only grow: their values are compared as lists, without a search for a key.
        aligned = common_prefix([*old], [*new], eq)
        start = common_prefix([*islice(old.values(), aligned)], [*new.values()], eq)
        names, values = islice(new, start, None), islice(new.values(), start, None)
        differs = map(ne, map(old.get, names, repeat(_NOTHING)), values)
        changed = compress(islice(new.items(), start, None), differs)
    for key, value in changed:
        inner = _ALL if key in texts else ()
        if key not in old:
            patches[key] = ["=", value]
            continue
        before = old[key]
        delta = None if before is value else diff(before, value, plain=plain, texts=inner)
        if delta is not None:
            patches[key] = delta
            replaced += delta[0] == "="
    is_kept = aligned == len(old) or old.keys() <= new.keys()
    dropped = [] if is_kept else [key for key in old if key not in new]
    if not patches and not dropped:
        return None
    if replaced + len(dropped) == len(old):
        return ["=", new]
    return ["d", patches, dropped] if dropped else ["d", patches]


def _apply_object(
    document: dict[str, Any], result: Any, patches: dict[str, Any], dropped: Sequence[str] = ()
) -> dict[str, Any]:
    patched = document.copy()
    for key in dropped:
        patched.pop(key, None)
    for key, delta in patches.items():
        if delta is not None and delta[0] == "=":
            patched[key] = delta[1]
        else:
            known = result.get(key) if isinstance(result, dict) else None
            patched[key] = apply(document.get(key), delta, known)
    return patched


def _diff_lists(old: list[Any], new: list[Any], *, plain: bool) -> Any:
    alike = eq if plain else same
    start = common_prefix(old, new, alike)
    if start == len(old) == len(new):
        return None
    if not old:
        return ["=", new]
    tail = _common_suffix(old[start:], new[start:], alike)
    old_middle, new_middle = old[start : len(old) - tail], new[start : len(new) - tail]
    steps: list[Any] = [start] if start else []
    _align(old_middle, new_middle, alike, steps)
    if tail:
        steps.append(tail)
    return ["l", steps]


_Alike = Callable[[Any, Any], bool]


def common_prefix(old: list[Any], new: list[Any], alike: _Alike) -> int:
    """Return how many elements at the beginning of two lists are alike."""
    limit = min(len(old), len(new))
    start = 0
    if alike is same:
        while start < limit and all(
            map(is_, old[start : start + _CHUNK], new[start : start + _CHUNK])
        ):
            start += _CHUNK
        start = min(start, limit)
    for size in _SLICES:
        while start < limit:
            end = min(start + size, limit)
            if not alike(old[start:end], new[start:end]):
                break
            start = end
    return next((i for i in range(start, limit) if not alike(old[i], new[i])), limit)


def _common_suffix(old: list[Any], new: list[Any], alike: _Alike) -> int:
    limit = min(len(old), len(new))
    tail = 0
    while tail + _CHUNK <= limit and alike(
        old[len(old) - tail - _CHUNK : len(old) - tail],
        new[len(new) - tail - _CHUNK : len(new) - tail],
    ):
        tail += _CHUNK
    return next((i for i in range(tail, limit) if not alike(old[-1 - i], new[-1 - i])), limit)


def _align(old: list[Any], new: list[Any], alike: _Alike, steps: list[Any]) -> None:
    """Append the steps that turn `old` into `new`, keeping the elements they share."""
    at_old = at_new = 0
    for i, j in _shared(old, new, alike):
        if i > at_old or j > at_new:
            _replace_run(old[at_old:i], new[at_new:j], steps)
        if steps and type(steps[-1]) is int and steps[-1] > 0:
            steps[-1] += 1
        else:
            steps.append(1)
        at_old, at_new = i + 1, j + 1
    _replace_run(old[at_old:], new[at_new:], steps)


def _shared(old: list[Any], new: list[Any], alike: _Alike) -> Iterable[tuple[int, int]]:
    """Return index pairs of elements that are the same, rising on both sides.

    If elements were changed in place, most keep their index.
    """
    paired = min(len(old), len(new))
    if paired > _CHUNK:
        unmoved = _unmoved(old, new, alike)
        if len(unmoved) * 2 > paired:
            return zip(unmoved, unmoved, strict=True)
    return _anchors(old, new)


def _unmoved(old: list[Any], new: list[Any], alike: _Alike) -> list[int]:
    """Return the indexes at which both have the same element."""
    found: list[int] = []
    paired = min(len(old), len(new))
    for start in range(0, paired, _CHUNK):
        places = range(start, min(start + _CHUNK, paired))
        if alike(old[start : places.stop], new[start : places.stop]):
            found += places
        else:
            found += [i for i in places if alike(old[i], new[i])]
    return found


def _replace_run(old: list[Any], new: list[Any], steps: list[Any]) -> None:
    """Append the steps for a run without shared elements: patch pairs, then the rest."""
    paired = min(len(old), len(new))
    inserted: list[Any] = []
    for before, after in zip(old, new, strict=False):
        delta = diff(before, after)
        if delta is not None and delta[0] == "=":
            inserted.append(after)
            continue
        _flush(inserted, steps)
        steps.append(1 if delta is None else {"~": delta})
    _flush(inserted, steps)
    if len(old) > paired:
        steps.append(paired - len(old))
    if len(new) > paired:
        steps.append(new[paired:])


def _flush(inserted: list[Any], steps: list[Any]) -> None:
    if inserted:
        steps += [-len(inserted), inserted.copy()]
        inserted.clear()


def _anchors(old: list[Any], new: list[Any]) -> list[tuple[int, int]]:
    """Return index pairs of equal elements, unique on both sides, rising on both sides."""
    if not old or not new:
        return []
    try:
        old_places, new_places = _unique_places(old), _unique_places(new)
    except (TypeError, RecursionError):
        return []
    pairs = [(i, new_places[key]) for key, i in old_places.items() if key in new_places]
    # The key selects candidates; `same` decides.
    return _longest_rise([(i, j) for i, j in pairs if same(old[i], new[j])])


def _unique_places(elements: list[Any]) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    repeated: set[bytes] = set()
    for index, element in enumerate(elements):
        key = orjson.dumps(element, option=_KEYED)
        if places.setdefault(key, index) != index:
            repeated.add(key)
    return {key: index for key, index in places.items() if key not in repeated}


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest run of `pairs`, sorted by the first, that rises in the second."""
    ends: list[int] = []
    last: list[int] = []
    previous: list[int | None] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        previous.append(last[length - 1] if length else None)
        ends[length:] = [j, *ends[length + 1 :]]
        last[length:] = [index, *last[length + 1 :]]
    return [pairs[index] for index in _backwards(last[-1] if last else None, previous)][::-1]


def _backwards(index: int | None, previous: list[int | None]) -> Iterator[int]:
    while index is not None:
        yield index
        index = previous[index]


def _apply_list(document: list[Any], result: Any, steps: list[Any]) -> list[Any]:
    patched: list[Any] = []
    position = 0
    for step in steps:
        if not patched and not isinstance(step, list | dict) and step > 0:
            patched = document[position : position + step]  # most lists only grow: copy once
            position += step
        elif isinstance(step, list):
            patched += step
        elif isinstance(step, dict):
            place = len(patched)
            is_known = isinstance(result, list) and place < len(result)
            known = result[place] if is_known else None
            patched.append(apply(document[position], step["~"], known))
            position += 1
        else:
            if step > 0:
                patched += document[position : position + step]
            position += abs(step)
        if position > len(document):
            raise IndexError(position)
    return patched


def _diff_strings(old: str, new: str) -> Any:
    if old == new:
        return None
    if len(old) <= _SHORT or len(new) <= _SHORT:
        return ["=", new]
    start = _common_start(old, new)
    limit = min(len(old), len(new)) - start
    end = _common_start(old[::-1][:limit], new[::-1][:limit])
    if (start + end) * 2 < len(new):
        return ["=", new]
    return ["s", start, len(old) - start - end, new[start : len(new) - end]]


def _common_start(left: str, right: str) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _apply_string(document: str, result: Any, start: int, dropped: int, text: str) -> str:
    if start + dropped > len(document):
        raise IndexError(start + dropped)
    made = document[:start] + text + document[start + dropped :]
    return result if type(result) is str and result == made else made


_APPLY: dict[str, Callable[..., Any]] = {
    "=": lambda _, __, value: value,
    "d": _apply_object,
    "l": _apply_list,
    "s": _apply_string,
}
