"""Text search by BM25, within one namespace or a tree of them."""

# ruff: noqa: S608 - no text of a caller ever gets into a statement

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items.items import item_of
from locus_memory.backends.postgresql.items.queries import COLUMNS
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.postgresql.search.words import any_of
from locus_memory.backends.selection import Page, at_most
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["search_text"]

# A namespace that is small, or a small part of the table, is read completely. Else the index of
# words finds the matches in the whole table, and the other namespaces are left out. The statement
# itself decides this: a cached plan has no estimate for the next namespace.
_IS_LARGE: Final = """
(SELECT items > 2000 AND items * 10 > (
   SELECT reltuples FROM pg_catalog.pg_class WHERE oid = '{items}'::regclass)
 FROM statistics)
"""

# Sums of floats differ in their last digits by the order of the terms.
_SLACK: Final = "1.000000001"

_TRIED: Final = 500
"""How many items beyond the page are scored, before the others are compared with the page."""

_BITS: Final = 62
"""Words of a mask. The planner expects few groups of a few keys, and hashes them; it would sort
the rows by a column for each word."""

# A row is found again by its place: within a statement, it stays there.
_AT: Final = "CROSS JOIN LATERAL (SELECT * FROM {items} AS i WHERE i.ctid = %s.place OFFSET 0) AS i"


@dataclass(frozen=True, slots=True)
class TextQuery:
    """The parts of a text search, as SQL.

    Attributes:
        scope: The condition that the item `i` is in the scope.
        live: The condition that it has not expired.
        condition: A compiled filter.
        words: A `text[]` with a `tsquery` for each word.
        count: The number of words.
        any_word: The text of a `tsquery` for any of the words.
        first: The number of items up to the end of the page.
        page: `LIMIT` and `OFFSET`.
    """

    scope: str
    live: str
    condition: str
    words: str
    count: int
    any_word: str
    first: str
    page: str

    @property
    def numbers(self) -> range:
        """The numbers of the words."""
        return range(self.count)

    def word(self, number: int) -> str:
        """Return the `tsquery` of a word."""
        return f"(SELECT ({self.words})[{number + 1}]::tsquery)"

    def times(self, number: int) -> str:
        """Return the number of times that the item `i` has a word."""
        # With all weights 1, cover density counts the positions of a word, which are its frequency.
        return f"ts_rank_cd('{{1, 1, 1, 1}}', i.words, {self.word(number)})"

    def score(self) -> str:
        """Return the score of an item; it has word `n`, of the weight `w{n}`, `t{n}` times."""
        return " + ".join(f"w{n} * t{n} * 2.2 / (t{n} + share)" for n in self.numbers)

    def candidates(self, columns: str) -> str:
        """Return the first common table expressions: the scope's statistics, and its matches."""
        matching = f"i.words @@ (SELECT {self.any_word}::tsquery)"
        chosen = f"SELECT i.ctid AS place, {self.condition} AS fits, {columns} FROM {{items}} AS i"
        return f"""
statistics AS MATERIALIZED (
  SELECT count(*)::float8 AS items, avg(i.length)::float8 AS average
  FROM {{items}} AS i WHERE {self.scope} AND i.length > 0),
candidate AS MATERIALIZED (
  {chosen} WHERE NOT {_IS_LARGE} AND {self.scope} AND ({matching}) IS TRUE AND {self.live}
  UNION ALL
  {chosen} WHERE {_IS_LARGE} AND {matching} AND ({self.scope}) IS TRUE AND {self.live})"""

    def rarity(self, counts: str) -> str:
        """Return the common table expression of the weights of the words; `counts` is a query."""
        weights = (f"ln(1 + (items - n{n} + 0.5) / (n{n} + 0.5)) AS w{n}" for n in self.numbers)
        return f"""
rarity AS MATERIALIZED (
  SELECT average, {", ".join(weights)} FROM ({counts}) AS counted, statistics)"""


_SHARE: Final = "1.2 * (0.25 + 0.75::float8 * length / average) AS share"


def rank_all(query: TextQuery) -> str:
    """Return the query that scores every match: the faster one for few."""
    times = ", ".join(f"{query.times(n)} AS t{n}" for n in query.numbers)
    counts = ", ".join(f"count(nullif(t{n}, 0))::float8 AS n{n}" for n in query.numbers)
    return f"""
WITH {query.candidates(f"i.revision, i.length, {times}")},
{query.rarity(f"SELECT {counts} FROM candidate")}
SELECT {COLUMNS}, hit.score, (SELECT count(*) FROM candidate) AS matches FROM (
  SELECT place, revision, {query.score()} AS score FROM (
    SELECT candidate.*, {_SHARE}, rarity.* FROM candidate, rarity WHERE fits OFFSET 0) AS matched
  ORDER BY score DESC, revision DESC {query.page}) AS hit
{_AT % "hit"} ORDER BY hit.score DESC, hit.revision DESC
"""


