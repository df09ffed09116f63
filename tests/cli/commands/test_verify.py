"""What `verify` and `doctor` say of a database that is damaged."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing

import pytest

from locus_memory.cli.app import run as run_command
from locus_memory.cli.commands import verify
from locus_memory.registry import open_backend

HERE = ("users", "ada")


async def fill(url):
    async with open_backend(url, state_type=None) as backend:
        for number in range(150):
            await backend.store.put(
                HERE, f"k{number:03}", {"text": f"fact {number}"}, {"n": number}
            )
        await backend.store.put_with_embedding(("notes",), "v", {"n": 1}, [3.0, 4.0])
        for thread in ("ann", "bob", "cat"):
            for number in range(4):
                state = {"of": thread, "n": number, "words": "so it was " * 40}
                await backend.checkpointer.save(state, thread, f"c{number}")


@pytest.fixture
def database(empty_directory):
    asyncio.run(fill("sqlite:./locus.db"))

    def change(statement):
        with closing(sqlite3.connect(empty_directory / "locus.db")) as connection, connection:
            assert connection.execute(statement).rowcount >= 1

    return change


@pytest.fixture
def found(run):
    """What `verify` names, once `doctor` has failed."""

    def look():
        doctor = run("doctor", "--json")
        assert doctor.code == 1
        assert [c["check"] for c in doctor.json["checks"] if not c["ok"]] == ["data"]
        assert "locus-memory verify" in run("doctor").out
        shown = run("verify")
        assert shown.code == 1
        result = run("verify", "--json")
        assert result.code == 1
        assert result.json["next"] is None
        assert not result.json["ok"]
        for damage in result.json["damaged"]:
            assert damage["reason"] in re.sub(r"\s+", " ", shown.out) or len(damage["reason"]) > 80
        assert "so it was" not in result.out + shown.out
        return result.json

    return look


def places(document):
    return [
        tuple(value for name, value in damage.items() if name not in ("kind", "reason"))
        for damage in document["damaged"]
    ]


def test_what_is_intact(ok, run, database):
    result = run("verify", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == {
        "ok": True,
        "items": 151,
        "checkpoints": 12,
        "damaged": [],
        "next": None,
    }
    data = [c for c in ok("doctor", "--json").json["checks"] if c["check"] == "data"]
    assert data[0]["detail"] == "151 items and 12 checkpoints are intact"
    assert "151 items and 12 checkpoints are intact" in run("verify").out


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE items SET value = '{"text":"other"}' WHERE key = 'k120'""",
        """UPDATE items SET metadata = '{"n":7}' WHERE key = 'k120'""",
    ],
)
def test_an_altered_item(database, found, damage):
    database(damage)
    document = found()
    assert places(document) == [(list(HERE), "k120")]
    assert (document["items"], document["checkpoints"]) == (150, 12)
    assert document["damaged"][0]["reason"] == (
        "sqlite: the item 'k120' of ('users', 'ada') is damaged"
    )


@pytest.mark.slow
def test_an_altered_vector(database, found):
    database("UPDATE vectors SET vector = x'0000803f00000000'")
    document = found()
    assert places(document) == [(["notes"], "v")]
    assert "the vector of the item 'v'" in document["damaged"][0]["reason"]


@pytest.mark.slow
def test_a_lost_vector(database, found):
    database("DELETE FROM vectors")
    document = found()
    reasons = [damage["reason"] for damage in document["damaged"]]
    assert reasons[:2] == [
        "sqlite: items without their vector: 1",
        "sqlite: codes without their vector: 1",
    ]
    assert places(document)[2:] == [(["notes"], "v")]


@pytest.mark.slow
def test_a_moved_thread(database, found):
    database("UPDATE threads SET thread_id = 'bobby' WHERE thread_id = 'bob'")
    document = found()
    assert {place[0] for place in places(document)} == {"bobby"}
    assert len(document["damaged"]) == 4
    assert (document["items"], document["checkpoints"]) == (151, 8)


@pytest.mark.slow
def test_a_moved_checkpoint(database, found):
    database(
        "UPDATE checkpoints SET thread = (SELECT id FROM threads WHERE thread_id = 'ann'),"
        " checkpoint_id = 'moved' WHERE checkpoint_id = 'c3'"
        " AND thread = (SELECT id FROM threads WHERE thread_id = 'bob')"
    )
    document = found()
    assert [place[0] for place in places(document)] == ["ann"]
    assert document["checkpoints"] == 11


