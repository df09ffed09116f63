"""The list of the pages for language models, and what is made beside the pages."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from locus_memory import __version__

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "tests" / "benchmarks"
DOCS = ROOT / "docs"
LISTED = (DOCS / "llms.txt").read_text(encoding="utf-8")
LINK = re.compile(r"- \[([^]]+)\]\(([^)]+)\): \S.*")


@pytest.fixture
def hooks():
    found = importlib.util.spec_from_file_location("mkdocs_hooks", ROOT / ".mkdocs.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def heading(path):
    return (DOCS / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def navigation():
    """Return the title and the path of each page, by the groups of the navigation."""
    text = (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
    groups = {}
    for line in text.partition("\nnav:\n")[2].partition("\n\n")[0].splitlines():
        if group := re.fullmatch(r"  - (.+):", line):
            pages = groups.setdefault(group[1], [])
        elif page := re.fullmatch(r" {6,}- (?:(.+): )?(\S+\.md)", line):
            pages.append((page[1] or heading(page[2]), page[2]))
    return groups


def test_llms_txt_lists_the_pages_of_the_navigation():
    title, *sections = re.split(r"^## ", LISTED, flags=re.MULTILINE)
    assert re.match(r"# locus_memory\n\n(> .+\n)+\n", title)
    listed = {}
    for section in sections:
        name, _, lines = section.partition("\n")
        listed[name] = [LINK.fullmatch(line).groups() for line in lines.strip().splitlines()]
    assert list(listed.items()) == list(navigation().items())


def test_each_page_that_llms_txt_lists_is_there():
    paths = {path for _, path in LINK.findall(LISTED)}
    assert paths == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_each_page_of_the_site_says_the_version(hooks):
    config = SimpleNamespace(copyright=None)
    assert hooks.on_config(config) is config
    assert __version__ in config.copyright


def test_the_links_of_llms_txt_lead_somewhere_on_the_site_too(hooks, tmp_path):
    for _, path in LINK.findall(LISTED):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    hooks.on_post_build(SimpleNamespace(docs_dir=str(DOCS), site_dir=str(tmp_path)))
    for _, path in LINK.findall(LISTED):
        assert (tmp_path / path).read_bytes() == (DOCS / path).read_bytes()


def asked():
    """Return the questions that the benchmark of documents asks of these pages."""
    tables = sorted(BENCHMARKS.glob("documents_*.tsv"))
    lines = [line for path in tables for line in path.read_text("utf-8").splitlines()]
    unrelated = (BENCHMARKS / "unrelated.txt").read_text("utf-8").splitlines()
    return [*filter(None, unrelated), *(line.split("\t")[2] for line in lines if line)]


def test_no_page_quotes_a_question_that_the_benchmarks_ask_of_it():
    questions = asked()
    assert len(questions) > 200
    for path in DOCS.rglob("*.md"):
        text = " ".join(path.read_text("utf-8").split()).casefold()
        assert [each for each in questions if each.casefold() in text] == [], path
