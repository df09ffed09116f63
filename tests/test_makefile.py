"""What `make` would do in a new clone, and in one that is set up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.long_properties import LONG_PROPERTIES

ROOT = Path(__file__).parents[1]
DEMO, EVERYTHING = "install --quiet --editable '.[ui]'", "install --quiet --editable '.[dev]'"

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


@pytest.fixture
def clone(tmp_path):
    """A folder with what `make` looks at."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def steps(clone, target):
    """Return the commands that the target would run."""
    # This may run within `make test` itself.
    environment = {name: it for name, it in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--dry-run", target],
        cwd=clone,
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout


def set_up(clone, *stamps):
    """Leave behind what a target left that ended well."""
    (clone / ".venv").mkdir()
    for stamp in stamps:
        (clone / ".venv" / stamp).touch()


@pytest.mark.slow
def test_the_demo_installs_the_command_line_and_the_pages_alone(clone):
    planned = steps(clone, "demo")
    assert "-m venv .venv" in planned
    assert DEMO in planned
    assert EVERYTHING not in planned


def test_the_demo_ends_with_the_line_that_opens_the_pages_on_what_it_made(clone):
    set_up(clone, ".made", ".demo-ready")
    *_, last = steps(clone, "demo").strip().splitlines()
    assert last.strip() == (
        '&& echo "To look at it in a browser: cd $folder && ../../.venv/bin/locus-memory ui"'
    )


def test_after_the_demo_the_rest_is_installed_into_the_same_environment(clone):
    set_up(clone, ".made", ".demo-ready")
    assert "install" not in steps(clone, "demo")
    planned = steps(clone, "test")
    assert EVERYTHING in planned
    assert "-m venv" not in planned


def test_the_demo_takes_what_is_set_up(clone):
    set_up(clone, ".made", ".ready")
    assert "install" not in steps(clone, "demo")
    assert "install" not in steps(clone, "test")


@pytest.mark.parametrize("stamps", [[".made", ".ready"], [".made", ".demo-ready"]])
def test_other_dependencies_are_installed(clone, stamps):
    set_up(clone, *stamps)
    stamp = clone / ".venv" / stamps[-1]
    os.utime(stamp, (0, 0))
    assert (EVERYTHING if ".ready" in stamps else DEMO) in steps(clone, "demo")


@pytest.mark.slow
def test_what_the_quick_tests_leave_out_is_there(clone):
    left_out = re.findall(r"--ignore=(\S+)", steps(clone, "quick"))
    assert left_out
    assert [path for path in left_out if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_the_long_properties_are_those_of_a_suite():
    folders = (ROOT / "tests", ROOT / "locus_memory" / "testing")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    defined = set(re.findall(r"\b(?:def|class) (\w+)|^(\w+) =", code, re.MULTILINE))
    assert LONG_PROPERTIES.issubset(name for pair in defined for name in pair)


def test_what_the_tests_leave_out_is_run_by_another_target(clone):
    set_up(clone, ".made", ".ready")
    assert '-m "not slow"' in steps(clone, "test")
    assert "-m slow" in steps(clone, "slow")
    everything = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert """\nmake test JOBS=4 ARGS='-m "slow or not slow"' \\\n""" in everything
