"""The OpenAPI document says what the endpoints take; run this file to write the docs' copy."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pydantic
import pytest

from locus_memory.web.api.table import OPERATIONS, openapi_document

COPY = Path(__file__).parents[2] / "docs" / "assets" / "openapi.json"


def text():
    return orjson.dumps(openapi_document(), option=orjson.OPT_INDENT_2).decode() + "\n"


def references(value):
    return set(re.findall(r'"\$ref":"([^"]+)"', orjson.dumps(value).decode()))


@pytest.mark.skipif(
    tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 14),
    reason="a newer pydantic writes the copy",
)
def test_the_copy_in_the_docs_is_what_the_server_says():
    assert COPY.read_text("utf-8") == text()


async def test_the_server_says_it(plain, serving):
    async with serving(plain) as client:
        assert (await client.get("/openapi.json")).json() == orjson.loads(text())


def test_each_reference_leads_to_a_schema_and_each_schema_is_used():
    schemas = openapi_document()["components"]["schemas"]
    assert references(openapi_document()) == {f"#/components/schemas/{name}" for name in schemas}


def test_each_endpoint_has_a_name_of_its_own_and_a_sentence():
    names = [each.name for each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(each.summary.endswith(".") for each in OPERATIONS)
    assert all(each.asked.__doc__ for each in OPERATIONS)


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_what_is_conditional_says_so(each):
    described = openapi_document()["paths"][each.path][each.method.lower()]
    assert ("412" in described["responses"]) == each.is_conditional
    assert ("requestBody" in described) == (each.method in {"PUT", "POST"})


if __name__ == "__main__":
    COPY.write_text(text(), "utf-8")
