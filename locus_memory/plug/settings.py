"""The settings of a host: our hooks and our MCP server in them, and everything else as it was."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial, reduce
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.plug.data_folder import data_folder
from locus_memory.plug.hosts import Host

__all__ = [
    "COMMAND",
    "Change",
    "Originals",
    "changes",
    "plug_file",
    "write_secret",
]

COMMAND: Final = (sys.executable, "-P", "-m", "locus_memory", "hook")
"""The command of a hook. It runs in the folder of a project, whose files `-P` keeps from being
imported in place of modules."""

_NAME: Final = "locus-memory"
_OURS: Final = " -m locus_memory hook "
_ROWS: Final = r"\]\n(?:(?:[ \t]*(?:#.*)?\n)*[ \t]*[^\[#\s].*\n?)*"
"""The rows of a table of TOML, without the comments and empty lines before the next table."""

_TABLE: Final = re.compile(rf"\n?^\[mcp_servers\.{_NAME}{_ROWS}", re.MULTILINE)
_TABLES: Final = re.compile(rf"\n?^\[mcp_servers\.{_NAME}(?:\.[^\]\n]+)?{_ROWS}", re.MULTILINE)
"""Our table, and those below it: Codex writes there which tools need no approval."""

_SECONDS: Final = 10

Edit = Callable[[str, list[str] | None], str]
"""Returns the text of settings with the hooks and the server of a command; `None`: without them."""


def plug_file(host: str, project: Path | None) -> Path:
    """Return the file of the options of a host's hooks, JSON, which may hold a password.

    The settings of a host name the file in their place then: they may be shared, and a command is
    seen by all users of the machine.

    Args:
        host: The name of the host.
        project: The folder whose settings they are; `None`: those of the user.
    """
    mark = blake2b(os.fsencode(project.resolve() if project else ""), digest_size=8).hexdigest()
    return data_folder() / "plugs" / f"{host}-{mark}"


def write_secret(path: Path, text: str | None) -> None:
    """Write a file at once that the user alone can read; `None`: it is removed.

    Raises:
        OSError: It cannot be written; it is as it was.
    """
    if text is None:
        path.unlink(missing_ok=True)
        return
    # A folder that is made for another one does not get its mode.
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A hook may read it meanwhile.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.touch(mode=0o600)
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


class Change(NamedTuple):
    """A file of settings before and after.

    Attributes:
        path: The file.
        before: Its text; `None`: there is none.
        after: Its text to be; `None`: there is to be none.
        is_first: Whether nothing of ours stands in it before.
    """

    path: Path
    before: str | None
    after: str | None
    is_first: bool = False

    def write(self) -> None:
        """Write the file at once, with the mode that it has, or remove it.

        Raises:
            OSError: It cannot be written; it is as it was.
        """
        path = self.path.resolve()
        if self.after is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        is_new = not path.exists()
        # There may be keys in it, which nobody else may read meanwhile either.
        beside.touch(mode=0o666 if is_new else 0o600)
        beside.write_bytes(self.after.encode())
        if not is_new:
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)


class Originals:
    """The texts of settings from before they were plugged, so that they come back to the byte.

    Args:
        folder: Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, path: Path, now: str | None) -> list[str | None]:
        """Return the text from before as the only one; none if the file was changed since."""
        try:
            before, after = orjson.loads(self._place(path).read_bytes())
        except (OSError, ValueError):
            return []
        return [before] if now == after else []

    def keep(self, change: Change) -> None:
        """Remember the text from before a change; one with our settings in it is no original."""
        known = [change.before] if change.is_first else self.of(change.path, change.before)
        self.drop(change.path)
        if known:
            write_secret(self._place(change.path), orjson.dumps([known[0], change.after]).decode())

    def drop(self, path: Path) -> None:
        """Forget the text of a file."""
        self._place(path).unlink(missing_ok=True)

    def _place(self, path: Path) -> Path:
        mark = blake2b(os.fsencode(path.resolve()), digest_size=8).hexdigest()
        return self._folder / f"{mark}.json"


def changes(
    host: Host,
    project: Path | None,
    command: list[str] | None,
    originals: Originals,
    *,
    has_line: bool = False,
) -> list[Change]:
    """Return what to change in the settings of a host; nothing if it is so already.

    Args:
        host: The host.
        project: The folder of the project; `None`: the settings of the user.
        command: The command of a hook, `hook` and the name of the host in it; `None`: what is ours
            is removed.
        originals: The texts from before.
        has_line: Whether the host shows our status line, if it has one and shows no other.

    Raises:
        InvalidArgumentError: A file is not JSON, or not TOML, of the shape that its host reads.
    """
    files = host.files(project)
    is_plugin, is_toml = files.hooks.suffix == ".js", files.servers.suffix == ".toml"
    server = _set_local_server if is_plugin else _set_server
    edits: dict[Path, list[Edit]] = {files.hooks: [_plugin if is_plugin else _hooks_in(host)]}
    if host.has_line:
        edits[files.hooks].append(_in_json(partial(_set_line, has_line=has_line)))
    edits.setdefault(files.servers, []).append(_table_in if is_toml else _in_json(server))
    found = []
    for path, steps in edits.items():
        before = _text_of(path)
        try:
            without = reduce(lambda text, step: step(text, None), steps, before or "")
            after = reduce(lambda text, step: step(text, command), steps, before or "")
        except (ValueError, AttributeError, TypeError):
            raise InvalidArgumentError(
                f"{path} is not as its host documents it, so it stays as it is;"
                " the page of the host shows where the hooks belong"
            ) from None
        told = before if after == before else after or None
        if command is None and (original := originals.of(path, before)):
            told = original[0]
        found.append(Change(path, before, told, without == (before or "")))
    return [each for each in found if each.before != each.after]


