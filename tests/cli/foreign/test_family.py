"""`import --format NAME --from DATABASE`: the same course for every framework."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from locus_memory.cli.foreign.importers import FOREIGN

TEA = str(uuid4())


def langgraph(path):
    pytest.importorskip("langgraph.checkpoint.sqlite")
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - seconds to import
    from langgraph.graph import START, MessagesState, StateGraph  # noqa: PLC0415 - the same

    with SqliteSaver.from_conn_string(str(path)) as saver:
        app = StateGraph(MessagesState).add_node("a", lambda _: {"messages": [("ai", "ok")]})
        app.add_edge(START, "a")
        config = {"configurable": {"thread_id": "x"}}
        app.compile(checkpointer=saver).invoke({"messages": [("user", "hi")]}, config)


def langgraph_store(path):
    pytest.importorskip("langgraph.store.sqlite")
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - seconds to import

    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("a", "b/c"), "k", {"n": 1})


def openai_agents(path):
    agents = pytest.importorskip("agents")
    session = agents.SQLiteSession("ada", path)
    asyncio.run(session.add_items([{"role": "user", "content": "hi"}]))
    session.close()


def adk(path):
    services = pytest.importorskip("google.adk.sessions.sqlite_session_service")
    service = services.SqliteSessionService(str(path))
    state = {"own": 1, "app:n": 2}
    made = service.create_session(app_name="app", user_id="ada", session_id="home", state=state)
    asyncio.run(made)


def mem0(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, "
            "new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, "
            "is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        row = ("1", TEA, None, "Ada drinks tea.", "ADD", "2025-03-01T10:00:00+00:00", None, 0)
        connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", row)
        connection.commit()


OSAURUS = """
    CREATE TABLE identity (id INTEGER PRIMARY KEY CHECK (id = 1), content TEXT NOT NULL DEFAULT '',
        overrides TEXT NOT NULL DEFAULT '[]', token_count INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
        generated_at TEXT NOT NULL DEFAULT '');
    CREATE TABLE pinned_facts (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, content TEXT NOT NULL,
        salience REAL NOT NULL DEFAULT 0.5, source_count INTEGER NOT NULL DEFAULT 1,
        source_episode_id INTEGER, last_used TEXT NOT NULL DEFAULT (datetime('now')),
        use_count INTEGER NOT NULL DEFAULT 0, status TEXT NOT NULL DEFAULT 'active',
        created_at TEXT NOT NULL DEFAULT (datetime('now')), tags_csv TEXT);
    CREATE TABLE episodes (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL, summary TEXT NOT NULL, topics_csv TEXT NOT NULL DEFAULT '',
        entities_csv TEXT NOT NULL DEFAULT '', decisions TEXT NOT NULL DEFAULT '',
        action_items TEXT NOT NULL DEFAULT '', salience REAL NOT NULL DEFAULT 0.5,
        token_count INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
        conversation_at TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active',
        created_at TEXT NOT NULL DEFAULT (datetime('now')));
