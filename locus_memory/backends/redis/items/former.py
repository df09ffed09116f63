"""What an earlier version of the library kept in RediSearch, moved into its own indexes.

That version recorded at `<prefix>layout` that the hashes of the items have texts, vectors and
labels for RediSearch, in fields whose names begin with the byte 255. The first use of such a
database moves them and deletes the record last, so a crash in between is no harm, nor is a second
process that does the same.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.items.items import rows, terms
from locus_memory.backends.redis.items.spaces import Space, Spaces
from locus_memory.backends.redis.lua import script
from locus_memory.errors import BackendError
from locus_memory.events import emit
from locus_memory.store.json_values import decode_json
from locus_memory.store.text import indexed, tokens

__all__ = ["leftover_indexes", "move_from_redisearch", "record_of"]

_OURS: Final = b"\xff"
_TEXT: Final = b"\xfft"
_VECTOR: Final = b"\xffv"

_PAGE: Final = 200
"""How many items are moved at once."""


async def record_of(connection: RedisConnection) -> Sequence[bytes]:
    """Return the record of an earlier version; empty: there is nothing to move."""
    found: list[bytes] = await connection.execute("HGETALL", connection.key("layout"), again=True)
    return found


async def leftover_indexes(connection: RedisConnection) -> list[bytes]:
    """Return the names of the indexes of RediSearch that an earlier version made."""
    start = connection.key("search:")
    with suppress(BackendError):
        names = await connection.execute("FT._LIST", again=True)
        return sorted(name for name in names if name.startswith(start))
    return []


async def move_from_redisearch(spaces: Spaces) -> None:
    """Move the texts and the vectors of all items, and drop the indexes of RediSearch.

    Raises:
        BackendWriteError: The server is read-only or full.
    """
    connection, count = spaces.connection, 0
    if not await record_of(connection):
        return
    # An earlier version that still runs is refused from now on, as of a damaged record.
    moved = (item for name in ("text", "vectors") for item in (name, "moved"))
    layout = connection.key("layout")
    await connection.execute("HSET", layout, "mark", secrets.token_hex(8), *moved)
    low = b""
    while page := await spaces.registered(low, None):
        for space in page:
            count += await _move_space(spaces, space)
        low = page[-1].path + b"\x00"
    for name in await leftover_indexes(connection):
        with suppress(BackendError):
            await connection.execute("FT.DROPINDEX", name)
    await connection.execute("DEL", layout, connection.key("scans"))
    emit("redis.moved", place=connection.place, items=count)


async def _move_space(spaces: Spaces, space: Space) -> int:
    """Move the items of a namespace in the order of their writes; return how many there were."""
    connection, count = spaces.connection, 0
    keys = await connection.execute("ZRANGE", space.base + b":r", 0, -1, again=True)
    for some in rows(keys, _PAGE):
        names = [("HGETALL", spaces.item_name(space, key)) for key in some]
        found = await connection.execute_many(names, again=True)
        items = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in found)
        moved = [_arguments(key, item) for key, item in zip(some, items, strict=True)]
        if given := list(chain.from_iterable(moved)):
            has_sets = int(connection.features.vector_sets)
            args = [spaces.now(), space.path, has_sets, *given]
            [done] = await spaces.run_each(
                [script("adopt").call(spaces.keys_of(space), args)], [space]
            )
            count += done
    return count


def _arguments(key: bytes, item: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the arguments of the script for an item; none if there is nothing to move."""
    if not any(field.startswith(_OURS) for field in item):
        return []
    vectors = [value for field, value in item.items() if field.startswith(_VECTOR)]
    text = terms(_stems(item[_TEXT], item[b"v"])) if _TEXT in item else b""
    return [key, item[b"h"], text, *(vectors or [b""])]


def _stems(names: bytes, value: bytes) -> list[str]:
    """Return the stems by their names in RediSearch: `x`, or `u` and hex, or `d` and a digest."""
    listed, long = names.decode().split(), dict[str, str]()
    if any(name.startswith("d") for name in listed):
        words = tokens(indexed(decode_json(value), None))
        long = {hashlib.blake2b(word.encode(), digest_size=16).hexdigest(): word for word in words}
    # A long word of a text that is not of the value is known by its digest only.
    forms: Mapping[str, Callable[[str], str | None]] = {
        "x": str,
        "u": lambda part: bytes.fromhex(part).decode(),
        "d": long.get,
    }
    found: list[str | None] = [forms[name[0]](name[1:]) for name in listed]
    return [stem or name for stem, name in zip(found, listed, strict=True)]
