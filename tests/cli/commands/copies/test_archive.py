from __future__ import annotations

import pytest

COPY = ("--url", "sqlite:./copy.db")


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
def test_an_archive_and_back(ok, fails):
    done = ok("export", "--format", "archive", "--output", "all.zip", "--json").json
    assert (done["path"], done["version"], done["checkpoints"]) == ("all.zip", 1, 1)
    assert "exists" in fails(1, "export", "--format", "archive", "--output", "all.zip")
    ok("export", "--format", "archive", "--output", "all.zip", "--force")
    report = ok(*COPY, "import", "all.zip", "--json").json
    assert (report["items"], report["checkpoints"]) == (done["items"], 1)
    item = ok(*COPY, "get", "users/ada", "diet", "--json").json
    assert (item["value"], item["version"]) == ({"likes": "pears"}, 2)
    assert ok(*COPY, "export", "talk").out == ok("export", "talk").out
    assert ok(*COPY, "import", "all.zip", "--json").json["items"] == 0


@pytest.mark.usefixtures("filled")
def test_a_broken_archive_creates_nothing(ok, fails, tmp_path):
    ok("export", "--format", "archive", "--output", "all.zip")
    (tmp_path / "half.zip").write_bytes((tmp_path / "all.zip").read_bytes()[:200])
    assert "truncated" in fails(1, *COPY, "import", "half.zip")
    assert not (tmp_path / "copy.db").exists()


def test_options_that_have_no_meaning(fails):
    assert "needs --output" in fails(2, "export", "--format", "archive")
    assert "--format archive" in fails(2, "export", "talk", "--output", "x.zip")


@pytest.mark.usefixtures("filled")
def test_a_backup_and_back(ok, fails, tmp_path):
    done = ok("backup", "saved.db", "--json").json
    assert (done["path"], done["checkpoints"]) == ("saved.db", 1)
    assert "exists" in fails(1, "backup", "saved.db")
    ok("put", "users/ada", "pet", '"cat"')
    assert "exists" in fails(1, "restore", "saved.db")
    report = ok("restore", "saved.db", "--force", "--json").json
    assert (report["path"], report["checkpoints"], report["aside"]) == ("locus.db", 1, None)
    assert "pet" not in ok("ls", "users/ada").out
    ok(*COPY, "restore", "saved.db")
    assert ok(*COPY, "export", "talk").out == ok("export", "talk").out
    assert "SQLite" in fails(2, "--url", "memory", "backup", "x.db")
    assert "no database" in fails(1, "--url", "sqlite:./none.db", "backup", "x.db")
    assert not (tmp_path / "x.db").exists()
