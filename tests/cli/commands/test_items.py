from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("written", "value", "printed"),
    [
        ("blue", "blue", "blue\n"),
        ('"blue"', "blue", "blue\n"),
        ("3", 3, "3\n"),
        ("null", None, "null\n"),
        ('{"a": [1, 2.5]}', {"a": [1, 2.5]}, '{\n  "a": [\n    1,\n    2.5\n  ]\n}\n'),
        ("", "", "\n"),
        ("[bold]no markup", None, None),
    ],
)
def test_put_and_get(ok, fails, written, value, printed):
    if printed is None:
        assert "--string" in fails(2, "put", "users/alice", "colour", written)
        ok("put", "users/alice", "colour", written, "--string")
        value, printed = written, written + "\n"
    else:
        assert ok("put", "users/alice", "colour", written).out == "users/alice colour: version 1\n"
    assert ok("get", "users/alice", "colour").out == printed
    item = ok("get", "users/alice", "colour", "--json").json
    assert item["value"] == value
    assert item["namespace"] == ["users", "alice"]
    assert item["version"] == 1


def test_put_takes_everything_the_store_does(ok, fails):
    options = ("--metadata", '{"kind": "note"}', "--ttl", "3600", "--text", "elephant")
    put = ok("put", "n", "k", "1", *options, "--if-version", "0", "--json")
    assert put.json == {"namespace": ["n"], "key": "k", "version": 1}
    item = ok("get", "n", "k", "--json").json
    assert item["metadata"] == {"kind": "note"}
    assert item["expires_at"] is not None
    assert [i["key"] for i in ok("search", "elephants", "--json").json["items"]] == ["k"]
    assert "expected version 0, found 1" in fails(1, "put", "n", "k", "2", "--if-version", "0")
    assert ok("get", "n", "k").out == "1\n"


def test_put_reads_stdin(ok):
    ok("put", "n", "k", "-", stdin=b'{"from": "stdin"}\n')
    assert ok("get", "n", "k", "--json").json["value"] == {"from": "stdin"}
    ok("put", "n", "k", "-", "--string", stdin="two\nlines é\n".encode())
    assert ok("get", "n", "k").out == "two\nlines é\n"


def test_stdin_that_is_not_utf8(fails):
    assert fails(1, "put", "n", "k", "-", stdin=b"ab\xff") == "error: stdin: not UTF-8 (byte 2)\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--metadata", "[1]"),
        ("--metadata", "{oops"),
        ("--ttl", "-1"),
        ("--ttl", "nan"),
        ("--if-version", "-1"),
    ],
)
def test_put_refuses_what_the_store_would(fails, options):
    fails(2, "put", "n", "k", "1", *options)


def test_put_refuses_what_no_database_can_hold(fails):
    fails(2, "put", "n", "k", '{"n": 123456789012345678901234567890')
    fails(2, "put", "n", "", "1")
    fails(2, "put", "a//b", "k", "1")


def test_get_what_is_not_there(ok, fails):
    ok("put", "n", "k", "1")
    assert fails(1, "get", "n", "other") == "error: no item 'other' in n\n"


def test_ls(ok):
    ok("put", "users/alice", "b", "1")
    ok("put", "users/alice", "a", '"x"')
    ok("put", "users/alice/notes", "c", "1")
    ok("put", "users/al", "d", "1")
    assert ok("ls", "--json").json == {
        "namespace": None,
        "namespaces": [["users", "al"], ["users", "alice"], ["users", "alice", "notes"]],
        "more_namespaces": 0,
        "items": [],
        "more": 0,
        "next": None,
    }
    listed = ok("ls", "users/alice", "--json").json
    assert [item["key"] for item in listed["items"]] == ["a", "b"]
    assert listed["namespaces"] == [["users", "alice", "notes"]]
    assert "users/alice/notes" in ok("ls", "users").out
    assert "a     " in ok("ls", "users/alice").out


def test_ls_pages(ok):
    for key in "abc":
        ok("put", "n", key, "1")
        ok("put", f"x/{key}", "k", "1")
    keys = [i["key"] for i in ok("ls", "n", "--limit", "2", "--json").json["items"]]
    assert keys == ["a", "b"]
    page = ok("ls", "n", "--after", "b", "--json").json
    assert [item["key"] for item in page["items"]] == ["c"]
    assert ok("ls", "n", "--after", "c").out == "no items\n"
    assert ok("ls", "--limit", "1", "--after", "x/a", "--json").json["namespaces"] == [["x", "b"]]


def test_ls_takes_a_star_as_itself(ok):
    ok("put", "*/below", "k", "1")
    ok("put", "a/below", "k", "1")
    assert ok("ls", "*", "--json").json["namespaces"] == [["*", "below"]]


def test_ls_of_nothing(ok, fails):
    ok("put", "n", "k", "1")
    assert fails(1, "ls", "other") == "error: no items in other\n"
    ok("rm", "n", "k")
    assert ok("ls").out == "no items\n"


def test_any_label_can_be_written(ok):
    ok("put", r"a\b", "k", "1")
    ok("put", '["c/d", "e"]', "k", "1")
    assert ok("ls", "--json").json["namespaces"] == [["a\\b"], ["c/d", "e"]]
    assert ok("ls").out.split() == ["namespace", r"a\b", '["c/d","e"]']


def test_stored_text_drives_no_terminal(ok):
    ok("put", "n", "\x1b[31mkey", "a\x1b[2Jb [bold]c[/bold] word")
    for arguments in (("ls", "n"), ("search", "word")):
        out = ok(*arguments).out
        assert "\x1b" not in out
        assert "\\x1b[2Jb [bold]c[/bold]" in out.replace("\n", "")


def test_tables_fit_80_columns(ok):
    ok("put", "n" * 30, "k" * 30, "word " * 100)
    for arguments in (("ls",), ("ls", "n" * 30), ("search", "word")):
        out = ok(*arguments).out
        assert max(map(len, out.splitlines())) <= 80
        assert "\x1b" not in out


def test_rm_one(ok, fails):
    ok("put", "n", "k", "1")
    assert ok("rm", "n", "k", "--json").json == {"deleted": 1}
    assert fails(1, "rm", "n", "k") == "error: no item 'k' in n\n"


def test_rm_a_namespace(ok, fails):
    for name in ("n", "n/below", "nn"):
        ok("put", name, "k", "1")
    assert "pass --yes" in fails(2, "rm", "n")
    assert ok("rm", "n", "--yes").out == "deleted 1\n"
    assert ok("ls", "--json").json["namespaces"] == [["n", "below"], ["nn"]]
    assert ok("rm", "n", "--recursive", "--yes").out == "deleted 1\n"
    assert fails(1, "rm", "n", "--recursive", "--yes") == "error: no items in n\n"
    assert ok("ls", "--json").json["namespaces"] == [["nn"]]
    assert "takes no KEY" in fails(2, "rm", "n", "k", "--recursive")


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 1), (b"", 130)])
def test_rm_asks(ok, run, monkeypatch, answer, code):
    ok("put", "n", "k", "1")
    ok("put", "m", "k", "1")
    monkeypatch.setattr("locus_memory.cli.options.confirmation._is_interactive", lambda: True)
    assert run("rm", "n", stdin=answer).code == code
    assert len(ok("ls", "--json").json["namespaces"]) == (1 if code == 0 else 2)
