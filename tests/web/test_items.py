"""The store over HTTP, on each kind of backend."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.registry import open_backend

ODD = "a/b?c=d&e#f%2F \x00 ü 😀 \n\"'<script>"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


async def put(client, namespace, key, value, **headers):
    body = {"namespace": namespace, "key": key, "value": value}
    return await client.put("/store/item", json=body, headers=headers)


async def get(client, namespace, key, **headers):
    where = {"namespace": namespace, "key": key}
    return await client.get("/store/item", params=where, headers=headers)


async def test_any_name_and_any_value_come_back(client):
    for namespace, key in ((["a/b"], "k"), (["a", "b"], "k"), ([ODD, "*"], ODD)):
        assert (await put(client, namespace, key, {ODD: [namespace, None, 1.5]})).status_code == 200
    for namespace, key in ((["a/b"], "k"), (["a", "b"], "k"), ([ODD, "*"], ODD)):
        item = (await get(client, namespace, key)).json()
        assert item["namespace"] == namespace
        assert item["key"] == key
        assert item["value"] == {ODD: [namespace, None, 1.5]}
        assert item["version"] == 1


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(names, min_size=1, max_size=3), names, values)
async def test_what_is_put_is_what_is_read(serving, namespace, key, value):
    async with open_backend("memory", state_type=None) as backend, serving(backend) as client:
        answer = await put(client, namespace, key, value)
        assert answer.status_code == 200, answer.text
        assert (await get(client, namespace, key)).json()["value"] == value
        stored = await backend.store.get_item(tuple(namespace), key)
        assert stored.value == value


async def test_a_write_is_conditional_on_the_tag(client):
    first = await put(client, ["a"], "k", "one")
    tag = (await get(client, ["a"], "k")).headers["etag"]
    assert (await put(client, ["a"], "k", "two", **{"if-match": tag})).json()["version"] == 2
    lost = await put(client, ["a"], "k", "three", **{"if-match": tag})
    assert (first.status_code, lost.status_code) == (200, 412)
    document = lost.json()
    assert document["current"]["value"] == "two"
    assert document["yours"]["value"] == "three"
    assert (document["error"]["expected"], document["error"]["actual"]) == (1, 2)
    where = {"namespace": ["a"], "key": "k"}
    lost = await client.delete("/store/item", params=where, headers={"if-match": tag})
    assert (lost.status_code, lost.json()["yours"]) == (412, None)
    tag = (await get(client, ["a"], "k")).headers["etag"]
    gone = await client.delete("/store/item", params=where, headers={"if-match": tag})
    assert gone.json()["deleted"] == 1
    assert (await get(client, ["a"], "k")).status_code == 404


async def test_an_item_that_was_made_again_has_another_tag(client):
    await put(client, ["a"], "k", "one")
    tag = (await get(client, ["a"], "k")).headers["etag"]
    await client.delete("/store/item", params={"namespace": ["a"], "key": "k"})
    await put(client, ["a"], "k", "of somebody else")
    lost = await put(client, ["a"], "k", "mine", **{"if-match": tag})
    assert lost.status_code == 412
    assert lost.json()["current"]["value"] == "of somebody else"


async def test_a_first_put_and_a_put_of_what_exists(client):
    assert (await put(client, ["a"], "k", 1, **{"if-match": "*"})).status_code == 412
    assert (await put(client, ["a"], "k", 1, **{"if-none-match": "*"})).json()["version"] == 1
    assert (await put(client, ["a"], "k", 2, **{"if-none-match": "*"})).status_code == 412
    assert (await put(client, ["a"], "k", 2, **{"if-match": "*"})).json()["version"] == 2
    for wrong in ({"if-match": "1"}, {"if-match": 'W/"1"'}, {"if-none-match": '"1"'}):
        assert (await put(client, ["a"], "k", 3, **wrong)).status_code == 400
    both = {"if-match": "*", "if-none-match": "*"}
    assert (await put(client, ["a"], "k", 3, **both)).status_code == 400


async def test_of_many_writers_with_one_tag_one_wins(client):
    await put(client, ["a"], "k", "old")
    tag = (await get(client, ["a"], "k")).headers["etag"]
    writes = [put(client, ["a"], "k", number, **{"if-match": tag}) for number in range(8)]
    codes = [answer.status_code for answer in await asyncio.gather(*writes)]
    assert sorted(codes) == [200] + [412] * 7
    won = codes.index(200)
    assert (await get(client, ["a"], "k")).json()["value"] == won


async def test_a_document_that_is_known_is_not_sent_again(client):
    await put(client, ["a"], "k", 1)
    tag = (await get(client, ["a"], "k")).headers["etag"]
    again = await get(client, ["a"], "k", **{"if-none-match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    await put(client, ["a"], "k", 2)
    assert (await get(client, ["a"], "k", **{"if-none-match": tag})).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/threads", "/memory/list", "/export/facts"])
@pytest.mark.parametrize("tag", ['"x"', "*", "W/", ","])
async def test_an_answer_without_a_tag_is_always_sent(client, path, tag):
    assert (await client.get(path, headers={"if-none-match": tag})).status_code == 200


@pytest.mark.parametrize("path", ["/memory/search", "/documents/search"])
async def test_an_error_names_a_field_that_is_called_query(client, path):
    answer = await client.get(path)
    assert answer.status_code == 422
    assert "query: Field required" in answer.json()["error"]["message"]


async def test_an_error_of_a_long_name_is_short(client):
    for method, path in (("GET", "history"), ("POST", "undo")):
        asked = {"key": "x" * 3_000, "user": "y" * 900}
        what = {"params": asked} if method == "GET" else {"json": asked}
        answer = await client.request(method, f"/memory/{path}", **what)
        assert 400 <= answer.status_code < 500
        assert len(answer.json()["error"]["message"]) < 1_000


async def pages(client, path, field, **asked):
    """Return all entries of a list, page by page; a page is never empty but for the first."""
    found, cursor = [], None
    while True:
        given = asked if cursor is None else {**asked, "cursor": cursor}
        page = (await client.get(path, params=given)).json()
        found += page[field]
        cursor = page["next"]
        if cursor is None:
            return found
        assert page[field]


async def test_every_list_pages_to_its_end(client):
    for number in range(25):
        await put(client, ["list", f"n{number % 3}"], f"k{number:02}", {"number": number})
    for limit in (1, 7, 9, 25, 1000):
        spaces = await pages(client, "/store/namespaces", "namespaces", limit=limit)
        assert spaces == [["list", f"n{number}"] for number in range(3)]
        items = await pages(client, "/store/items", "items", namespace=["list", "n0"], limit=limit)
        assert [item["key"] for item in items] == [f"k{n:02}" for n in range(0, 25, 3)]
        hits = await pages(client, "/store/search", "hits", namespace="list", limit=limit)
        assert [hit["item"]["value"]["number"] for hit in hits] == list(range(24, -1, -1))
    down = await pages(
        client, "/store/items", "items", namespace=["list", "n0"], limit=2, descending=True
    )
    assert [item["key"] for item in down] == [f"k{n:02}" for n in range(24, -1, -3)]


async def test_a_search_gives_its_reasons(client):
    await put(client, ["s"], "a", {"text": "Ada is allergic to walnuts", "kind": "fact"})
    await put(client, ["s"], "b", {"text": "The harbour is closed", "kind": "news"})
    asked = {"namespace": "s", "query": "walnuts"}
    (hit,) = (await client.get("/store/search", params=asked)).json()["hits"]
    assert hit["item"]["key"] == "a"
    assert 0 < hit["relevance"] <= 1
    assert "text #1" in hit["why"]
    asked = {"namespace": "s", "filter": '{"kind": "news"}'}
    (hit,) = (await client.get("/store/search", params=asked)).json()["hits"]
    assert (hit["item"]["key"], hit["why"]) == ("b", None)
    asked["filter"] = '{"kind": {"$near": 1}}'
    refused = await client.get("/store/search", params=asked)
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "InvalidFilterError")


async def test_a_clearing_is_previewed(client):
    for namespace in (["c"], ["c", "d"], ["ca"]):
        for key in "xy":
            await put(client, namespace, key, 1)
    body = {"namespace": ["c"], "recursive": True, "dry_run": True}
    assert (await client.post("/store/clear", json=body)).json() == {"deleted": 4, "dry_run": True}
    body["recursive"] = False
    assert (await client.post("/store/clear", json=body)).json()["deleted"] == 2
    body |= {"recursive": True, "dry_run": False}
    assert (await client.post("/store/clear", json=body)).json()["deleted"] == 4
    assert await pages(client, "/store/namespaces", "namespaces") == [["ca"]]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/store/items", {}),
        ("/store/items", {"namespace": ""}),
        ("/store/items", {"namespace": "a", "limit": 0}),
        ("/store/items", {"namespace": "a", "limit": 1001}),
        ("/store/items", {"namespace": "a", "unknown": 1}),
        ("/store/items", {"namespace": "a", "limit": ["1", "2"]}),
        ("/store/items", {"namespace": "a", "cursor": "WzFd"}),
        ("/store/items", {"namespace": "a", "cursor": "é"}),
        ("/store/search", {"namespace": "a", "cursor": "Wy0xXQ"}),
        ("/store/search", {"namespace": "a", "cursor": "WzFlOTld"}),
        ("/store/search", {"namespace": "a", "filter": "[1]"}),
        ("/store/search", {"namespace": "a", "min_score": 0.5}),
        ("/store/item", {"namespace": "a", "key": ""}),
    ],
)
async def test_an_invalid_request_is_refused(plain, serving, path, asked):
    async with serving(plain) as client:
        answer = await client.get(path, params=asked)
        assert answer.status_code in {400, 422}, answer.text
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"namespace": "a", "key": "k", "value": 1}',
        b'{"namespace": ["a"], "key": "k"}',
        b'{"namespace": ["a"], "key": "k", "value": 1, "ttl": "5"}',
        b'{"namespace": ["a"], "key": "k", "value": 1, "ttl": -5}',
        b'{"namespace": ["a"], "key": "k", "value": NaN}',
        b'{"namespace": ["a"], "key": "k", "value": "\\ud800"}',
        b'{"namespace": ["a"], "key": "\xff", "value": 1}',
        b'{"namespace": ["a"], "key": "k", "value": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"namespace": ["a"], "key": "k", "value": 123456789012345678901234567890}',
    ],
)
async def test_an_invalid_body_writes_nothing(plain, serving, body):
    async with serving(plain) as client:
        kind = {"content-type": "application/json"}
        answer = await client.put("/store/item", content=body, headers=kind)
        assert answer.status_code in {400, 422}, answer.text
    assert await plain.store.list_namespaces(None) == []
