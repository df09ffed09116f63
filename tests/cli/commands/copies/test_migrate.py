from __future__ import annotations

import pytest

SOURCE, TARGET = "sqlite:./locus.db", "sqlite:./copy.db"
OTHER = b'[{"role": "user", "content": "good morning"}]'
MIGRATE = ("migrate", "--from", SOURCE, "--to", TARGET)


@pytest.fixture
def filled(ok):
    ok("put", "users/ada", "diet", '{"likes": "plums"}')
    ok("put", "users/ada", "diet", '{"likes": "pears"}')
    ok(
        "import",
        "-",
        "--threads",
        "--thread",
        "talk",
        stdin=b'[{"role": "user", "content": "hello"}]',
    )


@pytest.mark.usefixtures("filled")
def test_everything_is_there(ok):
    done = ok(*MIGRATE, "--verify", "--json").json
    assert done["equal"] is True
    assert {each["kind"] for each in done["comparisons"]} == {"namespace", "thread"}
    item = ok("--url", TARGET, "get", "users/ada", "diet", "--json").json
    assert (item["value"], item["version"]) == ({"likes": "pears"}, 2)
    assert item == ok("get", "users/ada", "diet", "--json").json
    assert ok("--url", TARGET, "export", "talk").out == ok("export", "talk").out
    again = ok(*MIGRATE, "--json").json
    assert (again["items"], again["checkpoints"]) == (0, 0)


@pytest.mark.usefixtures("filled")
def test_the_parts_that_are_equal_are_one_line(ok):
    lines = ok(*MIGRATE, "--verify").out.splitlines()
    assert lines[1].split() == ["2", "1", "0", "0"]
    assert lines[2:] == ["3 of 3 namespaces and threads are equal"]


@pytest.mark.usefixtures("filled")
def test_the_parts_that_differ_have_a_row_each(ok, run):
    ok("--url", TARGET, "import", "-", "--threads", "--thread", "talk", stdin=OTHER)
    done = run(*MIGRATE, "--verify", "--merge")
    lines = done.out.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("thread ")]
    assert row[:4] == ["thread", "talk", "1", "1"]
    assert lines[-1] == "2 of 3 namespaces and threads are equal"
    assert (done.code, "1 threads differ" in done.err) == (1, True)


@pytest.mark.usefixtures("filled")
def test_a_dry_run_writes_nothing(ok, fails):
    assert "no database at sqlite:./copy.db" in fails(1, *MIGRATE, "--dry-run")
    ok(*MIGRATE)
    ok("put", "users/ada", "pet", '"cat"')
    done = ok(*MIGRATE, "--dry-run", "--json").json
    assert (done["items"], done["dry_run"]) == (1, True)
    assert "pet" not in ok("--url", TARGET, "ls", "users/ada").out


@pytest.mark.usefixtures("filled")
def test_a_newer_item_of_the_target_is_kept_and_no_difference(ok):
    ok("--url", TARGET, "put", "users/ada", "diet", '"newer"')
    document = ok(*MIGRATE, "--merge", "--verify", "--json").json
    assert (document["kept_items"], document["equal"]) == (1, True)


@pytest.mark.usefixtures("filled")
def test_what_the_target_got_since_is_refused_or_overwritten(ok, fails):
    ok(*MIGRATE)
    ok("--url", TARGET, "put", "users/ada", "diet", '"newer"')
    assert "--merge" in fails(1, *MIGRATE)
    assert "newer" in ok("--url", TARGET, "get", "users/ada", "diet").out
    ok(*MIGRATE, "--overwrite")
    assert "pears" in ok("--url", TARGET, "get", "users/ada", "diet").out


@pytest.mark.usefixtures("filled")
def test_a_target_with_data_is_refused(ok, fails):
    ok("--url", TARGET, "put", "other", "k", "1")
    assert "the target is not empty" in fails(1, *MIGRATE)
    ok(*MIGRATE, "--merge")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "sqlite:./nope.db", "--to", TARGET), "no database at sqlite:./nope.db"),
        (("--from", SOURCE, "--to", "memory"), "name a database that stays"),
        (("--from", SOURCE, "--to", "sqlite:locus.db"), "the same database"),
        (("--from", SOURCE, "--to", TARGET, "--rate", "0"), "--rate is a positive number"),
        (("--from", SOURCE, "--to", TARGET, "--reembed", "nonsense"), "Known: "),
        (("--from", SOURCE, "--to", "nonsense:x"), "nonsense"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_bad_arguments_are_refused(run, tmp_path, arguments, message):
    done = run("migrate", *arguments)
    assert done.code in (1, 2)
    assert message in done.err
    assert not (tmp_path / "copy.db").exists()
