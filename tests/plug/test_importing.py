"""What was there before the plug is kept once, with its moments and its origin."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from locus_memory.events import collect
from locus_memory.memory import LLMMemoryManager, Memory, MemoryType
from locus_memory.plug.hook import Settings, answer
from locus_memory.plug.hosts import HOSTS
from locus_memory.plug.importing import import_documents, sessions_of
from locus_memory.registry import get_store

HOMES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")
SAID = [
    ("user", "We deploy with `make ship`.", "2026-11-03T09:00:00.250Z"),
    ("assistant", "Noted: `make ship`.", "2026-11-03T09:00:04Z"),
    ("user", "Le vendredi, jamais le lundi.", "2026-11-04T23:30:00-08:00"),
    ("user", "データベースの名前は heron です。", "no moment"),
]
MOMENTS = ["2026-11-03T09:00:00.250", "2026-11-03T09:00:04", "2026-11-05T07:30:00"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(url=f"sqlite:{home / 'agents.db'}", person="person:ada")


def record(host: str, number: int) -> dict[str, Any]:
    role, words, moment = SAID[number]
    if host == "claude-code":
        told: dict[str, Any] = {"type": role, "message": {"role": role, "content": words}}
        return {**told, "uuid": f"m{number}", "timestamp": moment}
    if host == "codex":
        kind = "user_message" if role == "user" else "agent_message"
        return {
            "type": "event_msg",
            "payload": {"type": kind, "message": words},
            "timestamp": moment,
        }
    kind = "user" if role == "user" else "gemini"
    return {"id": f"m{number}", "type": kind, "content": words, "timestamp": moment}


def session(host: str, home: Path, name: str = "one") -> Path:
    """A transcript, where the host keeps it."""
    shop = str(home / "shop")
    records = [record(host, number) for number in range(len(SAID))]
    if host == "claude-code":
        path = home / ".claude" / "projects" / "-shop" / f"{name}.jsonl"
        records = [{"type": "summary"}, *({**each, "cwd": shop} for each in records)]
    elif host == "codex":
        path = home / ".codex/sessions/2026/11/03" / f"rollout-2026-11-03T09-00-00-{name}.jsonl"
        records = [{"type": "session_meta", "payload": {"id": name, "cwd": shop}}, *records]
    else:
        path = home / ".gemini" / "tmp" / "shop" / "chats" / f"session-2026-{name}.jsonl"
        records = [{"sessionId": name, "kind": "main"}, *records]
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parents[1] / ".project_root").write_text(f"{shop}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return path


async def turns(url: str) -> list[tuple[str, str]]:
    """The words that are kept with their moments, in order."""
    async with get_store(url) as store:
        spaces = await store.list_namespaces(("locus_memory",))
        found = [
            item
            for space in spaces
            if "transcript" in space
            for item in await store.search(space, None, 1_000)
        ]
    return sorted((each.metadata["date"], each.value["text"]) for each in found)


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
async def test_each_turn_is_kept_once_with_its_own_moment(
    host: str, home: Path, settings: Settings
) -> None:
    """It is imported, repeated, and hooks of the session run meanwhile."""
    path = session(host, home)
    [event] = sessions_of(HOSTS[host], 0)
    assert (event["session_id"], event["transcript_path"]) == ("one", str(path))
    assert settings.project(event["cwd"]) == settings.project(str(home / "shop"))
    await asyncio.gather(*(answer(HOSTS[host], event, settings) for _ in range(3)))
    for again in sessions_of(HOSTS[host], 0):
        await answer(HOSTS[host], again, settings)
    kept = await turns(settings.url)
    assert [words for _, words in kept] == [words for _, words, _ in SAID]
    assert [each[: len(told)] for (each, _), told in zip(kept, MOMENTS, strict=False)] == MOMENTS
    # One without a moment has that of its import.
    assert kept[-1][0] > "2026-11-05T07:30"


async def test_sessions_that_ended_before_are_left_out(home: Path) -> None:
    path = session("codex", home)
    session("codex", home, "two")
    os.utime(path, (0, 0))
    found = sessions_of(HOSTS["codex"], time.time() - 60)
    assert [each["session_id"] for each in found] == ["two"]
    assert not [*sessions_of(HOSTS["opencode"], 0)]


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"7\n",
        b"[]\n",
        b"null\n",
        b'{"payload": 1, "sessionId": "x", "cwd": 1}\n',
        b"\xff\n",
        b'{"payload": {"id": "", "cwd": "/"}, "sessionId": "", "cwd": ""}\n',
        b'{"payload": {"id": [], "cwd": ["/"]}, "sessionId": ["x"], "cwd": ["/"]}\n',
        b'{"payload": {"id": "x", "cwd": "/\\u0000"}, "sessionId": "\\u0000", "cwd": "\\u0000"}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_file_that_tells_no_session_is_left_out(host: str, content: bytes, home: Path) -> None:
    path = session(host, home)
    if host == "gemini":
        (path.parents[1] / ".project_root").unlink()
    path.write_bytes(content)
    assert not [*sessions_of(HOSTS[host], 0)]


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_a_transcript_that_cannot_be_read_leaves_the_others(host: str, home: Path) -> None:
    path = session(host, home)
    beside = [path.with_name(path.name.replace("one", f"x{number}")) for number in range(5)]
    beside[0].symlink_to("nowhere")
    beside[1].symlink_to(beside[1].name)
    beside[2].mkdir()
    os.mkfifo(beside[3])
    beside[4].symlink_to("/proc/self/mem")
    assert [each["session_id"] for each in sessions_of(HOSTS[host], 0)] == ["one"]


def test_a_subagent_of_gemini_is_no_session(home: Path) -> None:
    path = session("gemini", home)
    path.write_text(path.read_text().replace('"main"', '"subagent"'))
    assert not [*sessions_of(HOSTS["gemini"], 0)]


RULES = "# Rules\n\nWe use tabs.\n\n## Tests\n\n```sh\n# all of them\nmake test\n```\n"


async def known(manager: LLMMemoryManager) -> dict[str, Memory]:
    return {each.content: each async for each in manager.memories()}


async def test_the_files_of_a_project_have_the_origin_document_until_they_are_trusted(
    home: Path, settings: Settings
) -> None:
    shop = home / "shop"
    (shop / "CLAUDE.md").write_text(RULES)
    (shop / ".cursor" / "rules" / "web").mkdir(parents=True)
    (shop / ".cursor" / "rules" / "web" / "css.mdc").write_text("Müller mag kein Rot. 用中文回答。")
    (home / "secret.md").write_text("PRIVATE")
    (shop / "AGENTS.md").symlink_to(home / "secret.md")
    async with LLMMemoryManager(settings.url) as manager:
        view = manager.for_user(settings.project(str(shop)))
        assert await import_documents(view, shop, trust=False) == len(await known(view))
        found = await known(view)
        told = "\n".join(found)
        assert all(words in told for words in ("tabs", "make test", "Müller", "用中文"))
        assert "PRIVATE" not in told
        assert {each.metadata["origin"] for each in found.values()} == {"document"}
        assert {each.type for each in found.values()} == {MemoryType.REFERENCE}
        await import_documents(view, shop, trust=False)
        assert (await known(view)).keys() == found.keys()
        await import_documents(view, shop, trust=True)
        assert {each.metadata["origin"] for each in (await known(view)).values()} == {"person"}
        # What is there no more is retired, and what a person saved by hand stays.
        await view.remember("The staging database is called heron.")
        (shop / "CLAUDE.md").unlink()
        await import_documents(view, shop, trust=True)
        left = "\n".join(await known(view))
        assert "tabs" not in left
        assert "heron" in left
        assert "Müller" in left


async def test_a_file_replaces_nothing_that_a_person_said(home: Path, settings: Settings) -> None:
    (home / "shop" / "AGENTS.md").write_text("Deploy by hand.")
    async with LLMMemoryManager(settings.url) as manager:
        view = manager.for_user("project:shop")
        own = Memory(key="AGENTS.md#0", content="Mine.", type=MemoryType.REFERENCE)
        await view.save(own)
        await import_documents(view, home / "shop", trust=False)
        assert [*await known(view)] == ["Mine."]


async def sections(shop: Path, *, within: str = "") -> dict[str, str]:
    """What is kept of the files of a project, by key; it is imported from a folder of it."""
    async with LLMMemoryManager(f"sqlite:{shop.parent / 'agents.db'}") as manager:
        view = manager.for_user("project:shop")
        await import_documents(view, shop / within, trust=False)
        return {each.key: each.content async for each in view.memories()}


@pytest.fixture
def shop(home: Path) -> Path:
    (home / "shop/.cursor/rules").mkdir(parents=True)
    return home / "shop"


async def test_only_files_of_the_project_are_read(shop: Path) -> None:
    """A pipe, a folder, links that lead nowhere, around or out, and names of any bytes."""
    rules = shop / ".cursor/rules"
    os.mkfifo(shop / "CLAUDE.md")
    os.mkfifo(rules / "pipe.md")
    (shop / "AGENTS.md").symlink_to("AGENTS.md")
    (rules / "folder.md").mkdir()
    (rules / "nowhere.md").symlink_to("nowhere")
    (rules / "around.md").symlink_to("around.md")
    (rules / "endless.md").symlink_to("/dev/zero")
    (rules / "up").symlink_to(rules)
    (rules / "up.md").symlink_to(shop)
    (shop.parent / "private.md").write_text("PRIVATE")
    (rules / "out.md").symlink_to(shop.parent / "private.md")
    (shop / "real.md").write_text("Linked.")
    (rules / "linked.md").symlink_to(shop / "real.md")
    (rules / "kept.md~").write_text("An old one.")
    (rules / os.fsdecode(b"\xff\n.mdc")).write_text("Bytes.")
    found = await sections(shop)
    assert sorted(found.values()) == ["Bytes.", "Linked."]
    assert ".cursor/rules/\\udcff\n.mdc#0" in found
    assert await sections(shop) == found


async def test_a_folder_of_rules_that_leads_out_is_not_walked(shop: Path) -> None:
    (shop / ".cursor/rules").rmdir()
    (shop / ".cursor/rules").symlink_to(shop.parent)
    (shop.parent / "private.md").write_text("PRIVATE")
    assert not await sections(shop)


async def test_an_own_memory_is_not_retired_whatever_its_metadata(shop: Path) -> None:
    async with LLMMemoryManager(f"sqlite:{shop.parent / 'agents.db'}") as manager:
        own = Memory(MemoryType.REFERENCE, "logo", "The logo is blue.", {"file": "logo.svg"})
        await manager.for_user("project:shop").save([own])
    assert await sections(shop) == {"logo": "The logo is blue."}


SECRETS = [
    "The password of staging is hunter2-Blue!",
    "The password of staging is:\n\n" + "`hunter2-Blue!`",
    "DATABASE_URL=postgresql://ada:hunter2@db.example/shop",
    "Das Passwort lautet hunter2-Blau.",
    "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
    "# The password is hunter2-Blue!",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", [0, 190, 200, 210, 240, 256, 300])
async def test_a_section_that_may_hold_a_secret_is_left_out(
    secret: str, before: int, shop: Path
) -> None:
    """Wherever the sections are cut."""
    words = "\n\n".join(["We use tabs everywhere here."] * 400)
    text = f"{'One word. ' * before}\n\n{secret}\n\n# Then\n\n{words}\n\nThe end."
    (shop / "CLAUDE.md").write_text(text)
    found = await sections(shop)
    told = "\n".join(found.values())
    assert "hunter2" not in told
    assert "The end." in told


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("words", ["We use tabs.", "我们用制表符。", "Wir mögen Tabs. 🦊"])
async def test_a_file_is_read_in_its_encoding_or_not_at_all(
    words: str, encoding: str, shop: Path
) -> None:
    (shop / "CLAUDE.md").write_bytes(words.encode(encoding))
    expected = {} if encoding == "utf-16-le" else {"CLAUDE.md#0": words}
    assert await sections(shop) == expected


@pytest.mark.parametrize("end", [b"\0", b"\xff", b"\x89PNG\r\n\x1a\n\xfe"])
@pytest.mark.parametrize("size", [1, 50_000])
async def test_a_binary_file_has_no_sections(end: bytes, size: int, shop: Path) -> None:
    (shop / "CLAUDE.md").write_bytes(b"word " * (size // 5) + end)
    assert not await sections(shop)


async def test_a_file_that_is_skipped_now_keeps_its_sections_until_it_is_gone(shop: Path) -> None:
    place = shop / "CLAUDE.md"
    place.write_text("We use tabs.")
    for content in (None, b"\0", b"x" * 2**18):
        if content is not None:
            place.write_bytes(content)
        assert await sections(shop) == {"CLAUDE.md#0": "We use tabs."}
    place.unlink()
    assert await sections(shop) == {}


@pytest.mark.parametrize("line", ["# a\n", "#\n", "- x\n", "###### a\n```\n", "# ab\n\nWe.\n"])
async def test_the_sections_of_a_hostile_project_are_bounded(line: str, shop: Path) -> None:
    text = line * (2**17 // len(line))
    (shop / "AGENTS.md").write_text(f"{text}too large")
    for number in range(40):
        (shop / f".cursor/rules/{number:02}.md").write_text(text)
    with collect() as events:
        assert 0 < len(await sections(shop)) < 3_000
    assert "AGENTS.md" in [each.attributes.get("source") for each in events]
    assert ".cursor/rules/39.md" in [each.attributes.get("source") for each in events]


async def test_a_folder_in_a_project_has_sections_of_its_own(shop: Path) -> None:
    """They are read with those above, and what is not read is retired once it is gone."""
    (shop / "web/src").mkdir(parents=True)
    (shop / "CLAUDE.md").write_text("Of the root.")
    (shop / "web/CLAUDE.md").write_text("Of the pages.")
    (shop.parent / "CLAUDE.md").write_text("PRIVATE")
    both = {"CLAUDE.md#0": "Of the root.", "web/CLAUDE.md#0": "Of the pages."}
    assert await sections(shop, within="web/src") == both
    assert await sections(shop) == both
    (shop / "CLAUDE.md").unlink()
    (shop / "web/CLAUDE.md").write_text("Changed.")
    assert await sections(shop) == {"web/CLAUDE.md#0": "Of the pages."}
    assert await sections(shop, within="web") == {"web/CLAUDE.md#0": "Changed."}
    (shop / "web/CLAUDE.md").unlink()
    assert not await sections(shop)
