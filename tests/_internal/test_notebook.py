from __future__ import annotations

from html.parser import HTMLParser

import pytest

from locus_memory._internal.notebook import table
from locus_memory.checkpoint import compare
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.reading.reader import Plan
from locus_memory.messages import Message
from locus_memory.retrieval.hybrid import Hit, SearchResult
from locus_memory.state import AgentState
from locus_memory.store.item import StoreItem, timestamp

EVIL = "</pre><script>alert('x')</script>&amp;\" onload='x"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "colspan"}

    def handle_data(self, data):
        self.text += data


def item(value):
    moment = timestamp(0)
    return StoreItem((EVIL, "b"), EVIL, value, {EVIL: value}, moment, moment, score=0.5)


SHOWN = [
    item(EVIL),
    item({EVIL: [EVIL]}),
    Memory(MemoryType.USER, EVIL, EVIL, {EVIL: EVIL}),
    AgentState(run_id=EVIL, messages=(Message.user(EVIL),), metadata={EVIL: EVIL}),
    SearchResult((Hit(item(EVIL), 0.5, EVIL, relevance=0.5),), "text"),
    Plan(stable=EVIL, tail=EVIL),
    LLMMemoryManager("memory", namespace_prefix=(EVIL,)),
    compare({"messages": [EVIL], EVIL: EVIL}, {"messages": [EVIL, EVIL], EVIL: [EVIL]}),
]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: type(each).__name__)
def test_a_notebook_shows_texts_as_they_are(shown):
    found = Tags()
    found.feed(shown._repr_html_())
    assert found.tags <= {"table", "tr", "th", "td", "pre"}
    assert "<script>alert(" in found.text


def test_what_is_large_is_cut():
    large = "x" * 10_000_000
    assert len(item(large)._repr_html_()) < 5000
    assert len(repr(item([large]))) < 2000
    assert len(table([(large, large)] * 1000)) < 100_000
    state = AgentState(messages=tuple(Message.user(large) for _ in range(200)))
    assert "and 152 more" in state._repr_html_()
    assert len(state._repr_html_()) < 50_000


def test_an_item_tells_what_it_is():
    moment = timestamp(0)
    plain = StoreItem(("users", "ada"), "tea", {"likes": "oolong"}, {}, moment, moment, version=2)
    assert repr(plain) == (
        "StoreItem(('users', 'ada'), 'tea', {'likes': 'oolong'}, metadata={}, version=2)"
    )
