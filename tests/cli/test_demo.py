from __future__ import annotations

import shutil
import sys

import pytest
import typer

from locus_memory.cli.demo import agent_play, play, tending_play
from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.sample import BRANCH, BRANCH_TURNS, FORK_AFTER, SAMPLE, load_sample
from locus_memory.cli.demo.stage import Stage, line_of, started
from locus_memory.cli.options.session import Session
from locus_memory.inspection.errors import CommandError
from locus_memory.memory.layers.identity import Override
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.verbs.identity import OwnIdentity

TENDING = "locus_memory.cli.demo.tending_play"
MANAGER = "locus_memory.inspection.memories.open_manager"


def short_manager(store, namespace):
    return LLMMemoryManager(store, namespace_prefix=namespace, memory_budget_tokens=300)


def test_the_sample_is_a_conversation():
    sample = load_sample()
    assert len(sample.messages) == 61
    assert len({message["id"] for message in sample.messages}) == 61
    assert {message["metadata"]["session"] for message in sample.messages} == set(range(1, 7))


@pytest.mark.slow
def test_every_check_holds(played):
    _, printed = played
    assert printed.count("\nok      ") == 26
    assert "FAILED" not in printed
    assert "saved 30 turns and was killed: exit code -9" in printed
    assert "was killed during send_message: exit code -9" in printed
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
    assert len(document["checks"]) == 26
    assert (empty_directory / document["database"]).exists()


def test_it_keeps_away_from_a_database_that_is_there(ok, fails):
    ok("put", "mine", "k", "1")
    assert "run the demo in an empty directory" in fails(1, "demo")
    assert ok("get", "mine", "k").out == "1\n"


@pytest.mark.slow
def test_a_loss_is_noticed(run, monkeypatch):
    resume = play.import_the_rest

    def resume_and_lose(stage):
        done = resume(stage)

        async def lose(backend):
            ids = await backend.checkpointer.list_checkpoints(SAMPLE, 30)
            await backend.checkpointer.delete(SAMPLE, ids[20])
            await backend.store.put(("turns", SAMPLE), "000015", {"text": "altered"})

        stage.session.run(lose)
        return done

    monkeypatch.setattr(play, "import_the_rest", resume_and_lose)
    monkeypatch.setattr(play, "play_agent", lambda _: None)
    result = run("demo")
    assert result.code == 1
    assert result.out.count("\nFAILED  ") >= 3
    assert "NOT all checks passed" in result.out


def test_an_import_that_ends_by_itself_is_an_error(fails, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert fails(1, "demo") == "error: a process of the demo ended with exit code 0\n"


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
                await backend.store.put((story.TOOL_RUNS,), "again", note)
                await LLMMemoryManager(backend.store).for_user(story.USER).forget("home")
            else:
                await backend.checkpointer.save({"messages": []}, story.VISIT)

        stage.session.run(spoil)
        return pid

    monkeypatch.setattr(agent_play, "run_to_end", run_badly)
    agent_play.play_agent(stage)
    assert len(stage.checks) == 10
    # Run once, home remembered, recalled, not told to others, where from, what it replaced.
    assert failed(stage) == [5, 6, 7, 8, 9, 10]


@pytest.mark.slow
def test_an_agent_that_nobody_kills_is_noticed(stage, monkeypatch):
    def learn_and_finish(url):
        return agent_play.run_to_end(url, "learn"), 0

    monkeypatch.setattr(agent_play, "learn_and_kill", learn_and_finish)
    agent_play.play_agent(stage)
    assert {1, 2, 3} <= set(failed(stage))


@pytest.mark.slow
def test_an_agent_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(CommandError, match="a process of the demo ended with exit code 1"):
        agent_play.run_to_end("sqlite:./locus.db", "recall")
    with pytest.raises(CommandError, match="a process of the demo ended with exit code 1"):
        agent_play.learn_and_kill("sqlite:./locus.db")


def test_a_command_that_fails_ends_the_demo(stage, capsys):
    with pytest.raises(typer.Exit) as raised:
        stage.show("show", "nothing")
    assert raised.value.exit_code == 1
    assert "nothing" in capsys.readouterr().err


@pytest.mark.slow
def test_an_agent_whose_database_is_gone_says_so(empty_directory, capfd):
    (empty_directory / "file").touch()
    with pytest.raises(CommandError, match="ended with exit code 1"):
        agent_play.run_to_end("sqlite:./file/locus.db", "recall")
    assert capfd.readouterr().err.startswith("error: ")


@pytest.mark.slow
def test_no_process_is_left_behind(stage):
    with started(stage.session.url, "learn") as child:
        assert line_of(child)
        assert child.poll() is None
    assert child.returncode not in (None, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        (f"{TENDING}.RULE", "Answer briefly.", []),
        (MANAGER, short_manager, [3]),
        (f"{TENDING}.GREETING", "Am I allergic to hazelnuts?", []),
    ],
)
def test_a_memory_that_shows_too_little_is_noticed(stage, monkeypatch, name, other, expected):
    monkeypatch.setattr(name, other)
    tending_play.play_tending(stage)
    assert len(stage.checks) == 4
    assert failed(stage) == expected


@pytest.mark.slow
def test_a_rule_that_is_lost_is_noticed(stage, monkeypatch):
    async def lose(identity, text):
        return Override(id="0" * 8, text=text, created_at=identity._ledger.now())

    monkeypatch.setattr(OwnIdentity, "add", lose)
    tending_play.play_tending(stage)
    assert failed(stage) == [4]
