"""All statements of the store.

Variable parts are put together from the constants here, and all values of a caller are bound.
`:now` is the present moment, `:path` an encoded namespace and `:bound` the end of its descendants.
"""

# ruff: noqa: S608 - no text of a caller ever gets into a statement

from __future__ import annotations

from typing import Final

__all__ = [
    "ADD_CODE",
    "ADD_ITEM",
    "ADD_NAMESPACE",
    "ADD_TEXT",
    "ADD_VECTOR",
    "ANY_BELOW",
    "CHANGE_ITEM",
    "CLEAR",
    "COMPACT_TEXTS",
    "COUNT",
    "COUNT_LENGTHS",
    "COUNT_MATCHES",
    "EXISTS",
    "EXPIRED",
    "FIND",
    "GET",
    "GET_VECTOR",
    "IS_LARGE",
    "ITEMS",
    "ITEMS_OF_VECTORS",
    "LENGTHS",
    "LIST_NAMESPACES",
    "NAMESPACE",
    "NEWEST_REVISION",
    "PLACES",
    "PLACES_IN_TEXT",
    "REMOVE_CODE",
    "REMOVE_EMPTY",
    "REMOVE_ITEM",
    "REMOVE_TEXT",
    "REMOVE_VECTOR",
    "SCHEMA",
    "SET_MOMENT",
    "SHOW_PLACES",
    "TAKE_REVISIONS",
    "TEXTS",
    "TEXT_TOTALS",
    "count_vectors",
    "ids_until",
    "newer",
    "newest_items",
    "newest_of",
    "of_those",
    "other_dimension",
    "revisions_of",
    "rows_after",
    "scan_items",
    "search_items",
    "vectors_of",
]

_LIVE: Final = "(i.expires_at IS NULL OR i.expires_at > :now)"
_SOURCE: Final = "namespaces AS n CROSS JOIN items AS i ON i.namespace = n.id"
_HERE: Final = "n.path = :path"
_BELOW: Final = "n.path >= :path AND n.path < :bound"
# Texts as bytes: the driver does not report in which row it cannot decode a text.
_ITEM: Final = """
    CAST(n.path AS BLOB), CAST(i.key AS BLOB), CAST(i.value AS BLOB), CAST(i.metadata AS BLOB),
    i.created_at, i.updated_at, i.version, i.expires_at, i.checksum"""


FIND: Final = """
    SELECT n.id, i.id, i.text, i.revision, i.version, i.created_at, i.updated_at, i.expires_at
    FROM namespaces AS n LEFT JOIN items AS i ON i.namespace = n.id AND i.key = ?
    WHERE n.path = ?"""
ADD_NAMESPACE: Final = "INSERT INTO namespaces (path) VALUES (?)"
TAKE_REVISIONS: Final = "UPDATE revisions SET number = number + ? WHERE id = 0"
_REVISION: Final = "(SELECT number FROM revisions WHERE id = 0)"
ADD_ITEM: Final = f"""
    INSERT INTO items
      (namespace, key, version, created_at, updated_at, expires_at, metadata, value, text, checksum,
       revision)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {_REVISION})"""
CHANGE_ITEM: Final = f"""
    UPDATE items
    SET version = ?, created_at = ?, updated_at = ?, expires_at = ?,
      metadata = ?, value = ?, text = ?, checksum = ?, revision = {_REVISION}
    WHERE id = ?"""
ADD_VECTOR: Final = f"""
    INSERT INTO vectors (id, item, namespace, dimension, vector, checksum)
    VALUES ({_REVISION}, ?, ?, ?, ?, ?)"""
ADD_TEXT: Final = "INSERT INTO texts (rowid, scope, text) VALUES (?, 'n' || ?, ?)"
REMOVE_ITEM: Final = "DELETE FROM items WHERE id = ?"
ADD_CODE: Final = f"""
    INSERT INTO codes (id, namespace, dimension, code) VALUES ({_REVISION}, ?, ?, ?)"""