"""
"""Those tables of `createV5Tables` of Osaurus that are read."""


def osaurus(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OSAURUS)
        connection.execute(
            "INSERT INTO pinned_facts (id, agent_id, content, created_at) VALUES (?, ?, ?, ?)",
            ("F1A0", "default", "Ada drinks tea.", "2025-03-01 10:00:00"),
        )
        connection.commit()


MADE = {
    "langgraph": (langgraph, "threads", {"saved": 3, "missing": 0}),
    "langgraph-store": (langgraph_store, "namespaces", {"items": 1, "saved": 1, "kept": 0}),
    "openai-agents": (openai_agents, "sessions", {"items": 1, "saved": 1, "conflicts": 0}),
    "adk": (adk, "sessions", {"events": 0, "saved": 0, "saved_keys": 1}),
    "mem0": (mem0, "users", {"memories": 1, "changes": 1, "saved": 1}),
    "osaurus": (osaurus, "users", {"memories": 1, "changes": 1, "saved": 1}),
}


def test_every_format_is_tried():
    assert set(MADE) == set(FOREIGN)


@pytest.fixture(params=list(MADE))
def kind(request):
    return request.param


def test_what_was_there_and_what_is_new(kind, ok, empty_directory):
    make, listed, sums = MADE[kind]
    make(empty_directory / "old.db")
    before = (empty_directory / "old.db").read_bytes()
    call = ("import", "--format", kind, "--from", "old.db")
    document = ok(*call, "--json").json
    assert document[listed]
    assert {name: document[name] for name in sums} == sums
    again = ok(*call, "--json").json
    assert {again[name] for name in ("saved", "saved_keys") if name in again} == {0}
    table = ok(*call).out.splitlines()
    assert len(table) == 1 + len(document[listed])
    assert (empty_directory / "old.db").read_bytes() == before


def test_bad_sources_leave_no_target(kind, fails, write, empty_directory):
    make, _, _ = MADE[kind]
    make(empty_directory / "old.db")
    whole = (empty_directory / "old.db").read_bytes()
    write("text.db", "no database" * 100)
    write("cut.db", whole[: len(whole) // 2])
    with closing(sqlite3.connect("empty.db")) as connection:
        connection.execute("CREATE TABLE other (a)")
        connection.commit()
    for name, told in {
        "none.db": "there is no such file",
        "text.db": "not a database",
        "cut.db": "not a database",
        "empty.db": "other",
    }.items():
        line = fails(1, "import", "--format", kind, "--from", name)
        assert name in line, line
        assert told in line, line
    assert not (empty_directory / "locus.db").exists()


def test_options_that_do_not_belong_together(kind, fails, ok, monkeypatch, empty_directory):
    call = ("import", "--format", kind)
    assert "takes a database with --from" in fails(2, *call)
    if kind != "mem0":
        assert "no FILE" in fails(2, *call, "--from", "a.db", "x.json")
    taken = {"langgraph-store": {"embedder"}, "mem0": {"user"}, "osaurus": {"user"}}.get(
        kind, {"thread"}
    )
    for option in {"thread", "embedder", "user"} - taken:
        line = fails(2, *call, "--from", "a.db", f"--{option}", "x")
        assert f"--format {kind} takes no --{option}" in line
    if "embedder" not in taken:
        # That of the environment is for other formats.
        MADE[kind][0](empty_directory / "old.db")
        monkeypatch.setenv("LOCUS_MEMORY_EMBEDDER", "none-such")
        ok(*call, "--from", "old.db")


def test_from_needs_a_format(fails, write):
    line = fails(2, "import", write("x.json", []), "--from", "a.db")
    assert "--from needs --format langgraph, langgraph-store, openai-agents, adk, mem0" in line


@pytest.mark.parametrize("kind", ["langgraph", "openai-agents", "adk"])
def test_one_thread_alone(kind, fails, ok, empty_directory):
    make, listed, _ = MADE[kind]
    make(empty_directory / "old.db")
    call = ("import", "--format", kind, "--from", "old.db", "--thread")
    assert f"no {listed[:-1]} 'none' there" in fails(1, *call, "none")
    name = {"langgraph": "x", "openai-agents": "ada", "adk": "home"}[kind]
    assert len(ok(*call, name, "--json").json[listed]) == 1


def test_what_differs_is_told_by_the_exit_code(run, empty_directory):
    openai_agents(empty_directory / "old.db")
    call = ("import", "--format", "openai-agents", "--from", "old.db")
    assert run(*call).code == 0
    with closing(sqlite3.connect("old.db")) as connection:
        connection.execute('UPDATE agent_messages SET message_data = \'{"role": "user"}\'')
        connection.commit()
    result = run(*call, "--json")
    assert (result.code, result.json["conflicts"]) == (1, 1)
    assert result.err == "error: sessions with other items stay as they are: 1\n"


EXPORT = {"results": [{"id": TEA, "memory": "Ada drinks tea.", "user_id": "ada"}]}


class TestMem0:
    def test_a_file_a_database_or_both(self, ok, write, empty_directory):
        mem0(empty_directory / "history.db")
        path = write("all.json", EXPORT)
        both = ("import", path, "--format", "mem0", "--from", "history.db")
        assert ok(*both).out.split("\n")[1].split() == ["ada", "1", "1", "1"]
        (row,) = ok("memories", "--user", "ada", "--json").json["memories"]
        assert (row["content"], row["since"][:10]) == ("Ada drinks tea.", "2025-03-01")
        assert row["key"] == f"fact:{UUID(TEA).hex}"
        stdin = json.dumps(EXPORT).encode()
        assert ok("import", "-", "--format", "mem0", "--json", stdin=stdin).json["saved"] == 0
        alone = ("import", "--format", "mem0", "--from", "history.db", "--user", "bo")
        assert ok(*alone, "--json").json["users"][0]["user"] == "bo"
        other = ("-n", "other", "--format", "mem0")
        assert ok("import", path, *other, "--json").json["saved"] == 1

    def test_memories_without_a_known_user_are_told(self, run, write, empty_directory):
        mem0(empty_directory / "history.db")
        other = {"id": str(uuid4()), "memory": "Bo sails.", "user_id": "bo"}
        call = ("import", write("all.json", [other]), "--format", "mem0", "--from", "history.db")
        result = run(*call)
        assert result.code == 1
        assert (
            "memories of an unknown user are left out: 1; name the user with --user" in result.err
        )
        assert run(*call, "--user", "ada").code == 0

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b'{"results": [{"id": "1", "mem', "not JSON"),
            (b"\xff", "not UTF-8"),
            (b"[1]", "memory 1: it is no object"),
            (b"[", "not JSON"),
            (b'[{"id": "1", "memory": "x", "metadata": {"n": 99999999999999999999}}]', "64 bits"),
        ],
    )
    def test_a_bad_file_leaves_no_target(self, fails, write, empty_directory, content, told):
        line = fails(1, "import", write("bad.json", content), "--format", "mem0")
        assert "bad.json: " in line
        assert told in line
        assert not (empty_directory / "locus.db").exists()


def test_an_interrupted_import_tells_how_to_go_on(run, monkeypatch, empty_directory):
    from locus_memory.integrations.mem0 import importing  # noqa: PLC0415 - one test

    mem0(empty_directory / "old.db")

    async def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(importing, "import_memories", interrupted)
    result = run("import", "--format", "mem0", "--from", "old.db")
    assert result.code == 130
    assert "interrupted; what is copied stays. To continue, run: " in result.err
    assert "import --format mem0 --from old.db" in result.err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:s3cret@db:5432/old", "postgresql://ada:***@db:5432/old"),
        ("postgresql://db:5432/old?user=a&password=s3cret", "postgresql://db:5432/old?user=a&"),
        ("postgresql://db:5432/old", "postgresql://db:5432/old"),
    ],
)
def test_an_interrupted_import_tells_no_password(run, monkeypatch, url, shown):
    sources = pytest.importorskip("locus_memory.integrations.langgraph.importing.items")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "postgresql_source", interrupted)
    told = run("import", "--format", "langgraph-store", "--from", url).err
    assert shown in told
    assert "s3cret" not in told


def filled(path):
    osaurus(path)
    with closing(sqlite3.connect(path)) as connection:
        rows = [
            ("F2", "work", "Ada sails.", "active", "2025-03-02 10:00:00"),
            ("F3", "work", "Ada is gone.", "evicted", "2025-03-03 10:00:00"),
        ]
        connection.executemany(
            "INSERT INTO pinned_facts (id, agent_id, content, status, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        connection.execute(
            "INSERT INTO episodes (agent_id, conversation_id, summary, conversation_at)"
            " VALUES ('work', 'c', 'Ada bought a boat.', '2025-04-01T10:00:00Z')"
        )
        overrides = json.dumps(["Reply in English.", "Reply in English.", "Ich heiße Ada, 艾达"])
        connection.execute(
            "INSERT INTO identity (id, overrides, generated_at) VALUES (1, ?, ?)",
            (overrides, "2025-05-01T10:00:00Z"),
        )
        connection.commit()


def test_the_layers_of_osaurus_with_their_moments(ok, empty_directory):
    filled(empty_directory / "old.db")
    call = ("import", "--format", "osaurus", "--from", "old.db", "--user", "ada")
    assert ok(*call, "--json").json["saved"] == 5
    found = ok("memories", "--user", "ada", "--json").json["memories"]
    assert {each["content"]: each["since"][:19] for each in found} == {
        "Ada drinks tea.": "2025-03-01T10:00:00",
        "Ada sails.": "2025-03-02T10:00:00",
        "Ada bought a boat.": "2025-04-01T10:00:00",
        "Reply in English.": "2025-05-01T10:00:00",
        "Ich heiße Ada, 艾达": "2025-05-01T10:00:00",
    }
    [sails] = [each for each in found if each["content"] == "Ada sails."]
    assert sails["origin"] == "import"
    assert sails["metadata"]["extractor"] == "osaurus"
    assert (sails["metadata"]["layer"], sails["metadata"]["agent_id"]) == ("pinned", "work")
    assert ok(*call, "--json").json["saved"] == 0


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE identity SET overrides = '[broken'", "malformed JSON"),
        ("UPDATE identity SET overrides = '[7, null]'", "override"),
        ("UPDATE pinned_facts SET content = x'00ff'", "pinned"),
        ("UPDATE episodes SET summary = 7.5", None),
        ("UPDATE pinned_facts SET content = CAST(x'ff' AS TEXT)", "UTF-8"),
        ("UPDATE pinned_facts SET created_at = 'soon'", None),
        ("ALTER TABLE pinned_facts RENAME TO memory_entries", "no table pinned_facts"),
        ("ALTER TABLE episodes RENAME COLUMN summary TO text", "has no summary"),
        ("UPDATE episodes SET summary = ''", "left out: 1"),
        ("UPDATE episodes SET summary = hex(zeroblob(90000))", "left out: 1"),
    ],
)
def test_a_hostile_database_of_osaurus(statement, told, ok, fails, empty_directory):
    filled(empty_directory / "old.db")
    with closing(sqlite3.connect("old.db")) as connection:
        connection.execute(statement)
        connection.commit()
    call = ("import", "--format", "osaurus", "--from", "old.db")
    if told is None:
        assert ok(*call, "--json").json["saved"] == 5
        return
    assert told in fails(1, *call)
    assert (empty_directory / "locus.db").exists() == ("left out" in told)
