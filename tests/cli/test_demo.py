from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from locus_memory.cli import demo_play, demo_steps
from locus_memory.cli.sample import BRANCH, BRANCH_TURNS, FORK_AFTER, SAMPLE, load_sample
from locus_memory.registry import open_backend


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The folder where the demo was played, once, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "locus_memory.cli", "demo"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_the_sample_is_a_conversation():
    sample = load_sample()
    assert len(sample.messages) == 61
    assert len({message["id"] for message in sample.messages}) == 61
    assert {message["metadata"]["session"] for message in sample.messages} == set(range(1, 7))


def test_every_check_holds(played):
    _, printed = played
    assert printed.count("\nok      ") == 11
    assert "FAILED" not in printed
    assert "was killed by SIGKILL and ended with exit code -9" in printed
    assert "\x1b" not in printed


def test_what_it_leaves_can_be_looked_at(played, ok):
    folder, _ = played
    url = f"sqlite:{folder / 'locus.db'}"
    threads = ok("--url", url, "threads", "--json").json["threads"]
    assert {t["thread_id"]: t["checkpoints"] for t in threads} == {
        SAMPLE: 61,
        BRANCH: FORK_AFTER + len(BRANCH_TURNS),
    }
    shown = ok("--url", url, "show", SAMPLE, "--json").json
    assert shown["state"]["messages"] == load_sample().messages


def test_json(ok, empty_directory):
    document = ok("demo", "new/folder", "--json").json
    assert document["ok"] is True
    assert len(document["checks"]) == 11
    assert document["killed"]["left"]["checkpoints"] in (30, 31)
    assert document["resumed"]["saved"] + document["killed"]["left"]["checkpoints"] == 61
    assert document["diff"]["messages"]["common"] == FORK_AFTER
    assert (empty_directory / "new" / "folder" / "locus.db").exists()


def test_it_keeps_away_from_a_database_that_is_there(ok, fails):
    ok("put", "mine", "k", "1")
    assert "run the demo in an empty directory" in fails(1, "demo")
    assert "holds more than a demo" in fails(1, "demo", "--fresh")
    assert ok("get", "mine", "k").out == "1\n"


def test_fresh_replaces_an_earlier_demo(ok, monkeypatch):
    async def leave():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            await backend.checkpointer.save({"messages": []}, SAMPLE, "of another demo")

    asyncio.run(leave())
    found = []
    monkeypatch.setattr(demo_play, "play", lambda _, path: found.append(path.exists()) or True)
    ok("demo", "--fresh")
    assert found == [False]


def test_a_loss_is_noticed(run, monkeypatch):
    resume = demo_steps.import_the_rest

    def resume_and_lose(url):
        done = resume(url)

        async def lose():
            async with open_backend(url, state_type=None) as backend:
                ids = await backend.checkpointer.list_checkpoints(SAMPLE, 30)
                await backend.checkpointer.delete(SAMPLE, ids[20])
                await backend.store.put(("turns", SAMPLE), "000007", {"text": "altered"})

        asyncio.run(lose())
        return done

    monkeypatch.setattr(demo_steps, "import_the_rest", resume_and_lose)
    result = run("demo")
    assert result.code == 1
    assert result.out.count("\nFAILED  ") >= 3
    assert "NOT every check holds" in result.out


def test_an_import_that_ends_by_itself_is_an_error(fails, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert fails(1, "demo") == "error: the importing process ended by itself\n"


def test_a_folder_that_cannot_be_made(fails, write):
    write("file", "x")
    assert "Not a directory" in fails(1, "demo", "file/folder")
