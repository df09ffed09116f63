from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.inspection.names import format_namespace
from locus_memory.store.filters import parse_filter
from locus_memory.web.errors import RefusalError
from locus_memory.web.pages.frame.tree import grow
from locus_memory.web.pages.store.conditions import OPERATORS, Condition, make_filter, read_json

EVIL = "<script>alert('x')</script>\"'&"
NOTES = ("users", "ada", "notes")


def rows(text):
    return re.findall(r'<tr data-row><td class="key"><a href="[^"]*key=([^"&]+)"', text)


def hidden(text, name):
    return re.search(f'name="{name}" value="([^"]*)"', text)[1].replace("&#34;", '"')


async def test_an_empty_store_says_what_to_do(browser):
    assert "The store is empty" in await browser.page("/store")
    assert "No items in this namespace" in await browser.page("/store/namespace", namespace="a")


async def test_namespaces_are_a_tree_whose_nodes_lead_to_items(browser, backend):
    for namespace in (NOTES, ("users", "bob"), ("users",), ("a/b", "*")):
        await backend.store.put(namespace, "k", {"n": 1})
    text = await browser.page("/store")
    links = re.findall(r'href="(/store/namespace[^"]+)"', text)
    assert len(links) == 6
    for link in links:
        page = await browser.page(link.replace("&amp;", "&"))
        assert "data-row" in page or 'class="chips"' in page
    text = await browser.page("/store/namespace", namespace="users")
    assert re.findall(r">(\w+)</span>/</a>", text) == ["ada", "bob"]
    assert rows(text) == ["k"]


@pytest.mark.slow
@given(st.lists(st.lists(st.text(min_size=1, max_size=2), min_size=1, max_size=4).map(tuple)))
def test_each_namespace_has_one_node_of_the_tree(namespaces):
    root = grow(namespaces)
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found += [node.namespace] if node.holds_items else []
        assert all(child.label == label for label, child in node.children.items())
        waiting += node.children.values()
    assert sorted(found) == sorted(set(namespaces))
    assert root.count == len(found)


async def test_items_are_listed_in_pages_and_found_by_words_and_filters(browser, backend):
    for n in range(5):
        value = {"text": f"A walnut number {n}." if n % 2 else "A pear.", "n": n}
        await backend.store.put(("fruit",), f"k{n}", value, {"even": n % 2 == 0})
    text = await browser.page("/store/namespace", namespace="fruit", limit=2)
    seen = rows(text)
    while more := re.search(r'<a class="button" href="([^"]+)" hx-get', text):
        text = await browser.page(more[1].replace("&amp;", "&"))
        seen += rows(text)
    assert seen == [f"k{n}" for n in range(5)]
    text = await browser.page("/store/namespace", namespace="fruit", query="walnut")
    assert set(rows(text)) == {"k1", "k3"}
    assert "text #1" in text
    lines = {"field": ["even", "n", ""], "op": ["$eq", "$gte", "$eq"], "value": ["true", "2", ""]}
    text = await browser.page("/store/namespace", namespace="fruit", limit=1, **lines)
    shown = re.search(r'aria-label="The filter as JSON">([^<]+)<', text)[1]
    made = {"$and": [{"even": True}, {"n": {"$gte": 2}}]}
    assert orjson.loads(shown.replace("&#34;", '"')) == made
    more = re.search(r'<a class="button" href="([^"]+)" hx-get', text)
    both = rows(text) + rows(await browser.page(more[1].replace("&amp;", "&")))
    assert set(both) == {"k2", "k4"}
    text = await browser.page("/store/namespace", namespace="fruit", filter='{"n": {"$lt": 1}}')
    assert rows(text) == ["k0"]
    for wrong in ("{", "[1]", '{"n": {"$wrong": 1}}'):
        answer = await browser.get("/store/namespace", namespace="fruit", filter=wrong)
        assert answer.status_code in (400, 422)
    assert "Nothing fits" in await browser.page("/store/namespace", namespace="fruit", query="zzz")


