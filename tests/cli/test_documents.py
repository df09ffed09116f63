"""The commands `docs`."""

import asyncio

import pytest

from locus_memory import get_documents
from locus_memory.retrieval.embedders import registry
from locus_memory.testing import FakeEmbedder


@pytest.fixture
def folder(empty_directory, tmp_path):
    place = tmp_path / "handbook"
    place.mkdir()
    (place / "pay.md").write_text("# Pay\n\nInvoices are paid on the fifteenth.\n")
    (place / "odd.txt").write_bytes(b"\x00\x01")
    (place / "room.txt").write_bytes("Der K\u00e4fig ist geschlossen.".encode("cp1252"))
    return place


@pytest.mark.slow
def test_files_are_added_found_listed_and_removed(ok, run, fails, folder):
    done = ok("docs", "add", str(folder), "--json").json
    assert [done[name] for name in ("added", "updated", "unchanged", "deleted", "chunks")] == [
        *(2, 0, 0, 0, 2)
    ]
    assert done["skipped"] == [{"path": "odd.txt", "reason": "it is binary"}]
    assert [each["path"] for each in done["notes"]] == ["room.txt"]
    again = run("docs", "add", str(folder))
    assert "skipped odd.txt: it is binary" in again.err
    assert again.out.split()[5:] == ["0", "0", "2", "0", "0"]

    found = ok("docs", "search", "when is an invoice paid", "--limit", "1", "--json").json
    [hit] = found["results"]
    assert hit["source"] == "pay.md"
    assert hit["metadata"]["heading"] == "Pay"
    assert hit["score"] > 0.5
    assert "pay.md:1" in ok("docs", "search", "invoice").out
    assert "nothing found" in ok("docs", "search", "quintet", "--min-score", "0.5").out

    listed = ok("docs", "ls", "--json").json
    assert [each["source"] for each in listed["documents"]] == ["pay.md", "room.txt"]
    first = ok("docs", "ls", "--limit", "1", "--json").json
    rest = ok("docs", "ls", "--after", first["next"], "--json").json
    assert [each["source"] for each in rest["documents"]] == ["room.txt"]
    assert ok("docs", "--json").json == listed

    assert ok("docs", "rm", "pay.md", "--json").json == {"source": "pay.md", "chunks": 1}
    assert "no document 'pay.md'" in fails(1, "docs", "rm", "pay.md")
    assert ok("docs", "rm", "--all", "--yes", "--json").json["chunks"] == 1
    assert ok("docs", "ls", "--json").json == {"documents": [], "next": None}


def test_a_path_that_is_not_there_makes_no_database(fails, empty_directory):
    assert "no file and no folder 'nowhere'" in fails(2, "docs", "add", "nowhere")
    assert not list(empty_directory.iterdir())


def test_what_is_gone_is_pruned(ok, run, folder):
    run("docs", "add", str(folder), "--prefix", "hb/", "--metadata", '{"team":"red"}')
    (folder / "pay.md").unlink()
    done = run(
        "docs", "add", str(folder), "--prefix", "hb/", "--prune", "--metadata", '{"team":"red"}'
    )
    assert done.out.split()[5:] == ["0", "0", "1", "1", "0"]
    found = ok("docs", "search", "K\u00e4fig", "--filter", '{"team":"red"}', "--json").json
    assert [each["source"] for each in found["results"]] == ["hb/room.txt"]
    assert (
        ok("docs", "search", "K\u00e4fig", "--filter", '{"team":"blue"}', "--json").json["results"]
        == []
    )


def test_a_document_is_removed_by_its_id_without_others_of_its_source(ok, empty_directory):
    async def stored():
        async with get_documents("sqlite:./kb.db", kind="text") as index:
            await index.add("A plum grows.", source="a.txt")
            return await index.store("A note on the plum.", source="a.txt")

    url = ("--url", "sqlite:./kb.db")
    note = asyncio.run(stored())
    assert ok(*url, "docs", "rm", note, "--json").json == {"source": note, "chunks": 1}
    [left] = ok(*url, "docs", "search", "plum", "--json").json["results"]
    assert left["content"] == "A plum grows."


def test_vectors_come_from_a_named_model(ok, run, folder, monkeypatch):
    monkeypatch.setattr(registry, "get_embedder", lambda name: FakeEmbedder())
    run("docs", "add", str(folder), "--embedder", "fake")
    found = ok("docs", "search", "invoice", "--embedder", "fake", "--json").json
    assert found["results"][0]["source"] == "pay.md"
    said = run("docs", "search", "invoice")
    assert said.code == 0
    assert f"words only: the index has vectors of {FakeEmbedder().name}" in said.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("docs", "rm"), "--all"),
        (("docs", "rm", "a", "--all"), "--all"),
        (("docs", "search", "a", "--min-score", "2"), "--min-score"),
        (("docs", "add", ".", "--metadata", "[]"), "--metadata"),
    ],
)
def test_a_wrong_call_is_a_usage_error(fails, arguments, says, empty_directory):
    assert says in fails(2, *arguments)


def test_a_missing_folder_is_an_error(fails, empty_directory):
    assert "there is no file and no folder" in fails(2, "docs", "add", "nowhere")