def rank_groups(query: TextQuery) -> str:
    """Return the query that scores only those matches that may be on the page.

    The slowest part of a score is to count how often an item has a word. So items are grouped by
    the words that they have, their lengths, and their numbers of repeated words. That bounds the
    scores of a group from both sides.
    """
    beyond = f"""NOT is_tried AND most * {_SLACK} >= coalesce(
    (SELECT score FROM tried ORDER BY score DESC LIMIT 1 OFFSET {query.first} - 1), 0)"""
    running = "sum(fitting) OVER (ORDER BY %s DESC ROWS UNBOUNDED PRECEDING) - fitting"
    counts = ", ".join(
        f"coalesce(sum(items) FILTER (WHERE has{n}), 0)::float8 AS n{n}" for n in query.numbers
    )
    return f"""
WITH {_alike(query)},
{query.rarity(f"SELECT {counts} FROM alike")},
bounded AS MATERIALIZED ({_bounded(query.numbers)}),
likely AS MATERIALIZED (
  SELECT *, {running % "most"} < {query.first} + {_TRIED} AS is_tried
  FROM bounded WHERE most * {_SLACK} >= (
    SELECT min(least) FROM (SELECT least, {running % "least"} AS better FROM bounded) AS ordered
    WHERE better < {query.first})),
tried AS MATERIALIZED ({_scored(query, "is_tried")}),
scored AS (SELECT * FROM tried UNION ALL {_scored(query, beyond)})
SELECT {COLUMNS}, hit.score, (SELECT sum(items)::bigint FROM alike) AS matches FROM (
  SELECT * FROM scored ORDER BY score DESC, revision DESC {query.page}) AS hit
{_AT % "hit"} ORDER BY hit.score DESC, hit.revision DESC
"""


def _alike(query: TextQuery) -> str:
    """Return the expressions for the groups, with the places of the items that fit the filter."""
    numbers = query.numbers
    masks = [_mask(query, numbers[n : n + _BITS]) for n in range(0, len(numbers), _BITS)]
    size = "i.length::bigint << 32 | greatest(0, i.length - length(i.words)) AS size"
    columns = ", ".join([size, *(f"{mask} AS mask{k}" for k, mask in enumerate(masks))])
    keys = ", ".join(["size", *(f"mask{k}" for k in range(len(masks)))])
    has = ", ".join(f"mask{n // _BITS} & {_bit(n)} <> 0 AS has{n}" for n in numbers)
    return f"""{query.candidates(columns)},
alike AS MATERIALIZED (
  SELECT size >> 32 AS length, size & 4294967295 AS repeats, {has}, count(*) AS items,
    count(*) FILTER (WHERE fits) AS fitting, array_agg(place) FILTER (WHERE fits) AS places
  FROM candidate GROUP BY {keys})"""


def _mask(query: TextQuery, numbers: range) -> str:
    """Return the sum of the bits of the words that the item `i` has."""
    if query.count == 1:
        return _bit(0)
    return " + ".join(
        f"CASE WHEN i.words @@ {query.word(n)} THEN {_bit(n)} ELSE 0 END" for n in numbers
    )


def _bit(number: int) -> str:
    return f"{2 ** (number % _BITS)}::bigint"


def _bounded(numbers: range) -> str:
    """Return the query for the groups with the least and the most that an item can score.

    A word that an item has is in it once at least. All repeats may be of one word, or of each, and
    no repeat adds more than the slope of the score at one.
    """
    found = [f"CASE WHEN has{n} THEN w{n} ELSE 0 END" for n in numbers]
    return f"""
  SELECT *, least(weight * 2.2 * (1 + repeats) / (1 + repeats + share),
    least + heaviest * 2.2 * repeats * share / (1 + share) ^ 2) AS most
  FROM (
    SELECT *, weight * 2.2 / (1 + share) AS least FROM (
      SELECT alike.*, {_SHARE}, {" + ".join(found)} AS weight,
        greatest({", ".join(found)}) AS heaviest
      FROM alike, rarity WHERE fitting > 0 OFFSET 0) AS weighed) AS summed"""


def _scored(query: TextQuery, condition: str) -> str:
    """Return the query for the scores of the items in some of the groups."""
    times = ", ".join(
        f"CASE WHEN NOT has{n} THEN 0 WHEN repeats = 0 THEN 1 ELSE {query.times(n)} END AS t{n}"
        for n in query.numbers
    )
    return f"""
  SELECT place, revision, {query.score()} AS score FROM (
    SELECT chosen.place, chosen.share, i.revision, {times}
    FROM (SELECT *, unnest(places) AS place FROM likely WHERE {condition}) AS chosen
    {_AT % "chosen"}) AS counted, rarity"""


_FEW: Final = 3_000
"""Up to so many matches, it is faster to score each of them."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces."""


_matches: Final[WeakKeyDictionary[PostgreSQLPool, RecentlyUsed[int]]] = WeakKeyDictionary()
"""How many matches a namespace had last, by database."""


async def search_text(
    pool: PostgreSQLPool, scope: Scope, words: list[str], condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    `ts_rank` of PostgreSQL does not weigh rare words more than common ones, so the statement
    computes BM25: each word of the query adds

        ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))

    where `N` items in the scope have any text, `n` of them this word, the item has it `tf`
    times and `dl` words in all, `avgdl` on average; `k1` is 1.2 and `b` 0.75. S. Robertson, H.
    Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends
    in Information Retrieval 3(4), 2009.

    Args:
        pool: The database.
        scope: The namespaces.
        words: The words that `query_stems` returned.
        condition: A parsed filter.
        page: The wanted part of the hits.
    """
    if not words or not page.limit:
        return []
    matches = _matches.setdefault(pool, RecentlyUsed(_REMEMBERED))
    name = f"{scope.recursive} {scope.path}"
    are_many = (matches.get(name) or 0) > _FEW
    arguments = Arguments()
    first = arguments.bind(at_most(page.limit + page.offset), "bigint") if are_many else ""
    limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
    query = TextQuery(
        scope.condition("i", arguments),
        scope.live(arguments),
        arguments.compile(condition),
        words=arguments.bind(tuple(any_of([word]) for word in words), "text[]"),
        count=len(words),
        any_word=arguments.bind(any_of(words), "text"),
        first=first,
        page=f"LIMIT {limit} OFFSET {offset}",
    )
    # Both return the same items.
    statement = rank_groups(query) if are_many else rank_all(query)
    rows = await pool.fetch(statement, *arguments.values)
    if rows:
        matches.put(name, rows[0]["matches"])
    return [item_of(row, row["score"]) for row in rows]
