from __future__ import annotations

import asyncio
import json
from xml.etree import ElementTree as ET

import pytest

from locus_memory.registry import open_backend


def save(thread_id, *states, url="sqlite:./locus.db", clock=None):
    """Save states as the checkpoints 1, 2, ... of a thread."""

    async def work():
        options = {} if clock is None else {"clock": clock}
        async with open_backend(url, state_type=None, **options) as backend:
            for number, state in enumerate(states, 1):
                await backend.checkpointer.save(state, thread_id, f"c{number}", {"n": number})

    asyncio.run(work())


def said(*texts):
    return {"messages": [{"role": "user", "content": text} for text in texts]}


def test_threads(ok, sessions, chat):
    listed = ok("threads", "--json").json["threads"]
    assert [(t["thread_id"], t["checkpoints"]) for t in listed] == [
        ("chat", 5),
        ("garden", 3),
        ("kitchen", 1),
    ]
    assert listed[1]["newest"]["metadata"] == {"turn": 3, "turn_id": "D2:1"}
    assert [line.split()[:2] for line in ok("threads").out.splitlines()[1:]] == [
        ["chat", "5"],
        ["garden", "3"],
        ["kitchen", "1"],
    ]


def test_threads_of_a_user(ok):
    for thread, user in [("mon", "ada"), ("tue", "bob"), ("wed", "ada")]:
        ok("chat", thread, "--user", user, "--scripted", stdin=b"Hello.\n")
    ok("chat", "none", "--scripted", stdin=b"Hello.\n")

    def names(*arguments):
        return [t["thread_id"] for t in ok("threads", *arguments, "--json").json["threads"]]

    assert names("--user", "ada") == ["mon", "wed"]
    assert names("--user", "ada", "--limit", "1") == ["mon"]
    assert ok("threads", "--user", "ada", "--limit", "1", "--json").json["more"] == 1
    assert names("--user", "ada", "--after", "mon") == ["wed"]
    assert names("--user", "eve") == []
    assert names() == ["mon", "none", "tue", "wed"]


def test_threads_page(ok, sessions, chat):
    def names(*arguments):
        return [t["thread_id"] for t in ok("threads", *arguments, "--json").json["threads"]]

    assert names("--limit", "2") == ["chat", "garden"]
    assert names("--after", "garden") == ["kitchen"]
    assert names("--prefix", "ki") == ["kitchen"]
    assert names("--prefix", "x") == []
    assert ok("threads", "--prefix", "x").out == "no threads\n"


def test_checkpoints(ok, fails, chat):
    listed = ok("checkpoints", "chat", "--json").json
    assert listed["thread_id"] == "chat"
    assert [c["place"] for c in listed["checkpoints"]] == [5, 4, 3, 2, 1]
    assert [c["is_full"] for c in listed["checkpoints"]] == [False] * 4 + [True]
    assert '{"turn":5}' in ok("checkpoints", "chat").out
    assert fails(1, "checkpoints", "nobody") == "error: no thread 'nobody'\n"


def test_checkpoints_page(ok, fails, chat):
    def places(*arguments):
        listed = ok("checkpoints", "chat", *arguments, "--json").json["checkpoints"]
        return [c["place"] for c in listed]

    ids = [c["checkpoint_id"] for c in ok("checkpoints", "chat", "--json").json["checkpoints"]]
    assert places("--limit", "2") == [5, 4]
    assert places("--limit", "2", "--before", ids[1]) == [3, 2]
    assert places("--before", "2") == [1]
    assert places("--before", "1") == []
    assert ok("checkpoints", "chat", "--before", "1").out == "no checkpoints found\n"
    assert "no checkpoint 'zz'" in fails(1, "checkpoints", "chat", "--before", "zz")


def test_show(ok, sessions):
    checkpoint = ok("show", "garden", "--json").json["checkpoint_id"]
    assert ok("show", "garden").out == (
        f"garden@{checkpoint}  (3 messages)\n"
        "session 1, 9 am on 1 May\n"
        "   1  Bo: I planted seven tulips.\n"
        "   2  Ada: Which colours did you take?\n"
        "\n"
        "session 2, 6 pm on 3 May\n"
        "   3  Bo: Crimson ones, look! [image: a row of flowers beside a wheelbarrow]\n"
    )


def test_show_an_earlier_checkpoint(ok, fails, chat):
    full = ok("show", "chat", "--json").json
    assert full["state"]["messages"] == chat["messages"]
    for way in ("chat@2", "chat@-4"):
        shown = ok("show", way, "--json").json
        assert shown["state"]["messages"] == chat["messages"][:2]
    by_id = ok("show", f"chat@{shown['checkpoint_id']}", "--json").json
    assert by_id == shown
    assert ok("show", "chat", "--last", "1").out.splitlines()[1:] == [
        "   5  assistant: Behind the shed."
    ]
    assert fails(1, "show", "chat@9") == "error: no checkpoint '9' in 'chat'\n"
    assert fails(1, "show", "nobody") == "error: no thread 'nobody'\n"


