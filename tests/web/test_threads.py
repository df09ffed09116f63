"""Threads and checkpoints over HTTP, on each kind of backend."""

from __future__ import annotations

import pytest

ODD = "a/b@2?c=d&e#f%2F ü 😀 \n\"'<script>"


async def talk(backend, thread, turns):
    """Save a thread of so many turns; return the ids of its checkpoints, oldest first."""
    messages, ids = [], []
    for number in range(1, turns + 1):
        messages = [*messages, {"role": "user", "content": f"turn {number}"}]
        state = {"messages": messages, "metadata": {"turn": number}}
        ids.append(await backend.checkpointer.save(state, thread, metadata={"turn": number}))
    return ids


@pytest.mark.parametrize("thread", ["trip", ODD])
async def test_a_thread_is_listed_and_every_state_is_there(backend, client, thread):
    ids = await talk(backend, thread, 5)
    (row,) = (await client.get("/threads")).json()["threads"]
    assert (row["thread_id"], row["checkpoints"]) == (thread, 5)
    assert row["newest"]["checkpoint_id"] == ids[-1]
    page = (await client.get("/threads/checkpoints", params={"thread": thread})).json()
    assert [each["checkpoint_id"] for each in page["checkpoints"]] == ids[::-1]
    assert page["checkpoints"][0]["metadata"] == {"turn": 5}
    for place, name in enumerate(ids, 1):
        for wanted in (name, str(place)):
            asked = {"thread": thread, "checkpoint": wanted}
            state = (await client.get("/threads/state", params=asked)).json()
            assert state["checkpoint_id"] == name
            assert len(state["state"]["messages"]) == place


async def test_lists_page_to_their_ends(backend, client):
    for number in range(7):
        await talk(backend, f"t{number}", 1)
    ids = await talk(backend, "long", 7)
    for limit in (1, 3, 8, 100):
        names, cursor = [], None
        while True:
            asked = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
            page = (await client.get("/threads", params=asked)).json()
            names += [row["thread_id"] for row in page["threads"]]
            if (cursor := page["next"]) is None:
                break
        assert names == ["long", *(f"t{number}" for number in range(7))]
        found, cursor = [], None
        while True:
            asked = {"thread": "long", "limit": limit}
            asked |= {} if cursor is None else {"cursor": cursor}
            page = (await client.get("/threads/checkpoints", params=asked)).json()
            found += [each["checkpoint_id"] for each in page["checkpoints"]]
            if (cursor := page["next"]) is None:
                break
        assert found == ids[::-1]
    only = (await client.get("/threads", params={"prefix": "t"})).json()["threads"]
    assert len(only) == 7


async def test_two_checkpoints_are_compared(backend, client):
    ids = await talk(backend, "trip", 3)
    asked = {"thread": "trip", "checkpoint": ids[0], "other_checkpoint": ids[2]}
    found = (await client.get("/threads/diff", params=asked)).json()
    assert found["messages"]["common"] == 1
    (edit,) = found["messages"]["edits"]
    assert [each["message"]["content"] for each in edit["added"]] == ["turn 2", "turn 3"]
    assert edit["removed"] == []
    assert found["changes"] == [
        {"path": "metadata.turn", "kind": "changed", "before": 1, "after": 3}
    ]


async def test_the_thread_is_the_one_that_was_named(backend, client):
    """A thread named `trip@2` is not the second checkpoint of `trip`."""
    await talk(backend, "trip", 3)
    await backend.checkpointer.save({"messages": []}, "trip@2", "x")
    body = {"thread": "trip", "checkpoint": "2", "new_thread": "forked"}
    done = await client.post("/threads/fork", json=body)
    assert (done.status_code, done.json()["source"], done.json()["checkpoints"]) == (201, "trip", 2)
    page = (await client.get("/threads/checkpoints", params={"thread": "forked"})).json()
    assert page["checkpoints"][0]["forked_from"]["thread_id"] == "trip"
    again = await client.post("/threads/fork", json=body)
    assert (again.status_code, again.json()["error"]["type"]) == (409, "CheckpointConflictError")


async def test_a_pruning_is_previewed(backend, client):
    ids = await talk(backend, "trip", 5)
    body = {"thread": "trip", "keep_last": 2, "dry_run": True}
    plan = (await client.post("/threads/prune", json=body)).json()
    assert plan["checkpoint_ids"] == ids[:3]
    assert len(await backend.checkpointer.list_checkpoints("trip")) == 5
    done = (await client.post("/threads/prune", json={**body, "dry_run": False})).json()
    assert (done["deleted"], done["total"]) == (3, 5)
    assert await backend.checkpointer.list_checkpoints("trip") == ids[:2:-1]
    for keep in (2, 3, 4, 100):
        body = {"thread": "trip", "keep_last": keep, "dry_run": True}
        assert (await client.post("/threads/prune", json=body)).json()["checkpoint_ids"] == []
    body = {"thread": "trip", "older_than": "2000-01-01T00:00:00", "dry_run": False}
    assert (await client.post("/threads/prune", json=body)).json()["deleted"] == 0
    del body["older_than"]
    assert (await client.post("/threads/prune", json=body)).status_code == 400


async def test_a_checkpoint_and_a_thread_are_deleted(backend, client):
    ids = await talk(backend, "trip", 3)
    one = {"thread": "trip", "checkpoint": ids[1]}
    for dry_run, left in ((True, 3), (False, 2)):
        done = await client.delete("/threads", params={**one, "dry_run": dry_run})
        assert done.json()["checkpoint_id"] == ids[1]
        assert len(await backend.checkpointer.list_checkpoints("trip")) == left
    assert (await client.delete("/threads", params=one)).status_code == 404
    # A place would name another checkpoint when the request is repeated.
    assert (
        await client.delete("/threads", params={"thread": "trip", "checkpoint": "-1"})
    ).status_code == 404
    plan = await client.delete("/threads", params={"thread": "trip", "dry_run": True})
    assert (plan.json()["checkpoints"], await backend.checkpointer.exists("trip")) == (2, True)
    await client.delete("/threads", params={"thread": "trip"})
    assert not await backend.checkpointer.exists("trip")
    assert (await client.delete("/threads", params={"thread": "trip"})).status_code == 404


async def test_the_size_of_a_thread_is_compared_with_its_json(backend, client):
    await talk(backend, "trip", 20)
    asked = {"thread": "trip", "deep": True}
    found = (await client.get("/threads/stats", params=asked)).json()
    assert found["total_checkpoints"] == 20
    assert 0 < found["stored_bytes"] < found["json_bytes"]


async def test_a_thread_is_exported_line_by_line(backend, client):
    await talk(backend, "trip", 3)
    asked = {"thread": "trip", "format": "jsonl"}
    answer = await client.get("/export/thread", params=asked)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text.count("\n") == 3
    document = (await client.get("/export/thread", params={"thread": "trip"})).json()
    assert document["id"] == "trip"
    assert [each["content"] for each in document["messages"]] == ["turn 1", "turn 2", "turn 3"]
    await backend.checkpointer.save({"no": "messages"}, "empty")
    assert (await client.get("/export/thread", params={"thread": "empty"})).status_code == 404


@pytest.mark.parametrize(
    "path", ["/threads/state", "/threads/checkpoints", "/threads/diff", "/threads/stats"]
)
async def test_an_unknown_thread_is_404(plain, serving, path):
    async with serving(plain) as client:
        answer = await client.get(path, params={"thread": "nothing"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (
            404,
            "CheckpointNotFoundError",
        )
