"""Whatever a client sends to an endpoint, the answer is a result or an error of the client's."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.registry import open_backend
from tests.web.conftest import ENDING, below

names = st.sampled_from(
    [
        "",
        "*",
        "a",
        "ada",
        "trip",
        "1",
        "-1",
        "user",
        "feedback",
        "user:k",
        "x" * 3000,
        "a/b",
        "\x00",
        "ü😀",
        "null",
        "{}",
        '{"a": {"$gt": 1}}',
        '{"$or": []}',
        "WzFd",
        "WyJhIl0",
        "1e999",
        "9" * 30,
        "NaN",
        "true",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59+00:00",
    ]
)
scalars = names | st.sampled_from([None, True, False, 0, 1, -1, 2**63, 2**70, 0.5, -0.0, 1e308])
anything = st.recursive(
    scalars | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
LIKELY = {
    "namespace": st.lists(names, max_size=2),
    "dry_run": st.booleans() | scalars,
    "turns": st.lists(st.fixed_dictionaries({"user": names}), max_size=2) | anything,
    "limit": st.sampled_from([1, 2, 1_000]) | scalars,
}


def requests_of(operation):
    """Requests with any of the fields, most of them there."""
    fields = operation.asked.model_fields
    required = {name: LIKELY.get(name, anything) for name, f in fields.items() if f.is_required()}
    optional = {name: LIKELY.get(name, anything) for name in fields if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


def as_query(given):
    """Parameters can be texts and lists of texts alone."""
    return {
        name: [str(each) for each in value] if isinstance(value, list) else str(value)
        for name, value in given.items()
    }


async def filled(backend):
    await backend.store.put(("a",), "a", {"a": 1})
    for number in range(3):
        await backend.checkpointer.save({"messages": [{"role": "user", "content": number}]}, "trip")
    await backend.checkpointer.save({"plain": True}, "a")


@pytest.mark.parametrize("operation", ENDING, ids=lambda each: each.name)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=10,
)
@given(
    data=st.data(),
    tag=st.sampled_from([None, "*", '"1"', '"0"', "x", '"1.ff"']),
    condition=st.sampled_from(["if-match", "if-none-match"]),
)
async def test_the_answer_is_a_result_or_an_error_of_the_client(
    serving, operation, data, tag, condition
):
    asked = data.draw(requests_of(operation))
    headers = {} if tag is None else {condition: tag}
    async with open_backend("memory", state_type=None) as backend:
        await filled(backend)
        async with serving(backend) as client:
            what = {"params": as_query(asked)} if operation.in_query else {"json": asked}
            answer = await client.request(
                operation.method, below(operation), headers=headers, **what
            )
    assert answer.status_code < 500, (asked, answer.text)
    if answer.status_code >= 400:
        assert 0 < len(answer.json()["error"]["message"]) <= 2_000
