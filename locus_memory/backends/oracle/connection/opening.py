"""Opening a database: its features, and the creation of the tables."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from locus_memory.backends.oracle import schema
from locus_memory.backends.oracle.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    DriverError,
    code_of,
)
from locus_memory.backends.oracle.connection.driver_errors import UNIQUE_VIOLATED, is_lost
from locus_memory.backends.oracle.options import OracleOptions
from locus_memory.backends.oracle.schema import Names
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit

__all__ = ["Features", "Opening"]

CORE, VECTORS, VECTOR_INDEX, TEXT_INDEX = range(1, 5)
"""The parts of the schema, each with its own version."""

_NATIVE_JSON: Final = (21,)
_WITH_VECTORS: Final = (23, 4)
"""The first releases with the type: the type JSON, and the type VECTOR."""

_OLDEST: Final = (19,)

_TABLE_MISSING: Final = "ORA-00942"
_COMPATIBLE_TOO_LOW: Final = "ORA-00406"

_THERE: Final = frozenset({"ORA-00955", "ORA-01408", "ORA-01430", "ORA-29879", "ORA-51933"})
"""The errors that an object or a column exists already, or that its like does."""


_Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a database and of the tables in it.

    Attributes:
        version: The version of the server, such as `(23, 26, 0, 0, 0)`.
        native_json: Whether the tokens of filters are in a column of the type JSON.
        has_vectors: Whether there is a table of vectors.
        dimension: The length of all vectors; `None`: any.
        has_vector_index: Whether there is an index of all vectors.
        has_oracle_text: Whether Oracle Text indexes the words.
    """

    version: tuple[int, ...]
    native_json: bool
    has_vectors: bool
    dimension: int | None
    has_vector_index: bool
    has_oracle_text: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """The opening of a database.

    Attributes:
        connect: Opens a further connection; the lock and the builder of the tables have their own.
        leave: Ends such a connection.
        names: The names of the tables.
        options: How to connect.
        where: The name of the database in messages.
        found: Version and kind of each part of the tables, as far as they are up to date.
    """

    connect: Callable[[], Awaitable[Connection]]
    leave: Callable[[Connection], Awaitable[None]]
    names: Names
    options: OracleOptions
    where: str
    found: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    async def prepare(self, connection: Connection) -> Features:
        """Bring the tables up to date, if they are not; return the features of the database.

        A database that is up to date costs one query, and no lock.

        Raises:
            ConfigurationError: The server is too old, or a newer locus_memory made the tables, or
                they were made with other options.
            oracledb.Error: The user may not create the tables.
        """
        version = tuple(map(int, re.findall(r"\d+", connection.version)))
        if version < _OLDEST:
            raise ConfigurationError(
                f"{self.where}: the server is release {version[0]}; 19 is the oldest that works"
            )
        self.found.update(await self._read(connection) or {})
        await self._add_core(native_json=version >= _NATIVE_JSON)
        if version >= _WITH_VECTORS:
            await self._add_vectors()
        if self.options.text_index == "context":
            await self._try(TEXT_INDEX, schema.text_index())
        return self._features(version)

    async def versions(self, connection: Connection) -> list[tuple[int, int]]:
        """Return the version of each part that the tables have, and the newest one known here."""
        found = await self._read(connection) or {}
        known = {
            CORE: schema.core(native_json=True),
            VECTORS: schema.vectors(None),
            VECTOR_INDEX: schema.vector_index("ivf"),
            TEXT_INDEX: schema.text_index(),
        }
        return [(found[part][0], len(groups)) for part, groups in known.items() if part in found]

    async def _add_core(self, *, native_json: bool) -> None:
        groups = schema.core(native_json=native_json)
        try:
            await self._bring_up(CORE, groups, int(native_json))
        except DriverError as error:
            # The parameter COMPATIBLE may be that of an older release, without the type JSON.
            if not native_json or code_of(error) != _COMPATIBLE_TOO_LOW:
                raise
            await self._add_core(native_json=False)

    async def _add_vectors(self) -> None:
        length, kind = self.options.vector_dimension, self.options.vector_index
        await self._try(VECTORS, schema.vectors(length), length or 0)
        if kind is not None and self.found.get(VECTORS, (0, 0))[0]:
            await self._try(VECTOR_INDEX, schema.vector_index(kind))

    def _features(self, version: tuple[int, ...]) -> Features:
        found = self.found
        vectors, dimension = found.get(VECTORS, (0, 0))
        wanted = self.options.vector_dimension
        if vectors and wanted not in (None, dimension):
            raise ConfigurationError(
                f"{self.where}: the vectors of these tables have "
                f"{dimension or 'any number of'} dimensions, not vector_dimension={wanted}"
            )
        return Features(
            version=version,
            native_json=found[CORE][1] == 1,
            has_vectors=bool(vectors),
            dimension=dimension or None,
            has_vector_index=bool(found.get(VECTOR_INDEX, (0, 0))[0]),
            has_oracle_text=bool(found.get(TEXT_INDEX, (0, 0))[0]),
        )

    async def _read(self, connection: Connection) -> dict[int, tuple[int, int]] | None:
        """Return version and kind of each part; `None`: there is no table of migrations."""
        try:
            rows = await connection.fetchall(self.names.fill(schema.READ_MIGRATIONS))
        except DriverError as error:
            if code_of(error) != _TABLE_MISSING:
                raise
            return None
        return {int(part): (int(version), int(kind)) for part, version, kind in rows}

    async def _try(self, part: int, groups: _Groups, kind: int = 0) -> None:
        """Bring up a part that the store can do without; without the right, report it."""
        try:
            await self._bring_up(part, groups, kind)
        except DRIVER_ERRORS as error:
            if is_lost(error):
                raise
            if part == VECTORS:
                emit("oracle.no_vectors", error=error, database=self.where)
            elif part == VECTOR_INDEX:
                emit("oracle.no_vector_index", error=error, database=self.where)
            else:
                emit("oracle.no_text_index", error=error, database=self.where)

    async def _bring_up(self, part: int, groups: _Groups, kind: int) -> None:
        """Apply the migrations of a part that are missing.

        Args:
            part: Its number in the table of migrations.
            groups: Its migrations, a group for each version.
            kind: The variant of its tables.
        """
        version = self.found.get(part, (0, 0))[0]
        if version > len(groups):
            raise ConfigurationError(
                f"{self.where}: a newer locus_memory made these tables (version {version}, this "
                f"one knows {len(groups)}); upgrade locus-memory"
            )
        if version == len(groups):
            return
        builder, lock = await self.connect(), None
        try:
            await self._create_row(builder, part)
            lock = await self.connect()
            binds = {"part": part}
            rows = await lock.fetchall(self.names.fill(schema.LOCK_MIGRATIONS), binds)
            version, there = int(rows[0][0]), int(rows[0][1])
            if version < len(groups):
                for statement in chain.from_iterable(groups[version:]):
                    await self._create(builder, statement)
                version, there = len(groups), kind
                row = {**binds, "version": version, "kind": there}
                await lock.execute(self.names.fill(schema.SET_VERSION), row)
                await lock.commit()
        finally:
            # The lock goes with its connection, whatever happened.
            for each in filter(None, (lock, builder)):
                await self.leave(each)
        self.found[part] = version, there

    async def _create_row(self, connection: Connection, part: int) -> None:
        """Create the table of migrations and the row of the part, unless they exist.

        Nothing is locked yet. Of several sessions that create it at the same moment, one may fail
        with an error of the catalogue, such as a violated constraint: all that counts is the table.
        """
        try:
            await self._create(connection, schema.CREATE_MIGRATIONS)
        except DriverError:
            await connection.rollback()
            if await self._read(connection) is None:
                raise
        try:
            await connection.execute(self.names.fill(schema.FIRST_VERSION), {"part": part})
        except DriverError as error:
            if code_of(error) != UNIQUE_VIOLATED:
                raise
        await connection.commit()

    async def _create(self, connection: Connection, statement: str) -> None:
        try:
            await connection.execute(self.names.fill(statement))
        except DriverError as error:
            if code_of(error) not in _THERE:
                raise
            await connection.rollback()
