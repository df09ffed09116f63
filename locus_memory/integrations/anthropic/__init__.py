"""Adapters for Anthropic's memory tool (`memory_20250818` of `anthropic`), on any database.

```python
from locus_memory.integrations.anthropic import AsyncLocusMemoryTool

async with AsyncLocusMemoryTool("sqlite:./agent.db", namespace=("users", "ada")) as tool:
    runner = client.beta.messages.tool_runner(model=..., max_tokens=..., messages=..., tools=[tool])
```

Read `editing.py` first: the texts that the tool shows, as pure functions. `files.py` keeps files
and their versions in a store. `tool.py` has the two tools of the SDK. It has over 400 lines since
the SDK has a class each for blocking and async code, and leaves the texts of all answers to them.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("anthropic.lib.tools", "anthropic", needed_by=__name__)

from locus_memory.integrations.anthropic.files import FileVersion  # noqa: E402 - the guard is first
from locus_memory.integrations.anthropic.tool import (  # noqa: E402
    AsyncLocusMemoryTool,
    LocusMemoryTool,
)

__all__ = ["AsyncLocusMemoryTool", "FileVersion", "LocusMemoryTool"]
