"""What the commands of `docs/cli.md` are: their help, options, examples and JSON.

The page holds a part of each command between two comments, which `tests/cli/test_docs.py` writes
anew. The JSON of a command is that of its calls in `tests/cli/transcripts/tour.txt`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from enum import EnumMeta
from functools import cache
from pathlib import Path

import typer

from locus_memory.cli.app import app
from locus_memory.cli.printing.examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
TOUR = Path(__file__).parent / "transcripts" / "tour.txt"
PART = re.compile(r"^(<!--made:(.+)-->\n)(?:(?!<!--).*\n)*", re.MULTILINE)
ALWAYS = ("--url", "--json", "--help")
SHARED = 2
"""A parameter that this many commands have is told once, at the top."""

OPAQUE = frozenset(("metadata", "state", "value", "before", "after", "messages", "message"))
"""Fields whose content is the user's."""


def found(command, path=()):
    """Return the commands of a group by their names, those below it included."""
    below = getattr(command, "commands", {})
    own = {" ".join(path): command} if path else {}
    for name in below:
        own |= found(below[name], (*path, name))
    return own


@cache
def commands():
    return found(typer.main.get_command(app))


@cache
def shared():
    """The options that many commands have, with the same words."""
    once = [each for each in commands().values() if not is_alias(each)]
    told = Counter(line(each) for command in once for each in parameters(command))
    return [text for text, count in told.items() if count >= SHARED]


def is_alias(command):
    return (command.help or "").startswith("Another name of")


def parameters(command):
    return [each for each in command.params if each.opts[0] not in ALWAYS]


def written(each):
    """How a parameter is written: `--limit N`."""
    if each.param_type_name == "argument":
        return f"`{each.metavar or each.name.upper()}`"
    name = max(each.opts, key=len)
    if each.is_flag:
        return f"`{'/'.join([name, *each.secondary_opts])}`"
    # Newer versions of Typer know the class; older ones depend on Click.
    kind = getattr(getattr(each, "type_descriptor", None), "annotation", None)
    choices = list(kind) if isinstance(kind, EnumMeta) else getattr(each, "type", None)
    choices = [getattr(one, "value", one) for one in getattr(choices, "choices", choices) or ()]
    told = "|".join(choices) if 0 < len(choices) < 7 else each.metavar
    return f"`{name} {told or 'NAME'}`"


def line(each):
    return f"- {written(each)}: {each.help}"


def part(name, shapes):
    """Return the part of a command: its help, parameters, an example and its JSON."""
    command = commands()[name]
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").strip())
    lines = [wrapped(each) for each in text.split("\n\n")]
    if is_alias(command):
        return f"{lines[0]}\n"
    rest = [each for each in parameters(command) if line(each) in shared()]
    told = [line(each) for each in parameters(command) if each not in rest]
    also = [f"`{max(each.opts, key=len)}`" for each in rest if each.opts[0].startswith("-")]
    lines += ["\n".join(told)] if told else []
    lines += [f"Also {', '.join(also)}."] if also else []
    example = EXAMPLES[name][0]
    # A short one says what the name and the arguments do; `--help` has all.
    if len(shlex.split(example)) > len(name.split()) + 4:
        lines.append(f"`{example}`")
    if name in shapes:
        lines.append(f"JSON: `{shapes[name]}`")
    return "\n\n".join(lines) + "\n"


def wrapped(text, width=118):
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def merged(one, other):
    """Return the shape of two documents of the same command."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [merged(one[0] if one else None, other[0] if other else None)]
    return other if one is None or one == [] else one


def shape(document, name=""):
    """Return the fields of a document, without its data."""
    if isinstance(document, dict) and name not in OPAQUE:
        return {each: shape(value, each) for each, value in document.items()}
    if isinstance(document, list) and name not in OPAQUE:
        found = None
        for each in document:
            found = merged(found, shape(each))
        return [found]
    return None


def drawn(found):
    """Return a shape as text: `{threads: [{thread_id}], more}`."""
    if isinstance(found, dict):
        inner = (f"{name}:{drawn(each)}" if drawn(each) else name for name, each in found.items())
        return f"{{{','.join(inner)}}}"
    if isinstance(found, list):
        inner = drawn(found[0])
        return f"[{inner}]" if inner else ""
    return ""


def name_of(command):
    """Return the name of the command that a line of the tour calls; `None`: none."""
    words = shlex.split(command.rpartition("|")[2].partition(">")[0])
    while words and words[0] != "locus-memory":
        words = words[1:]
    words = [w for n, w in enumerate(words) if w != "--url" and (n == 0 or words[n - 1] != "--url")]
    for length in (3, 2):
        if " ".join(words[1:length]) in commands():
            return " ".join(words[1:length])
    return None


def shapes_of(printed):
    """Return the shape of each command's JSON, of pairs of a command and what it printed."""
    known = {}
    for command, text in printed:
        name = name_of(command)
        try:
            document = json.loads(text.splitlines()[0] if name == "chat" else text)
        except (ValueError, IndexError):
            continue
        if name and not (isinstance(document, dict) and "error" in document):
            known[name] = merged(known.get(name), shape(document))
    return {name: drawn(found) for name, found in known.items()}


def shared_part():
    return "".join(f"{each}\n" for each in sorted(shared()) if each.startswith("- `-"))


def page(text, shapes):
    """Return the page with each made part as the commands are today."""

    def made(match):
        name = match[2]
        return match[1] + (shared_part() if name == "shared" else part(name, shapes))

    return PART.sub(made, text)
