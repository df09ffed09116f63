from __future__ import annotations

import sqlite3

import pytest
from redis import Redis

from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.testing.servers import RedisServer


def findings(document):
    return {check["check"]: check["detail"] for check in document["checks"]}


def test_a_healthy_database(ok):
    ok("put", "n", "k", "1")
    document = ok("doctor", "--json").json
    assert document["ok"] is True
    assert set(findings(document)) == {
        "python", "url", "store", "checkpoints", "data", "store can",
        "checkpoints can",
    }  # fmt: skip
    assert "SQLite 3." in findings(document)["python"]
    assert "transactions" in findings(document)["store can"]
    assert ok("doctor").out.count("\nok") == len(document["checks"])


def test_it_removes_what_it_writes(ok):
    ok("put", "n", "k", "1")
    ok("doctor")
    assert ok("ls", "--json").json["namespaces"] == [["n"]]
    assert ok("threads", "--json").json["threads"] == []


@pytest.mark.parametrize("url", ["sqlite:./none.db", "sqlite:./new/folder/none.db", "file:./none"])
def test_it_makes_no_database(ok, empty_directory, url):
    document = ok("--url", url, "doctor", "--json").json
    assert document["ok"] is True
    assert "is created on first use" in findings(document)["url"]
    assert list(empty_directory.iterdir()) == []


def test_checkpoints_only(ok):
    document = ok("--url", "file:./dir", "doctor", "--json").json
    assert findings(document)["store"] == "file: has no store, only checkpoints"


def test_memory(ok):
    assert findings(ok("--url", "memory", "doctor", "--json").json)["url"] == "memory"


@pytest.mark.slow
def test_a_bad_url(run):
    result = run("--url", "nosql://user:s3cret@h", "doctor", "--json")
    assert result.code == 1
    assert result.json["ok"] is False
    assert "s3cret" not in result.out
    assert result.err == "error: 1 of 2 checks failed: url\n"
    assert "FAILED  url" in run("--url", "nonsense:x", "doctor").out


def test_what_is_no_database(run, write):
    write("locus.db", "this is not a database, whatever its name says" * 100)
    result = run("doctor", "--json")
    assert result.code == 1
    assert [check["ok"] for check in result.json["checks"]].count(False) >= 1


def test_a_database_without_a_log(ok, empty_directory):
    ok("put", "n", "k", "1")
    connection = sqlite3.connect(empty_directory / "locus.db")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    document = ok("doctor", "--json").json
    assert "block each other" in findings(document)["sqlite.journal"]
    assert "\n!   sqlite.journal" in ok("doctor").out


def test_a_server_that_evicts_is_noted(ok):
    with RedisServer(maxmemory_policy="allkeys-lru") as server:
        document = ok("--url", server.url, "doctor", "--json").json
        assert document["ok"] is True
        assert "redis.evicts" in findings(document)["note"]
        assert "allkeys-lru" in findings(document)["note"]
        assert "\n!   note" in ok("--url", server.url, "doctor").out


def test_a_database_of_an_earlier_version_is_told_and_left_alone(run, ok, empty_directory):
    path = empty_directory / "locus.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    for statement in (*MIGRATIONS[0], f"PRAGMA application_id = {APPLICATION_ID}"):
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    document = ok("doctor", "--json").json
    assert list(findings(document)) == ["python", "url", "sqlite.schema"]
    assert "earlier version" in findings(document)["sqlite.schema"]
    assert path.read_bytes() == before
    assert "\n!   sqlite.schema" in ok("doctor").out
    ok("stats")
    assert "sqlite.schema" not in findings(ok("doctor", "--json").json)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    result = run("doctor", "--json")
    assert result.code == 1
    assert "upgrade locus-memory" in findings(result.json)["database"]


def test_a_server_that_refuses_writes_is_told_with_the_reason(run):
    with RedisServer(maxmemory_policy="noeviction") as server:
        with Redis.from_url(server.url) as client:
            client.config_set("maxmemory", 1)
        result = run("--url", server.url, "doctor", "--json")
    assert result.code == 1
    found = findings(result.json)
    assert "OOM" in found["database"] or "room" in found["database"]
    assert "writes will fail" in found["redis.memory"]
