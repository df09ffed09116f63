"""LangGraph's own tests of graphs that save, from its source package, with our saver in place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

LEAST = 600
"""About as many such tests as LangGraph 1.2 has: fewer, and something was not run."""

KNOWN: dict[str, str] = {}
"""What fails with LangGraph's own savers too, and why. Of LangGraph 1.2.22, nothing does."""

ATTEMPTS = 3
"""Some of the tests hold the order of events to hundredths of a second."""

PLUGINS = ["pytest-mock>=3.14,<4", "syrupy>=5,<8"]
"""What those tests need beside the tests here."""

FIXTURES = Path(__file__).with_name("langgraph_savers.py")


def pip(*arguments):
    """Run pip; skip what needs it where no registry can be reached."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot fetch LangGraph's tests: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the tests of the LangGraph that is installed, and with our fixtures."""
    folder = tmp_path_factory.mktemp("langgraph")
    release = version("langgraph")
    pip("download", "--no-deps", "--no-binary", "langgraph", "-d", folder, f"langgraph=={release}")
    pip("install", "--no-deps", "--target", folder / "plugins", *PLUGINS)
    with tarfile.open(folder / f"langgraph-{release}.tar.gz") as package:
        package.extractall(folder, filter="data")
    source = folder / f"langgraph-{release}" / "tests"
    assert source.is_dir(), "the source package of LangGraph has no tests any more"
    shutil.move(source, folder / "tests")
    shutil.copy(FIXTURES, folder / "tests" / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def run(folder, names):
    """Run tests by the names of their files or their own; return how each ended."""
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"--junitxml={report}"]
    path = os.pathsep.join(
        [str(folder / "plugins"), str(FIXTURES.parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *names],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout[-4000:]
    return {
        f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}": (
            case.find("failure") is None and case.find("error") is None
        )
        for case in ET.parse(report).iter("testcase")
    }


def test_nothing_fails_with_our_saver_that_passes_with_theirs(folder):
    files = sorted(
        f"tests/{path.name}"
        for path in (folder / "tests").glob("test_*.py")
        if "sync_checkpointer: BaseCheckpointSaver" in path.read_text()
    )
    ended = run(folder, files)
    assert len(ended) >= LEAST
    failed = {name for name, passed in ended.items() if not passed}
    for _ in range(ATTEMPTS - 1):
        if failed:
            failed = {name for name, passed in run(folder, sorted(failed)).items() if not passed}
    assert failed == KNOWN.keys()
