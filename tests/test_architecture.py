"""Imports point one way: no module needs one that needs it, not even inside a function."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


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


def import_graph():
    paths = {module_name(path): path for path in (ROOT / "locus_memory").rglob("*.py")}
    return {
        name: paths.keys() & set(imports_of(ast.parse(path.read_text("utf-8")).body, paths))
        for name, path in paths.items()
    }


def test_no_import_leads_round_in_a_circle():
    graph = import_graph()
    assert "locus_memory.checkpoint.chain" in graph["locus_memory.backends.sqlite.checkpoints"]
    # It raises CycleError with the modules of the circle.
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


@pytest.mark.parametrize("room", ["checkpoint", "conversation", "memory", "retrieval", "store"])
def test_what_knows_the_contracts_knows_no_backend(room):
    inside = f"locus_memory.{room}"
    found = {
        (name, other)
        for name, others in import_graph().items()
        for other in others
        if name.startswith(inside) and other.startswith("locus_memory.backends.")
    }
    assert {pair for pair in found if pair[1] != "locus_memory.backends.base"} == set()
