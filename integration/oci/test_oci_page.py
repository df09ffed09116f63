"""The examples of the page on this backend, run on the local service."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import locus_memory.backends.oci as package

PAGE = Path(__file__).parents[2] / "docs" / "backends" / "oci.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_prints_what_it_shows(example, service, monkeypatch):
    import oci  # noqa: PLC0415 - it may not be installed

    local = package.OCIOptions
    monkeypatch.setattr(package, "OCIOptions", lambda **given: local(**service.options, **given))
    config = oci.config.from_file(service.options["config_file"])
    monkeypatch.setattr(oci.config, "from_file", lambda *_: config)
    kind, endpoint = oci.object_storage.ObjectStorageClient, service.endpoint
    created = []

    def make(config):
        created.append(kind(config, service_endpoint=endpoint))
        return created[-1]

    if "ObjectStorageClient(" in example:
        monkeypatch.setattr("locus_memory.backends.oci.connection.driver.check_client", id)
        monkeypatch.setattr(oci.object_storage, "ObjectStorageClient", make)
    code = compile(example, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = StringIO()
    with redirect_stdout(printed):
        running = eval(code, {"__builtins__": builtins})
        if inspect.isawaitable(running):
            await running
    shown = re.findall(r"^ *# > (.*)$", example, re.MULTILINE)
    assert printed.getvalue().splitlines() == shown
    for client in created:
        await asyncio.to_thread(client.base_client.session.close)
