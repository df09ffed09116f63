"""Adapters for Strands on every kind of database, and a model that answers by heart."""

from __future__ import annotations

import pytest

pytest.importorskip("strands", reason="it has an environment of its own: make frameworks")

from strands.models import Model

from locus_memory import open_backend
from locus_memory.integrations.strands import LocusMemoryStore, LocusSessionRepository, LocusStorage


class Scripted(Model):
    """Says one text after another, and notes what it is asked."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.asked = []

    def get_config(self):
        return {}

    def update_config(self, **config):
        raise NotImplementedError

    async def structured_output(self, *args, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, *args, **kwargs):
        self.asked.append([each["content"] for each in messages])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": self.texts.pop(0)}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@pytest.fixture
def model():
    return Scripted


@pytest.fixture
async def backend(provider):
    url, options = provider
    async with open_backend(url, **options) as opened:
        yield opened


@pytest.fixture
def repositories(backend):
    """Makes session repositories over one database of each kind."""
    return lambda: LocusSessionRepository(backend)


@pytest.fixture
def storages(backend):
    """Makes storages over one database of each kind."""
    return lambda **given: LocusStorage(backend, **given)


@pytest.fixture
def memories(backend):
    """Makes memory stores over one database of each kind."""
    return lambda name="notes", **given: LocusMemoryStore(name, backend, **given)
