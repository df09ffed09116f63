from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from locus_memory import LLMMemoryManager, Memory
from locus_memory.plug.hook import Settings, answer
from locus_memory.plug.hosts import HOSTS

HOMES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, empty_directory):
    """An empty home folder, with an empty project in it as the working folder."""
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path


def test_it_plugs_the_user_and_shows_what_it_changed(ok, run, home):
    out = ok("plug", "claude-code").out
    assert f"+++ {home / '.claude' / 'settings.json'}" in out
    assert "UserPromptSubmit" in (home / ".claude" / "settings.json").read_text()
    assert "locus-memory" in (home / ".claude.json").read_text()
    assert "nothing to change" in run("plug", "claude-code").err
    ok("plug", "claude-code", "--remove")
    assert not (home / ".claude.json").exists()


def test_it_plugs_a_project_alone(ok, home):
    ok("plug", "gemini", "--project")
    assert (home / "shop" / ".gemini" / "settings.json").exists()
    assert not (home / ".gemini").exists()


def test_print_changes_nothing(ok, home):
    assert "SessionStart" in ok("plug", "codex", "--print").out
    assert not (home / ".codex").exists()


def test_the_options_of_the_hooks_are_written_and_a_file_has_its_whole_path(ok, home):
    options = ("--url", "sqlite:./own.db", "--model", "openai:x", "--person", "a b", "--by-remote")
    changes = json.loads(ok("plug", "codex", *options, "--json").out)["changes"]
    [hooks, servers] = [each["after"] for each in changes]
    command = json.loads(hooks)["hooks"]["Stop"][0]["hooks"][0]["command"]
    url = f"sqlite:{home / 'shop' / 'own.db'}"
    assert command.endswith(f"--url {url} --person 'a b' --model openai:x --by-remote")
    assert url in servers
    assert [each["before"] for each in changes] == [None, None]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:team.db", "shop/team.db"),
        ("./team.db", "shop/team.db"),
        ("../team.db", "shop/../team.db"),
        ("team.db", "shop/team.db"),
        ("~/team.sqlite", "team.sqlite"),
        ("sqlite", "shop/locus.db"),
    ],
)
def test_a_file_is_the_same_one_in_every_project(ok, home, url, path):
    changes = json.loads(ok("plug", "codex", "--url", url, "--json").out)["changes"]
    assert f"--url sqlite:{home / path}" in changes[0]["after"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db.example/team",
        "postgresql:host=db password=hunter2",
        "redis://:hunter2@db.example:6379/0",
        "oracle:ada:hunter2@db.example/team",
        "sqlite:team.db?passphrase=hunter2",
    ],
)
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "opencode"])
def test_a_password_stands_in_no_settings_and_is_read_by_its_owner_alone(ok, home, url, host):
    options = ("--url", url, "--project")
    assert "hunter2" not in ok("plug", host, *options, "--print").out
    assert not (home / ".local").exists()
    assert "hunter2" not in ok("plug", host, *options).out
    files = [each for each in home.rglob("*") if each.is_file()]
    [secret] = [each for each in files if "hunter2" in each.read_text()]
    assert secret.is_relative_to(home / ".local/share/locus_memory/plugs")
    assert (secret.stat().st_mode & 0o777, secret.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert secret.parents[1].stat().st_mode & 0o777 == 0o700
    # A hook and the server read it; no argument of a process shows it.
    read = Settings.read(["--options", f"{secret}"]).url
    assert read.endswith(url.removeprefix("sqlite:"))
    for file in (home / "shop").rglob("*"):
        assert file.is_dir() or f"{secret}" in file.read_text()
    ok("plug", host, "--project", "--url", "sqlite:own.db")
    assert "hunter2" not in secret.read_text()
    ok("plug", host, *options)
    ok("plug", host, "--project", "--remove")
    assert not secret.exists()


@pytest.fixture
def told(home):
    """Memories of the project and of nobody in one database, and a session that was shown some."""
    url = f"sqlite:{home / 'agents.db'}"
    settings = Settings.read(["--url", url])

    async def tell():
        async with LLMMemoryManager(url) as manager:
            await manager.save(Memory(key="other", content="Nobody deploys on Mondays."))
            project = manager.for_user(settings.project(f"{home / 'shop'}"))
            await project.save(Memory(key="deploy", content="We deploy with make ship."))
            person = Memory(key="diffs", content="Reads diffs before a deploy.")
            await manager.for_user(settings.person).save(person)
        event = {"session_id": "one", "cwd": f"{home / 'shop'}", "prompt": "How do we deploy?"}
        for name in ("SessionStart", "UserPromptSubmit"):
            await answer(HOSTS["codex"], {**event, "hook_event_name": name}, settings)

    asyncio.run(tell())
    return url


@pytest.mark.parametrize("place", ["--project", "--user"])
@pytest.mark.parametrize("folder", ["shop", "shop/src/deep"])
def test_the_commands_know_the_database_and_the_project_of_a_plugged_folder(
    ok, told, monkeypatch, place, folder
):
    home = Path.home()
    (home / "shop" / ".git").mkdir()
    (home / folder).mkdir(parents=True, exist_ok=True)
    ok("plug", "codex", place, "--url", told)
    monkeypatch.chdir(home / folder)
    assert [each["key"] for each in ok("memories", "--json").json["memories"]] == ["deploy"]
    assert [each["key"] for each in ok("--json", "memories").json["memories"]] == ["deploy"]
    assert "make ship" in ok("recall", "how do we deploy").out
    # A message is shown what is known of the person, too.
    assert "Reads diffs" in ok("recall", "how do we deploy").out
    assert "Reads diffs" not in ok("recall", "how do we deploy", "--person", "bob").out
    assert "Mondays" not in ok("recall", "who deploys on Mondays?").out
    assert "nothing is known" in ok("recall", "how do we deploy", "--user", "bob").out
    assert "Mondays" in ok("memories", "--all-users").out
    assert "How do we deploy?" in ok("why").out
    # Each message was shown something of the project, and something of the person.
    assert "make ship" in ok("why").out
    assert "Reads diffs" in ok("why").out
    assert "Reads diffs" not in ok("why", "--person", "bob").out
    assert len(ok("why", "one", "--limit", "2", "--json").json["runs"]) == 4
    assert "make ship" in ok("why", "one", "--limit", "2").out
    assert "We deploy" in ok("history", "deploy").out
    # What was named counts, and so does a database of the folder itself.
    assert ok("memories", "--url", told, "--json").json["memories"][0]["key"] == "other"
    monkeypatch.setenv("LOCUS_MEMORY_URL", told)
    assert ok("memories", "--json").json["memories"][0]["key"] == "other"
    monkeypatch.delenv("LOCUS_MEMORY_URL")
    ok("remember", "Ada reads diffs.", "--url", "sqlite:locus.db")
    assert "Ada reads diffs." in ok("memories").out
    (home / folder / "locus.db").unlink()
    ok("remember", "We deploy on Fridays.", "--key", "deploy", "--type", "user")
    ok("undo", "deploy", "--type", "user")
    ok("forget", "deploy", "--yes")
    assert ok("memories", "--json").json["memories"] == []
    monkeypatch.chdir(home / "shop")
    ok("plug", "codex", place, "--remove")
    assert Settings.of(home / "shop") is None


def test_forget_alone_never_erases_a_project(run, ok, home, told):
    ok("plug", "codex", "--url", told)
    space = ("--namespace", "locus_memory", "--yes")
    for options in ((), ("--yes",), ("--threads", "--yes"), space, ("--type", "user", "--yes")):
        assert "give KEY" in run("forget", *options).err
    assert "make ship" in ok("memories").out
    ok("forget", "--query", "ship", "--yes")
    assert "make ship" not in ok("memories").out


@pytest.mark.parametrize("command", [("ls", "memories"), ("search", "recall"), ("--json", "ls")])
def test_other_commands_stay_as_they_are(run, ok, told, command):
    before = run(*command)
    ok("plug", "codex", "--url", told)
    assert run(*command) == before


def test_settings_that_came_with_a_repository_name_no_database(ok, run, home, told):
    ok("plug", "claude-code", "--project", "--url", told)
    file = home / "shop" / ".claude" / "settings.local.json"
    hostile = file.read_text()
    ok("plug", "claude-code", "--project", "--remove")
    file.parent.mkdir(exist_ok=True)
    file.write_text(hostile)
    assert run("memories").code == 1


def test_a_damaged_file_of_options_is_no_failure(ok, run, home, told):
    ok("plug", "codex", "--url", told)
    [file] = (home / ".local/share/locus_memory/plugs").iterdir()
    for content in (b"", b"{", b"\xff", b"7", b"[1, 2]"):
        file.write_bytes(content)
        assert "no database at" in run("memories").err


def test_a_host_that_there_is_not_is_refused(run):
    result = run("plug", "vim")
    assert result.code == 1
    assert "claude-code, codex, gemini, opencode" in result.err


def test_a_preset_is_refused_since_a_project_may_define_it(run, home):
    result = run("plug", "codex", "--url", "@team")
    assert (result.code, "name its URL" in result.err) == (1, True)
    assert not (home / ".codex").exists()


def test_settings_that_are_no_json_stay_as_they_are(run, home):
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("// mine\n{}")
    result = run("plug", "gemini")
    assert result.code != 0
    assert "stays as it is" in result.err
    assert (home / ".gemini" / "settings.json").read_text() == "// mine\n{}"


def test_import_keeps_what_was_there_before(ok, run, home):
    folder = home / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    for name, place in (("one", "shop"), ("two", "other")):
        told = {"type": "user", "uuid": name, "cwd": str(home / place)}
        record = {**told, "message": {"content": f"The {place} database is called heron."}}
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    (home / "shop" / "AGENTS.md").write_text("We deploy with `make ship`.")
    told = json.loads(ok("plug", "claude-code", "--project", "--import", "--json").out)
    assert (told["sessions"], told["sections"]) == (1, 1)
    assert "2 sessions and 1 sections" in run("plug", "claude-code", "--import").err
    assert "make ship" in ok("memories").out
    assert "told by a document" in ok("memories").out or "document" in ok("memories", "--json").out
    assert "heron" in ok("recall", "Which database?").out


@pytest.mark.parametrize(
    "options", [("--trust",), ("--import", "--remove"), ("--import", "--dry-run")]
)
def test_import_alone_is_refused_where_it_means_nothing(run, home, options):
    done = run("plug", "codex", *options)
    assert done.code == 2
    assert "--import" in done.err
    assert not (home / ".codex").exists()


def test_a_status_line_is_shown_where_the_host_has_one(ok, run, home):
    path = home / ".claude" / "settings.json"
    ok("plug", "claude-code", "--status-line")
    assert " hook status" in json.loads(path.read_text())["statusLine"]["command"]
    assert run("plug", "gemini", "--status-line").code == 2
