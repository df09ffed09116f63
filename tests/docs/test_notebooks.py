"""Each notebook of the documentation, run from an empty kernel, shows what is stored in it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path

import pytest

pytest.importorskip("langchain")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
PICTURE = "text/html"


async def run(cells):
    """Run the cells one after the other, as a kernel does; return the value of each."""
    names, values = {"__name__": "__main__"}, []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
        code = compile(
            ast.fix_missing_locations(tree), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        names["_"] = None
        running = eval(code, names)
        if inspect.iscoroutine(running):
            await running
        values.append(names["_"])
    return values


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [each for each in json.loads(path.read_text("utf-8"))["cells"] if "outputs" in each]
    pictures = 0
    for cell, value in zip(cells, asyncio.run(run(cells)), strict=True):
        [stored] = [each["data"] for each in cell["outputs"]] or [{}]
        assert (PICTURE in stored) == hasattr(value, "_repr_html_"), cell["source"]
        if PICTURE in stored:
            pictures += value._repr_html_().startswith("<table>")
        elif stored:
            assert ast.literal_eval("".join(stored["text/plain"])) == value
        else:
            assert value is None
    assert pictures >= 3
