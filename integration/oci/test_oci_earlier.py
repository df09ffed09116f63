"""A bucket written by an earlier version opens: its objects are there as they were."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

from served import ADDRESS

from integration.earlier import check_items, check_threads, check_writes, read
from locus_memory.registry import open_backend
from locus_memory.testing import FakeClock


async def test_a_bucket_written_by_the_version_before_opens(service, options):
    earlier = read(Path(__file__).parent)
    clock, expected = FakeClock(earlier["clock"]), earlier["expected"]
    for name, body in earlier["objects"].items():
        # A state names its packs, and its checksum covers the names.
        service.write(name, b64decode(body))
    given = {"clock": clock, "state_type": None}
    where = f"oci:{ADDRESS}"
    async with open_backend(where, **{**options, "prefix": "earlier"}, **given) as backend:
        await check_items(backend.store, expected["items"])
        await check_threads(backend.checkpointer, expected["threads"])
        await check_writes(backend, expected["items"], expected["threads"])
    assert not [name for name in service.names() if name.startswith("earlier/")]