def test_show_a_state_without_messages(ok):
    save("counter", {"count": 3})
    assert json.loads(ok("show", "counter").out.partition("\n")[2]) == {"count": 3}


def test_show_odd_messages(ok):
    calls = [{"id": "c1", "name": "look", "arguments": {"where": "shed"}}, "odd"]
    messages = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": ["a", 1], "name": "look"},
        "just text",
        {"metadata": 3},
        {"role": "user", "content": "\x1b[2J [red]plain[/red]"},
    ]
    save("odd", {"messages": messages})
    assert ok("show", "odd").out.splitlines()[1:] == [
        '   1  assistant: [calls look({"where":"shed"})] [calls odd]',
        '   2  look: ["a",1]',
        "   3  just text",
        "   4  ?: ",
        "   5  user: \\x1b[2J [red]plain[/red]",
    ]


def test_diff_of_one_thread(ok, chat):
    difference = ok("diff", "chat@3", "chat", "--json").json
    assert difference["a"]["messages"] == 3
    assert difference["b"]["thread_id"] == "chat"
    assert difference["messages"] == {
        "common": 3,
        "edits": [
            {
                "removed": [],
                "added": [
                    {"place": 4, "message": chat["messages"][3]},
                    {"place": 5, "message": chat["messages"][4]},
                ],
            }
        ],
    }
    assert difference["changes"] == []
    lines = ok("diff", "chat@3", "chat").out.splitlines()
    assert lines[2:] == [
        "  3 messages in common",
        "+   4  user: And the ladder?",
        "+   5  assistant: Behind the shed.",
    ]


def test_diff_of_two_threads(ok):
    save("a", {**said("one", "two", "three"), "mood": "calm", "tags": ["x", "y"], "gone": 1})
    save("b", {**said("one", "2", "three", "four"), "mood": "wild", "tags": ["x"], "new": [2]})
    lines = ok("diff", "a", "b").out.splitlines()
    assert lines == [
        "--- a@c1  (3 messages)",
        "+++ b@c1  (4 messages)",
        "  2 messages in common",
        "-   2  user: two",
        "+   2  user: 2",
        "+   4  user: four",
        '~ mood: "calm" -> "wild"',
        '- tags[1]: "y"',
        "- gone: 1",
        "+ new: [2]",
    ]
    changes = ok("diff", "a", "b", "--json").json["changes"]
    assert changes[0] == {"path": "mood", "kind": "changed", "before": "calm", "after": "wild"}


def test_diff_of_the_same(ok, chat):
    assert ok("diff", "chat", "chat@-1").out.splitlines()[2:] == ["no difference"]