def _text_of(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{path} is not UTF-8") from None


def _in_json(change: Callable[[dict[str, Any], list[str] | None], None]) -> Edit:
    """Return the edit of a text of JSON by a change of its value."""

    def edit(text: str, command: list[str] | None) -> str:
        value, known = (orjson.loads(text) if text.strip() else {} for _ in range(2))
        change(value, command)
        if value == known:
            return text
        layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        return orjson.dumps(value, option=layout).decode()

    return edit


def _hooks_in(host: Host) -> Edit:
    """Return the edit that puts our hook at each event of a host, in place of an older one."""

    def change(settings: dict[str, Any], command: list[str] | None) -> None:
        events: dict[str, list[Any]] = settings.get("hooks", {})
        if not all(isinstance(groups, list) for groups in events.values()):
            raise TypeError
        kept = {
            event: [group for each in groups for group in _without_ours(each)]
            for event, groups in events.items()
        }
        if command is not None:
            told = shlex.join(command)
            hook = {"type": "command", "command": told, "timeout": _SECONDS * host.second}
            for event in host.moments:
                kept[event] = [*kept.get(event, ()), {"hooks": [hook]}]
        kept = {event: groups for event, groups in kept.items() if groups or not events.get(event)}
        _put(settings, "hooks", kept)

    return _in_json(change)


def _without_ours(group: Any) -> list[Any]:
    """Return a group of hooks without ours; nothing, if it had no other one."""
    hooks = group.get("hooks", ())
    kept = [each for each in hooks if _OURS not in str(each.get("command"))]
    if len(kept) == len(hooks):
        return [group]
    return [{**group, "hooks": kept}] if kept else []


def _put(settings: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    """Set a value if it is another one; one that became empty goes."""
    if value != settings.get(name, {}):
        settings[name] = value
        if not value:
            del settings[name]


def _set_line(settings: dict[str, Any], command: list[str] | None, *, has_line: bool) -> None:
    """Put our status line in, or take it out, see https://code.claude.com/docs/en/statusline."""
    if _OURS in str(settings.get("statusLine", _OURS)):
        line = shlex.join(_instead(command, "status")) if command and has_line else None
        _put(settings, "statusLine", {"type": "command", "command": line} if line else {})


def _set_server(settings: dict[str, Any], command: list[str] | None) -> None:
    entry = None
    if command is not None:
        program, *rest = _instead(command, "mcp")
        entry = {"command": program, "args": rest}
    _set_entry(settings, "mcpServers", entry)


def _set_local_server(settings: dict[str, Any], command: list[str] | None) -> None:
    """As `_set_server`, in the words of OpenCode, see https://opencode.ai/docs/mcp-servers."""
    entry = None if command is None else {"type": "local", "command": _instead(command, "mcp")}
    _set_entry(settings, "mcp", entry)


def _set_entry(settings: dict[str, Any], name: str, entry: Any) -> None:
    others = {key: each for key, each in settings.get(name, {}).items() if key != _NAME}
    _put(settings, name, {**others, _NAME: entry} if entry else others)


def _plugin(text: str, command: list[str] | None) -> str:
    """Return the plugin with a command in it; the file is ours alone."""
    del text
    if command is None:
        return ""
    source = Path(__file__).with_name("opencode.js").read_text(encoding="utf-8")
    return source.replace("COMMAND = []", f"COMMAND = {orjson.dumps(command).decode()}", 1)


def _instead(command: Sequence[str], name: str) -> list[str]:
    """Return the command of a hook with another name in the place of the host."""
    place = command.index("hook") + 1
    return [*command[:place], name, *command[place + 1 :]]


def _table_in(text: str, command: list[str] | None) -> str:
    """Put our table at the end of TOML, or take it out; every other line stays as it is."""
    rest = (_TABLES if command is None else _TABLE).sub("", text)
    if command is not None:
        program, *arguments = _instead(command, "mcp")
        # A string, or a list of strings, is written in JSON as in TOML.
        table = {"command": program, "args": arguments}
        rows = [f"{name} = {orjson.dumps(value).decode()}" for name, value in table.items()]
        end = "" if not rest or rest.endswith("\n") else "\n"
        gap = "\n" if rest else ""
        rest = "\n".join((f"{rest}{end}{gap}[mcp_servers.{_NAME}]", *rows, ""))
    import tomllib  # noqa: PLC0415 - a hook must be quick

    tomllib.loads(rest)
    return rest
