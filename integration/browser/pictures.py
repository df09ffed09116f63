"""Take the pictures of the documentation: `python -m integration.browser.pictures`.

With a folder, take one of every page instead, light, dark and in a narrow window: for somebody to
look at all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from integration.browser.pages import PAGES
from integration.browser.pages import address as place
from integration.browser.serving import browsing, demo_folder, play_demo, serving_ui

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "pages"
PICTURES = {
    "overview": "overview",
    "timeline": "timeline",
    "difference": "diff",
    "memory": "memory",
    "saw": "saw",
    "store": "namespace",
}
"""The pages by the names of their pictures."""

WIDE, NARROW = {"width": 1200, "height": 800}, {"width": 360, "height": 740}
LOOKS = {
    "light": {"viewport": WIDE},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "narrow": {"viewport": NARROW},
}


def take(folder=None):
    """Play the demo, open the pages of its database, and save a picture of each."""
    target = FOLDER if folder is None else Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with demo_folder() as made:
        play_demo(made)
        with serving_ui("sqlite:./locus.db", folder=made) as address, browsing() as browser:
            if folder is None:
                _take(browser, address, {target / name: it for name, it in PICTURES.items()})
                return
            for look, options in LOOKS.items():
                wanted = {target / f"{name}-{look}": name for name in PAGES}
                _take(browser, address, wanted, full_page=True, **options)


def _take(browser, address, wanted, *, full_page=False, **options):
    page = browser.new_context(**{**LOOKS["light"], **options}).new_page()
    for path, shown in wanted.items():
        page.goto(address + place(shown))
        page.wait_for_load_state("load")
        page.wait_for_selector(".htmx-request", state="detached")
        page.screenshot(path=path.with_suffix(".png"), full_page=full_page)


if __name__ == "__main__":
    take(*sys.argv[1:])
