"""What importing the package costs, against importing pydantic."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from rows import Row


def _import(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


async def imports(folder: Path) -> list[Row]:
    """The least of 15 runs each, less the start of an empty interpreter."""
    del folder
    statements = ("pass", "import pydantic", "import locus_memory")
    least = dict.fromkeys(statements, float("inf"))
    for _ in range(15):
        for statement in statements:
            least[statement] = min(least[statement], _import(statement))
    theirs, ours = (least[name] - least["pass"] for name in statements[1:])
    detail = f"{ours * 1e3:.0f} ms / {theirs * 1e3:.0f} ms"
    return [Row("import locus_memory / import pydantic", ours / theirs, 2, detail)]
