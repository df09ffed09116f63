"""What people change in the browser, alone and two at a time.

On one kind of database: that the others do the same is for their suites to show.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from integration.browser import serving
from integration.browser.pages import PAGES
from integration.browser.pages import address as place

MEMORY = place("memory")


@pytest.fixture(scope="module")
def changing(new_database):
    """The address of pages over a database that a test may change."""
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


@pytest.mark.parametrize("database", ["postgresql_pages", "redis_pages"])
def test_every_page_opens_on_other_kinds_of_databases(windows, request, database):
    """What a browser makes of a page is the same for each; see `test_pages.py`."""
    window = windows(request.getfixturevalue(database))
    for name in PAGES:
        answer = window.page.request.get(window.address + place(name))
        assert answer.status == (404 if name == "missing" else 200), name


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
    page.click("text=Try a message >> nth=1")
    page.fill("textarea[name=text]", "What is 17 times 23?")
    page.click("button:text-is('Show')")
    page.wait_for_selector("pre:has-text('- always: Answer in rhymes.')")
    window.open("/memories/identity?user=fix")
    page.click("button:text-is('Remove')")
    page.wait_for_selector("text=No sentence is fixed")
    window.check()


ITEM = place("item")


def write(window, name, text):
    window.page.fill(f"[name={name}]", text)


def press(window, button, then):
    """Click a button, and wait for the sentence that the next page says."""
    window.page.click(f"button:text-is('{button}')")
    window.page.wait_for_selector(f"text={then}")


def test_an_item_is_put_edited_and_deleted(windows, changing):
    window = windows(changing)
    window.open("/store/edit")
    write(window, "path", "notes/new")
    write(window, "key", "k")
    write(window, "value", "{")
    press(window, "Put", "the value is not JSON")
    assert window.faults() == []
    write(window, "value", '{"text": "<b>one</b>"}')
    press(window, "Put", "Version 1 is stored.")
    assert window.page.locator("main b").count() == 0
    window.page.click("text=Edit…")
    write(window, "value", '{"text": "two"}')
    write(window, "metadata", '{"colour": "red"}')
    press(window, "Save", "Version 2 is stored.")
    assert "red" in window.page.text_content("main")
    window.page.click("text=Delete…")
    press(window, "Delete permanently", "k is deleted.")
    window.check()


def test_two_users_at_once_edit_and_delete_an_item_and_lose_nothing(windows, changing):
    one, two, three = (windows(changing) for _ in range(3))
    one.open(place("edit-item"))
    two.open(place("edit-item"))
    three.open(place("delete-item"))
    write(one, "value", '{"text": "of one"}')
    press(one, "Save", "is stored.")
    write(two, "value", '{"text": "of two"}')
    press(two, "Save", "somebody else was faster")
    for text in ("of one", "of two"):
        assert text in two.page.text_content(".sides")
    press(three, "Delete permanently", "somebody else was faster")
    assert "of one" in three.page.text_content("main")
    for window in (two, three):
        assert window.faults() == []
    one.open(ITEM)
    assert "of one" in one.page.text_content("main")
    write(two, "value", '{"text": "of one and of two"}')
    press(two, "Save", "is stored.")
    for window in (one, two, three):
        window.check()


def test_a_thread_is_forked_compared_pruned_and_deleted(windows, changing):
    window = windows(changing)
    page = window.page
    window.open("/threads/at?thread=noor-dinner&checkpoint=5")
    write(window, "new_thread", "branch")
    press(window, "Fork", "begins at this checkpoint of noor-dinner")
    page.wait_for_selector("figure svg")
    page.click("text=Compare A with B")
    page.wait_for_selector("h1:text-is('Difference')")
    assert window.faults() == []
    window.open("/threads/timeline?thread=branch")
    page.click("text=Prune…")
    write(window, "keep_last", "2")
    press(window, "Preview", "3 of 5 checkpoints would be deleted")
    press(window, "Delete 3 checkpoints permanently", "Deleted: 3 of 5 checkpoints.")
    page.click("text=Delete…")
    page.wait_for_selector("text=2 checkpoints would go")
    press(window, "Delete permanently", "branch is deleted.")
    window.open("/threads/timeline?thread=noor-dinner")
    window.check()


def test_a_memory_is_undone_and_retired(windows, changing):
    window = windows(changing)
    window.open("/memories/list?user=una")
    write(window, "content", "Una plays the harp.")
    write(window, "key", "music")
    press(window, "Save", "Saved.")
    edit(window, "Una plays the oboe.")
    press(window, "Undo the last change", "Taken back.")
    assert window.page.text_content(".saying").strip() == "Una plays the harp."
    press(window, "Retire", "Retired. Undo brings it back.")
    assert "oboe" in window.page.text_content(".timeline")
    press(window, "Undo the last change", "Taken back.")
    assert window.page.text_content(".saying").strip() == "Una plays the harp."
    window.check()


def test_the_danger_zone_asks_first_and_erases_then(windows, changing):
    window = windows(changing)
    page = window.page
    window.open("/danger")
    page.fill("#forget-user", "stranger")
    page.click("form:has(#forget-user) button")
    write(window, "confirm", "strangers")
    page.click("text=Erase permanently")
    page.wait_for_selector("text=nothing is erased")
    page.go_back()
    write(window, "confirm", "stranger")
    press(window, "Erase permanently", "All data of stranger is erased")
    page.fill("#f-path", "tool-runs")
    page.click("form:has(#f-path) button")
    write(window, "confirm", "tool-runs")
    page.click("button:has-text('permanently')")
    page.wait_for_selector("text=Deleted from tool-runs")
    page.click("form:has(#consolidate-user) button")
    press(window, "Consolidate now", "Consolidated in")
    press(window, "Sync", "0 jobs wait.")
    window.open("/threads")
    assert "stranger-visit" not in page.text_content("main")
    window.check()
