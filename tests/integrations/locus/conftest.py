from __future__ import annotations

import hashlib

import pytest

pytest.importorskip("locus")

from locus.agent import Agent
from locus.testing import FunctionModel, tool_call
from locus.tools.decorator import tool

from locus_memory import open_backend
from locus_memory.integrations.locus import LocusCheckpointer


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


def looks_then_answers(messages, tools):
    """Look once in each turn, then answer with how many turns there were."""
    turns = sum(message.role == "user" for message in messages)
    if messages[-1].role == "tool":
        return f"answer {turns}"
    return tool_call("look", place=f"place {turns}", call_id=f"call-{turns}-{len(messages)}")


def address(provider, request, tmp_path):
    """Return a provider string and options that no other test shares."""
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
    if provider == "sqlite":
        return f"sqlite:{tmp_path}/agent.db", {}
    if provider == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        return f"postgresql:{server.url}", {"schema": f"t_{name}"}
    server = request.getfixturevalue("redis_server")
    return f"redis:{server.url}", {"key_prefix": f"t{name}:"}


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def checkpointers(request, tmp_path):
    """Make checkpointers over one place, each as a new process would make its own."""
    if request.param == "memory":
        backend = open_backend("memory")
        return lambda: LocusCheckpointer(backend)
    where, options = address(request.param, request, tmp_path)
    return lambda: LocusCheckpointer(where, **options)


@pytest.fixture
def make_agent():
    def make(handler=looks_then_answers, **options):
        model = handler if hasattr(handler, "complete") else FunctionModel(handler)
        given = {"model": model, "tools": [look], "system_prompt": "Be brief.", **options}
        return Agent(**given)

    return make