@pytest.mark.slow
def test_a_truncated_payload(database, found):
    database(
        "UPDATE checkpoints SET payload = substr(payload, 1, length(payload) - 3)"
        " WHERE thread = (SELECT id FROM threads WHERE thread_id = 'cat') AND base IS NULL"
    )
    document = found()
    assert {place[0] for place in places(document)} == {"cat"}
    assert places(document)[-1] == ("cat", "c0")
    assert document["checkpoints"] >= 8


def test_a_damaged_page_of_an_index(run, empty_directory, database):
    path = empty_directory / "locus.db"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'items_by_key'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    result = run("verify", "--json")
    assert result.code == 1
    assert any(damage["kind"] == "database" for damage in result.json["damaged"])
    # Whatever does not need the page is looked at.
    assert result.json["checkpoints"] == 12
    assert run("doctor").code == 1


def test_words_of_an_index_that_are_not_those_of_the_item(run, database):
    database("UPDATE items SET text = 'something else' WHERE key = 'k007'")
    result = run("verify", "--json")
    assert (result.code, result.json["items"]) == (1, 151)
    assert [damage["kind"] for damage in result.json["damaged"]] == ["database"]


def test_a_name_that_cannot_be_read_does_not_end_the_walk(run, database):
    database("UPDATE items SET key = CAST(x'6b313030ff' AS TEXT) WHERE key = 'k100'")
    database("UPDATE threads SET thread_id = CAST(x'62ff' AS TEXT) WHERE thread_id = 'bob'")
    result = run("verify", "--json")
    assert result.code == 1
    # Those that begin as the damaged key does are passed over, at most.
    assert 101 <= result.json["items"] <= 150
    assert result.json["checkpoints"] == 8
    assert sum(damage["kind"] == "item" for damage in result.json["damaged"]) == 1
    assert sum(damage["kind"] == "checkpoint" for damage in result.json["damaged"]) == 1


def test_it_goes_on_where_it_ended(run, database):
    database("""UPDATE items SET value = '7' WHERE key = 'k120'""")
    seen, after, rounds = {"items": 0, "checkpoints": 0, "damaged": 0}, [], 0
    while True:
        result = run("verify", "--limit", 40, "--json", *after)
        for name in ("items", "checkpoints"):
            seen[name] += result.json[name]
        seen["damaged"] += len(result.json["damaged"])
        rounds += 1
        if result.json["next"] is None:
            break
        assert "verify --after" in result.err
        after = ["--after", result.json["next"]]
    assert seen == {"items": 150, "checkpoints": 12, "damaged": 1}
    assert rounds == 5


def test_it_goes_on_within_a_thread(run, database):
    first = run("verify", "--limit", 157, "--json").json
    assert (first["items"], first["checkpoints"]) == (151, 6)
    database("UPDATE checkpoints SET level = 7 WHERE sequence = 6")
    names, after = [], first["next"]
    while after is not None:
        step = run("verify", "--limit", 1, "--after", after, "--json").json
        names += places(step)
        after = step["next"]
    assert names == [("bob", "c1")]


@pytest.mark.parametrize(
    "cursor", ["x", "[]", '["thread"]', '["other","x"]', "7", '["item",7]', '["thread","a","b"]']
)
def test_a_cursor_that_is_none(fails, database, cursor):
    assert "is the cursor of a finding" in fails(2, "verify", "--after", cursor)


def test_an_interrupt_says_how_to_go_on(capsys, database, monkeypatch):
    add = verify.Walk.add

    def interrupt(self, finding):
        add(self, finding)
        if self.count == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(verify.Walk, "add", interrupt)
    assert run_command(["verify"]) == 130
    assert """verify --after '["item","users","ada",""" in capsys.readouterr().err


def test_no_database(fails):
    assert "no database" in fails(1, "verify")


def test_checkpoints_only(run, ok, empty_directory):
    async def save():
        async with open_backend("file:./dir", state_type=None) as backend:
            for number in range(3):
                await backend.checkpointer.save({"n": number}, "t", f"c{number}")

    asyncio.run(save())
    assert ok("--url", "file:./dir", "verify", "--json").json["checkpoints"] == 3
    path = sorted((empty_directory / "dir" / "t-t").glob("*.ckpt"))[1]
    path.write_bytes(path.read_bytes().replace(b'"level":0', b'"level":7'))
    result = run("--url", "file:./dir", "verify", "--json")
    assert (result.code, result.json["checkpoints"]) == (1, 2)
    assert places(result.json) == [("t", "c1")]
