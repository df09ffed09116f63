"""Imports point one way, and the picture in `docs/architecture.md` shows where.

Run this file to draw the picture again.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from locus_memory.backends.providers import PROVIDERS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "locus_memory"
PAGE = ROOT / "docs" / "architecture.md"
MOST_FILES = 14
"""How many modules a folder has at most, its `__init__.py` included."""

# The rooms of the house, each with its label and its modules: the longest prefix decides.
ROOMS = {
    "web": ("web", ["web"]),
    "cli": ("cli", ["cli", "__main__", "samples"]),
    "plug": ("plug", ["plug"]),
    "inspection": ("inspection", ["inspection"]),
    "integrations": ("integrations", ["integrations"]),
    "evaluation": ("evaluation", ["evaluation"]),
    "sync": ("sync<br/>faces", ["sync", "faces"]),
    "testing": ("testing", ["testing"]),
    "integrity": ("integrity<br/>retention, deletion", ["integrity", "retention", "deletion"]),
    "transfer": ("transfer", ["transfer"]),
    "observability": ("observability", ["observability"]),
    "agent": ("agent<br/>tools", ["agent", "tools"]),
    "resources": ("resources", ["resources"]),
    "memory": ("memory", ["memory"]),
    "documents": ("documents", ["documents"]),
    "conversation": ("conversation", ["conversation"]),
    "chat": ("chat", ["chat"]),
    "views": ("store.view", ["store.view"]),
    "retrieval": ("retrieval", ["retrieval"]),
    "wrappers": (
        "store.wrappers<br/>store.opening<br/>encryption",
        ["store.wrappers", "store.opening", "encryption"],
    ),
    "embedders": (
        "retrieval.embedders<br/>retrieval.rerankers",
        ["retrieval.embedders", "retrieval.rerankers", "retrieval.embedding"],
    ),
    "registry": ("registry<br/>presets", ["registry", "presets", "probing"]),
    "backends": ("backends: sqlite, postgresql, ...", ["backends"]),
    "shared": ("backends: what they share", []),
    "store": ("store<br/>(contract 1)", ["store"]),
    "checkpoint": ("checkpoint<br/>(contract 2)", ["checkpoint"]),
    "base": (
        "errors, events, messages, state<br/>_internal",
        ["errors", "events", "messages", "state", "_internal"],
    ),
}


def module_name(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(nodes, modules):
    """Yield the modules that a piece of code imports, wherever the import stands."""
    for node in nodes:
        if is_for_type_checkers(node):
            yield from imports_of(node.orelse, modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from imports_of(ast.iter_child_nodes(node), modules)


@cache
def import_graph():
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    return {
        name: paths.keys() & set(imports_of(ast.parse(path.read_text("utf-8")).body, paths))
        for name, path in paths.items()
    }


def packages_of(module):
    """Return the packages that a module is in."""
    return {module[:at] for at, letter in enumerate(module) if letter == "."}


def loading_graph():
    """Return what each module loads: what it imports, and the packages of that it is not in."""
    return {
        name: others.union(*map(packages_of, others)) - packages_of(name) - {name} | others
        for name, others in import_graph().items()
    }


def room_of(module):
    """Return the room of a module; `None` for the package itself, which only names others."""
    name = module.removeprefix("locus_memory").removeprefix(".")
    if name.startswith("backends.") and (PACKAGE / f"{name.replace('.', '/')}.py").is_file():
        return "shared" if name.count(".") == 1 else "backends"
    prefixes = {prefix: room for room, (_, found) in ROOMS.items() for prefix in found}
    known = [prefix for prefix in prefixes if f"{name}.".startswith(f"{prefix}.")]
    return prefixes[max(known, key=len)] if known else None


def room_graph():
    """Return which rooms each room imports from."""
    rooms = {room: set() for room in ROOMS}
    for module, others in import_graph().items():
        if (room := room_of(module)) is not None:
            rooms[room] |= {room_of(other) for other in others} - {room, None}
    return rooms


def reduced(rooms):
    """Return the arrows that no longer way makes needless, from the top to the bottom."""
    reach = {}
    for room in TopologicalSorter(rooms).static_order():
        reach[room] = rooms[room].union(*(reach[other] for other in rooms[room]))
    return [
        (room, other)
        for room in ROOMS
        for other in ROOMS
        if other in rooms[room] and not any(other in reach[via] for via in rooms[room] - {other})
    ]


def picture():
    rooms = room_graph()
    arrows = [f"    {room} --> {other}" for room, other in reduced(rooms)]
    return "\n".join(
        [
            "```mermaid",
            "graph TD",
            *(f'    {room}["{label}"]' for room, (label, _) in ROOMS.items()),
            *arrows,
            "    registry -. by name, at first use .-> backends",
            "    cli -. by name, at first use .-> web",
            "    conversation -. by name, at first use .-> chat",
            "```",
        ]
    )


def drawn():
    """Return the picture that the page shows."""
    text = PAGE.read_text("utf-8")
    start = text.index("```mermaid\ngraph TD\n")
    return text[start : text.index("\n```", start) + 4]


@pytest.mark.slow
def test_no_import_leads_round_in_a_circle():
    """So each module can be the first one that is imported."""
    graph = loading_graph()
    assert "locus_memory.checkpoint.chain" in graph["locus_memory.backends.sqlite.checkpoints"]
    assert "locus_memory.checkpoint" in graph["locus_memory.backends.sqlite.checkpoints"]
    # It raises CycleError with the modules of the circle.
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


@pytest.mark.slow
def test_no_arrow_between_rooms_runs_back_up():
    rooms = room_graph()
    order = list(TopologicalSorter(rooms).static_order())
    assert order.index("base") < order.index("store") < order.index("backends")
    assert all(room_of(module) for module in import_graph() if module != "locus_memory")


@pytest.mark.slow
def test_the_picture_is_that_of_the_imports():
    assert drawn() == picture()


def test_what_the_table_says_to_open_is_there():
    table = PAGE.read_text("utf-8").partition("## Where to make a change")[2]
    rows = [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        folders = [PACKAGE]
        for path in re.findall("`([^`]+)`", row):
            # A name alone is a file beside the one before it, or in its folder.
            found = [each for folder in folders for each in folder.glob(path)]
            assert found, (row, path)
            folders = [PACKAGE, *{each if each.is_dir() else each.parent for each in found}]


def test_what_is_imported_by_name_is_a_backend():
    targets = {
        target
        for provider in PROVIDERS.values()
        for target in (provider.store, provider.checkpointer, provider.backend)
        if target
    }
    assert {room_of(target.partition(":")[0]) for target in targets} == {"backends"}


@pytest.mark.parametrize(
    "room", ["checkpoint", "conversation", "memory", "resources", "retrieval", "store"]
)
def test_what_knows_the_contracts_knows_no_backend(room):
    inside = f"locus_memory.{room}"
    found = {
        (name, other)
        for name, others in import_graph().items()
        for other in others
        if name.startswith(inside) and room_of(other) == "backends"
    }
    assert found == set()


FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
class TestFolders:
    def test_it_can_be_overlooked(self, folder):
        assert len(list(folder.glob("*.py"))) <= MOST_FILES

    def test_it_says_what_lives_there(self, folder):
        [first, *rest] = ast.get_docstring(
            ast.parse((folder / "__init__.py").read_text("utf-8"))
        ).split("\n\n")
        assert first.endswith((".", ":")), first
        if len(list(folder.glob("*.py"))) > 5:
            assert any("Read " in text or "read them" in text for text in rest), folder


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").replace(drawn(), picture()), "utf-8")