def test_diff_is_coloured_on_a_terminal(ok, chat, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[32m" in ok("diff", "chat@3", "chat").out
    assert "\x1b[31m" in ok("diff", "chat", "chat@3").out


def test_diff_of_what_is_not_there(fails, chat):
    assert fails(1, "diff", "chat", "chat@9") == "error: no checkpoint '9' in 'chat'\n"
    assert fails(1, "diff", "nobody", "chat") == "error: no thread 'nobody'\n"


def test_fork(ok, fails, chat):
    forked = ok("fork", "chat@2", "other", "--json").json
    assert (forked["thread_id"], forked["source"], forked["checkpoints"]) == ("other", "chat", 2)
    shown = ok("show", "other", "--json").json
    assert shown["checkpoint_id"] == forked["checkpoint_id"]
    assert shown["state"]["messages"] == chat["messages"][:2]
    assert "third forked from" in ok("fork", "chat", "third").out
    origin = {"thread_id": "chat", "checkpoint_id": forked["checkpoint_id"]}
    named = {
        row["thread_id"]: row["forked_from"] for row in ok("threads", "--json").json["threads"]
    }
    assert (named["chat"], named["other"]) == (None, origin)
    rows = ok("checkpoints", "other", "--json").json["checkpoints"]
    assert [row["forked_from"] for row in rows] == [origin, None]
    for count, command in ((2, ("threads",)), (1, ("checkpoints", "other"))):
        lines = ok(*command).out.splitlines()
        assert lines[0].rstrip().endswith("forked from")
        assert sum(line.rstrip().endswith("  chat") for line in lines) == count
    assert "forked" not in ok("checkpoints", "chat").out
    assert "thread 'other' exists" in fails(1, "fork", "chat", "other")
    assert fails(1, "fork", "nobody", "x") == "error: no thread 'nobody'\n"
    assert len(ok("checkpoints", "chat", "--json").json["checkpoints"]) == 5


def test_prune(ok, fails, chat):
    trial = ok("prune", "chat", "--keep-last", "2", "--dry-run", "--json").json
    assert (trial["deleted"], trial["total"], trial["dry_run"]) == (3, 5, True)
    assert ok("prune", "chat", "--keep-last", "2", "--dry-run").out.startswith(
        "would delete 3 of 5"
    )
    done = ok("prune", "chat", "--keep-last", "2", "--json").json
    assert {**done, "dry_run": True} == trial
    left = ok("checkpoints", "chat", "--json").json["checkpoints"]
    assert len(left) == 2
    assert not {c["checkpoint_id"] for c in left} & set(trial["checkpoint_ids"])
    assert ok("show", "chat", "--json").json["state"]["messages"] == chat["messages"]
    assert "--keep-last, --older-than or both" in fails(2, "prune", "chat")
    fails(2, "prune", "chat", "--keep-last", "0")
    fails(2, "prune", "chat", "--older-than", "soon")
    fails(2, "prune", "chat", "--older-than", "9999999w")
    assert fails(1, "prune", "nobody", "--keep-last", "1") == "error: no thread 'nobody'\n"


@pytest.mark.parametrize(
    ("options", "deleted"),
    [
        (("--older-than", "30d"), 3),
        (("--older-than", "9999w"), 0),
        (("--older-than", "30d", "--keep-last", "3"), 1),
    ],
)
def test_prune_by_age(ok, options, deleted):
    save("old", *(said(*"x" * n) for n in range(1, 5)), clock=lambda: 1_000_000_000.0)
    for extra in (("--dry-run",), ()):
        assert ok("prune", "old", *options, *extra, "--json").json["deleted"] == deleted


def test_stats(ok, fails, sessions, chat):
    document = ok("stats", "--deep", "--json").json
    rows = {row["thread_id"]: row for row in document["threads"]}
    assert set(rows) == {"chat", "garden", "kitchen"}
    row = rows["chat"]
    assert (row["total_checkpoints"], row["full_checkpoints"], row["delta_checkpoints"]) == (
        5,
        1,
        4,
    )
    states = [
        {"run_id": "chat", "messages": chat["messages"][:n], "metadata": {}} for n in range(1, 6)
    ]
    assert row["json_bytes"] == sum(len(json.dumps(s, separators=(",", ":"))) for s in states)
    assert row["ratio"] == row["stored_bytes"] / row["json_bytes"]
    assert document["disk_bytes"] > 0
    one = ok("stats", "garden", "--json").json["threads"]
    assert [r["thread_id"] for r in one] == ["garden"]
    assert ok("stats", "--deep").out.splitlines()[-1].startswith("on disk: ")
    assert fails(1, "stats", "nobody") == "error: no thread 'nobody'\n"


def test_stats_draws_the_growth_of_a_thread(ok, fails, chat, empty_directory):
    document = ok("stats", "chat", "--plot", "growth.svg", "--json").json
    assert document == ok("stats", "chat", "--deep", "--json").json | {"plot": "growth.svg"}
    root = ET.fromstring((empty_directory / "growth.svg").read_text())
    stored, full = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(stored.get("points").split()) == len(full.get("points").split()) == 5
    assert ok("stats", "chat", "--plot", "growth.svg").out.splitlines()[-1] == "plot: growth.svg"
    assert "name a THREAD" in fails(2, "stats", "--plot", "growth.svg")
    assert fails(1, "stats", "nobody", "--plot", "x.svg") == "error: no thread 'nobody'\n"
    assert not (empty_directory / "x.svg").exists()


@pytest.mark.parametrize("name", ["growth.png", "nowhere/growth.svg", "folder.svg"])
def test_a_plot_that_cannot_be_written_is_refused_first(fails, chat, empty_directory, name):
    (empty_directory / "folder.svg").mkdir()
    assert "plot" in fails(2, "stats", "chat", "--plot", name)
    assert "plot" in fails(2, "eval", "--plot", name)


def test_stats_of_a_folder_and_of_memory(ok, empty_directory):
    save("t", said("one"), url="file:./dir")
    size = sum(p.stat().st_size for p in (empty_directory / "dir").rglob("*") if p.is_file())
    assert ok("--url", "file:./dir", "stats", "--json").json["disk_bytes"] == size
    assert ok("--url", "memory", "stats", "--json").json == {"threads": [], "disk_bytes": None}
    assert ok("--url", "memory", "stats").out == "no threads\n"
