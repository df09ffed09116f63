import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import splintr
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.conversation.tokens import (
    as_token_counter,
    count_tokens,
    estimate_tokens,
    message_tokens,
    weigh,
)
from locus_memory.errors import InvalidArgumentError
from locus_memory.messages import Message, ToolCall, ToolResult

SAMPLES = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))
ENCODINGS = [splintr.Tokenizer.from_pretrained(name) for name in ("cl100k_base", "o200k_base")]
# What may be cut anywhere and is still text of its kind.
LINES = [line for text in SAMPLES.values() for line in text.splitlines() if len(line) > 60]


def real_counts(text):
    return [len(encoding.encode_ordinary(text)) for encoding in ENCODINGS]


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_estimate_is_an_upper_one(kind):
    text = SAMPLES[kind]
    real = max(real_counts(text))
    # Long runs of blanks are cheap for a tokenizer, and seldom.
    bound = 8 if kind in {"spaces", "tabs", "newlines"} else 1.7
    assert real <= estimate_tokens(text) <= bound * real


@pytest.mark.parametrize("kind", ["English prose", "English chat"])
def test_the_estimate_of_english_is_not_wasteful(kind):
    assert estimate_tokens(SAMPLES[kind]) <= 1.3 * min(real_counts(SAMPLES[kind]))


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(LINES), min_size=4, max_size=30))
def test_any_mixture_of_kinds(lines):
    text = "\n".join(lines)
    assert estimate_tokens(text) >= max(real_counts(text))


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.text())
def test_no_text_is_too_strange(text):
    assert estimate_tokens(text) >= (1 if text.strip(" ") else 0)
    assert estimate_tokens(text + "word") > estimate_tokens("")


LETTERS = "a-z\u00c0-\u024f\u1e00-\u1eff"
MARKS = r"[!-/:-@\[-`{-\x7f\x00-\x08\x0b\x0c\x0e-\x1f]+"
RUNS = [
    (r"[ \t]{2,}|\t", 1.15, 0.06),
    (r"[\r\n]+", 1.15, 0.06),
    (f"[A-Z]?[{LETTERS}]+", 1.08, 0),
    ("[A-Z]+(?![a-z])", 2.05, 0.15),
    ("[0-9]{1,3}", 1.13, 0),
    (" (?=[0-9])", 1, 0),
    (MARKS, 0.68, 0.16),
]
"""The weight of each run of characters, and of each of its characters."""


def weigh_runs(text):
    """The weights of the runs, and what long ones of them add."""
    runs = [(weight, each, re.findall(run, text)) for run, weight, each in RUNS]
    marks = sum(max(0, len(run) - 4) for run in re.findall(MARKS, text))
    return 0.54 * marks + sum(
        weight + each * len(run) for weight, each, found in runs for run in found
    )


@given(st.text("aZ9 \t\n.-\x0b\x1c\x7f\u00e0\u00c9\u6f22", max_size=24))
def test_each_run_has_its_weight(text):
    words = re.findall(f"[A-Z]?[{LETTERS}]+", text)
    longer = 0.62 * sum(max(0, len(word) - 4) for word in words)
    scripts = 1.05 * len(re.findall("[\u00e0\u00c9]", text)) + 1.7 * text.count("\u6f22")
    assert weigh(text, foreign=True) == pytest.approx(weigh_runs(text) + longer + scripts)


def test_the_estimate_of_nothing():
    assert estimate_tokens("") == 0
    assert estimate_tokens("\ud800") > 0


class TakesSpecial:
    """As tiktoken's `Encoding` behaves."""

    def encode(self, text, *, disallowed_special="all"):
        if "<|endoftext|>" in text and disallowed_special == "all":
            raise ValueError("disallowed special token")
        return list(text)


class Encoded:
    def __init__(self, ids):
        self.ids = ids


class HasIds:
    """As `tokenizers.Tokenizer` behaves: callable it is not, and its result has `ids`."""

    def encode(self, text):
        return Encoded(text.split())


def test_every_kind_of_counter():
    assert as_token_counter(None) is estimate_tokens
    assert as_token_counter(len) is len
    assert as_token_counter(TakesSpecial())("a<|endoftext|>") == 14
    assert as_token_counter(HasIds())("one two three") == 3
    assert as_token_counter(ENCODINGS[0])("hello world") == 2
    # A builtin may tell no signature.
    assert as_token_counter(SimpleNamespace(encode=str))("abc") == 3


@pytest.mark.parametrize("counter", [3, "cl100k_base", object()])
def test_what_is_no_counter(counter):
    with pytest.raises(InvalidArgumentError, match="token counter"):
        as_token_counter(counter)


def test_what_a_message_counts():
    """The text, the name, the calls as JSON, and 3 tokens a message."""
    assert message_tokens(Message.user("12345"), len) == 3 + 5
    assert message_tokens(Message(role="user", content="hi", name="Ann"), len) == 3 + 2 + 1 + 3
    call = ToolCall(id="c", name="look", arguments={"at": "é"})
    wire = '[{"id":"c","name":"look","arguments":{"at":"é"}}]'
    assert message_tokens(Message.assistant(None, [call]), len) == 3 + len(wire)
    result = Message.tool(ToolResult(tool_call_id="c", name="look", content="done"))
    assert message_tokens(result, len) == 3 + 4 + 1 + 4 + 1


def test_messages_add_up():
    messages = [Message.user("one"), Message.assistant("two")]
    assert count_tokens(messages, len) == 12
    assert count_tokens(messages) == 2 * 3 + 2 * estimate_tokens("one")
    assert count_tokens([]) == 0


def test_content_that_is_not_a_text_is_counted_as_json():
    class Parts:
        content = ({"type": "text", "text": "hi"},)

    assert message_tokens(Parts(), len) == 3 + len('[{"type":"text","text":"hi"}]')
