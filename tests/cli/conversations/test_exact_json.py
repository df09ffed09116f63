from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.transfer.chats.exact_json import InexactNumberError, parse_json

LARGEST, SMALLEST = 2**64 - 1, -(2**63)
BIG = "12345678901234567890123"


@pytest.mark.parametrize(
    "text",
    [
        str(LARGEST),
        str(SMALLEST),
        f'{{"{BIG}": ["{BIG}", "\\"{BIG}", {LARGEST}]}}',
        f"0.{BIG}",
        f"{BIG}.5",
        f"{BIG}e3",
        "1.5e-3",
    ],
)
def test_what_comes_back_is_taken(text):
    assert parse_json(text) == parse_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        *(BIG, f"-{BIG}", str(LARGEST + 1), str(SMALLEST - 1), "9" * 300),
        *(f'{{"a": [1, {BIG}]}}', f'["\\\\", {BIG}]', f"[1.5, {BIG} ]"),
    ],
)
def test_what_would_not_is_refused(text):
    with pytest.raises(InexactNumberError, match="has more than 64 bits"):
        parse_json(text)


@pytest.mark.parametrize("text", ["1e400", "-1e999", "9" * 5000])
def test_a_number_beyond_every_float_is_refused(text):
    with pytest.raises(InexactNumberError, match="larger than any float"):
        parse_json(text)


@pytest.mark.parametrize("text", ["007", "+5", "1.", "nan", "Infinity", "", "1 2", "[1e400]"])
def test_what_is_no_json_says_so(text):
    with pytest.raises(orjson.JSONDecodeError) as caught:
        parse_json(text)
    assert not isinstance(caught.value, InexactNumberError)


values = st.recursive(
    st.integers() | st.integers(2**63, 2**65) | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def fits(value):
    if isinstance(value, dict | list):
        return all(map(fits, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or SMALLEST <= value <= LARGEST


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(values)
def test_any_value_comes_back_or_is_refused(value):
    text = json.dumps(value).replace("-Infinity", "0").replace("Infinity", "0")
    if fits(value):
        assert parse_json(text) == json.loads(text)
    else:
        with pytest.raises(InexactNumberError):
            parse_json(text)


@pytest.mark.parametrize("value", [BIG, f'{{"n": {BIG}}}', f"[-{BIG}]"])
def test_put_stores_no_other_number(fails, ok, run, value):
    assert "more than 64 bits" in fails(2, "put", "n", "k", "--", value)
    assert "more than 64 bits" in fails(2, "put", "n", "k", "1", "--metadata", f'{{"m": {BIG}}}')
    assert run("ls", "n").code == 1
    ok("put", "n", "k", "--string", value)
    assert ok("get", "n", "k").out == f"{value}\n"


MESSAGE = '{"role": "user", "content": "hello", "metadata": {"n": %s}}'


@pytest.mark.parametrize("content", [f"[{MESSAGE}]", f"{MESSAGE}", f"{MESSAGE}\n{MESSAGE}\n"])
def test_import_stores_no_other_number(fails, write, content):
    path = write("chat.json", content.replace("%s", BIG))
    assert "more than 64 bits" in fails(1, "import", path)
    assert fails(1, "threads") == "error: no database at sqlite:./locus.db: name one with --url\n"


def test_arguments_of_a_tool_come_back_as_they_were(ok, write):
    function = {"name": "f", "arguments": f'{{"n": {BIG}}}'}
    call = {"id": "1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    ok("import", write("chat.json", [message]))
    [exported] = ok("export", "chat").json["messages"]
    assert exported["tool_calls"] == [call]
