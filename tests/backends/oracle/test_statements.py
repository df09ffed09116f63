"""Every statement is Oracle's, and has exactly the binds of its call."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from locus_memory.backends.oracle import records, schema
from locus_memory.backends.oracle.items import queries

HERE = Path(__file__).parent


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STATEMENTS = load("statements").statements()
NAMES = [name for name, _, _ in STATEMENTS]

OTHERS = re.compile(
    r"\bLIMIT\b|\bON\s+CONFLICT\b|\bILIKE\b|::|\bRETURNING\b|\bRECURSIVE\b|\bTRUE\b|\bFALSE\b",
    re.IGNORECASE,
)
"""Words of other databases, or of releases after 19c."""

# https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Oracle-SQL-Reserved-Words.html
RESERVED = set(
    """
access add all alter and any as asc audit between by char check cluster column comment compress
connect create current date decimal default delete desc distinct drop else exclusive exists file
float for from grant group having identified immediate in increment index initial insert integer
intersect into is level like lock long maxextents minus mode modify noaudit nocompress not nowait
null number of offline on online option or order pctfree prior public raw rename resource revoke
row rowid rownum rows select session set share size smallint start successful synonym sysdate table
then to trigger uid union unique update user validate values varchar varchar2 view whenever where
with
""".split()  # noqa: SIM905 - a list of a hundred words
)

LONG = {"document", "payload", "head", "long_name", "fields", "stems", "embedding"}
"""Binds of LOBs and the like."""


UNREAD = re.compile(r"CREATE VECTOR|INDEXTYPE|STORE AS SECUREFILE|FLOAT32")


def bare(statement):
    """Return a statement without its texts and names in quotes."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", statement)


def test_every_statement_is_here():
    """A constant or function of the modules that is not listed would be held by no test."""
    known = {text for _, text, _ in STATEMENTS}
    names = load("statements").NAMES
    for module in (queries, records, schema):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, str) and re.search(r"\b(SELECT|INSERT|UPDATE|DELETE)\b", value):
                assert names.fill(value) in known, name


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_the_binds_are_those_of_the_call(name, statement, binds):
    placeholders = set(re.findall(r":(\w+)", bare(statement)))
    assert placeholders == set(binds)
    assert not placeholders & RESERVED
    assert len(placeholders) < 1_000


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_no_word_of_another_database(name, statement, binds):
    assert not OTHERS.search(bare(statement))
    assert "{" not in statement
    # Every table is in quotes, with its schema.
    assert len(re.findall(r'"LOCUS_\w+"', statement)) == len(
        re.findall(r'"AGENTS"\."LOCUS_\w+"', statement)
    )


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_long_binds_come_last(name, statement, binds):
    """Oracle takes no text of more than 4,000 bytes after a LOB; a RAW has 2,000 at most."""
    order = re.findall(r":(\w+)", bare(statement))
    after = order[min((order.index(each) for each in LONG & set(order)), default=len(order)) :]
    short = [each for each in after if each not in LONG]
    assert set(short) <= {"name", "thread", "revision", "digest"}
    if re.match(r"\s*(MERGE|SELECT|WITH)\b", statement):
        assert not LONG & set(order)


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_a_grammar_of_oracle_reads_it(name, statement, binds):
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    if UNREAD.search(statement):
        pytest.skip("sqlglot does not read this clause; its text is held below")
    # It reads neither the schema of an index nor these words.
    text = re.sub(r'(CREATE INDEX )"AGENTS"\.', r"\1", statement)
    text = re.sub(r" FORMAT JSON", "", text)
    text = re.sub(r"FETCH APPROX FIRST", "FETCH FIRST", text)
    found = sqlglot.parse(text, read="oracle")
    assert len(found) == 1
    assert type(found[0]).__name__ != "Command"


