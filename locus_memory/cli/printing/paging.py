"""The note below a list that was cut: how many rows remain, and the command that shows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from locus_memory.inspection.text import visible_name

if TYPE_CHECKING:
    import typer

__all__ = ["COUNTED", "how_many", "same_command"]

_PASSWORDS: Final = (re.compile(r"(://[^/@:]*:)[^/@]*(?=@)"), re.compile("([?&]password=)[^&]*"))
"""The password of a URL, each after the text that stays."""

COUNTED = 10_000
"""Largest number of further rows to count; a full count would read the whole list."""


def how_many(count: int) -> str:
    """Return the number of rows that remain, as far as they were counted."""
    return f"{count:,}" if count < COUNTED else f"at least {count:,}"


def same_command(context: typer.Context, **changed: Any) -> str:
    """Return the command that was called, with changed options, quoted for a shell.

    Passwords in URLs are masked.
    """
    words: list[str] = []
    arguments: list[str] = []
    for each in _lineage(context):
        words.append(str(each.info_name))
        for parameter in each.command.params:
            name = str(parameter.name)
            source = each.get_parameter_source(name)
            is_own = each is context and name in changed
            if not is_own and (source is None or source.name != "COMMANDLINE"):
                continue
            value = changed[name] if is_own else each.params[name]
            given = list(_values(name, value))
            if getattr(parameter, "metavar", None) == "URL":
                given = list(map(_masked, given))
            if parameter.param_type_name == "argument":
                arguments += given
            elif value is True:
                words.append(_option(parameter.opts))
            else:
                words += [word for text in given for word in (_option(parameter.opts), text)]
    if any(each.startswith("-") for each in arguments):
        words.append("--")
    return " ".join(map(_quoted, [*words, *arguments]))


def _lineage(context: typer.Context) -> Iterable[Any]:
    parent = context.parent
    return [context] if parent is None else [*_lineage(parent), context]  # type: ignore[arg-type]


def _option(names: list[str]) -> str:
    return max(names, key=len)


def _values(name: str, value: Any) -> Iterator[str]:
    """Yield the text of a parameter's value, once for each time it is given."""
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if each is None or each is False:
            continue
        text = str(each.value if isinstance(each, Enum) else each)
        yield _without_password(text) if name == "url" else text


def _masked(url: str) -> str:
    for password in _PASSWORDS:
        url = password.sub(r"\1***", url)
    return url


def _without_password(url: str) -> str:
    if url.startswith("@"):
        # The name of a preset.
        return url
    from locus_memory._internal.providers.address import parse_address  # noqa: PLC0415 - help must be quick

    return str(parse_address(url))


def _quoted(word: str) -> str:
    """Return a word quoted for a shell, with control characters escaped."""
    if word == visible_name(word):
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{visible_name(escaped)}'"
