"""Every page in a real browser: it opens, nothing complains, and everybody can use it."""

from __future__ import annotations

import re
from functools import cache

import pytest

from integration.browser import serving
from integration.browser.conftest import opening
from integration.browser.pages import PAGES
from integration.browser.pages import address as place
from locus_memory.web.pages.groups import GROUPS

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
PHONE = {"width": 390, "height": 844}
LOOKS = [("dark", WIDE), ("light", WIDE), ("light", NARROW)]
STATUS = {"missing": 404}
EMPTY = {
    "/": "This database is empty",
    "/threads": "No threads yet",
    "/memories": "Nothing is remembered yet",
    "/memories/list": "Nothing is remembered here yet",
    "/memories/identity": "No sentence is fixed",
    "/memories/episodes": "There are no notes",
    "/memories/transcript": "No turns were recorded",
    "/store": "The store is empty",
    "/try?text=Hello": "Nothing: this message costs no tokens",
    "/danger/forget?user=ada": "Nothing is stored for this user",
}
"""What each page of an empty database says."""


@pytest.fixture(scope="module")
def same_window(chromium):
    """Returns a function that opens a window, or returns the one that it opened before.

    A window takes longer to open than a page.
    """
    with opening(chromium) as open_window:
        yield cache(lambda address: open_window(address, reduced_motion="reduce"))


def test_no_page_is_left_out():
    """What is opened here are all pages that there are."""
    there = {
        route.path for group in GROUPS for route in group.routes if "GET" in (route.methods or ())
    }
    assert there - {path for path, _ in PAGES.values()} == set()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_and_axe_finds_nothing_serious_in_any_look(same_window, address, name):
    window = same_window(address)
    window.open(place(name), STATUS.get(name, 200))
    window.check()
    for scheme, size in LOOKS:
        window.page.emulate_media(color_scheme=scheme)
        window.page.set_viewport_size(size)
        assert window.faults() == [], scheme
        assert window.fits(), size
    window.page.set_viewport_size(WIDE)


SMALL = """
() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
  .filter((each) => {
    const box = each.getBoundingClientRect();
    const inline = each.matches("p a, small a, .lede a") && !each.matches(".actions a");
    return each.offsetParent && box.width > 2 && !inline && (box.width < 23.5 || box.height < 23.5);
  })
  .map((each) => each.outerHTML.slice(0, 120))
"""
"""What is pointed at and is smaller than 24 px, but for links within sentences."""


@pytest.mark.parametrize("name", PAGES)
def test_all_that_a_finger_points_at_on_a_phone_is_large_enough(same_window, address, name):
    window = same_window(address)
    window.page.set_viewport_size(PHONE)
    window.open(place(name), STATUS.get(name, 200))
    assert window.page.evaluate(SMALL) == []
    window.page.set_viewport_size(WIDE)


def test_the_navigation_folds_on_a_phone(windows, address):
    window = windows(address, viewport=PHONE)
    window.open("/threads")
    link = window.page.locator("nav[aria-label=Pages] a").first
    assert not link.is_visible()
    window.page.click("summary:text-is('Menu')")
    assert link.is_visible()
    assert window.faults() == []
    assert window.fits()


@pytest.fixture(scope="module")
def empty_address(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "locus.db"
    path.touch()  # `ui` creates no database
    with serving.serving_ui(f"sqlite:{path}") as address:
        yield address


@pytest.mark.parametrize(("path", "said"), EMPTY.items(), ids=EMPTY)
def test_an_empty_database_says_what_to_do_in_a_narrow_window(
    same_window, empty_address, path, said
):
    window = same_window(empty_address)
    window.page.set_viewport_size(NARROW)
    window.open(path)
    assert said in window.page.text_content("main")
    window.check()
    assert window.faults() == []
    assert window.fits()


def test_every_link_of_every_page_leads_somewhere(window):
    """Also those that scripts follow: each address is asked for once."""
    wanted, seen = {place(name) for name in PAGES if name != "missing"}, set()
    while wanted - seen and len(seen) < 150:
        path = min(wanted - seen)
        seen.add(path)
        answer = window.page.request.get(window.address + path)
        assert answer.status == 200, path
        if "text/html" in answer.headers.get("content-type", ""):
            found = re.findall(r'href="(/[^"#]*)', answer.text())
            wanted |= {each.replace("&amp;", "&") for each in found}
    assert len(seen) > 40


def test_a_row_is_found_by_keys_and_opened(window):
    window.open(place("memories"))
    keys = window.page.keyboard
    keys.press("j")
    first = window.page.evaluate("document.activeElement.textContent")
    keys.press("j")
    second = window.page.evaluate("document.activeElement.textContent")
    assert first != second
    keys.press("k")
    assert window.page.evaluate("document.activeElement.textContent") == first
    keys.press("Enter")
    window.page.wait_for_url("**/memories/memory?**")
    window.check()


def test_the_search_answers_while_one_types(window):
    window.open(place("memories"))
    keys = window.page.keyboard
    keys.press("/")
    keys.type("allergic nuts walnuts")
    window.page.wait_for_selector("text=Relevance")
    assert "query=allergic" in window.page.url
    assert window.page.locator("[data-row]").count() >= 1
    window.check()
    keys.press("Escape")
    keys.press("?")
    assert window.page.locator("dialog[open]").count() == 1
    assert window.faults() == []
    keys.press("Escape")
    assert window.page.locator("dialog[open]").count() == 0
    window.check()


def test_the_colours_can_be_chosen_and_stay(window):
    window.open(place("memories"))
    light = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    toggle = window.page.locator("[data-theme-toggle]")
    toggle.click()
    toggle.click()
    assert "Dark" in toggle.text_content()
    dark = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    window.open(place("memory"))
    assert window.page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    window.check()


def test_without_scripts_the_pages_work_too(windows, address):
    window = windows(address, java_script_enabled=False)
    page = window.page
    page.goto(address + place("memories"))
    page.fill("[data-search]", "walnuts")
    page.press("[data-search]", "Enter")
    assert "Relevance" in page.content()
    page.click("tbody a")
    assert "History" in page.content()


def test_a_token_is_asked_for_and_remembered(windows, new_database):
    with new_database("--token", "a-token-of-20-letters") as address:
        window = windows(address)
        window.page.goto(address + place("memory"))
        assert window.faults() == []
        window.page.fill("input[name=token]", "a-token-of-20-letters")
        window.page.press("input[name=token]", "Enter")
        window.page.wait_for_selector("text=History")
        assert window.page.url == address + place("memory")
        window.check()
