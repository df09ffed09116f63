"""A database to look at, `locus-memory ui` over it, and a Chromium that looks."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from locus_memory.transfer import migrate

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "locus_memory"]
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
NO_CHROMIUM = "there is no Chromium: it is Debian's package of that name"
# As root, Chromium has no sandbox of its own; it sees no page but ours.
ARGUMENTS = ("--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none")

_ADDRESS = re.compile(r" at (http://\S+?)/[,;]")
_PATIENCE = 60


def play_demo(folder):
    """Run `locus-memory demo` in a folder, and return the URL of its database."""
    done = subprocess.run(
        [*COMMAND, "demo", str(folder)],
        env=environment(),
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return f"sqlite:{folder}/locus.db"


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCUS_")}
    return {**kept, "PYTHONPATH": str(ROOT)}


def copy_database(source, target):
    """Copy all items and threads from one database to another, of any kind."""
    # In a thread: Playwright has an event loop in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: asyncio.run(migrate(source, target))).result()


@contextmanager
def serving_ui(url, *options, folder=None):
    """Run `locus-memory ui` on a free port, in a folder; yields its address."""
    server = subprocess.Popen(
        [*COMMAND, "ui", "--port", "0", "--url", url, *options],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = Queue()

    def read():
        for line in server.stderr:
            lines.put(line)
        lines.put("")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        told = lines.get(timeout=_PATIENCE)
        found = _ADDRESS.search(told)
        assert found, told
        yield found[1]
    finally:
        server.terminate()
        server.wait(_PATIENCE)
        reader.join(_PATIENCE)
        server.stderr.close()


@contextmanager
def browsing():
    """Start a Chromium without a window."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra of the live tests

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def demo_folder():
    """A folder for a demo, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