REMOVE_CODE: Final = """
    DELETE FROM codes WHERE namespace = :namespace AND id = :id
      AND dimension = (SELECT dimension FROM vectors WHERE id = :id)"""
REMOVE_VECTOR: Final = "DELETE FROM vectors WHERE id = :id"
# FTS5 needs the indexed text to delete it.
REMOVE_TEXT: Final = """
    INSERT INTO texts (texts, rowid, scope, text) VALUES ('delete', ?, 'n' || ?, ?)"""
# FTS5 keeps the words of deleted rows, with a mark, until it merges them with the rest.
COMPACT_TEXTS: Final = "INSERT INTO texts (texts) VALUES ('optimize')"
REMOVE_EMPTY: Final = """
    DELETE FROM namespaces
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE namespace = namespaces.id)"""
# Expired by the moment of the last write as well: a clock may be ahead for one write.
EXPIRED: Final = """
    SELECT id, namespace, text, revision FROM items
    WHERE expires_at <= min(?, (SELECT number FROM revisions WHERE id = 1))
    ORDER BY expires_at LIMIT 16"""
SET_MOMENT: Final = """
    INSERT INTO revisions (id, number) VALUES (1, ?)
    ON CONFLICT (id) DO UPDATE SET number = excluded.number
    WHERE number NOT BETWEEN excluded.number - 1 AND excluded.number"""
COUNT: Final = f"SELECT count(*), coalesce(sum({_LIVE}), 0) FROM {_SOURCE} WHERE {_BELOW}"
_CLEARED: Final = "(SELECT id FROM namespaces WHERE path >= :path AND path < :bound)"
CLEAR: Final = (
    f"""
    INSERT INTO texts (texts, rowid, scope, text)
    SELECT 'delete', id, 'n' || namespace, text FROM items
    WHERE namespace IN {_CLEARED} AND text <> ''""",
    f"DELETE FROM vectors WHERE namespace IN {_CLEARED}",
    f"DELETE FROM codes WHERE namespace IN {_CLEARED}",
    f"DELETE FROM items WHERE namespace IN {_CLEARED}",
    "DELETE FROM namespaces WHERE path >= :path AND path < :bound",
)


GET: Final = f"SELECT {_ITEM} FROM {_SOURCE} WHERE {_HERE} AND i.key = :key AND {_LIVE}"
EXISTS: Final = f"SELECT 1 FROM {_SOURCE} WHERE {_HERE} AND i.key = :key AND {_LIVE}"
GET_VECTOR: Final = f"""
    SELECT i.checksum, v.vector, v.checksum
    FROM {_SOURCE} LEFT JOIN vectors AS v ON v.id = i.revision
    WHERE {_HERE} AND i.key = :key AND {_LIVE}"""
NAMESPACE: Final = "SELECT id FROM namespaces WHERE path = ?"
ITEMS: Final = f"""
    SELECT i.revision, {_ITEM} FROM json_each(:ids) AS wanted
    CROSS JOIN items AS i ON i.id = wanted.value
    CROSS JOIN namespaces AS n ON n.id = i.namespace"""
ITEMS_OF_VECTORS: Final = f"""
    SELECT v.id, v.vector, v.checksum, v.id = i.revision, {_ITEM} FROM json_each(:ids) AS wanted
    CROSS JOIN vectors AS v ON v.id = wanted.value
    CROSS JOIN items AS i ON i.id = v.item CROSS JOIN namespaces AS n ON n.id = i.namespace"""


# A BLOB is above every text, so that one statement serves a range without an end.
_BEFORE_HIGH: Final = "coalesce(:high, x'ff')"


