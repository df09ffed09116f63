"""Every example of the README and the documentation, run as a reader would run it.

A fenced block's language, and words behind it, say what happens to it:

- `python` runs in an empty folder, top-level `await` allowed; its comments `#> text` are what
  it prints, all of it. With `fails`, it must end in the error its last comment `#> ` names.
- `python pytest` is a test file: pytest must pass it. It sees the `python` block before it on
  the page as the module `before`.
- `console` holds commands after `$ ` and what they print; a page's blocks share a folder, and
  each command of `locus-memory` runs. A line `...` stands for any lines, `...` within a line
  for any text. With `any-output`, the commands need only succeed.
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
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```([a-z]+)([ a-z-]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
KINDS = {"python", "console", "sh", "toml", "text", "json"}
COMMAND = Path(sys.executable).with_name("locus-memory")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    words: frozenset[str]
    code: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        indent, language, words, code = found.groups()
        lines = [line.removeprefix(indent) for line in code.splitlines()]
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, language, frozenset(words.split()), "\n".join(lines) + "\n")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
SCRIPTS = [block for block in PYTHON if "pytest" not in block.words]
TESTS = [block for block in PYTHON if "pytest" in block.words]
CONSOLES = sorted({block.page for block in BLOCKS if block.language == "console"})


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PATH", str(COMMAND.parent), prepend=os.pathsep)
    return tmp_path


def test_every_fence_is_understood():
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(blocks_of(page))), page
    for block in BLOCKS:
        assert block.language in KINDS, block
        assert block.words <= {"pytest", "fails", "any-output"}, block


def execute(block):
    code = compile(
        block.code, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    names = {"__name__": "__main__"}
    running = eval(code, names)
    if inspect.iscoroutine(running):
        asyncio.run(running)


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_python(block, empty_folder, capsys):
    expected = re.findall(r"#> ?(.*)", block.code)
    if "fails" in block.words:
        with pytest.raises(LocusMemoryError) as caught:
            execute(block)
        error = f"{type(caught.value).__name__}: {caught.value}"
        assert [*capsys.readouterr().out.splitlines(), error] == expected
    else:
        execute(block)
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


def matches(expected, printed):
    """Whether the output is what the page shows; see the top of this file."""
    lines = []
    for line in expected:
        parts = [re.escape(part) for part in line.rstrip().split("...")]
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
            if "any-output" in block.words:
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
    ],
)
def test_what_counts_as_the_same_output(expected, printed, same):
    assert matches(expected, printed) is same