_condition = st.builds(
    Condition, st.sampled_from(["a", "user.name", "n"]), st.sampled_from(list(OPERATORS)), st.text()
)


@pytest.mark.slow
@given(st.lists(_condition, max_size=4), st.booleans())
def test_any_lines_of_the_form_make_a_filter_that_can_be_written_as_json(lines, is_any):
    made = make_filter(lines, is_any=is_any)
    assert (made is None) == (not lines)
    if made is None or any(not isinstance(each.written, str) for each in lines):
        return
    assert orjson.loads(orjson.dumps(made)) == made
    ordered = ("$gt", "$gte", "$lt", "$lte")
    if not any(each.operator in ordered for each in lines):
        parse_filter(made)


def test_values_of_the_form_are_json_where_they_can_be():
    assert Condition("a", "$eq", " 5 ").to_filter() == {"a": 5}
    assert Condition("a", "$eq", '"5"').to_filter() == {"a": "5"}
    assert Condition("a", "$ne", "red wine").to_filter() == {"a": {"$ne": "red wine"}}
    assert Condition("a", "$in", "1, x").to_filter() == {"a": {"$in": [1, "x"]}}
    assert Condition("a", "$nin", "[1, 2]").to_filter() == {"a": {"$nin": [1, 2]}}
    assert Condition("a", "$exists", "no").to_filter() == {"a": {"$exists": False}}
    assert make_filter([Condition("a", "$eq", "1")] * 2, is_any=True) == {"$or": [{"a": 1}] * 2}
    with pytest.raises(RefusalError, match="line 1"):
        read_json("{", "the value")
    with pytest.raises(RefusalError, match="64 bits"):
        read_json(str(10**30), "the value")


async def test_an_item_is_put_and_edited_and_deleted(browser, backend):
    assert 'name="path"' in await browser.page("/store/edit")
    fields = {"path": format_namespace(NOTES), "key": "k", "value": '{"n": 1}', "etag": ""}
    answer = await browser.post("/store/edit", **fields, metadata='{"m": "x"}', ttl="3600")
    text = await browser.follow(answer)
    assert "Version 1 is stored." in text
    stored = await backend.store.get_item(NOTES, "k")
    assert (stored.value, stored.metadata) == ({"n": 1}, {"m": "x"})
    assert stored.expires_at is not None
    text = await browser.page("/store/edit", namespace=list(NOTES), key="k")
    left = re.search(r'id="f-ttl"[^>]*value="(\d+)"', text)
    assert float(left[1]) > 3500
    edit = {"namespace": list(NOTES), "key": "k", "etag": hidden(text, "etag")}
    await browser.follow(await browser.post("/store/edit", **edit, value='"two"', ttl=""))
    stored = await backend.store.get_item(NOTES, "k")
    assert (stored.value, stored.metadata, stored.expires_at) == ("two", {}, None)
    text = await browser.page("/store/delete", namespace=list(NOTES), key="k")
    gone = {"namespace": list(NOTES), "key": "k", "etag": hidden(text, "etag")}
    assert "k is deleted." in await browser.follow(await browser.post("/store/delete", **gone))
    assert await backend.store.get_item(NOTES, "k") is None
    assert (await browser.get("/store/item", namespace="a", key="k")).status_code == 404


