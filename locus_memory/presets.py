"""Presets: provider strings with names, from a configuration file.

`"@prod"` stands for the preset `prod`, wherever a provider string goes. The files are the nearest
`pyproject.toml` with a table `tool.locus_memory`, in the current folder or above it, and then
`~/.config/locus_memory/config.toml`; a name in the first wins. They are read when a preset is used,
and never before.

```toml
[tool.locus_memory.presets]
dev = "sqlite:./dev.db"
prod = { url = "postgresql:${DATABASE_URL}", schema = "agents" }
```

A secret is written as `${NAME}` and read from the environment; a literal one is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from locus_memory._internal.providers.address import parse_address
from locus_memory._internal.providers.construction import did_you_mean
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, UnknownProviderError, UnsetVariableError

__all__ = [
    "Preset",
    "documents_table",
    "is_preset",
    "list_presets",
    "memory_table",
    "read_preset",
    "retention_tables",
]

_SIGN: Final = "@"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAMED: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credential|encryption"
    r"|(?:api|private|secret|access|encryption|signing|master)_?key|(?:http|basic)_?auth)s?"
)
_SECRET_OPTION: Final = re.compile(rf"(?i)(?:^|_){_NAMED}$")
# Its number is a secret as well; that of `max_tokens` is none.
_PASSWORD_OPTION: Final = re.compile(r"(?i)(?:^|_)(?:passw(?:or)?d|passphrase|pwd|pin)$")
# A user and a password: the last one is the secret.
_PAIR_OPTION: Final = re.compile(r"(?i)auth$")
# Of a URL, or of a connection string such as `host=db password=...`; a variable is a zero byte.
_SECRET_PARAMETER: Final = re.compile(
    rf"(?i)(?:[?&;:\s]|^)[\w-]*{_NAMED}\s*=\s*[\"']?\0*[^&;\s\0\"']"
)
_PASSWORD: Final = re.compile(r"://[^/?#\s:]*:[^/?#\s]+@")
# The password of a provider string such as `oracle:user:password@host`.
_BARE_PASSWORD: Final = re.compile(r"^[\w.+-]+:[^/\\?#\s:]*:[^/\\?#\s]+@")


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset as it is written; its repr shows no secret, since it holds none.

    Attributes:
        name: Its name, without `@`.
        url: A provider string, in which `${NAME}` stands for a variable.
        options: Options of the store, the checkpointer or the backend.
        source: The file.
    """

    name: str
    url: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""

    @property
    def where(self) -> str:
        """The provider string, with the values of variables.

        Raises:
            UnsetVariableError: A variable is not set.
        """
        return str(self._filled(self.url))

    @property
    def filled_options(self) -> dict[str, Any]:
        """The options, with the values of variables.

        Raises:
            UnsetVariableError: A variable is not set.
        """
        return {name: self._filled(value) for name, value in self.options.items()}

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: _variable(found[1], self.name), value)
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {name: self._filled(each) for name, each in table.items()}
        return value


def is_preset(where: object) -> bool:
    """Whether a provider string is the name of a preset."""
    return isinstance(where, str) and where.startswith(_SIGN)


def read_preset(where: str) -> Preset:
    """Return the preset of a string such as `"@prod"`.

    Raises:
        UnknownProviderError: No file has a preset of this name.
        ConfigurationError: A file is not readable, or the preset is not valid.
    """
    name = where.removeprefix(_SIGN)
    known: list[str] = []
    for source, table in _tables():
        presets = _table(table, "presets", source)
        if name in presets:
            return _preset(name, presets[name], source)
        known += presets
    listed = ", ".join(f"{_SIGN}{each}" for each in sorted(set(known))) or "none"
    raise UnknownProviderError(
        f"unknown preset {quote(where)}{did_you_mean(name, known)} Known: {listed}"
    )


def list_presets() -> list[Preset]:
    """Return the presets of the files, by name; nothing is read from the environment for them.

    Raises:
        ConfigurationError: A file is not readable, or a preset is not valid.
    """
    found: dict[str, Preset] = {}
    for source, table in _tables():
        for name, value in _table(table, "presets", source).items():
            found.setdefault(name, _preset(name, value, source))
    return [found[name] for name in sorted(found)]


def memory_table(
    name: str | None = None, store: Mapping[str, Any] | str | Path | None = None
) -> dict[str, Any]:
    """Return the table of a memory store, with the values of variables.

    Args:
        name: Its name below `memory.providers`; `None`: that of `memory.default_provider`.
        store: A configuration, or the path of one; `None`: the files.

    Raises:
        KeyError: There is no such table, or no default.
        ConfigurationError: A file is not readable, or holds a literal secret.
    """
    for source, table in _tables_of(store):
        memory = _table(table, "memory", source)
        wanted = memory.get("default_provider") if name is None else name
        if name is None and not isinstance(wanted, str | None):
            raise ConfigurationError(f"{source}: default_provider is the name of a provider")
        providers = _table(memory, "providers", source)
        if wanted in providers:
            fields = _table(providers, str(wanted), source)
            return _filled(f"memory.providers.{wanted}", fields, source)
    raise KeyError(name if name is not None else "memory.default_provider")


