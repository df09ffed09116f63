"""The command `retain`: its rule, the rules of a file, and its question."""

from __future__ import annotations

import pytest


@pytest.fixture
def filled(ok, chat):
    for number in range(4):
        ok("put", "log/ada", f"k{number}", str(number))


def test_a_rule_for_items(filled, ok, fails):
    rule = ("retain", "--namespace", "log/*", "--keep-last", "1", "--json")
    place = {"rule": 0, "namespace": ["log", "ada"], "thread_id": None, "problem": None}
    places = [{**place, "deleted": 3, "kept": 1}]
    counts = {"places": places, "items": 3, "checkpoints": 0, "threads": 0}
    assert "stdin is not a terminal" in fails(2, *rule)
    assert ok(*rule, "--dry-run").json == {**counts, "dry_run": True}
    assert ok(*rule, "--yes").json == {**counts, "dry_run": False}
    assert ok(*rule, "--yes").json["items"] == 0


def test_a_rule_for_threads(filled, ok):
    rule = ("retain", "--threads", "--idle-for", "0s", "--prefix", "cha", "--yes")
    kept = ok(*rule, "--user", "nobody", "--json").json
    assert (kept["threads"], kept["places"]) == (0, [])
    assert "deleted 0 items and 5 checkpoints, among them 1 whole threads" in ok(*rule).out


def test_the_rules_of_the_file(filled, ok, fails, write):
    assert "no rules: give --namespace or --threads" in fails(2, "retain", "--dry-run")
    table = "[[tool.locus_memory.retention]]\n"
    write("pyproject.toml", f'{table}namespace = ["log"]\nkeep_last = 2\n'.encode())
    assert ok("retain", "--dry-run", "--json").json["items"] == 2
    write("pyproject.toml", f"{table}keep = 2\n".encode())
    assert "retention[0]: unknown field 'keep'" in fails(1, "retain", "--dry-run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep-last", "1"), "a limit belongs to a rule"),
        (("--threads", "--keep-last", "0"), "keep_last is a number of at least 1"),
        (("--threads", "--namespace", "log", "--keep-last", "1"), "--namespace and --threads are"),
        (("--threads", "--older-than", "soon"), "invalid age 'soon'"),
        (("--threads", "--metadata", "3"), "--metadata takes a JSON object"),
        (("--namespace", "locus_memory/users", "--keep-last", "1"), "does not begin with"),
        (("--namespace", "log", "--idle-for", "1d"), "unknown field 'idle_for'"),
    ],
)
def test_what_is_no_rule_is_refused(filled, fails, options, message):
    assert message in fails(2, "retain", "--dry-run", *options)
