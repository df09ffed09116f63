"""The types of an HNSW index of pgvector, compared: `vector`, `halfvec`, and bits with rescoring.

Each type is built over the vectors of the growth curve, with the links that the library uses. Then
it is searched, and vectors are put with the index there, at the effort of the build and at less.
`halfvec` is built once more with a `maintenance_work_mem` of half the size of the index. Times are
of the processor, in all processes of the server, because machines are shared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import scale_data as data
from rows import Row
from scale_places import PostgreSQLPlace

from locus_memory.testing.servers import PostgreSQLServer

QUERIES, PUTS, BREADTH = 40, 200, 200
LINKS = "m = 24, ef_construction = 200"
EFFORTS = (200, 64)
PUT_FROM = 10_000_000
ENOUGH = "1GB"
D = data.DIMENSION


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of the numbers in an index.

    Attributes:
        expression: The indexed expression.
        operators: The class of its operators.
        order: The distance of a vector from the query `$1`.
        most: How many vectors are compared exactly afterwards.
    """

    expression: str
    operators: str
    order: str
    most: int = 100


KINDS = {
    "vector": Kind(
        f"(embedding::vector({D}))", "vector_ip_ops", f"embedding::vector({D}) <#> $1::text::vector"
    ),
    "halfvec": Kind(
        f"(embedding::halfvec({D}))",
        "halfvec_ip_ops",
        f"embedding::halfvec({D}) <#> $1::text::halfvec({D})",
    ),
    "bits": Kind(
        f"(binary_quantize(embedding)::bit({D}))",
        "bit_hamming_ops",
        f"binary_quantize(embedding)::bit({D}) <~> binary_quantize($1::text::vector)::bit({D})",
        most=200,
    ),
}


def text(vector: Any) -> str:
    return "[" + ",".join(f"{number:.6g}" for number in vector) + "]"


class Contest:
    """One table of vectors, with one index at a time."""

    def __init__(self, connection: asyncpg.Connection, seconds: Callable[[], float]) -> None:
        self._connection, self._seconds = connection, seconds
        self._next = PUT_FROM

    async def fill(self, count: int) -> list[set[int]]:
        """Write the vectors; return the nearest ten of each query."""
        ask = self._connection.execute
        await ask("CREATE EXTENSION vector")
        await ask("CREATE TABLE vectors (id int PRIMARY KEY, embedding vector NOT NULL)")
        await ask("ALTER TABLE vectors ALTER COLUMN embedding SET STORAGE MAIN")
        nearest = data.Nearest(data.queries(QUERIES))
        for chunk in data.chunks(count):
            nearest.see(chunk)
            rows = [(chunk.start + n, text(row)) for n, row in enumerate(chunk.vectors)]
            await self._connection.executemany(
                "INSERT INTO vectors VALUES ($1, $2::text::vector)", rows
            )
        await ask("VACUUM ANALYZE vectors")
        return [set(each) for each in nearest.ids()]

    async def taken(self, call: Awaitable[Any]) -> float:
        start = self._seconds()
        await call
        return self._seconds() - start

    async def build(self, kind: Kind, memory: str) -> float:
        await self._connection.execute(f"SET maintenance_work_mem = '{memory}'")
        await self._connection.execute("DROP INDEX IF EXISTS by_vector")
        await self._connection.execute(f"DELETE FROM vectors WHERE id >= {PUT_FROM}")
        await self._connection.execute("VACUUM vectors")
        statement = f"CREATE INDEX by_vector ON vectors USING hnsw ({kind.expression} "
        statement += f"{kind.operators}) WITH ({LINKS})"
        return await self.taken(self._connection.execute(statement))

    async def search(self, kind: Kind, nearest: list[set[int]]) -> tuple[float, float]:
        """Return the median seconds of a search, and its recall@10."""
        await self._connection.execute(f"SET hnsw.ef_search = {BREADTH}")
        await self._connection.execute("SET enable_seqscan = off")
        query = (
            f"SELECT id FROM (SELECT * FROM vectors ORDER BY {kind.order} LIMIT {kind.most}) AS v"
            " ORDER BY embedding <=> $1::text::vector LIMIT 10"
        )
        taken, shares = list[float](), list[float]()
        for target, expected in zip(data.queries(QUERIES), nearest, strict=True):
            start = self._seconds()
            rows = await self._connection.fetch(query, text(target))
            taken.append(self._seconds() - start)
            shares.append(len({row["id"] for row in rows} & expected) / 10)
        return median(taken), sum(shares) / len(shares)

    async def put(self, effort: int) -> float:
        """Return the rate of puts, one at a time, each of its own transaction."""
        await self._connection.execute(f"ALTER INDEX by_vector SET (ef_construction = {effort})")
        vectors = data.vectors(PUTS, self._next)
        start = self._seconds()
        for vector in vectors:
            self._next += 1
            await self._connection.execute(
                "INSERT INTO vectors VALUES ($1, $2::text::vector)", self._next, text(vector)
            )
        return PUTS / (self._seconds() - start)

    async def size(self) -> float:
        found: int = await self._connection.fetchval("SELECT pg_relation_size('by_vector')")
        return found / 1e6


async def vector_types(_: Path, most: int = 100_000) -> list[Row]:
    """Compare the types of the index, and print them; only the recall of the used one has a bar."""
    lines = ["| | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    found: dict[str, list[str]] = {}
    recalls, sizes = dict[str, float](), dict[str, float]()
    with PostgreSQLServer(shared_buffers="2GB") as server:
        place = PostgreSQLPlace(f"{server.url}#{server.pid}")
        connection = await asyncpg.connect(server.url, command_timeout=None)
        contest = Contest(connection, place.seconds)
        nearest = await contest.fill(most)
        for name, kind in KINDS.items():
            figures = await figures_of(contest, kind, nearest)
            recalls[name], sizes[name] = figures["recall@10"], figures["index, MB"]
            for figure, value in figures.items():
                found.setdefault(figure, []).append(f"{value:.3g}")
            print(name, figures, flush=True)
        little = f"{max(1, int(sizes['halfvec'] / 2))}MB"
        seconds = await contest.build(KINDS["halfvec"], little)
        await connection.close()
    print(f"halfvec, build with {little}: {seconds:.3g} s")
    print("\n".join([*lines, *(f"| {name} | {' | '.join(r)} |" for name, r in found.items())]))
    return [Row(f"recall@10 of halfvec, {most:,} vectors", recalls["halfvec"], 0.95, at_least=True)]


async def figures_of(contest: Contest, kind: Kind, nearest: list[set[int]]) -> dict[str, float]:
    """Return the figures of one type."""
    built = {f"build with {ENOUGH}, s": await contest.build(kind, ENOUGH)}
    taken, recall = await contest.search(kind, nearest)
    puts = {f"put, effort {effort}, a second": await contest.put(effort) for effort in EFFORTS}
    size = {"index, MB": await contest.size()}
    return built | size | {"search, ms": taken * 1e3, "recall@10": recall} | puts
