"""The examples of the page on OpenSearch print what the page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "backends" / "opensearch.md"
BLOCK = re.compile(r"^<!-- live -->\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


async def test_the_examples_print_what_the_page_says(opensearch_url, capsys):
    address = opensearch_url.removeprefix("opensearch:").removeprefix("http://")
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert blocks
    for block in blocks:
        code = block.replace("localhost:9200", address)
        # As at the prompt of `python -m asyncio`.
        running = eval(compile(code, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
        await running
        expected = re.findall(r"^ *# > (.*)$", block, re.MULTILINE)
        assert capsys.readouterr().out.splitlines() == expected
