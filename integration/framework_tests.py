"""Fixtures that run the tests of a framework, from its source package, with our adapter.

`conftest.py` imports them. An environment of its own, in which a framework is installed beside
little else, loads them as a plugin: `--noconftest -p integration.framework_tests`.
"""

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

HERE = Path(__file__).parent


def pip(*arguments):
    """Run pip; skip what needs it where no registry can be reached."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot fetch the tests of a framework: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="session")
def tests_of(tmp_path_factory):
    """Fetches the source package of an installed framework; returns a folder with its `tests`."""

    def fetch(package, plugins=()):
        folder = tmp_path_factory.mktemp(package)
        release = version(package)
        pip("download", "--no-deps", "--no-binary", package, "-d", folder, f"{package}=={release}")
        if plugins:
            pip("install", "--no-deps", "--target", folder / "plugins", *plugins)
        name = f"{package.replace('-', '_')}-{release}"
        with tarfile.open(folder / f"{name}.tar.gz") as source:
            source.extractall(folder, filter="data")
        tests = folder / name / "tests"
        assert tests.is_dir(), f"the source package of {package} has no tests any more"
        shutil.move(tests, folder / "tests")
        (folder / "pytest.ini").write_text("[pytest]\n")
        return folder

    return fetch


def name_in(case):
    """Return the name of a reported test, as pytest takes it."""
    file = case.get("file")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname").removeprefix(module).split(".")
    return "::".join([file, *filter(None, classes), case.get("name")])


@pytest.fixture(scope="session")
def run_tests():
    """Runs tests of a framework, by the names of their files or their own."""

    def run(folder, names, *options):
        report = folder / "report.xml"
        always = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"--junitxml={report}"]
        always += ["-o", "junit_family=xunit1"]
        path = os.pathsep.join(
            [str(folder / "plugins"), str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *always, *options, *names],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stdout[-4000:]
        return {
            name_in(case): case.find("failure") is None and case.find("error") is None
            for case in ET.parse(report).iter("testcase")
        }

    return run