def documents_table(store: Mapping[str, Any] | str | Path | None = None) -> dict[str, Any]:
    """Return the table `documents` of the nearest file that has it, with the values of variables.

    Args:
        store: A configuration, or the path of one; `None`: the files.

    Raises:
        KeyError: There is no such table.
        ConfigurationError: A file is not readable, or holds a literal secret.
    """
    for source, table in _tables_of(store):
        if "documents" in table:
            return _filled("documents", _table(table, "documents", source), source)
    raise KeyError("documents")


def _filled(name: str, fields: dict[str, Any], source: str) -> dict[str, Any]:
    _check_secrets(name, fields, source)
    filled: dict[str, Any] = Preset(name, "", fields, source).filled_options
    return filled


def retention_tables() -> tuple[str, list[Any]]:
    """Return the tables `retention` of the nearest file that has any, and the name of the file.

    They are rules for `locus_memory.retention.read_rules`.

    Raises:
        ConfigurationError: A file is not readable, or `retention` is no list of tables.
    """
    for source, table in _tables():
        found = table.get("retention")
        if found is not None:
            if not isinstance(found, list):
                raise ConfigurationError(f"{source}: retention is a list of tables")
            return source, found
    return "", []


def _tables_of(
    store: Mapping[str, Any] | str | Path | None,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if store is None:
        yield from _tables()
    elif isinstance(store, Mapping):
        source = "the given configuration"
        yield source, _own_table(store, source)
    else:
        yield str(store), _own_table(_document(Path(store)), str(store))


def _tables() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the table of this library in each file that has one, the nearest first."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            tool = _table(_document(file), "tool", str(file))
            if "locus_memory" in tool:
                yield str(file), _table(tool, "locus_memory", str(file))
                break
    home = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    file = Path(home) / "locus_memory" / "config.toml"
    if file.is_file():
        yield str(file), _own_table(_document(file), str(file))


def _own_table(document: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return the table of this library; a file of its own needs no `tool.locus_memory`."""
    tool = document.get("tool")
    if not isinstance(tool, Mapping) or "locus_memory" not in tool:
        return document
    return _table(cast("Mapping[str, Any]", tool), "locus_memory", source)


def _document(file: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most processes read no file

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The text of a parser's error may hold a line of the file.
        raise ConfigurationError(
            f"{file} is not a readable TOML file: {type(error).__name__}"
        ) from None


def _table(table: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"{source}: {name} is a table")
    return cast("dict[str, Any]", found)


def _preset(name: str, value: object, source: str) -> Preset:
    table = {"url": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not isinstance(table.get("url"), str):
        raise ConfigurationError(
            f"{source}: the preset {quote(name)} is a provider string, or a table with url ="
        )
    options = cast("dict[str, Any]", dict(table))
    url = str(options.pop("url"))
    if is_preset(url):
        raise ConfigurationError(f"{source}: the preset {quote(name)} names another preset")
    bare = _VARIABLE.sub("", url)
    if _BARE_PASSWORD.search(bare) or _is_literal(url):
        raise _literal(name, "url", source)
    if bare == url:
        parse_address(url)
    _check_secrets(name, options, source)
    return Preset(name, url, options, source)


def _check_secrets(name: str, options: Mapping[str, Any], source: str) -> None:
    """Refuse a literal secret among options, at any depth.

    Raises:
        ConfigurationError: There is one.
    """
    for option, value in options.items():
        for found in _secrets(option, value):
            raise _literal(name, found, source)


def _secrets(option: str, value: Any) -> Iterator[str]:
    """Yield the names of the options, at any depth, that hold a literal secret."""
    if isinstance(value, dict):
        for inner, each in cast("dict[str, Any]", value).items():
            yield from _secrets(inner, each)
    elif isinstance(value, list):
        for each in value[-1:] if _PAIR_OPTION.search(option) else value:
            yield from _secrets(option, each)
    elif isinstance(value, str):
        is_named = _SECRET_OPTION.search(option) is not None
        if (is_named and _VARIABLE.sub("", value)) or _is_literal(value):
            yield option
    elif not isinstance(value, bool) and _PASSWORD_OPTION.search(option):
        yield option


def _is_literal(text: str) -> bool:
    """Whether a text has a password that is no variable."""
    return bool(
        _PASSWORD.search(_VARIABLE.sub("", text))
        or _SECRET_PARAMETER.search(_VARIABLE.sub("\0", text))
    )


def _literal(name: str, option: str, source: str) -> ConfigurationError:
    return ConfigurationError(
        f"{source}: {option} of {quote(name)} holds a literal secret: put it into the environment,"
        " and write ${NAME} in its place"
    )


def _variable(variable: str, preset: str) -> str:
    value = os.environ.get(variable)
    if value is None:
        raise UnsetVariableError(
            f"the preset {quote(preset)} needs the environment variable {variable}, which is not"
            " set"
        )
    return value
