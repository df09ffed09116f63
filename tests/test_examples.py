"""Every example of the README and the documentation, run as a reader would run it.

A fenced block's language, and a comment such as `<!-- fails -->` before it, say what happens to
it:

- `python` runs in an empty folder, top-level `await` allowed; its comments `# > text` are what
  it prints, all of it. Marked `fails`, it must end in the error its last comment `# > ` names.
- `python`, marked `pytest`, is a test file: pytest must pass it. It sees the `python` block
  before it on the page as the module `before`.
- `console` holds commands after `$ ` and what they print; a page's blocks share a folder, and
  each command of `locus-memory` runs. Made-up ids, moments, sizes and scores may differ. A line
  `...` stands for any lines, `...` within a line for any text. Marked `any-output`, the
  commands need only succeed. `docs/cli.md` has a test of its own, `tests/cli/test_docs.py`.

The pages `docs/backends/postgresql.md` and `redis.md` have a server each: one whose databases
include `mydb`, found by the environment variables of PostgreSQL, and one that takes the place
of `localhost:6379`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from locus_memory.errors import LocusMemoryError

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?:<!-- ([a-z-]+) -->\n\n)?( *)```([a-z]+)\n(.*?)^\2```$", re.DOTALL | re.MULTILINE
)
OWN_TEST = ROOT / "docs" / "cli.md"
KINDS = {"python", "console", "sh", "toml", "text", "json"}
COMMAND = Path(sys.executable).with_name("locus-memory")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    mark: str | None
    code: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        mark, indent, language, code = found.groups()
        lines = [line.removeprefix(indent) for line in code.splitlines()]
        line = text.count("\n", 0, found.start(3)) + 1
        yield Block(page, line, language, mark, "\n".join(lines) + "\n")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
SCRIPTS = [block for block in PYTHON if block.mark != "pytest"]
TESTS = [block for block in PYTHON if block.mark == "pytest"]
CONSOLES = sorted({block.page for block in BLOCKS if block.language == "console"} - {OWN_TEST})


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PATH", str(COMMAND.parent), prepend=os.pathsep)
    return tmp_path


def test_every_fence_is_understood():
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(blocks_of(page))), page
    for block in BLOCKS:
        assert block.language in KINDS, block
        assert block.mark in {None, "pytest", "fails", "any-output"}, block


@pytest.fixture
def server(request, monkeypatch):
    """The server of the block's page, if it has one; see the top of this file."""
    page = request.getfixturevalue("block").page
    if page.parent.name != "backends":
        return None
    found = request.getfixturevalue(f"{page.stem}_server")
    if page.stem == "postgresql":
        if not found.run("SELECT 1 FROM pg_database WHERE datname = 'mydb'"):
            found.run("CREATE DATABASE mydb")
        for name, value in (("HOST", "127.0.0.1"), ("PORT", found.port), ("USER", "locus")):
            monkeypatch.setenv(f"PG{name}", str(value))
    return found


def execute(block, server=None):
    source = block.code
    if block.page.stem == "redis":
        source = source.replace("localhost:6379", f"localhost:{server.port}")
    code = compile(
        source, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    names = {"__name__": "__main__"}
    running = eval(code, names)
    if inspect.iscoroutine(running):
        asyncio.run(running)


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_python(block, empty_folder, capsys, server):
    expected = re.findall(r"# > ?(.*)", block.code)
    if block.mark == "fails":
        with pytest.raises(LocusMemoryError) as caught:
            execute(block, server)
        error = f"{type(caught.value).__name__}: {caught.value}"
        assert [*capsys.readouterr().out.splitlines(), error] == expected
    else:
        execute(block, server)
        assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("block", TESTS, ids=str)
def test_python_tests(block, empty_folder):
    before = [each for each in SCRIPTS if each.page == block.page and each.line < block.line]
    if before:
        (empty_folder / "before.py").write_text(before[-1].code, encoding="utf-8")
    (empty_folder / "test_example.py").write_text(block.code, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_example.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* passed", done.stdout)


VARIES = re.compile(
    r"\b[0-9a-f]{12,}\b"  # made-up ids
    r"|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?"  # moments
    r"|\b\d{1,3}(?:,\d{3})+\b|\b\d+\.\d+"  # sizes, scores, ratios and versions
    r"|(?<=process )\d+"
)


def settled(line):
    """Return a line without what differs from run to run or from machine to machine."""
    return re.sub(r" +", " ", VARIES.sub("#", line)).rstrip()


def matches(expected, printed):
    """Whether the output is what the page shows; see the top of this file."""
    printed = "".join(f"{settled(line)}\n" for line in printed.splitlines())
    lines = []
    for line in map(settled, expected):
        parts = [re.escape(part) for part in line.split("...")]
        lines.append(
            r"(?:[^\n]*\n)*?" if line.strip() == "..." else r"[^\n]*".join(parts) + r" *\n"
        )
    return re.fullmatch("".join(lines), printed) is not None


def commands_of(block):
    """Return each command of a console block with the lines it prints."""
    commands = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands[-1][0].endswith("\\"):
            command, printed = commands.pop()
            commands.append((command + "\n" + line.removeprefix("> "), printed))
        else:
            commands[-1][1].append(line)
    return commands


@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.name)
def test_console(page, empty_folder):
    for block in blocks_of(page):
        if block.language != "console":
            continue
        for command, expected in commands_of(block):
            done = subprocess.run(
                command,
                shell=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
            )
            assert "Traceback" not in done.stdout, (str(block), command, done.stdout)
            if block.mark == "any-output":
                assert done.returncode == 0, (str(block), command, done.stdout)
            else:
                shown = "\n".join(expected)
                assert matches(expected, done.stdout), (
                    f"{block}: $ {command}\n--- shown\n{shown}\n--- printed\n{done.stdout}"
                )


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a ... c"], "a b c\n", True),
        (["a ... c"], "a b d\n", False),
        (["a"], "a\nb\n", False),
        ([], "a\n", False),
        (["x  1,234 2026-01-01 10:00"], "x 99,234 2027-01-01 11:00\n", True),
        (["x@0123456789ab 12"], "x@ba9876543210 12\n", True),
        (["x 12"], "x 13\n", False),
    ],
)
def test_what_counts_as_the_same_output(expected, printed, same):
    assert matches(expected, printed) is same
