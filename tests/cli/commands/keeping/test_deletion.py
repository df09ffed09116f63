"""The commands `compact` and `audit-deletion`."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_the_report_names_every_place(ok, run, fails):
    ok("put", "users/ada", "k", '"the xylophonist"')
    ok("put", "users/bob", "k", '"nothing"')
    before = run("audit-deletion", "Xylophonist", "--json")
    assert before.code == 1
    assert before.json["found"] >= 2
    told = run("audit-deletion", "Xylophonist")
    assert (told.out + told.err).count("the deletion is not proven") == 1
    assert "found in users/ada k" in told.out
    assert before.json["places"][0]["where"] == ["users/ada k"]
    assert "erase what is named with forget or rm" in told.err
    ok("forget", "--user", "ada", "--yes")
    sizes = ok("compact", "--json").json["disk_bytes"]
    assert sizes["before"] >= sizes["after"] > 0
    assert ok("compact").out.startswith("on disk: ")
    report = ok("audit-deletion", "Xylophonist", "penicillin", "--json")
    assert "xylophon" not in report.out.lower()
    assert report.json.keys() == {
        "proven", "found", "words", "provider", "at", "version", "places",
    }  # fmt: skip
    assert (report.json["proven"], report.json["found"], report.json["words"]) == (True, 0, 2)
    assert len(report.json["places"]) == 7
    assert report.json["places"][0].keys() == {
        "name", "how", "bytes", "found", "problem", "limit", "where",
    }  # fmt: skip
    assert "no word was found" in ok("audit-deletion", "Xylophonist").out
    assert "at least 4 characters" in fails(2, "audit-deletion", "xyl")
