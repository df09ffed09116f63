"""Which patterns of the package take more than linear time, and on which texts.

Every pattern is tried with texts that are made from its own parse tree: what stands before a
repetition, the repeated part many times, and an end at which the match fails. The length doubles
until the time can be measured; then twice the length may not take much more than twice the time.
Run it as a script to see what it finds; it prints JSON.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from itertools import islice
from pathlib import Path
from re import _constants as codes
from re import _parser as parser

import locus_memory
from locus_memory._internal.lazy import _Later

ROOT = Path(locus_memory.__file__).parent
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
LONG = 8
"""A repetition that may be longer than this is pumped."""

SHORTEST, LONGEST = 32, 8192
MEASURABLE = 0.003
"""Seconds of the processor; below it, the clock says more than the pattern."""

GROWTH = 3.0
"""Twice the length takes twice the time of a linear pattern, and four times of a quadratic one."""

WATCHDOG = 2
"""Seconds for one text; what takes longer has no end."""

ATTACKS = 120
FAILING = ("", "\0", "\n", "!", " ", "a", "\nx", "\u2028")
SAMPLES = "a0 \n\t-_.:/@#<>\"'=,;()[]{}|&%$!?*+~^`\\AZz9é中\u0661\x00\u3000\r"


def patterns():
    """Yield the name of each pattern of the package, the pattern, and the methods it is used by."""
    used = _uses()
    found = {}
    for name, pattern, at in [*_attributes(), *_literals()]:
        # What a compiled pattern is for is known by its name, which only attributes have.
        if at is None and ":" in name and pattern in found:
            continue
        methods = at or _used(used, name) or {"search"}
        found.setdefault(pattern, (name, set()))[1].update(methods)
    for pattern, (name, methods) in found.items():
        yield name, pattern, sorted(methods)


def _used(used, name):
    """Return the methods of a name: a private one is used in its own module."""
    last = name.rpartition(".")[2]
    places = [place for place in used if place[1] == last]
    own = [place for place in places if name.startswith(f"{place[0]}.")]
    return {each for place in own or places for each in used[place]}


def _modules():
    for found in pkgutil.walk_packages([str(ROOT)], "locus_memory."):
        if found.name.endswith("__main__"):
            continue
        # A module of a driver or a framework that is not installed has its literals looked at.
        with suppress(ImportError):
            yield importlib.import_module(found.name)


def _attributes():
    for module in _modules():
        for name, value in vars(module).items():
            if not isinstance(value, type) or value.__module__ == module.__name__:
                yield from _within(f"{module.__name__}.{name}", value, 3)


def _within(name, value, depth):
    if isinstance(value, _Later):
        value = value.search.__self__
    if isinstance(value, re.Pattern):
        yield name, value, None
    elif depth and isinstance(value, dict):
        for each in [*value.keys(), *value.values()]:
            yield from _within(name, each, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _within(name, each, depth - 1)
    elif depth and (isinstance(value, type) or hasattr(value, "__dataclass_fields__")):
        with suppress(TypeError):
            for inner, each in list(vars(value).items()):
                yield from _within(f"{name}.{inner}", each, depth - 1)


def _trees():
    for path in sorted(ROOT.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def _uses():
    """Return the methods that are called of each name in each module."""
    found = defaultdict(set)
    for path, tree in _trees():
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        for node in ast.walk(tree):
            for name, method in [*_called(node), *_called_of_each(node)]:
                found[module, name].add(method)
    return found


def _called(node):
    """Yield the name and the method of `name.search`."""
    if isinstance(node, ast.Attribute) and node.attr in METHODS:
        name = getattr(node.value, "id", None) or getattr(node.value, "attr", None)
        if name is not None:
            yield name, node.attr


def _called_of_each(node):
    """Yield the name and the methods of `each.search(text) for each in names`."""
    for part in getattr(node, "generators", ()):
        if isinstance(part.target, ast.Name) and isinstance(part.iter, ast.Name):
            for name, method in [found for inner in ast.walk(node) for found in _called(inner)]:
                if name == part.target.id:
                    yield part.iter.id, method


def _literals():
    for path, tree in _trees():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in (*METHODS, "compile")
                and node.args
            ):
                with suppress(ValueError, re.error):
                    text = ast.literal_eval(node.args[0])
                    flags = _flags(node)
                    at = None if node.func.attr == "compile" else {node.func.attr}
                    name = f"{path.relative_to(ROOT.parent)}:{node.lineno}"
                    yield name, re.compile(text, flags), at


def _flags(node):
    found = 0
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(
            value := getattr(re, inner.attr, None), re.RegexFlag
        ):
            found |= value
    return found


def attacks(pattern):
    """Yield texts as a start, a part to repeat, and an end."""
    text = pattern.pattern
    as_bytes = isinstance(text, bytes)
    tree = parser.parse(text, pattern.flags & ~(re.UNICODE if as_bytes else 0))
    found = {}
    for before, body in _repeated(list(tree), [""]):
        for pump in body:
            for start in before:
                for end in FAILING:
                    found.setdefault((start, pump, end))
                if start:
                    # Each start of the pattern may look at all that follows.
                    for end in ("", "\0", "\n"):
                        found.setdefault(("", start + pump, end))
                        found.setdefault(("", start, end))
    kept = islice((each for each in found if each[1]), 4 * ATTACKS)
    ordered = sorted(kept, key=lambda each: sum(map(len, each)))[:ATTACKS]
    for each in ordered:
        yield tuple(part.encode("latin-1", "replace") if as_bytes else part for part in each)


def _repeated(items, before):
    """Yield what stands before each long repetition, and samples of what is repeated."""
    for code, value in items:
        if code in REPEATS and (value[1] is codes.MAXREPEAT or value[1] > LONG):
            yield before, _samples(list(value[2]))
        for each in _inner(code, value):
            yield from _repeated(each, before)
        if code not in (codes.ASSERT, codes.ASSERT_NOT):
            before = _joined(before, _sample(code, value))


def _inner(code, value):
    """Return the sequences of items that an item consists of."""
    if code in REPEATS:
        return [list(value[2])]
    if code in (codes.SUBPATTERN, codes.ASSERT, codes.ASSERT_NOT):
        return [list(value[-1])]
    if code is codes.ATOMIC_GROUP:
        return [list(value)]
    if code is codes.BRANCH:
        return list(map(list, value[1]))
    return [list(each or []) for each in value[1:]] if code is codes.GROUPREF_EXISTS else []


def _joined(starts, ends):
    return list(dict.fromkeys(start + end for start in starts for end in ends))[:6]


def _samples(items):
    """Return some short texts that the items match."""
    made = [""]
    for code, value in items:
        made = _joined(made, _sample(code, value)) or made
    return made


def _sample(code, value):
    """Return some short texts that an item matches."""
    if code is codes.LITERAL:
        return [chr(value)]
    if code in (codes.NOT_LITERAL, codes.ANY, codes.IN):
        return _of_set(code, value)
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [""]
    found = [text for each in _inner(code, value) for text in _samples(each)]
    if code in REPEATS:
        found = [each * value[0] for each in found] if value[0] else ["", *found[:3]]
    return list(dict.fromkeys(found))[:6] or [""]


def _of_set(code, value):
    if code is codes.ANY:
        return ["a", " ", "."]
    made = f"[^{re.escape(chr(value))}]" if code is codes.NOT_LITERAL else None
    if made is not None:
        return [each for each in SAMPLES if re.match(made, each)][:3]
    wanted = [each for each in SAMPLES if _has(value, each)]
    for kind, one in value:
        if kind is codes.LITERAL:
            wanted.append(chr(one))
        elif kind is codes.RANGE and value[0][0] is not codes.NEGATE:
            wanted.append(chr(one[0]))
    # Characters of different kinds come first.
    return list(dict.fromkeys([*wanted[:3], *wanted[-2:]]))[:4] or ["a"]


_CATEGORIES = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda each: each.isalnum() or each == "_",
}
_OPPOSITES = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}


def _has(members, text):
    is_negated, found = False, False
    for kind, value in members:
        if kind is codes.NEGATE:
            is_negated = True
        elif kind is codes.LITERAL:
            found |= ord(text) == value
        elif kind is codes.RANGE:
            found |= value[0] <= ord(text) <= value[1]
        elif kind is codes.CATEGORY:
            is_opposite = value in _OPPOSITES
            found |= _CATEGORIES[_OPPOSITES.get(value, value)](text) != is_opposite
    return found != is_negated


def _run(pattern, method, text):
    empty = b"" if isinstance(text, bytes) else ""
    start = time.process_time()
    if method == "finditer":
        for _ in pattern.finditer(text):
            pass
    elif method in ("sub", "subn"):
        getattr(pattern, method)(empty, text)
    else:
        getattr(pattern, method)(text)
    return time.process_time() - start


def growth(pattern, method, attack):
    """Return by how much the time grows where the text doubles; 0: it is too short to measure."""
    start, pump, end = attack

    def took(length, times):
        text = start + pump * max(length // len(pump), 1) + end
        # The shortest of some runs is the one that nothing has disturbed.
        return min(_run(pattern, method, text) for _ in range(times))

    length = SHORTEST
    while length <= LONGEST:
        if took(length, 1) >= MEASURABLE and (long := took(length, 2)) >= MEASURABLE:
            grown = long / max(took(length // 2, 3), 1e-7)
            if grown >= GROWTH:
                # A repetition with a bound is linear from there on.
                return min(grown, took(2 * length, 2) / long)
        length *= 2
    return 0.0


class _LateError(Exception):
    pass


def _stop(*_):
    raise _LateError


def examine(pattern, methods):
    """Return the texts that take more than linear time."""
    for method in methods:
        for attack in attacks(pattern):
            signal.setitimer(signal.ITIMER_REAL, WATCHDOG)
            try:
                grown = growth(pattern, method, attack)
                if grown >= GROWTH:
                    grown = min(grown, growth(pattern, method, attack))
            except _LateError:
                grown = float("inf")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if grown >= GROWTH:
                return [method, [repr(part) for part in attack], grown]
    return None


def main(given):
    """Print the patterns that are not linear: of the package, or of those that are given."""
    signal.signal(signal.SIGALRM, _stop)
    chosen = [(each, re.compile(each), METHODS[:1]) for each in given] or list(patterns())
    bad = []
    for name, pattern, methods in chosen:
        found = examine(pattern, methods)
        if found is not None:
            bad.append([name, str(pattern.pattern)[:300], *found])
    print(json.dumps({"patterns": len(chosen), "bad": bad}))


if __name__ == "__main__":
    main(sys.argv[1:])