def test_the_texts_that_no_test_server_reads():
    assert schema.vector_index("hnsw")[0][0].strip().split("\n") == [
        'CREATE VECTOR INDEX {index:vectors_by_direction} ON {vectors} ("EMBEDDING")',
        "ORGANIZATION INMEMORY NEIGHBOR GRAPH DISTANCE COSINE WITH TARGET ACCURACY 95",
    ]
    assert "ORGANIZATION NEIGHBOR PARTITIONS DISTANCE COSINE" in schema.vector_index("ivf")[0][0]
    alter, create = schema.text_index()[0]
    assert alter == 'ALTER TABLE {items} ADD ("STEMS" CLOB)'
    indexed = 'CREATE INDEX {index:items_by_stems} ON {items} ("STEMS") INDEXTYPE IS CTXSYS.CONTEXT'
    options = "PARAMETERS ('SYNC (ON COMMIT) STOPLIST CTXSYS.EMPTY_STOPLIST')"
    assert create.strip().split("\n") == [indexed, options]
    text = queries.ranked_by_oracle_text("c", query=":q", offset=":o", most=":m")
    assert 'CONTAINS(i."STEMS", :q, 1) > 0' in text
    assert "SCORE(1)" in text
    assert '"FIELDS" JSON' in schema.core(native_json=True)[0][0]
    assert 'BLOB CHECK ("FIELDS" IS JSON FORMAT JSON)' in schema.core(native_json=False)[0][0]
    assert any("STORE AS SECUREFILE" in each for each in schema.core(native_json=True)[0])
    assert "VECTOR(384, FLOAT32)" in schema.vectors(384)[0][0]


def select_list(query):
    """Return the names of the columns that a query without a subquery in its list returns."""
    columns = re.match(r"\s*(?:SELECT)(?:\s+DISTINCT)?\s(.*?)\sFROM\s", query, re.DOTALL)[1]
    return [each.split()[-1].rpartition(".")[2] for each in columns.split(",")]


def limited(statement):
    """Yield each query with a row limiting clause, from its SELECT on."""
    for found in re.finditer(r"\b(?:OFFSET|FETCH (?:APPROX )?FIRST)\b", statement):
        before, depth = statement[: found.start()], 0
        for place in range(len(before) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(before[place], 0)
            if depth < 0 or (not depth and re.match(r"\bSELECT\s", before[place:])):
                break
        yield before[place:].removeprefix("(").strip()


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_what_oracle_refuses_beside_a_row_limit(name, statement, binds):
    """See the row_limiting_clause of SELECT: ORA-00918, ORA-02014, ORA-02287."""
    for query in limited(statement):
        columns = select_list(query)
        assert len(set(columns)) == len(columns), name
        assert "NEXTVAL" not in query
        assert "FOR UPDATE" not in statement


@pytest.mark.parametrize(("name", "statement", "binds"), STATEMENTS, ids=NAMES)
def test_what_oracle_refuses_elsewhere(name, statement, binds):
    if merge := re.match(
        r"\s*MERGE\b.*?\bON \((.*?)\)\n.*?UPDATE SET(.*?)WHEN", statement, re.DOTALL
    ):
        # ORA-38104: columns of the condition cannot be updated.
        assert not set(re.findall(r't\."(\w+)"', merge[1])) & set(re.findall(r'"(\w+)"', merge[2]))
    # A query name in parentheses is refused in some places (ORA-32034).
    assert not re.search(r"\(\s*WITH\b", statement)
    # A placeholder has at most 30 bytes in older releases.
    assert all(len(each) <= 30 for each in binds)
    # The type of a document in a BLOB is not guessed.
    for each in re.findall(r'i\."FIELDS"[^,]*', statement):
        assert "json" in name.split() or "FORMAT JSON" in each


def test_a_row_limit_is_found():
    found = list(limited("SELECT a FROM (SELECT b, c FROM t ORDER BY b FETCH FIRST 1 ROWS ONLY) x"))
    assert [select_list(each) for each in found] == [["b", "c"]]
    assert any(list(limited(statement)) for _, statement, _ in STATEMENTS)
