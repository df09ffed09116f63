from __future__ import annotations

import asyncio
import shutil
import sys
from functools import partial

import pytest

from locus_memory.cli.demo import agent_play, play, tending_play
from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.processes import Child
from locus_memory.cli.demo.sample import BRANCH, BRANCH_TURNS, FORK_AFTER, SAMPLE, load_sample
from locus_memory.cli.demo.stage import Stage
from locus_memory.cli.options.session import Session
from locus_memory.inspection.errors import CommandError
from locus_memory.memory.layers.identity import Override
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.verbs.identity import OwnIdentity
from locus_memory.registry import open_backend


def test_the_sample_is_a_conversation():
    sample = load_sample()
    assert len(sample.messages) == 61
    assert len({message["id"] for message in sample.messages}) == 61
    assert {message["metadata"]["session"] for message in sample.messages} == set(range(1, 7))


@pytest.mark.slow
def test_every_check_holds(played):
    _, printed = played
    assert printed.count("\nok      ") == 29
    assert "FAILED" not in printed
    assert "was killed by SIGKILL and ended with exit code -9" in printed
    assert "was killed by SIGKILL during send_message: exit code -9" in printed
    assert "\x1b" not in printed


def test_what_it_leaves_can_be_looked_at(played, ok):
    folder, _ = played
    url = f"sqlite:{folder / 'locus.db'}"
    threads = ok("--url", url, "threads", "--json").json["threads"]
    assert {t["thread_id"]: t["checkpoints"] for t in threads} == {
        SAMPLE: 61,
        BRANCH: FORK_AFTER + len(BRANCH_TURNS),
        # One for each message, and one for each run that came to its end.
        story.DINNER: 9 + 3,
        story.TRIP: 4 + 2,
        story.VISIT: 2 + 1,
    }
    shown = ok("--url", url, "show", SAMPLE, "--json").json
    assert shown["state"]["messages"] == load_sample().messages


def test_the_commands_it_names_work(copied, run):
    *commands, last = copied.partition("; try:\n")[2].splitlines()
    assert len(commands) == 5
    # It serves pages until it is stopped.
    assert run(*last.split()[1:], "--help").out.startswith("Usage: locus-memory ui")
    for command in commands:
        assert run(*command.split()[1:], stdin=b"Where do I live?\n").code == 0


def test_what_the_agent_remembers(copied, ok, on_a_pipe):
    assert ok("memories", "--user", story.USER).out in copied
    versions = ok("history", "home", "--user", story.USER, "--json").json["versions"]
    assert [each["content"] for each in versions] == [story.NEW_HOME, story.OLD_HOME]


def test_the_faded_fact_is_still_known(copied, ok):
    tess = ("--user", tending_play.KEEPER, "--json")
    assert len(ok("memories", *tess).json["memories"]) > 60
    known = ok("memories", *tess, "--type", "user").json["memories"]
    assert {each["content"] for each in known} == {tending_play.TEA, tending_play.ALLERGY}
    fixed = ok("identity", *tess).json["overrides"]
    assert [each["text"] for each in fixed] == [tending_play.RULE]


@pytest.mark.slow
def test_json(ok, empty_directory):
    document = ok("demo", "new/folder", "--json").json
    assert document["ok"] is True
    assert len(document["checks"]) == 29
    assert document["killed"]["left"]["checkpoints"] in (30, 31)
    assert document["resumed"]["saved"] + document["killed"]["left"]["checkpoints"] == 61
    assert document["diff"]["messages"]["common"] == FORK_AFTER
    assert (empty_directory / "new" / "folder" / "locus.db").exists()
    killed, resumed = document["agent_killed"], document["agent_resumed"]
    assert [len(each["messages"]) for each in (killed, resumed)] == [5, 9]
    assert resumed["tool_runs"][story.FINISHED] == [killed["pid"]]
    assert len(document["agent_recalled"]["trip"]) == 4
    assert document["memories"]["total"] == 3
    tending = document["tending"]
    assert len(tending["year"]["kept"]) == 2
    small, question = tending["talk"]["shown"]
    assert small["lines"] == question["lines"]
    assert len(small["lines"]) == 63
    assert tending["override"]["newer_facts"] == 60


@pytest.mark.slow
def test_it_keeps_away_from_a_database_that_is_there(ok, fails):
    ok("put", "mine", "k", "1")
    assert "run the demo in an empty directory" in fails(1, "demo")
    assert "holds other data than a demo's" in fails(1, "demo", "--fresh")
    assert ok("get", "mine", "k").out == "1\n"


def test_fresh_replaces_an_earlier_demo(copied, ok, monkeypatch):
    found = []
    monkeypatch.setattr(play, "play", lambda session: found.append(session.path.exists()) or True)
    ok("demo", "--fresh")
    assert found == [False]


@pytest.mark.slow
def test_fresh_leaves_what_was_added(copied, ok, fails):
    ok("remember", "I like tea.")
    assert "holds other data than a demo's" in fails(1, "demo", "--fresh")
    assert ok("memories", "--json").json["total"] == 1


