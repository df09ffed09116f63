"""Take the pictures of the documentation: `python -m integration.browser.pictures`."""

from __future__ import annotations

from pathlib import Path

from integration.browser.pages import address as place
from integration.browser.serving import browsing, demo_folder, play_demo, serving_ui

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "pages"
PICTURES = {
    "overview": "sizes",
    "timeline": "timeline",
    "difference": "diff",
    "memory": "memory",
    "saw": "saw",
    "store": "namespace",
}
"""The pages by the names of their pictures."""

SIZE = {"width": 1200, "height": 800}


def take():
    """Play the demo, open the pages of its database, and save a picture of each."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with demo_folder() as folder:
        play_demo(folder)
        with serving_ui("sqlite:./locus.db", folder=folder) as address, browsing() as browser:
            _take(browser, address)


def _take(browser, address):
    page = browser.new_context(viewport=SIZE).new_page()
    for name, shown in PICTURES.items():
        page.goto(address + place(shown))
        page.wait_for_load_state("load")
        page.wait_for_selector(".htmx-request", state="detached")
        page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    take()
