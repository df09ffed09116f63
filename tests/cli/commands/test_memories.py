from __future__ import annotations

import asyncio
import re

import pytest

from locus_memory.cli.options.memories import Kind
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.registry import open_backend


@pytest.fixture
def save(empty_directory):
    """Save memories as an application does, one after another."""

    def saver(*memories, user=None, prefix=("locus_memory",)):
        async def work():
            async with open_backend("sqlite:./locus.db") as backend:
                manager = LLMMemoryManager(backend.store, namespace_prefix=prefix)
                scoped = manager if user is None else manager.for_user(user)
                for memory in memories:
                    await scoped.save([memory])

        asyncio.run(work())

    return saver


@pytest.fixture
def told(ok):
    """Let a user tell the scripted agent three things on the thread `t`."""
    lines = b"My name is Kim.\nI live in Lyon.\nI live in Paris now.\n"
    ok("chat", "t", "--user", "ada", "--scripted", stdin=lines)


def keys(result):
    return [row["key"] for row in result.json["memories"]]


def test_the_types_are_those_of_the_manager():
    assert list(Kind) == list(MemoryType)


def test_memories_says_what_where_from_and_what_it_replaced(ok, told):
    lines = ok("memories", "--user", "ada").out.splitlines()
    assert lines[0].split() == ["type", "key", "content", "since", "from"]
    assert lines[1].split()[:2] == ["user", "home"]
    assert "The user lives in Paris." in lines[1]
    assert lines[1].rstrip().endswith("t #5")
    assert lines[2].strip() == "before: The user lives in Lyon."
    assert "The user's name is Kim." in lines[3]
    assert max(map(len, lines)) <= 80


def test_memories_with_sources(ok, told):
    out = ok("memories", "--user", "ada", "--sources").out
    assert "  said: I live in Paris now." in out
    assert "  said: My name is Kim." in out


def test_memories_as_json(ok, told):
    document = ok("memories", "--user", "ada", "--json").json
    assert (document["namespace"], document["total"]) == (["locus_memory"], 2)
    home = document["memories"][0]
    assert (home["user"], home["type"], home["key"]) == ("ada", "user", "home")
    assert home["content"] == "The user lives in Paris."
    assert home["since"] == home["metadata"]["valid_from"]
    assert home["until"] is None
    (source,) = home["sources"]
    assert (source["thread_id"], source["place"]) == ("t", 5)
    assert source["text"] == "I live in Paris now."
    replaced = home["replaced"]
    assert replaced["content"] == "The user lives in Lyon."
    assert replaced["until"] == home["since"]
    assert replaced["sources"][0]["place"] == 3


def test_a_source_that_is_gone(ok, told, save):
    origin = {"thread_id": "gone", "message_ids": ["x" * 32]}
    save(Memory("user", "pet", "A cat.", origin), Memory("user", "car", "None.", {}))
    rows = {row["key"]: row for row in ok("memories", "--json").json["memories"]}
    assert rows["pet"]["sources"] == [
        {"thread_id": "gone", "message_id": "x" * 32, "place": None, "text": None}
    ]
    assert rows["car"]["sources"] == []
    assert "gone (a person)\n" in ok("memories").out


def test_a_source_that_is_counted(ok, chat, save):
    origin = {"thread_id": "chat", "message_ids": ["#1", "#9"]}
    save(Memory("user", "key", "Asked for the key.", origin))
    first, second = ok("memories", "--json").json["memories"][0]["sources"]
    assert (first["place"], first["text"]) == (2, "Where is the spare key?")
    assert (second["place"], second["text"]) == (None, None)


def test_what_a_tool_told_says_so(ok, save):
    metadata = {"origin": "tool", "extractor": "llm", "message_ids": ["#1"]}
    save(Memory("reference", "pay", "Pay by card.", metadata), Memory("user", "pet", "A cat."))
    rows = {row["key"]: row for row in ok("memories", "--json").json["memories"]}
    assert (rows["pay"]["origin"], rows["pet"]["origin"]) == ("tool", "person")
    (line,) = [each for each in ok("memories").out.splitlines() if "Pay by card" in each]
    assert line.rstrip().endswith("llm (a tool)")
    assert "llm (a tool)" in ok("history", "pay").out


