"""The API reference: every public name is in it, in exactly one place."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import locus_memory

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
HOMES = [
    *(
        "agent",
        "backends",
        "chat",
        "checkpoint",
        "conversation",
        "documents",
        "encryption",
        "errors",
        "events",
        "faces",
    ),
    *("backends.file", "backends.inmemory", "backends.oci", "backends.opensearch"),
    *("backends.oracle", "backends.postgresql", "backends.redis", "backends.sqlite"),
    "integrations.adk",
    *("integrations.anthropic", "integrations.langgraph", "integrations.locus"),
    *("integrations.key_value", "integrations.mcp", "integrations.mem0"),
    "integrations.openai_agents",
    *("integrations.pydantic_ai",),
    *("integrity", "memory"),
    "memory.providers",
    "observability",
    *("presets", "probing", "resources", "resources.backends"),
    *("messages", "registry", "retrieval", "retrieval.embedders", "retrieval.rerankers", "store"),
    *("retention", "deletion"),
    *("sync", "testing", "transfer"),
]


ELSEWHERE = ("strands", "agent_framework", "llama_index", "crewai")


def documented():
    """Return the dotted name of each entry of the reference."""
    return [
        name
        for page in PAGES
        for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
        # These have environments of their own.
        if not any(f".{each}." in name and find_spec(each) is None for each in ELSEWHERE)
    ]


def resolved(dotted):
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_no_name_is_in_two_places():
    places = Counter(id(resolved(name)) for name in documented())
    assert [name for name in documented() if places[id(resolved(name))] > 1] == []


def test_the_names_of_the_first_hour_are_on_the_first_page():
    listed = {f"locus_memory.{name}" for name in locus_memory.__all__} - {
        "locus_memory.__version__"
    }
    first = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    assert set(re.findall(r"^::: (\S+)$", first, re.MULTILINE)) == listed


def test_every_public_name_has_a_place():
    places = {id(resolved(name)) for name in documented()}
    homeless = [
        f"{home}.{name}"
        for home in HOMES
        for name in importlib.import_module(f"locus_memory.{home}").__all__
        if id(resolved(f"locus_memory.{home}.{name}")) not in places
    ]
    assert homeless == []


def test_an_entry_is_a_public_name():
    for dotted in documented():
        module, _, name = dotted.rpartition(".")
        assert name in importlib.import_module(module).__all__, dotted