def scan_items(*, whole: bool, descending: bool) -> str:
    """Return a query for a page of the items of a namespace, in key order.

    Args:
        whole: Whether the rows are whole items, or only their keys.
        descending: The order.
    """
    order = "DESC" if descending else "ASC"
    columns = _ITEM if whole else "CAST(i.key AS BLOB)"
    return f"""
        SELECT {columns} FROM {_SOURCE}
        WHERE {_HERE} AND {_LIVE} AND i.key >= :low AND i.key < {_BEFORE_HIGH}
        ORDER BY i.key {order} LIMIT :limit"""


LIST_NAMESPACES: Final = f"""
    SELECT CAST(n.path AS BLOB) FROM namespaces AS n
    WHERE n.path >= :low AND n.path < {_BEFORE_HIGH}
      AND EXISTS (SELECT 1 FROM items AS i WHERE i.namespace = n.id AND {_LIVE})
    ORDER BY n.path LIMIT :limit"""


def newest_items(condition: str) -> str:
    """Return the query for items of a namespace that satisfy a filter, the newest write first."""
    return f"""
        SELECT {_ITEM}, NULL FROM {_SOURCE} WHERE {_HERE} AND {_LIVE} AND {condition}
        ORDER BY i.revision DESC LIMIT :limit OFFSET :offset"""


def newest_of(condition: str) -> str:
    """Return the query for items below `:path` of some revisions: these and ids, newest first."""
    return f"""
        SELECT i.revision, i.id FROM {_SOURCE}
        WHERE {_BELOW} AND i.revision > :low AND i.revision <= :high AND {_LIVE} AND {condition}
        ORDER BY i.revision DESC"""


# Returns a row if the namespace has at least a quarter of as many items as exist or existed.
IS_LARGE: Final = """
    SELECT 1 FROM items WHERE namespace = ?
    LIMIT 1 OFFSET (SELECT coalesce(max(id), 0) / 4 FROM items)"""


ANY_BELOW: Final = f"SELECT 1 FROM {_SOURCE} WHERE {_BELOW} LIMIT 1"
COUNT_MATCHES: Final = "SELECT count(*) FROM (SELECT 1 FROM texts WHERE texts MATCH ? LIMIT ?)"


def _within(*, recursive: bool) -> str:
    """Return the condition on items of being in the namespace `:namespace`, or below `:path`."""
    return _BELOW if recursive else "i.namespace = :namespace"


def _joined(*, recursive: bool) -> str:
    """Return the join of items with their namespaces, if `_within` needs them."""
    return "CROSS JOIN namespaces AS n ON n.id = i.namespace" if recursive else ""


def search_items(condition: str, *, recursive: bool) -> str:
    """Return the query for the matches of `:match`: ids, revisions and scores, the best first.

    They are in the namespace with the id `:namespace`, or below `:path`.
    """
    # The scope column only selects: it does not count in the ranking.
    return f"""
        SELECT texts.rowid AS id, i.revision AS revision, -bm25(texts, 0.0, 1.0) AS score
        FROM texts CROSS JOIN items AS i ON i.id = texts.rowid {_joined(recursive=recursive)}
        WHERE texts MATCH :match AND {_within(recursive=recursive)} AND {_LIVE} AND {condition}
        ORDER BY score DESC, revision DESC LIMIT :limit OFFSET :offset"""


TEXTS: Final = """
    SELECT i.id, i.text FROM json_each(?) AS wanted CROSS JOIN items AS i ON i.id = wanted.value"""
TEXT_TOTALS: Final = "SELECT block FROM texts_data WHERE id = 1"
SCHEMA: Final = "PRAGMA main.schema_version"
NEWEST_REVISION: Final = "SELECT number FROM revisions WHERE id = 0"
# A row for each place of a word: https://www.sqlite.org/fts5.html#the_fts5vocab_virtual_table_module
SHOW_PLACES: Final = """
    CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_places USING fts5vocab (main, texts, 'instance')"""
