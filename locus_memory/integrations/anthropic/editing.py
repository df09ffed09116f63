"""The edits of a text and the answers of the memory tool, without a store.

The answers are those of `BetaLocalFilesystemMemoryTool` in `anthropic.lib.tools`, to the letter:
models are trained on them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Final

from anthropic.lib.tools import ToolError

from locus_memory.store.json_values import encode_json

__all__ = [
    "check_whole",
    "inserted",
    "listing",
    "numbered",
    "relative",
    "replaced",
    "size",
]

_ROOT: Final = "/memories"
_MOST_LINES: Final = 999_999
_WIDTH: Final = len(str(_MOST_LINES))
_AROUND: Final = 2
"""Lines that are shown before and after a change."""

_UNITS: Final = "BKMG"
_STEP: Final = 1024


def relative(path: object, field: str) -> str:
    """Return a path below `/memories`, without it; `""` is the folder itself.

    Args:
        path: The model's argument.
        field: The name of the argument.

    Raises:
        ToolError: It is no path, or it leaves the folder.
    """
    if not isinstance(path, str):
        raise ToolError(f"`{field}` is a string, not {type(path).__name__}")
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path must start with {_ROOT}, got: {path}")
    below = posixpath.normpath(f"{_ROOT}/{path[len(_ROOT) :].lstrip('/')}")
    if below != _ROOT and not below.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path {path} would escape {_ROOT} directory")
    if "\0" in below or "\\" in below:
        raise ToolError(f"`{field}` has a character that no path may have")
    check_whole(below, field)
    return below[len(_ROOT) + 1 :]


def check_whole(text: object, field: str) -> None:
    """Refuse what is no text that can be stored.

    Raises:
        ToolError: It is not a string, or contains half a character; the error names the field.
    """
    if not isinstance(text, str):
        raise ToolError(f"`{field}` is a string, not {type(text).__name__}")
    try:
        encode_json(text)
    except ValueError as error:
        raise ToolError(f"`{field}` contains half a character, a lone surrogate") from error


def numbered(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a file with their numbers, or those of a range.

    Raises:
        ToolError: The file has too many lines, or the range is not one of numbers.
    """
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first = 0
    if view_range and len(view_range) == 2:  # noqa: PLR2004 - a range has two ends
        if any(type(end) is not int for end in view_range):
            raise ToolError("`view_range` is two integers")
        first = max(1, view_range[0]) - 1
        lines = lines[first : None if view_range[1] == -1 else view_range[1]]
    shown = _with_numbers(lines, first)
    return f"Here's the content of {path} with line numbers:\n{shown}"


def listing(path: str, total: int, entries: Iterable[tuple[int, str]]) -> str:
    """Return the listing of a folder.

    Args:
        path: The folder, as the model wrote it.
        total: The bytes of all files in it.
        entries: The bytes and the path below it of each file and folder, in their order.
    """
    lines = [f"{size(total)}\t{path}", *(f"{size(each)}\t{path}/{name}" for each, name in entries)]
    return (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden "
        "items:\n" + "\n".join(lines)
    )


def size(count: int) -> str:
    """Return a number of bytes as `0B`, `17B`, `1.5K` or `2M`."""
    unit = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    scaled = count / _STEP**unit
    return (
        f"{int(scaled)}{_UNITS[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{_UNITS[unit]}"
    )


def replaced(path: str, text: str, old: str, new: str) -> tuple[str, str]:
    """Return a text in which `old` is replaced, and the answer, which shows the place.

    Raises:
        ToolError: `old` is in the text more than once, or not at all.
    """
    # Those that overlap are counted apart, where Python counts them once.
    if (count := text.count(old)) > 1:
        places = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{lines}. Please ensure it is unique"
        )
    if count == 0:
        raise ToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    changed = text.replace(old, new)
    line = text.count("\n", 0, text.find(old))
    first = max(0, line - _AROUND)
    shown = _with_numbers(changed.split("\n")[first : line + _AROUND + 1], first)
    return changed, (
        "The memory file has been edited. Here is the snippet showing the change (with line "
        f"numbers):\n{shown}"
    )


def inserted(text: str, line: object, addition: str) -> str:
    """Return a text with an addition after a line; 0 is the beginning.

    Raises:
        ToolError: There is no such line.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if type(line) is not int or not 0 <= line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {line}. "
            f"It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, addition.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n"


def _with_numbers(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first + 1))
