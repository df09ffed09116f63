"""The hosts that can be plugged: what each calls its events and its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from locus_memory.plug.transcripts import (
    Turn,
    claude_turn,
    codex_turn,
    gemini_turn,
    opencode_turn,
)

__all__ = ["HOSTS", "KEEPING", "Files", "Host", "Moment"]


class Moment(StrEnum):
    """What a hook is for.

    `START` shows what is known, `PROMPT` what answers a message. `KEEP` keeps what was said, and
    `END` has a model read it as well.
    """

    START = "start"
    PROMPT = "prompt"
    KEEP = "keep"
    END = "end"


KEEPING: Final = frozenset((Moment.KEEP, Moment.END))
"""What keeps what was said."""


@dataclass(frozen=True, slots=True)
class Files:
    """The settings of a host.

    Attributes:
        hooks: The file that names hooks, of JSON; or the file of a plugin, of JavaScript.
        servers: The file that names MCP servers, of JSON or TOML.
    """

    hooks: Path
    servers: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A coding agent whose settings name hooks, as commands that get JSON and answer with JSON.

    Attributes:
        moments: What each of its events is for.
        variable: The environment variable that names the folder of the user's settings.
        home: That folder without the variable, below the home folder.
        user: The settings of the user, below that folder.
        project: The settings of a project, below its folder.
        turn: Reads a record of its transcripts, or a message that its plugin sends.
        second: One second, in the unit of its time limits.
        sessions: Where its transcripts are, as a pattern below the folder of the user's settings;
            empty: they are no files of JSON lines.
        begun: Returns the id and the folder of a session from its file and a record near its
            beginning; `None`, or a `LookupError` or `TypeError`: the record does not tell.
        has_line: Whether its settings name a command that prints a status line.
        servers_at_home: Whether the file of the user's servers is in the home folder itself, if the
            variable names no other.
        copies: Whether a session that is forked or resumed begins with the records of another one,
            each with the id that it has there.
    """

    moments: Mapping[str, Moment]
    variable: str
    home: str
    user: Files
    project: Files
    turn: Turn
    second: int = 1
    sessions: str = ""
    begun: Callable[[Path, Any], tuple[str, str] | None] = lambda path, record: None  # noqa: ARG005
    has_line: bool = False
    servers_at_home: bool = False
    copies: bool = False

    def files(self, project: Path | None) -> Files:
        """Return the settings of a project; `None`: those of the user."""
        if project is not None:
            return Files(project / self.project.hooks, project / self.project.servers)
        named = os.environ.get(self.variable)
        folder = Path(named) if named else Path.home() / self.home
        servers = Path.home() if self.servers_at_home and not named else folder
        return Files(folder / self.user.hooks, servers / self.user.servers)


def _gemini_begun(path: Path, record: Any) -> tuple[str, str] | None:
    if record.get("kind", "main") != "main":
        return None
    root = path.parents[1] / ".project_root"
    return record["sessionId"], root.read_text(encoding="utf-8").strip()


HOSTS: Final[Mapping[str, Host]] = {
    # https://code.claude.com/docs/en/hooks, read on 2026-11-28, version 2.1
    "claude-code": Host(
        moments={
            "SessionStart": Moment.START,
            "UserPromptSubmit": Moment.PROMPT,
            "Stop": Moment.KEEP,
            "PreCompact": Moment.END,
            "SessionEnd": Moment.END,
        },
        variable="CLAUDE_CONFIG_DIR",
        home=".claude",
        user=Files(Path("settings.json"), Path(".claude.json")),
        servers_at_home=True,
        project=Files(Path(".claude/settings.local.json"), Path(".mcp.json")),
        turn=claude_turn,
        sessions="projects/*/*.jsonl",
        begun=lambda path, record: (path.stem, record["cwd"]),
        has_line=True,
        copies=True,
    ),
    # https://developers.openai.com/codex/hooks, read on 2026-11-28, version 0.171. A session has no
    # event of its end.
    "codex": Host(
        moments={
            "SessionStart": Moment.START,
            "UserPromptSubmit": Moment.PROMPT,
            "Stop": Moment.END,
            "PreCompact": Moment.END,
        },
        variable="CODEX_HOME",
        home=".codex",
        user=Files(Path("hooks.json"), Path("config.toml")),
        project=Files(Path(".codex/hooks.json"), Path(".codex/config.toml")),
        turn=codex_turn,
        sessions="sessions/*/*/*/rollout-*.jsonl",
        begun=lambda _, record: (record["payload"]["id"], record["payload"]["cwd"]),
    ),
    # https://geminicli.com/docs/hooks/reference, read on 2026-11-28, version 0.61
    "gemini": Host(
        moments={
            "SessionStart": Moment.START,
            "BeforeAgent": Moment.PROMPT,
            "AfterAgent": Moment.KEEP,
            "PreCompress": Moment.END,
            "SessionEnd": Moment.END,
        },
        variable="GEMINI_CLI_HOME",
        home="",
        user=Files(Path(".gemini/settings.json"), Path(".gemini/settings.json")),
        project=Files(Path(".gemini/settings.json"), Path(".gemini/settings.json")),
        second=1_000,
        turn=gemini_turn,
        sessions="tmp/*/chats/session-*.jsonl",
        begun=_gemini_begun,
    ),
    # https://opencode.ai/docs/plugins, read on 2026-11-28, version 1.18: the events of our plugin
    "opencode": Host(
        moments={
            "session.start": Moment.START,
            "chat.message": Moment.PROMPT,
            "session.idle": Moment.END,
        },
        variable="XDG_CONFIG_HOME",
        home=".config",
        user=Files(Path("opencode/plugins/locus-memory.js"), Path("opencode/opencode.json")),
        project=Files(Path(".opencode/plugins/locus-memory.js"), Path("opencode.json")),
        turn=opencode_turn,
    ),
}
