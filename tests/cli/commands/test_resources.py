"""The commands on resources, and the list of presets."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.registry import open_backend
from locus_memory.resources.tree import MemoryTree


@pytest.fixture
def written(empty_directory):
    async def write():
        async with open_backend("sqlite:./locus.db") as backend:
            tree = MemoryTree(backend.store)
            await tree.write("memory://notes/boat", "# Boat\n\nThe mast is spruce.\x1b[31m")
            await tree.write("memory://notes/boat", "# Boat\n\nThe mast is oak.\x1b[31m")
            await tree.write("memory://notes/log/1", "High water at noon.")
            await tree.for_user("ada").write("memory://mine", "Of Ada.")

    asyncio.run(write())
    return empty_directory


@pytest.mark.usefixtures("written", "on_a_pipe")
class TestResources:
    def test_the_tree(self, ok, run):
        assert ok("tree").out.splitlines() == [
            "memory://notes/\t",
            "memory://notes/log/\t",
            "memory://notes/boat\t29",
        ]
        assert ok("tree", "--user", "ada").out == "memory://mine\t7\n"
        assert "no resources for user 'noor'" in run("tree", "--user", "noor").err
        page = run("tree", "--depth", "9", "--limit", "2")
        assert "more: locus-memory tree --depth 9 --after memory://notes/log/ --limit 2" in page.err
        document = ok("tree", "memory://notes/", "--json").json
        assert document["entries"][0] == {
            "name": "log",
            "uri": "memory://notes/log/",
            "is_dir": True,
            "size": None,
        }
        assert document["next"] is None

    def test_the_text(self, ok):
        assert ok("cat", "memory://notes/boat").out == "# Boat\n\nThe mast is oak.\\x1b[31m\n"
        assert ok("cat", "memory://notes/boat", "--level", "abstract").out.startswith("Boat: The")
        assert "spruce" in ok("cat", "memory://notes/boat", "--version", "1").out
        assert "- boat" in ok("cat", "memory://notes", "--level", "overview").out
        document = ok("cat", "memory://notes/boat", "--json").json
        assert (document["version"], document["level"]) == (2, "detail")

    def test_finding(self, ok, run):
        assert ok("find", "water").out.split("\t")[1] == "memory://notes/log/1"
        assert "nothing found" in run("find", "water", "--under", "memory://notes/boat").err
        assert ok("find", "mast", "--json").json["hits"][0]["level"] == "detail"

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["cat", "memory://nothing"], 1, "nothing has this URI"),
            (["cat", "memory://notes"], 1, "it is a folder"),
            (["cat", "nothing"], 2, "a URI begins with memory://"),
            (["tree", "memory://a/../b"], 2, "is no segment"),
            (["tree", "memory://nothing"], 1, "no such folder"),
        ],
    )
    def test_errors(self, run, arguments, code, message):
        result = run(*arguments)
        assert result.code == code
        assert message in result.err


@pytest.mark.usefixtures("on_a_pipe")
def test_presets(ok, run, empty_directory):
    assert "no presets" in run("presets").err
    (empty_directory / "pyproject.toml").write_text(
        "[tool.locus_memory.presets]\n"
        'here = "sqlite:./locus.db"\n'
        'prod = { url = "postgresql:${DATABASE}", schema = "a" }\n',
        "utf-8",
    )
    lines = ok("presets").out.splitlines()
    assert lines[0].split("\t")[:3] == ["@here", "sqlite:./locus.db", ""]
    assert lines[1].split("\t")[:3] == ["@prod", "postgresql:${DATABASE}", "schema"]
    assert ok("presets", "--json").json["presets"][1]["options"] == {"schema": "a"}
    ok("put", "notes", "k", '"text"', "--url", "@here")
    assert "k" in ok("--url", "@here", "ls", "notes").out
    assert "DATABASE" in run("ls", "--url", "@prod").err
    assert run("ls", "--url", "@nothing").code == 2
