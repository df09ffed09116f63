"""What people change in the browser, alone and two at a time, on each kind of database."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from integration.browser import serving
from integration.browser.pages import PAGES
from integration.browser.pages import address as place

MEMORY = place("memory")


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def changing(request):
    """The address of pages over a database that a test may change."""
    return request.getfixturevalue(f"{request.param}_pages")


@pytest.fixture(scope="module")
def sqlite_pages(new_database):
    with new_database() as address:
        yield address


@contextmanager
def copied(demo_url, url):
    serving.copy_database(demo_url, url)
    with serving.serving_ui(url) as address:
        yield address


@pytest.fixture(scope="module")
def postgresql_pages(demo_url, one_postgresql):
    with copied(demo_url, one_postgresql) as address:
        yield address


@pytest.fixture(scope="module")
def redis_pages(demo_url, one_redis):
    with copied(demo_url, one_redis) as address:
        yield address


def edit(window, text):
    window.page.fill("textarea[name=content]", text)
    window.page.click("text=Save as a new version")
    window.settle()


def test_every_page_opens_on_it(windows, changing):
    window = windows(changing)
    for name in PAGES:
        window.open(place(name), 404 if name == "missing" else 200)
        window.check()


def test_two_users_at_once_lose_nothing(windows, changing):
    one, two = windows(changing), windows(changing)
    one.open(MEMORY)
    two.open(MEMORY)
    edit(one, "The user lives in Porto.")
    assert "Saved." in one.page.content()
    edit(two, "The user lives in Faro.")
    stored, yours = two.page.text_content("[data-stored]"), two.page.text_content("[data-yours]")
    assert (stored, yours) == ("The user lives in Porto.", "The user lives in Faro.")
    assert two.faults() == []
    assert two.page.input_value("textarea[name=content]") == yours
    two.page.fill("textarea[name=content]", "The user lives in Porto and in Faro.")
    two.page.click("button:text-is('Save')")
    two.page.wait_for_selector("text=Saved.")
    history = two.page.text_content(".timeline")
    assert history.count("Porto") >= 2
    two.page.click("text=Undo the last change")
    two.page.wait_for_selector("text=Taken back.")
    assert two.page.text_content(".saying").strip() == "The user lives in Porto."
    for window in (one, two):
        window.check()


def test_a_memory_is_made_and_forgotten(windows, changing):
    window = windows(changing)
    page = window.page
    window.open("/memories/list?user=new")
    page.fill("textarea[name=content]", "New keeps <b>three</b> hives of bees.")
    page.fill("input[name=key]", "bees")
    page.click("button:text-is('Save')")
    page.wait_for_selector("text=Saved.")
    assert page.locator("main b").count() == 0
    page.click("text=Forget…")
    page.wait_for_selector("text=nothing is erased yet")
    assert window.faults() == []
    page.click("text=Keep")
    page.wait_for_selector("[data-row]")
    page.click("tbody a")
    page.click("text=Forget…")
    page.click("text=Forget for good")
    page.wait_for_selector("text=Erased: 1 memory")
    assert page.locator("[data-row]").count() == 0
    window.check()


def test_a_sentence_is_fixed_seen_and_removed(windows, changing):
    window = windows(changing)
    page = window.page
    window.open("/memories/identity?user=fix")
    page.fill("input[name=text]", "Answer in rhymes.")
    page.click("button:text-is('Save')")
    page.wait_for_selector("li:has-text('Answer in rhymes.')")
    page.click("text=What the model saw >> nth=1")
    page.fill("textarea[name=text]", "What is 17 times 23?")
    page.click("button:text-is('Show')")
    page.wait_for_selector("pre:has-text('- always: Answer in rhymes.')")
    window.open("/memories/identity?user=fix")
    page.click("button:text-is('Remove')")
    page.wait_for_selector("text=No sentence is fixed")
    window.check()
