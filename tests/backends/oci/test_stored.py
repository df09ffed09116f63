"""The content of objects: what is written comes back, and what is damaged is an error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.oci.items.order import WriteOrder
from locus_memory.backends.oci.items.stored import Content, Stored, may_expire, new_mark
from locus_memory.errors import BackendCorruptError
from locus_memory.store.json_values import encode_json
from locus_memory.testing.store_suite.base import json_objects, json_values

NAME = ("users", "ada"), "diet"
CONTENT = Content(b"1", b"{}", None)


def stored(before=None, now=100.0, content=CONTENT, order=1, mark=None):
    mark = new_mark() if mark is None else mark
    return Stored.of(NAME, content, before, now=now, order=order, mark=mark)


@pytest.mark.slow
@given(json_values, json_objects, st.none() | st.floats(1, 1e6))
def test_what_is_written_comes_back(value, metadata, ttl):
    item = stored(content=Content(encode_json(value), encode_json(metadata), ttl))
    body = item.encode()
    assert Stored.decode("place", body, *NAME) == item
    assert item.item().value == value
    assert may_expire(len(body)) == (ttl is not None)


@pytest.mark.slow
@given(st.data())
def test_damage_anywhere_is_an_error(data):
    body = stored(content=Content(b'"some value"', b'{"a":1}', 5.0)).encode()
    place = data.draw(st.integers(0, len(body) - 1))
    if body[place] == ord("\n") and place > len(body) - 3:
        return
    damaged = body[:place] + bytes([body[place] ^ data.draw(st.integers(1, 255))])
    damaged += body[place + 1 :]
    if damaged.rstrip(b"\n") != body.rstrip(b"\n"):
        with pytest.raises(BackendCorruptError, match="'diet' in"):
            Stored.decode("place", damaged, *NAME)
    for cut in range(0, len(body) - 2, 7):
        with pytest.raises(BackendCorruptError):
            Stored.decode("place", body[:cut], *NAME)


def test_an_item_in_the_place_of_another_is_an_error():
    body = stored().encode()
    for name in ((("users", "bob"), "diet"), (("users", "ada"), "other"), (("users",), "diet")):
        with pytest.raises(BackendCorruptError, match="another item is in its place"):
            Stored.decode("place", body, *name)
    assert Stored.decode("place", body, None, None).key == "diet"


def test_versions_lives_and_orders():
    first = stored(content=Content(b"1", b"{}", 10.0))
    second = stored(first, now=105.0)
    assert (second.version, second.created_at, second.updated_at) == (2, 100.0, 105.0)
    assert second.life == first.life
    assert second.order == first.order + 1
    again = stored(stored(first, 105.0, Content(b"2", b"{}", 1.0)), now=110.0)
    assert (again.version, again.created_at) == (1, 110.0)
    assert again.life != first.life


def test_the_last_marks_are_kept_with_their_versions_and_old_ones_are_not():
    item = None
    marks = [f"m{n}" for n in range(300)]
    for mark in marks:
        item = stored(item, mark=mark)
    assert item.marks == {f"m{n}": n + 1 for n in range(300 - 256, 300)}
    assert stored(item, now=10_000.0, mark="late").marks == {"late": 301}


def test_a_newer_format_is_refused(monkeypatch):
    item = stored()
    monkeypatch.setattr("locus_memory.backends.oci.items.stored.FORMAT", 2)
    body = item.encode()
    monkeypatch.undo()
    with pytest.raises(BackendCorruptError, match="newer version"):
        Stored.decode("place", body, *NAME)
    assert replace(item).head().value == b""


def test_the_order_of_writes_only_grows():
    order = WriteOrder()
    numbers = [order.following() for _ in range(1000)]
    assert numbers == sorted(set(numbers))
    order.saw(numbers[-1] + 10**18)
    assert order.following() == numbers[-1] + 10**18 + 1