@pytest.mark.slow
def test_a_loss_is_noticed(run, monkeypatch):
    resume = play.import_the_rest

    def resume_and_lose(url):
        done = resume(url)

        async def lose():
            async with open_backend(url, state_type=None) as backend:
                ids = await backend.checkpointer.list_checkpoints(SAMPLE, 30)
                await backend.checkpointer.delete(SAMPLE, ids[20])
                await backend.store.put(("turns", SAMPLE), "000007", {"text": "altered"})

        asyncio.run(lose())
        return done

    monkeypatch.setattr(play, "import_the_rest", resume_and_lose)
    monkeypatch.setattr(play, "play_agent", lambda _: None)
    result = run("demo")
    assert result.code == 1
    assert result.out.count("\nFAILED  ") >= 3
    assert "NOT all checks passed" in result.out


def test_an_import_that_ends_by_itself_is_an_error(fails, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert fails(1, "demo") == "error: the importing process ended by itself\n"


def test_a_folder_that_cannot_be_made(fails, write):
    write("file", "x")
    assert "Not a directory" in fails(1, "demo", "file/folder")


@pytest.fixture
def stage(empty_directory):
    """A stage on an empty database, for the agent's part alone."""
    stage = Stage(Session("sqlite:./locus.db", as_json=True))

    async def touch(backend):
        await backend.open()

    stage.session.run(touch, create=True)
    return stage


def failed(stage):
    """Return the numbers of the checks that do not hold."""
    return [place for place, check in enumerate(stage.checks, 1) if not check["ok"]]


@pytest.mark.slow
def test_an_agent_that_repeats_and_forgets_is_noticed(stage, monkeypatch):
    run_to_end = agent_play.run_to_end

    def run_badly(url, part):
        pid = run_to_end(url, part)

        async def spoil(backend):
            if part == "resume":
                note = {"tool": story.FINISHED, "pid": pid}
                await backend.store.put(story.TOOL_RUNS, "again", note)
                await LLMMemoryManager(backend.store).for_user(story.USER).forget("home")
            else:
                await backend.checkpointer.save({"messages": []}, story.VISIT)

        stage.session.run(spoil)
        return pid

    monkeypatch.setattr(agent_play, "run_to_end", run_badly)
    agent_play.play_agent(stage)
    assert len(stage.checks) == 13
    # Run once, home remembered, recalled, not told to others, where from, what it replaced.
    assert failed(stage) == [5, 8, 9, 11, 12, 13]


@pytest.mark.slow
def test_an_agent_that_nobody_kills_is_noticed(stage, monkeypatch):
    def learn_and_finish(url):
        return {"pid": agent_play.run_to_end(url, "learn"), "exit_code": 0}

    monkeypatch.setattr(agent_play, "learn_and_kill", learn_and_finish)
    agent_play.play_agent(stage)
    assert {1, 2, 3} <= set(failed(stage))


@pytest.mark.slow
def test_an_agent_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(CommandError, match="the agent's process failed with exit code 1"):
        agent_play.run_to_end("sqlite:./locus.db", "recall")
    with pytest.raises(CommandError, match="the agent's process ended by itself"):
        agent_play.learn_and_kill("sqlite:./locus.db")
    with pytest.raises(CommandError, match="the command memories failed with exit code 1"):
        agent_play.list_memories("sqlite:./locus.db")


@pytest.mark.slow
def test_an_agent_whose_database_is_gone_says_so(empty_directory, capfd):
    (empty_directory / "file").touch()
    with pytest.raises(CommandError, match="failed with exit code 1"):
        agent_play.run_to_end("sqlite:./file/locus.db", "recall")
    assert capfd.readouterr().err.startswith("error: ")


@pytest.mark.slow
def test_no_process_is_left_behind(stage):
    with Child("it", "locus_memory.cli.demo.agent", stage.session.url, "learn") as child:
        assert child.line()
        assert child.poll() is None
    assert child.returncode == -9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("RULE", "Answer briefly.", []),
        ("LLMMemoryManager", partial(LLMMemoryManager, memory_budget_tokens=300), [3, 4]),
        ("GREETING", "Am I allergic to hazelnuts?", []),
    ],
)
def test_a_memory_that_shows_too_little_is_noticed(stage, monkeypatch, name, other, expected):
    monkeypatch.setattr(tending_play, name, other)
    tending_play.play_tending(stage)
    assert len(stage.checks) == 5
    assert failed(stage) == expected


@pytest.mark.slow
def test_a_rule_that_is_lost_is_noticed(stage, monkeypatch):
    async def lose(identity, text):
        return Override(id="0" * 8, text=text, created_at=identity._ledger.now())

    monkeypatch.setattr(OwnIdentity, "add", lose)
    tending_play.play_tending(stage)
    assert failed(stage) == [5]
