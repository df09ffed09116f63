"""The table in `docs/writing-a-backend.md` is true: one role, one file name, in every backend."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKENDS = ROOT / "locus_memory" / "backends"
PAGE = (ROOT / "docs" / "writing-a-backend.md").read_text("utf-8")
ROW = re.compile(r"^\| `([a-z_/]+\.py)` \|[^|]+\| (?:`\*(\w+)`)? ?\| ([a-z, ]+) \|$", re.MULTILINE)
ROLES = [(file, suffix, set(names.split(", "))) for file, suffix, names in ROW.findall(PAGE)]
FOLDERS = {path.parent.name: path.parent for path in BACKENDS.glob("*/backend.py")}


def test_the_table_is_read_whole():
    assert len(ROLES) == PAGE.count("\n| `") - PAGE.count("\n| `", 0, PAGE.index("| role |"))
    assert {name for _, _, names in ROLES for name in names} == set(FOLDERS)


@pytest.mark.parametrize(("file", "suffix", "names"), ROLES, ids=[role[0] for role in ROLES])
def test_a_role_has_its_file_where_the_table_says(file, suffix, names):
    for backend, folder in FOLDERS.items():
        found = list(folder.rglob(Path(file).name))
        assert bool(found) == (backend in names), backend
        # A role that has outgrown its file is a folder of the same name.
        places = {folder / file, folder / file.removesuffix(".py") / file, folder / "items" / file}
        assert set(found) <= places, backend


@pytest.mark.parametrize(("file", "suffix"), [(f, s) for f, s, _ in ROLES if s])
def test_a_role_has_a_class_of_its_name(file, suffix):
    for path in BACKENDS.glob(f"*/{file}"):
        classes = [
            node.name
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.ClassDef)
        ]
        assert any(name.endswith(suffix) for name in classes), path