async def test_a_lost_edit_writes_nothing_and_shows_both_sides(browser, backend):
    await backend.store.put(NOTES, "k", "first")
    text = await browser.page("/store/edit", namespace=list(NOTES), key="k")
    edit = {"namespace": list(NOTES), "key": "k", "etag": hidden(text, "etag")}
    await backend.store.put(NOTES, "k", "theirs")
    answer = await browser.post("/store/edit", **edit, value='"mine"')
    assert answer.status_code == 412
    assert all(each in answer.text for each in ("theirs", "mine", "somebody else was faster"))
    assert await backend.store.get(NOTES, "k") == "theirs"
    # To save once more is to replace the version that is shown, and no later one.
    again = {**edit, "etag": hidden(answer.text, "etag")}
    await backend.store.put(NOTES, "k", "later")
    assert (await browser.post("/store/edit", **again, value='"mine"')).status_code == 412
    again["etag"] = hidden(
        (await browser.post("/store/edit", **again, value='"mine"')).text, "etag"
    )
    await browser.follow(await browser.post("/store/edit", **again, value='"mine"'))
    assert await backend.store.get(NOTES, "k") == "mine"
    await backend.store.delete(NOTES, "k")
    gone = await browser.post("/store/edit", **edit, value='"mine"')
    assert (gone.status_code, "was deleted meanwhile" in gone.text) == (412, True)


async def test_a_lost_deletion_shows_the_item_and_can_be_confirmed(browser, backend):
    await backend.store.put(NOTES, "k", "first")
    text = await browser.page("/store/delete", namespace=list(NOTES), key="k")
    fields = {"namespace": list(NOTES), "key": "k", "etag": hidden(text, "etag")}
    await backend.store.put(NOTES, "k", "theirs")
    lost = await browser.post("/store/delete", **fields)
    assert (lost.status_code, "theirs" in lost.text) == (412, True)
    assert "Nothing was deleted: somebody else was faster." in lost.text
    assert await backend.store.get(NOTES, "k") == "theirs"
    seen = {**fields, "etag": hidden(lost.text, "etag")}
    assert "k is deleted." in await browser.follow(await browser.post("/store/delete", **seen))
    assert await backend.store.get_item(NOTES, "k") is None
    gone = await browser.post("/store/delete", **seen)
    assert "k was deleted before." in await browser.follow(gone)


async def test_a_new_item_replaces_none(browser, backend):
    await backend.store.put(NOTES, "k", "theirs")
    fields = {"path": format_namespace(NOTES), "key": "k", "etag": ""}
    answer = await browser.post("/store/edit", **fields, value="1")
    assert (answer.status_code, "theirs" in answer.text) == (412, True)
    assert await backend.store.get(NOTES, "k") == "theirs"


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "{"},
        {"value": ""},
        {"value": "1", "metadata": "[1]"},
        {"value": "1", "metadata": "x"},
        {"value": "1", "path": "a//b"},
        {"value": "1", "path": ""},
        {"value": "1", "key": ""},
    ],
)
async def test_a_mistake_keeps_what_was_written(plain, browsing, wrong):
    async with browsing(plain) as browser:
        fields = {"path": "a/b", "key": "k", "metadata": "", "etag": "", **wrong}
        answer = await browser.post("/store/edit", **fields)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
        assert await plain.store.list_namespaces(None, 9) == []
        assert fields["value"] in answer.text


async def test_a_stored_script_is_escaped_on_each_page_of_the_store(browser, backend):
    namespace = (f"n {EVIL}", EVIL)
    await backend.store.put(namespace, EVIL, {EVIL: [EVIL]}, {EVIL: EVIL})
    item = {"namespace": list(namespace), "key": EVIL}
    for path, fields in (
        ("/store", {}),
        ("/store/namespace", {"namespace": namespace[0]}),
        ("/store/namespace", {"namespace": list(namespace)}),
        ("/store/namespace", {"namespace": list(namespace), "query": "alert"}),
        ("/store/namespace", {"namespace": namespace[0], "recursive": "true"}),
        ("/store/namespace", {"namespace": "a", "field": EVIL, "op": "$eq", "value": EVIL}),
        ("/store/item", item),
        ("/store/edit", item),
        ("/store/delete", item),
        ("/danger/clear", {"namespace": list(namespace)}),
    ):
        text = await browser.page(path, **fields)
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text, path
    await backend.store.put(namespace, EVIL, "other")
    lost = await browser.post("/store/edit", **item, etag='"1"', value=orjson.dumps(EVIL).decode())
    assert lost.status_code == 412
    assert "<script>alert" not in lost.text
