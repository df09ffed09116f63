from __future__ import annotations

import json
import re

EVIL = "<script>alert('x')</script>\"'&"


async def remember(browser, user, *contents):
    for content in contents:
        body = {"content": content, "user": user}
        answer = await browser.client.post("/api/v1/memory/remember", json=body)
        assert answer.status_code == 200


async def known(browser, user):
    answer = await browser.client.get("/api/v1/memory/list", params={"user": user})
    return [each["content"] for each in answer.json()["memories"]]


async def test_a_user_is_forgotten_after_a_preview_and_the_typed_name(browser):
    await remember(browser, "ada", "Ada lives in Riga.", "Ada is a vegetarian.")
    await remember(browser, "bob", "Bob lives in Oslo.")
    assert '<option value="ada">' in await browser.page("/danger")
    text = await browser.page("/danger/forget", user="ada")
    assert "Ada lives in Riga." in text
    assert "Bob" not in text
    assert re.search(r"<dt>Memories</dt><dd>2", text)
    for confirm in ("", "Ada", "bob"):
        answer = await browser.post("/danger/forget", user="ada", confirm=confirm)
        assert (answer.status_code, "nothing is erased" in answer.text) == (400, True)
    assert len(await known(browser, "ada")) == 2
    answer = await browser.post("/danger/forget", user="ada", confirm="ada")
    assert "All data of ada is erased: 2 memories, 0 sessions with notes," in await browser.follow(
        answer
    )
    assert await known(browser, "ada") == []
    assert len(await known(browser, "bob")) == 1
    assert "Nothing is stored" in await browser.page("/danger/forget", user="ada")
    assert (await browser.get("/danger/forget")).status_code == 400
    await remember(browser, "José", "Lives in Nice.")
    near = await browser.page("/danger/forget", user="jose")
    assert "Nothing is stored for this user: did you mean &#39;José&#39;?" in near


async def test_the_threads_of_a_user_go_as_well_and_the_pages_say_so(browser, backend):
    saver, state = backend.checkpointer, {"messages": [{"role": "user", "content": "hi"}]}
    for user, thread in (("ada", "trip"), ("bob", "walk")):
        await saver.save(state, thread, metadata={"user_id": user})
    assert "threads of the user" in await browser.page("/danger")
    text = await browser.page("/danger/forget", user="ada")
    assert ("of 1 thread" in text, "trip" in text, "walk" in text) == (True, True, False)
    answer = await browser.post("/danger/forget", user="ada", confirm="ada")
    assert "1 checkpoint of 1 thread." in await browser.follow(answer)
    assert (await saver.exists("trip"), await saver.exists("walk")) == (False, True)


async def test_a_namespace_is_cleared_after_a_preview_and_its_typed_name(browser, backend):
    for namespace in (("a",), ("a", "b"), ("c",)):
        await backend.store.put(namespace, "k", 1)
    assert "1 item would" in await browser.page("/danger/clear", path="a")
    assert "2 items would" in await browser.page("/danger/clear", path="a", recursive="true")
    fields = {"namespace": "a", "recursive": "true"}
    answer = await browser.post("/danger/clear", **fields, confirm="b")
    assert answer.status_code == 400
    assert await backend.store.exists(("a",), "k")
    answer = await browser.post("/danger/clear", **fields, confirm="a")
    assert "Deleted from a: 2 items." in await browser.follow(answer)
    assert await backend.store.list_namespaces(None, 9) == [("c",)]
    assert "nothing to delete" in await browser.page("/danger/clear", path="a")
    for wrong in ({}, {"path": "a//b"}):
        assert (await browser.get("/danger/clear", **wrong)).status_code in (400, 422)


async def test_memories_are_consolidated_and_sessions_distilled_now(browser):
    await remember(browser, "ada", "Ada lives in Riga.")
    text = await browser.page("/danger/consolidate", user="ada")
    assert "Move to the history" in text
    answer = await browser.post("/danger/consolidate", user="ada")
    assert "Consolidated in" in await browser.follow(answer)
    assert await known(browser, "ada") == ["Ada lives in Riga."]
    for fields in ({}, {"user": "ada"}):
        answer = await browser.post("/danger/sync", **fields)
        assert "0 jobs wait." in await browser.follow(answer)


async def test_a_stored_script_is_escaped_in_each_preview(browser):
    user = f"u {EVIL}"
    await remember(browser, user, f"They like {EVIL}.")
    for path, given in (
        ("/danger", {}),
        ("/danger/forget", {"user": user}),
        ("/danger/consolidate", {"user": user}),
        ("/danger/clear", {"path": json.dumps([EVIL])}),
    ):
        text = await browser.page(path, **given)
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text, path
    answer = await browser.post("/danger/forget", user=user, confirm=user)
    text = await browser.follow(answer)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
