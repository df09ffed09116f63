from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.journal import (
    Answered,
    Failed,
    Ingested,
    Journal,
    Judged,
    read_journal,
)
from tests.evaluation.scripted import run_of

TEXT = st.text(max_size=30)
COUNT = st.integers(0, 10**9)
USED = {
    "prompt_tokens": COUNT,
    "completion_tokens": COUNT,
    "counted": st.booleans(),
    "seconds": st.floats(0, 1e6),
    "cost": st.none() | st.floats(0, 1e6),
}
ASKED = {"conversation": TEXT, "question": TEXT, "memory": TEXT, "budget": COUNT}
RECORDS = st.lists(
    st.one_of(
        st.builds(Ingested, conversation=TEXT, memory=TEXT, **USED),
        st.builds(
            Answered,
            **USED | ASKED,
            category=TEXT,
            asked=TEXT,
            expected=st.lists(TEXT, max_size=3).map(tuple),
            abstain=st.booleans(),
            answer=TEXT,
            block=TEXT,
            block_tokens=COUNT,
            evidence=st.none() | st.floats(0, 1),
        ),
        st.builds(Judged, **USED | ASKED, judge=TEXT, right=st.booleans(), reason=TEXT),
        st.builds(
            Failed,
            step=st.sampled_from(["ingest", "answer", "judgement"]),
            conversation=TEXT,
            memory=TEXT,
            error=TEXT,
        ),
    ),
    max_size=8,
)
RUN = run_of(("ours",))


def written(path, records):
    path.unlink(missing_ok=True)
    journal = Journal(path)
    for record in records:
        journal.write(record)
    journal.close()
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("journal") / "run.jsonl"


@settings(deadline=None)
@given(RECORDS)
def test_what_is_written_is_read(path, records):
    assert list(read_journal(written(path, [RUN, *records]))) == [RUN, *records]


@settings(deadline=None, max_examples=40)
@given(RECORDS, st.integers(0, 400))
def test_a_torn_line_is_left_out_and_cut_off(path, records, cut):
    whole = written(path, [RUN, *records]).read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    kept = list(read_journal(path))
    assert kept == [RUN, *records][: len(kept)]
    journal = Journal(path)
    assert journal.is_empty is (not kept)
    for record in [RUN, *records][len(kept) :]:
        journal.write(record)
    journal.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        b'[{"sample_id":"x","conversation":{},"qa":[]}]',
        b'[\n  {"sample_id": "x"}\n]',
        b"notes without an end",
        b"\xef\xbb\xbf{}",
        b'{"kind":"runner"}\n{"kind":"answer"',
        "要点".encode(),
    ],
)
def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(path, content):
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="line 1: no record of a run"):
        Journal(path)
    with pytest.raises(InvalidArgumentError, match="line 1: no record of a run"):
        list(read_journal(path))
    assert path.read_bytes() == content


def test_a_long_torn_line_is_cut_off(path):
    written(path, [RUN])
    kept = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"kind":"answer","block":"' + b"b" * 200_000)
    Journal(path).close()
    assert path.read_bytes() == kept


def test_the_kind_comes_first_in_each_line(path):
    failed = Failed(step="ingest", conversation="c", memory="ours", error="e")
    for line in written(path, [RUN, failed]).read_bytes().splitlines():
        assert line.startswith(b'{"kind":"')


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"[]\n", "line 2"),
        (b"{}\n", "line 2: no record of a run"),
        (b'{"kind":"sing"}\n', "line 2"),
        (b'{"kind":"ingest","conversation":"c","memory":"m"}\n', "line 2.*prompt_tokens"),
        (b'{"kind":\n', "line 2"),
        (b"\xff\n", "line 2"),
        (b"\n", "line 2"),
        (RUN.model_dump_json().encode() + b"\n", "line 2: the settings"),
    ],
)
def test_a_bad_line_is_named(path, line, told):
    written(path, [RUN])
    with path.open("ab") as file:
        file.write(line)
    with pytest.raises(InvalidArgumentError, match=told):
        list(read_journal(path))


def test_a_journal_begins_with_its_run(path):
    failed = Failed(step="ingest", conversation="c", memory="ours", error="e")
    with pytest.raises(InvalidArgumentError, match="line 1: the settings"):
        list(read_journal(written(path, [failed])))
    assert list(read_journal(written(path, []))) == []
