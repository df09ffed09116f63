"""A browser that notes every complaint of a page, and the accessibility checker axe-core."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser needs playwright, of the extra live")

from integration.browser import serving

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8")
BREACHES = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.breaches.push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`));
window.jumps = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) window.jumps.push(each.value);
}).observe({type: "layout-shift", buffered: true});
"""
# The share of the window that may move by itself, as https://web.dev/articles/cls counts it; 0.1 is
# what it calls good.
STILL = 0.02


class Window:
    """A page in the browser, and what it complained about.

    Attributes:
        page: The page of Playwright.
        complaints: Errors of scripts, of the console, and answers with an unexpected status.
    """

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.complaints = []
        page.add_init_script(BREACHES)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("console", self._hear)

    def _hear(self, message):
        # A browser logs each answer that is an error; the tests look at the status themselves.
        if message.type in ("error", "warning") and "the server responded" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def open(self, path, status=200):
        answer = self.page.goto(self.address + path)
        assert answer.status == status, (path, answer.status)
        self.settle()

    def settle(self):
        """Wait for what the page loads by itself, except a stream that never ends."""
        self.page.wait_for_load_state("load")
        self.page.wait_for_selector(".htmx-request", state="detached")

    def check(self):
        """Fail if anything complained since the last check."""
        breaches, jumps = self.page.evaluate("[window.breaches, window.jumps]")
        found, self.complaints = self.complaints + breaches, []
        assert found == [], self.page.url
        assert sum(jumps) <= STILL, self.page.url

    def fits(self):
        """Return whether the page is as wide as its window."""
        root = "document.documentElement"
        return self.page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")

    def faults(self):
        """What axe-core finds that keeps somebody from using the page."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]


# A module and no longer: while Playwright is open its event loop runs in this thread, and a test
# of anything else that runs later in the same process can start none.
@pytest.fixture(scope="module")
def chromium():
    if serving.CHROMIUM is None:
        pytest.skip(serving.NO_CHROMIUM)
    with serving.browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def demo_url(tmp_path_factory):
    return serving.play_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def address(demo_url):
    """The address of `locus-memory ui` over what the demo left."""
    with serving.serving_ui(demo_url) as address:
        yield address


@contextmanager
def opening(chromium):
    """Give a function that opens a window of a browser of its own."""
    contexts = []

    def open_window(address, **options):
        options = {"viewport": {"width": 1280, "height": 800}, **options}
        contexts.append(chromium.new_context(**options))
        return Window(contexts[-1].new_page(), address)

    yield open_window
    for context in contexts:
        context.close()


@pytest.fixture
def windows(chromium):
    """Returns a function that opens a window of a browser of its own."""
    with opening(chromium) as open_window:
        yield open_window


@pytest.fixture
def window(windows, address):
    return windows(address)


@pytest.fixture(scope="session")
def new_database(tmp_path_factory, demo_url):
    """Returns a function that copies the demo's SQLite database, for tests that change it."""

    @contextmanager
    def serve(*options):
        folder = tmp_path_factory.mktemp("copy")
        source = Path(demo_url.removeprefix("sqlite:"))
        for name in ("locus.db", "locus.db-wal"):
            part = source.with_name(name)
            if part.exists():
                (folder / name).write_bytes(part.read_bytes())
        with serving.serving_ui(f"sqlite:{folder}/locus.db", *options) as address:
            yield address

    return serve