def test_a_database_without_threads(ok, save, monkeypatch):
    save(Memory("user", "home", "Lives in Lyon.", {"thread_id": "t", "message_ids": ["#1"]}))
    monkeypatch.setattr("locus_memory.inspection.sources.checkpointer_of", lambda _: None)
    assert ok("memories", "--json").json["memories"][0]["sources"][0]["place"] is None


def test_memories_of_one_of_all_and_of_nobody(ok, run, save):
    save(Memory("user", "home", "Nobody's."))
    for user in ("ada", "ada2", "*"):
        save(Memory("user", "home", f"Of {user}."), user=user)
    assert [row["content"] for row in ok("memories", "--json").json["memories"]] == ["Nobody's."]
    (row,) = ok("memories", "--user", "*", "--json").json["memories"]
    assert (row["user"], row["content"]) == ("*", "Of *.")
    rows = ok("memories", "--all-users", "--json").json["memories"]
    assert {row["user"] for row in rows} == {None, "ada", "ada2", "*"}
    assert "user" in ok("memories", "--all-users").out.splitlines()[0].split()
    assert run("memories", "--all-users", "--user", "ada").code == 2


def test_memories_point_at_users_when_there_are_only_theirs(ok, save):
    for number in range(7):
        save(Memory("user", "home", "Lyon."), user=f"u{number}")
    assert ok("memories").out == (
        "no memories\nmemories of users exist: u0, u1, u2, u3, u4 and 2 more; "
        "pass --user or --all-users\n"
    )
    assert "exist: u0, u1" in ok("memories", "--user", "nobody").out
    save(Memory("user", "home", "Nice."), user="noor")
    assert ok("memories", "--user", "nour").out.endswith(
        "memories of users exist: noor; pass --user or --all-users\n"
    )
    assert ok("memories", "--user", "noor", "--query", "oboe").out == "no memories\n"


def test_a_mistyped_name_is_told_the_nearest_one(ok, fails, save):
    save(Memory("user", "home", "Lives in Nice."), user="noor")
    ok("put", "notes", "000012", "1")
    assert fails(1, "history", "hom", "--user", "noor").endswith("did you mean 'home'?\n")
    assert fails(1, "undo", "home", "--user", "nour").endswith("did you mean 'noor'?\n")
    assert fails(1, "undo", "home").endswith("; user 'noor' has one: pass --user 'noor'\n")
    assert fails(1, "forget", "hom", "--user", "noor").endswith("did you mean 'home'?\n")
    assert fails(1, "forget", "--user", "nour", "--dry-run").endswith("did you mean 'noor'?\n")
    assert fails(1, "get", "notes", "00012").endswith("did you mean '000012'?\n")
    ok("undo", "home", "--user", "noor")
    assert fails(1, "history", "hom", "--user", "noor").endswith("did you mean 'home'?\n")
    assert fails(1, "history", "boat", "--user", "noor") == (
        "error: no memory 'boat' for user 'noor'\n"
    )


def test_a_mistyped_thread_is_told_the_nearest_one(chat, fails, run):
    for command in ("show", "checkpoints", "export"):
        assert fails(1, command, "caht") == "error: no thread 'caht': did you mean 'chat'?\n"
    told = run("show", "caht", "--json").json["error"]
    assert told["type"] == "CheckpointNotFoundError"
    assert "mean" not in fails(1, "show", "zebra")


def test_a_new_key_that_is_like_another_is_told(ok, run):
    ok("remember", "--key", "home", "Lives in Rome.")
    assert ok("remember", "--key", "home", "Lives in Oslo.").err == ""
    assert "did you mean 'home'?" in run("remember", "--key", "hoem", "Lives in Bonn.").err
    assert ok("remember", "--key", "boat", "Has a boat.").err == ""


def test_a_new_user_that_is_like_another_is_told(ok, run):
    ok("remember", "--user", "ada", "Lives in Rome.")
    assert "a new user: did you mean 'ada'?" in run("remember", "--user", "adda", "Is tall.").err
    assert ok("remember", "--user", "bo", "Lives in Rome.").err == ""


