from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.plug.hosts import HOSTS, Host
from locus_memory.plug.settings import COMMAND, Change, Originals, changes, write_secret

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
groups = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"type": texts, "command": texts}), max_size=2)},
        optional={"matcher": texts},
    ),
    max_size=2,
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "hooks": st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Mine"]), groups),
        "mcpServers": st.dictionaries(texts, values, max_size=2),
        "mcp": st.dictionaries(texts, values, max_size=2),
        "statusLine": values,
        "other": values,
    },
)


def command(host: str, *options: str) -> list[str]:
    return [*COMMAND, host, *options]


def plug(
    host: str, folder: Path, *options: str, removes: bool = False, has_line: bool = False
) -> int:
    originals = Originals(folder / "originals")
    given = None if removes else command(host, *options)
    found = changes(HOSTS[host], folder, given, originals, has_line=has_line)
    for change in found:
        change.write()
        if removes:
            originals.drop(change.path)
        else:
            originals.keep(change)
    return len(found)


def test_a_secret_is_there_or_as_it_was_at_each_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data" / "plugs" / "codex"
    write_secret(path, "old")
    path.chmod(0o644)

    def fail(self: Path, *_: Any, **__: Any) -> None:
        assert path.read_text() == "old"
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match="no space"):
            write_secret(path, "new")
    assert path.read_text() == "old"
    write_secret(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    write_secret(path, None)
    assert not path.exists()


def test_a_hook_that_somebody_adds_to_our_group_stays_and_ours_goes(tmp_path: Path) -> None:
    plug("claude-code", tmp_path)
    path = HOSTS["claude-code"].files(tmp_path).hooks
    value = json.loads(path.read_text())
    own = {"type": "command", "command": "make lint"}
    value["hooks"]["Stop"][0]["hooks"].append(own)
    path.write_text(json.dumps(value))
    plug("claude-code", tmp_path, "--by-remote")
    assert path.read_text().count("locus_memory hook claude-code") == len(
        HOSTS["claude-code"].moments
    )
    plug("claude-code", tmp_path, removes=True)
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [own]}]}}


def files_of(host: Host, folder: Path) -> list[Path]:
    files = host.files(folder)
    return [*{files.hooks, files.servers}]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_written_names_every_event_and_the_server(host: str, tmp_path: Path) -> None:
    assert plug(host, tmp_path)
    said = "".join(each.read_text() for each in files_of(HOSTS[host], tmp_path))
    assert all(event in said for event in HOSTS[host].moments)
    assert '"mcp"' in said
    assert not plug(host, tmp_path)


@pytest.mark.parametrize("host", HOSTS)
def test_removing_leaves_no_file_that_was_not_there(host: str, tmp_path: Path) -> None:
    plug(host, tmp_path)
    plug(host, tmp_path, "--model", "openai:x")
    assert plug(host, tmp_path, removes=True)
    assert not [each for each in files_of(HOSTS[host], tmp_path) if each.exists()]
    assert not plug(host, tmp_path, removes=True)


