"""An adapter whose framework is missing says in one sentence what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from locus_memory._internal.providers.installing import install_command

ADAPTERS = {
    "agent-framework": ("agent_framework", "locus_memory.integrations.agent_framework"),
    "crewai": ("crewai", "locus_memory.integrations.crewai"),
    "llama-index": ("llama_index", "locus_memory.integrations.llama_index"),
    "adk": ("google.adk", "locus_memory.integrations.adk"),
    "anthropic": ("anthropic", "locus_memory.integrations.anthropic"),
    "langchain": ("langchain", "MemoryMiddleware"),
    "mcp": ("mcp", "locus_memory.integrations.mcp"),
    "openai-agents": ("agents", "locus_memory.integrations.openai_agents"),
    "pydantic-ai": ("pydantic_ai", "locus_memory.integrations.pydantic_ai"),
    "pydantic-ai-harness": ("pydantic_ai_harness", "LocusMemoryStore"),
    "py-key-value": ("key_value", "locus_memory.integrations.key_value"),
    "strands": ("strands", "locus_memory.integrations.strands"),
}
USES = {
    "langchain": "from locus_memory.integrations.langgraph import MemoryMiddleware",
    "pydantic-ai": "from locus_memory.integrations.pydantic_ai import LocusConversationStore",
    "pydantic-ai-harness": (
        "from locus_memory.integrations.pydantic_ai import LocusMemoryStore; "
        "LocusMemoryStore('memory')"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", ADAPTERS)
def test_a_missing_framework_is_one_sentence(extra):
    framework, part = ADAPTERS[extra]
    use = USES.get(extra, f"import {part}")
    code = f"import sys; sys.modules[{framework!r}] = None; {use}"
    failed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert failed.stderr.splitlines()[-1] == (
        f"locus_memory.errors.MissingDriverError: {part}: needs the {extra!r} extra: "
        f"{install_command(extra)}"
    )