def test_without_facts_it_says_that_words_are_kept(ok):
    ok("chat", "t", "--user", "ada", "--scripted", stdin="Ich esse keine Nüsse.\n".encode())
    assert "recall QUERY finds what was said" in ok("memories", "--user", "ada").out


@pytest.mark.parametrize(
    ("typed", "known"), [("JOSE GARCIA", "José García"), ("jose", "José García"), ("ZOË", "zoe")]
)
def test_case_accents_and_a_missing_end_hide_no_name(ok, fails, save, typed, known):
    save(Memory("user", "home", "Lives in Nice."), user=known)
    save(Memory("user", "home", "Lives in Rome."), user="bo")
    assert fails(1, "undo", "home", "--user", typed).endswith(f"did you mean {known!r}?\n")


def test_a_mistyped_thread_of_langgraph_is_told_by_its_plain_id(empty_directory, fails):
    async def work():
        async with open_backend("sqlite:./locus.db") as backend:
            await backend.checkpointer.save({}, Place.at("monday", "").name)

    asyncio.run(work())
    assert fails(1, "threads", "rm", "mondy", "--yes").endswith("did you mean 'monday'?\n")


def test_memories_of_a_type_of_a_query_and_not_too_many(ok, run, save):
    save(
        Memory("user", "home", "Lives in Lyon."),
        Memory("project", "release", "Ships in May."),
        Memory("user", "diet", "Eats no meat."),
    )
    assert keys(ok("memories", "--json")) == ["diet", "release", "home"]
    assert keys(ok("memories", "--type", "user", "--json")) == ["diet", "home"]
    assert keys(ok("memories", "--query", "living in Lyon?", "--json")) == ["home"]
    assert keys(ok("memories", "--query", "lives", "--type", "project", "--json")) == []
    assert keys(ok("memories", "--limit", "1", "--json")) == ["diet"]
    page = ok("memories", "--limit", "1", "--offset", "1", "--json").json
    assert (page["total"], page["more"], page["next"]) == (3, 1, 2)
    assert [memory["key"] for memory in page["memories"]] == ["release"]
    refused = run("memories", "--limit", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "--limit" in refused.err


def test_a_query_finds_what_was_replaced(ok, save):
    save(
        Memory("user", "home", "Lives in Lyon."),
        Memory("user", "home", "Lives in Nice."),
        Memory("user", "home", "Lives in Paris."),
        Memory("user", "diet", "Eats no meat."),
    )
    for place in ("Paris", "Nice", "Lyon"):
        assert keys(ok("memories", "--query", place, "--json")) == ["home"]
    ok("undo", "home")
    assert keys(ok("memories", "--query", "Paris", "--json")) == []
    assert keys(ok("memories", "--query", "Lyon", "--json")) == ["home"]


def test_memories_of_another_prefix(ok, save):
    save(Memory("user", "home", "Elsewhere."), prefix=("my", "a/b"))
    assert keys(ok("memories", "-n", '["my","a/b"]', "--json")) == ["home"]
    assert keys(ok("memories", "--json")) == []


def test_stored_text_drives_no_terminal(ok, save):
    origin = {"thread_id": "t\x1b[2J", "message_ids": ["#1"]}
    save(Memory("user", "k\x1b[31m", "first\nline\x07"))
    save(Memory("user", "k\x1b[31m", "other\x9b", origin))
    for command in (("memories",), ("history", "k\x1b[31m"), ("undo", "k\x1b[31m")):
        out = ok(*command).out
        assert not set(out) & {"\x1b", "\x07", "\x9b"}
        assert "first line\\x07" in out


NAME = "k\nfake: remembered\t\x1b[31m\x9b"
SHOWN = r"k\x0afake: remembered\x09\x1b[31m\x9b"


def test_a_name_is_on_one_line_wherever_it_is_printed(ok, save):
    assert ok("remember", "Tea", "--key", NAME, "--user", NAME).out == f"user {SHOWN}: saved\n"
    assert ok("remember", "Tea", "--key", NAME, "--user", NAME).out == (
        f"user {SHOWN}: already known\n"
    )
    assert f"memories of users exist: {SHOWN}; pass" in ok("memories").out
    user, *rest, content = ok("memories", "--all-users").out.splitlines()
    assert (user, content) == (SHOWN, "  Tea")
    assert " ".join(rest).startswith(f"  type user, key {SHOWN}")
    assert ok("undo", NAME, "--user", NAME).out.splitlines()[0] == f"user {SHOWN}"
    for arguments in ((NAME, "--user", NAME), ("--user", NAME)):
        out = ok("forget", *arguments, "--dry-run").out
        assert out.count(SHOWN) == 2
        assert "\nfake" not in out


def test_a_key_is_never_broken(ok, save, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    long = "likes:" + "x" * 50
    for key, most in (("allergy:walnuts", "walnuts"), (long, "hazels")):
        save(Memory("user", key, f"Of tree nuts, {most} above all others."), user="ada")
        lines = ok("memories", "--user", "ada").out.splitlines()
        assert sum(key in line for line in lines) == 1
        assert all(word in " ".join(lines) for word in (most, "above", "others."))


def test_a_long_memory_is_cut_in_the_table_and_whole_elsewhere(ok):
    content = " ".join(f"w{number}" for number in range(3_000))
    out = ok("remember", content, "--key", "k").out
    assert out == "user k: saved\n"
    out = ok("memories").out
    assert len(out.splitlines()) < 10
    assert "…" in out
    assert ok("memories", "--json").json["memories"][0]["content"] == content
    told = " ".join(ok("history", "k").out.split())
    assert all(f" w{number}" in told for number in (0, 1_500, 2_999))


def test_a_key_that_is_made_up_is_short(ok):
    key = ok("remember", "x" * 20_000, "--json").json["key"]
    assert 0 < len(key) <= 64
    assert len(ok("memories").out.splitlines()) < 20
    ok("forget", key)


def test_remember_takes_the_key_that_the_rules_know(ok):
    assert ok("remember", "I live in Lyon").out == "user home: saved\n"
    out = ok("remember", "I live in Paris").out
    assert out == "user home: saved, replaces: I live in Lyon\n"
    assert ok("remember", "I live  in Paris").out == "user home: already known\n"
    assert ok("remember", "Never use semicolons.").out.startswith("feedback ")


def test_remember_makes_up_a_key(ok):
    made = ok("remember", "The wine is in the cellar").out
    assert re.fullmatch(r"user wine-cellar-[a-t]{6}: saved\n", made)
    assert re.fullmatch(r"user [a-t]{6}: saved\n", ok("remember", "???").out)
    again = ok("remember", "the wine  is in the cellar", "--key", "wine")
    assert again.out == made.replace("saved", "already known")
    assert ok("remember", "The wine is not in the cellar").out.endswith(": saved\n")


def test_remember_as_it_is_told(ok):
    document = ok(
        "remember", "I live in Lyon", "--key", "k", "--type", "project", "--user", "ada", "--json"
    ).json
    assert (document["type"], document["key"], document["user"]) == ("project", "k", "ada")
    assert (document["changed"], document["replaced"]) == (True, None)
    assert document["metadata"]["extractor"] == "by hand"
    assert keys(ok("memories", "--json")) == []
    assert "by hand" in ok("memories", "--user", "ada").out


def test_what_a_person_wrote_over_a_message_is_not_told_as_its_words(ok, told):
    async def edit():
        async with open_backend("sqlite:./locus.db") as backend:
            manager = LLMMemoryManager(backend.store).for_user("ada")
            await manager.update("user:home", "The user lives in Oslo.")

    asyncio.run(edit())
    edited, *before = ok("history", "--user", "ada", "home").out.splitlines()[1:]
    assert edited.strip().split("  ")[-1].strip() == "t #5 (a person)"
    assert [line.strip().split("  ")[-1].strip() for line in before] == ["t #5", "t #3"]
    assert ok("memories", "--user", "ada").out.count("(a person)") == 1


def test_a_search_of_memories_names_the_nearest_word(ok, run, save):
    texts = [
        "I have a shellfish allergy.",
        "Ich mag Käse.",
        "Я люблю чай.",
        "私は東京に住んでいます。",
    ]
    save(*(Memory("user", f"k{n}", each) for n, each in enumerate(texts)), user="ada")
    for typed, meant in [("shelfish", "shellfish"), ("Käze", "käse"), ("люблб", "люблю")]:
        told = run("memories", "--user", "ada", "--query", typed)
        assert told.code == 0
        assert f"did you mean '{meant}'?" in told.out + told.err
    for typed in ("zzz", "x" * 5000):
        told = run("memories", "--user", "ada", "--query", typed)
        assert "mean" not in told.out + told.err
        assert "no memories" in told.out + told.err
    assert run("memories", "--user", "ada", "--query", "shelfish", "--json").json["memories"] == []


def test_remember_refuses_a_secret_unless_it_must(ok, fails, empty_directory):
    line = fails(1, "remember", "My password is hunter2")
    assert line == "error: this looks like a secret (password): pass --force to save it\n"
    assert fails(1, "remember", "x", "--key", "sk-abcdefghijklmnopqrstuvwx")
    assert list(empty_directory.iterdir()) == []
    assert ok("remember", "My password is hunter2", "--force", "--key", "p").code == 0
    assert keys(ok("memories", "--json")) == ["p"]


@pytest.mark.parametrize("arguments", [("",), (" ",), ("a", "--key", ""), ("a", "--user", "")])
def test_remember_refuses_what_is_empty(fails, arguments):
    line = fails(2, "remember", *arguments)
    what = "label" if "--user" in arguments else "key" if "--key" in arguments else "CONTENT"
    assert what in line


def test_remember_lets_go_of_nothing(ok, save):
    save(*(Memory("user", f"k{n}", f"Fact {n}.") for n in range(50)))
    ok("remember", "One more fact of the user")
    assert ok("memories", "--json").json["total"] == 51


def test_history_and_undo(ok, fails):
    for place in ("Lyon", "Paris", "Rome"):
        ok("remember", f"I live in {place}", "--user", "ada")
    versions = ok("history", "home", "--user", "ada", "--json").json["versions"]
    assert [each["content"] for each in versions] == [
        f"I live in {place}" for place in ("Rome", "Paris", "Lyon")
    ]
    assert versions[0]["until"] is None
    assert versions[1]["until"] == versions[0]["since"]
    lines = ok("history", "home", "--user", "ada").out.splitlines()
    assert lines[0].split() == ["type", "since", "until", "content", "from"]
    assert " now " in lines[1]
    assert "replaced  I live in Paris" in lines[2]
    undone = ok("undo", "home", "--user", "ada")
    assert undone.out == (
        "user home\n  undone:     I live in Rome\n  now:        I live in Paris\n"
    )
    assert "undone    I live in Rome" in ok("history", "home", "--user", "ada").out
    document = ok("undo", "home", "--user", "ada", "--json").json
    assert document["current"]["content"] == "I live in Lyon"
    assert document["taken_back"]["content"] == "I live in Paris"
    assert ok("undo", "home", "--user", "ada").out.endswith("now:        nothing\n")
    assert fails(1, "undo", "home", "--user", "ada") == (
        "error: no change of 'home' to undo for user 'ada'\n"
    )
    assert ok("memories", "--user", "ada").out == "no memories\n"


def test_history_and_undo_of_a_type(ok, fails):
    ok("remember", "A person", "--key", "k", "--type", "user")
    ok("remember", "A plan", "--key", "k", "--type", "project")
    assert len(ok("history", "k", "--json").json["versions"]) == 2
    (version,) = ok("history", "k", "--type", "user", "--json").json["versions"]
    assert version["content"] == "A person"
    assert ok("undo", "k", "--type", "user", "--json").json["taken_back"]["type"] == "user"
    assert ok("undo", "k", "--type", "project", "--json").json["current"] is None
    fails(2, "undo", "k", "--type", "nonsense")


def test_what_was_never_remembered(ok, fails):
    ok("put", "n", "k", "1")
    assert fails(1, "history", "k") == "error: no memory 'k'\n"
    assert fails(1, "history", "k", "--user", "ada").endswith("'k' for user 'ada'\n")
    assert fails(1, "undo", "k") == "error: no change of 'k' to undo\n"