@pytest.mark.parametrize("host", ["claude-code", "gemini", "opencode"])
@given(before=documents, indent=st.sampled_from([None, 1, 4]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_removing_gives_the_bytes_of_before(
    tmp_path_factory: pytest.TempPathFactory, host: str, before: Any, indent: int | None
) -> None:
    folder = tmp_path_factory.mktemp("project")
    path = HOSTS[host].files(folder).servers
    was = json.dumps(before, indent=indent, ensure_ascii=indent is None)
    write(path, was)
    plug(host, folder)
    after = json.loads(path.read_text())
    kept = {name: value for name, value in before.items() if name not in {"hooks", "mcpServers"}}
    assert {**after, **kept} == after or host == "opencode"
    plug(host, folder, "--person", "ada")
    plug(host, folder, removes=True)
    assert path.read_text(encoding="utf-8") == was


@pytest.mark.parametrize("host", HOSTS)
def test_an_empty_file_stays(host: str, tmp_path: Path) -> None:
    path = HOSTS[host].files(tmp_path).servers
    write(path, "")
    plug(host, tmp_path)
    assert plug(host, tmp_path, removes=True)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("host", ["claude-code", "gemini", "opencode"])
def test_what_a_person_changes_meanwhile_stays(host: str, tmp_path: Path) -> None:
    path = HOSTS[host].files(tmp_path).servers
    write(path, '{"mine": 1}')
    plug(host, tmp_path)
    write(path, json.dumps({**json.loads(path.read_text()), "more": 2}))
    plug(host, tmp_path, "--model", "openai:x")
    plug(host, tmp_path, removes=True)
    assert json.loads(path.read_text()) == {"mine": 1, "more": 2}


def test_hooks_of_others_stay_at_their_events(tmp_path: Path) -> None:
    path = HOSTS["claude-code"].files(tmp_path).hooks
    other = {"matcher": "x", "hooks": [{"type": "command", "command": "other --hook"}]}
    write(path, json.dumps({"hooks": {"Stop": [other], "Mine": []}}))
    plug("claude-code", tmp_path)
    plug("claude-code", tmp_path, "--by-remote")
    hooks = json.loads(path.read_text())["hooks"]
    assert hooks["Stop"][0] == other
    assert [len(hooks[event]) for event in ("Stop", "SessionStart")] == [2, 1]
    assert hooks["Stop"][1]["hooks"][0]["command"].endswith("hook claude-code --by-remote")
    assert hooks["Mine"] == []


TOMLS = [
    "",
    "# mine\nmodel = 'x' # why\n",
    "model = 'x'\n\n[mcp_servers.other]\ncommand = 'y'",
    "[features]\nhooks = true\n\n\n# the end\n",
    '[mcp_servers."locus"]\nargs = ["[mcp_servers.locus-memory]"]\n',
]


@pytest.mark.parametrize("text", TOMLS)
def test_toml_keeps_its_comments_and_comes_back(text: str, tmp_path: Path) -> None:
    path = HOSTS["codex"].files(tmp_path).servers
    write(path, text)
    plug("codex", tmp_path)
    plugged = path.read_text()
    assert plugged.startswith(text)
    assert tomllib.loads(plugged)["mcp_servers"]["locus-memory"]["args"][-1] == "mcp"
    write(path, f"{plugged}\n[late]\nx = 1\n")
    plug("codex", tmp_path, "--person", "ada")
    assert "late" in tomllib.loads(path.read_text())
    plug("codex", tmp_path, removes=True)
    assert tomllib.loads(path.read_text()) == {**tomllib.loads(text), "late": {"x": 1}}


def test_what_codex_writes_below_our_table_stays_and_goes_with_it(tmp_path: Path) -> None:
    path = HOSTS["codex"].files(tmp_path).servers
    write(path, "model = 'x'\n")
    plug("codex", tmp_path)
    below = '[mcp_servers.locus-memory.tools.recall]\napproval_mode = "approve"\n'
    write(path, f"{path.read_text()}\n{below}\n# mine\n\n[late]\nx = 1\n")
    plug("codex", tmp_path, "--person", "ada")
    server = tomllib.loads(path.read_text())["mcp_servers"]["locus-memory"]
    assert server["tools"] == {"recall": {"approval_mode": "approve"}}
    assert server["args"][-2:] == ["--person", "ada"]
    plug("codex", tmp_path, removes=True)
    assert path.read_text() == "model = 'x'\n\n# mine\n\n[late]\nx = 1\n"


def test_a_comment_before_the_next_table_stays(tmp_path: Path) -> None:
    path = HOSTS["codex"].files(tmp_path).servers
    write(path, "")
    plug("codex", tmp_path)
    own = "startup_timeout_sec = 9\nenv_vars = [\n  'A', # why\n\n  'B',\n]\n"
    write(path, f"{path.read_text()}{own}# mine\n[late]\n")
    plug("codex", tmp_path, removes=True)
    assert path.read_text() == "# mine\n[late]\n"


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"x"',
        "// a comment\n{}",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {"Stop": ["x"]}}',
        '{"hooks": {"Stop": [{"hooks": [7]}]}}',
        '{"hooks": 7}',
    ],
)
def test_what_its_host_does_not_document_is_refused_and_stays(
    host: str, text: str, tmp_path: Path
) -> None:
    path = HOSTS[host].files(tmp_path).hooks
    write(path, text)
    with pytest.raises(InvalidArgumentError, match="stays as it is"):
        plug(host, tmp_path)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["[", "x = 1\nx = 2\n", '[mcp_servers]\nlocus-memory = "x"\n'])
def test_toml_that_cannot_hold_our_table_is_refused(text: str, tmp_path: Path) -> None:
    path = HOSTS["codex"].files(tmp_path).servers
    write(path, text)
    with pytest.raises(InvalidArgumentError, match="stays as it is"):
        plug("codex", tmp_path)
    assert path.read_text() == text


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = HOSTS["gemini"].files(tmp_path).hooks
    path.parent.mkdir()
    path.write_bytes(b"\xff{}")
    with pytest.raises(InvalidArgumentError, match="not UTF-8"):
        plug("gemini", tmp_path)


def test_the_mode_and_the_link_of_a_file_stay(tmp_path: Path) -> None:
    path = HOSTS["gemini"].files(tmp_path).hooks
    real = tmp_path / "dotfiles.json"
    write(real, "{}")
    real.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(real)
    plug("gemini", tmp_path)
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert "mcpServers" in real.read_text()


def test_what_only_its_owner_reads_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "settings.json", list[int]()
    write(path, "{}")
    path.chmod(0o600)
    real = Path.chmod

    def chmod(self: Path, mode: int) -> None:
        seen.append(self.stat().st_mode & 0o777)
        real(self, mode)

    monkeypatch.setattr(Path, "chmod", chmod)
    Change(path, "{}", '{"key": "secret"}').write()
    assert seen == [0o600]


def test_the_folders_of_the_user_follow_the_variables_of_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for host in HOSTS.values():
        files = host.files(None)
        assert files.hooks.is_relative_to(tmp_path)
        assert files.servers.is_relative_to(tmp_path)


def test_the_status_line_is_ours_if_it_is_wanted_and_there_is_no_other(tmp_path: Path) -> None:
    path = HOSTS["claude-code"].files(tmp_path).hooks

    def line() -> Any:
        return json.loads(path.read_text()).get("statusLine")

    plug("claude-code", tmp_path)
    assert line() is None
    plug("claude-code", tmp_path, "--person", "ada", has_line=True)
    assert line()["type"] == "command"
    assert line()["command"].endswith(" -m locus_memory hook status --person ada")
    assert not plug("claude-code", tmp_path, "--person", "ada", has_line=True)
    plug("claude-code", tmp_path)
    assert line() is None
    plug("claude-code", tmp_path, has_line=True)
    plug("claude-code", tmp_path, removes=True)
    assert not path.exists()
    theirs = {"type": "command", "command": "~/.claude/line.sh", "padding": 0}
    write(path, json.dumps({"statusLine": theirs}))
    plug("claude-code", tmp_path, has_line=True)
    assert line() == theirs
    plug("claude-code", tmp_path, removes=True)
    assert json.loads(path.read_text()) == {"statusLine": theirs}