PLACES: Final = "SELECT group_concat(doc) FROM temp.word_places WHERE term = ?"
PLACES_IN_TEXT: Final = f"{PLACES} AND col = 'text'"
COUNT_LENGTHS: Final = "SELECT count(*), coalesce(max(id), 0) FROM texts_docsize"
LENGTHS: Final = """
    SELECT group_concat(id), group_concat(hex(sz), '')
    FROM (SELECT id, sz FROM texts_docsize WHERE id > ? ORDER BY id LIMIT ?)"""


def newer(condition: str, *, recursive: bool, everywhere: bool) -> str:
    """Return the query for the items with a revision above `:after`, of the scope or of the file.

    Only those with a text, or with an id below `:known`. Ids, revisions, and whether an item is in
    the scope, has not expired, and satisfies a filter.
    """
    within = _within(recursive=recursive)
    return f"""
        SELECT i.id, i.revision, {within} AND {_LIVE} AND {condition}
        FROM items AS i {_joined(recursive=recursive)}
        WHERE i.revision > :after AND (i.text <> '' OR i.id < :known)
          AND {"1" if everywhere else within} LIMIT :most"""


def ids_until(*, recursive: bool) -> str:
    """Return the query for the ids of the items in a scope with a revision of at most `:until`."""
    source = _SOURCE if recursive else "items AS i"
    return f"""
        SELECT i.id FROM {source}
        WHERE {_within(recursive=recursive)} AND i.revision <= :until LIMIT :most"""


def of_those(condition: str, *, recursive: bool) -> str:
    """Return the query for those of the listed items that are in the scope and satisfy a filter."""
    return f"""
        SELECT i.id, i.revision FROM json_each(:ids) AS wanted
        CROSS JOIN items AS i ON i.id = wanted.value {_joined(recursive=recursive)}
        WHERE {_within(recursive=recursive)} AND {_LIVE} AND {condition}"""


def rows_after(*, recursive: bool, is_coded: bool) -> str:
    """Return the query for the ids of vectors, and these or their codes, after the id `:after`."""
    table, column = ("codes", "code") if is_coded else ("vectors", "vector")
    return f"""
        SELECT v.id, v.{column} FROM namespaces AS n CROSS JOIN {table} AS v ON v.namespace = n.id
        WHERE {_BELOW if recursive else _HERE} AND v.dimension = :dimension AND v.id > :after"""


def count_vectors(*, recursive: bool) -> str:
    """Return the query for the number of vectors."""
    return f"""
        SELECT count(*) FROM namespaces AS n CROSS JOIN vectors AS v ON v.namespace = n.id
        WHERE {_BELOW if recursive else _HERE} AND v.dimension = :dimension"""


def other_dimension(*, recursive: bool) -> str:
    """Return the query for the dimension of any vector, if none is of the dimension `:dimension`.

    There is a vector of that dimension also if it is of an expired item.
    """
    here = _BELOW if recursive else _HERE
    return f"""
        SELECT v.dimension FROM namespaces AS n
        CROSS JOIN vectors AS v ON v.namespace = n.id CROSS JOIN items AS i ON i.id = v.item
        WHERE {here} AND {_LIVE} AND NOT EXISTS (
          SELECT 1 FROM namespaces AS n CROSS JOIN vectors AS v ON v.namespace = n.id
          WHERE {here} AND v.dimension = :dimension)
        LIMIT 1"""


def vectors_of(condition: str, column: str) -> str:
    """Return the query for the listed vectors, each with a column or NULL: no hit of a filter."""
    return f"""
        SELECT v.id, CASE WHEN {_LIVE} AND {condition} THEN {column} END
        FROM json_each(:ids) AS wanted CROSS JOIN vectors AS v ON v.id = wanted.value
        LEFT JOIN items AS i ON i.id = v.item"""


def revisions_of(condition: str) -> str:
    """Return the query for those of the listed revisions whose items satisfy a filter."""
    return f"""
        SELECT i.revision FROM json_each(:ids) AS wanted
        CROSS JOIN items AS i ON i.revision = wanted.value WHERE {condition}"""
