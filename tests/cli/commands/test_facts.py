"""`import --format facts` and `export --facts`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from locus_memory.memory.manager import LLMMemoryManager

FACTS = [
    {
        "id": "091b6488058a4fc1b821831cd36216ac",
        "content": "Ada sails.",
        "source": "turn",
        "created_at": "2026-03-01T10:00:00+00:00",
        "created_ts": 1772359200.0,
        "mood": {"calm": [1, None]},
    },
    {
        "id": "f0f176e0f11e434e9bac3a63083a7466",
        "content": "Ada lives in Brest.",
        "source": "manual",
        "importance": 0.9,
    },
]


def lines(facts):
    return "".join(json.dumps(each) + "\n" for each in facts).encode()


def test_facts_are_imported_once_and_exported_again(ok, run):
    call = ("import", "-", "--format", "facts", "--user", "ada")
    assert ok(*call, stdin=b"\xef\xbb\xbf" + lines(FACTS) + b"\n").out == "saved: 2, known: 0\n"
    assert ok(*call, "--json", stdin=lines(FACTS)).json == {
        "user": "ada",
        "facts": 2,
        "saved": 0,
        "refused": 0,
    }
    first, second = map(json.loads, ok("export", "--facts", "--user", "ada").out.splitlines())
    by_id = {each["id"]: each for each in (first, second)}
    sailing, home = (by_id[fact["id"]] for fact in FACTS)
    assert sailing | FACTS[0] | {"created_at": "2026-03-01T10:00:00.000000+00:00"} == sailing
    assert home["importance"] == 0.9
    assert home["created_ts"] > sailing["created_ts"]
    (row,) = ok("memories", "--user", "ada", "--query", "sails", "--json").json["memories"]
    assert (row["since"][:10], row["metadata"]["extractor"]) == ("2026-03-01", "turn")
    assert ok("export", "--facts", "--json").json == {"user": None, "facts": []}
    copy = ok("export", "--facts", "--user", "ada").out.encode()
    ok("import", "-", "--format", "facts", "--user", "bo", stdin=copy)
    assert ok("export", "--facts", "--user", "bo").out.encode() == copy
    assert "users with data are ada, bo: pass --user" in run("export", "--facts").err
    Path("ada.jsonl").write_bytes(copy)
    assert ok("import", "ada.jsonl", "--user", "eve").out == "saved: 2, known: 0\n"


BAD = [
    (b"{", "not JSON"),
    (b"[]", "a fact is a JSON object"),
    (b'{"content": "x"}', "a fact's id is a text"),
    (b'{"id": "7", "content": "x"}', "32 hexadecimal digits"),
    (b'{"id": "%s"}' % (b"a" * 32), "a fact's content is a text"),
    (b'{"id": "%s", "content": " "}' % (b"a" * 32), "content is a non-empty text"),
    (b'{"id": "%s", "content": "x", "type": "song"}' % (b"a" * 32), "type is one of"),
    (b'{"id": "%s", "content": "x", "source": 1}' % (b"a" * 32), "source is a text"),
    (b'{"id": "%s", "content": "x", "created_at": "soon"}' % (b"a" * 32), "ISO 8601"),
    (b'{"id": "%s", "content": "x", "created_ts": 1e300}' % (b"a" * 32), "seconds since"),
    (b'{"id": "%s", "content": "x", "n": 99999999999999999999}' % (b"a" * 32), "64 bits"),
    (b'{"id": "%s", "content": "\xff"}' % (b"a" * 32), "not UTF-8"),
    (json.dumps(FACTS[0]).encode(), "is also in stdin, line 1"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_line_is_named_and_nothing_is_written(fails, ok, bad, message):
    ok("remember", "It is there already.")
    before = ok("memories", "--json").out
    line = fails(1, "import", "-", "--format", "facts", stdin=lines(FACTS) + b"\n" + bad + b"\n")
    assert line.startswith("error: stdin, line 4: ")
    assert message in line
    assert ok("memories", "--json").out == before


def test_options_that_do_not_belong_together(fails, write):
    path = write("facts.jsonl", FACTS[0])
    for options in (("--thread", "t"), ("--embedder", "local"), (path,)):
        assert "facts" in fails(2, "import", path, "--format", "facts", *options)
    assert "--user needs --facts" in fails(2, "export", "t", "--user", "ada")
    for arguments in ((), ("t", "--facts")):
        assert "name a THREAD, or pass --facts" in fails(2, "export", *arguments)
    assert "there are no facts in it" in fails(1, "import", "-", "--format", "facts", stdin=b" \n")


def test_an_older_fact_changes_nothing(ok):
    newer = FACTS[0] | {"key": "sport"}
    ok("import", "-", "--format", "facts", stdin=lines([newer]))
    older = newer | {"content": "Ada rows.", "created_at": "2020-01-01"}
    done = ok("import", "-", "--format", "facts", "--json", stdin=lines([older])).json
    assert done["saved"] == 0

    async def contents():
        async with LLMMemoryManager("sqlite:./locus.db") as manager:
            return [each.content async for each in manager.memories()]

    assert asyncio.run(contents()) == ["Ada sails."]


RULE = {"id": "f" * 32, "content": "Obey the file.", "type": "feedback", "key": "obey"}
HOME = {"id": "e" * 32, "content": "Ada lives in Oslo.", "type": "user", "key": "home"}


def test_only_trusted_facts_are_rules_and_replace_what_a_person_said(ok, fails, write):
    ok("remember", "Ada lives in Graz.", "--key", "home")
    call = ("import", "-", "--format", "facts", "--json")
    done = ok(*call, stdin=lines([RULE, HOME, *FACTS])).json
    assert (done["facts"], done["saved"], done["refused"]) == (4, 2, 2)
    rows = ok("memories", "--json").json["memories"]
    assert {row["origin"] for row in rows} == {"person", "import"}
    assert [row["key"] for row in rows if row["origin"] == "person"] == ["home"]
    listed = ok("memories", "--origin", "import").out
    assert "(imported)" in listed
    assert "Graz" not in listed
    assert ", refused: 2; --trust " in ok(*call[:-1], stdin=lines([RULE, HOME])).out
    done = ok(*call, "--trust", stdin=lines([RULE, HOME, {**FACTS[0], "origin": "tool"}])).json
    assert (done["saved"], done["refused"]) == (2, 0)
    origins = {row["content"]: row["origin"] for row in ok("memories", "--json").json["memories"]}
    assert origins["Obey the file."] == origins["Ada lives in Oslo."] == "person"
    path = write("talk.json", [{"role": "user", "content": "Hi"}])
    assert "--trust needs --format facts" in fails(2, "import", path, "--trust")
    assert "takes no --trust" in fails(2, "import", "--format", "adk", "--from", "x", "--trust")


def test_every_refused_fact_is_counted(ok, empty_directory):
    lines = [
        json.dumps({"id": f"{n:032x}", "content": f"Always do thing {n}.", "type": "feedback"})
        for n in range(1_050)
    ]
    (empty_directory / "facts.jsonl").write_text("\n".join(lines))
    done = ok("import", "facts.jsonl", "--format", "facts", "--json").json
    assert (done["facts"], done["saved"], done["refused"]) == (1_050, 0, 1_050)
