from __future__ import annotations

import math
import re
import tracemalloc
from html.parser import HTMLParser

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.journal import Answered, Failed, Ingested, Journal, Judged, Run
from locus_memory.evaluation.metrics import agreement, grouped_interval
from locus_memory.evaluation.quality.documents import quality_tables, write_html, write_markdown
from locus_memory.evaluation.quality.figures import read_quality

USED = {"prompt_tokens": 100, "completion_tokens": 10, "seconds": 0.5}
RUN = Run(
    file="conversations.json",
    digest="ab" * 32,
    seed=1,
    sample=None,
    answer="model",
    judge="judge",
    memories=("ours", "last-n"),
    budgets=(1000,),
)


def answered(conversation, question, *, memory="ours", **changes):
    fields = {
        "category": "single-hop",
        "budget": 1000,
        "asked": "Where?",
        "expected": ("Oslo",),
        "abstain": False,
        "answer": "Oslo",
        "block": "He lives in Oslo.",
        "block_tokens": 40,
        "evidence": 1.0,
        "cost": 0.01,
    }
    return Answered(
        conversation=conversation, question=question, memory=memory, **USED, **(fields | changes)
    )


def judged(conversation, question, right, *, memory="ours", judge="judge", budget=1000):
    return Judged(
        conversation=conversation,
        question=question,
        memory=memory,
        budget=budget,
        judge=judge,
        right=right,
        reason="so",
        cost=0.001,
        **USED,
    )


def ingested(conversation, *, memory="ours", cost: float | None = 0.1):
    return Ingested(conversation=conversation, memory=memory, calls=3, cost=cost, **USED)


# Ours answers 3 of 4 right, one of them by abstaining; the last turns answer 1 of 4 right.
RECORDS = [
    ingested("a"),
    ingested("b"),
    answered("a", "1"),
    answered("a", "2", answer="the town of Oslo!", evidence=0.5, category="temporal"),
    answered("a", "3", abstain=True, answer="I do not know", evidence=None, block_tokens=0),
    answered("b", "1", answer="Bergen", evidence=0.0, block_tokens=80),
    judged("a", "1", True),
    judged("a", "2", True),
    judged("a", "3", True),
    judged("b", "1", False),
    *(answered(*each, memory="last-n", answer="?") for each in ("a1", "a2", "a3", "b1")),
    *(judged(*each, each == "b1", memory="last-n") for each in ("a1", "a2", "a3", "b1")),
]


@pytest.fixture
def journal(tmp_path):
    """Writes a journal of some records, and returns its path."""

    def write(records, name="run.jsonl", run=RUN):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        made = Journal(path)
        for record in [run, *records]:
            made.write(record)
        made.close()
        return path

    return write


def test_figures_that_are_known_by_hand(journal):
    quality = read_quality([journal(RECORDS)])
    ours, last = quality.figures
    assert (ours.series.memory, last.series.memory) == ("ours", "last-n")
    assert (ours.questions, ours.judged) == (4, 4)
    assert ours.accuracy.mean == 0.75
    assert last.accuracy.mean == 0.25
    # F1: 1, then 2 of 3 words beside the article, and 0; the abstention has none.
    assert ours.values["f1"] == pytest.approx((1 + 2 / 4 + 0) / 3)
    assert ours.values["exact_match"] == pytest.approx(1 / 3)
    assert ours.values["evidence"] == pytest.approx(0.5)
    assert ours.values["block_tokens"] == 40
    assert (ours.values["tokens"], ours.values["calls"], ours.values["seconds"]) == (110, 1, 0.5)
    assert ours.values["filling_tokens"] == 220
    assert ours.values["filling_seconds"] == 1.0
    assert ours.values["filling_cost"] == pytest.approx(0.2)
    assert ours.values["judging_cost"] == pytest.approx(0.004)
    assert ours.values["cost"] == pytest.approx(0.24)
    assert ours.values["cost_per_right"] == pytest.approx(0.08)
    assert last.values["cost"] == pytest.approx(0.04)


def test_each_kind_of_question_has_figures(journal):
    quality = read_quality([journal(RECORDS)])
    kinds = {each.category: each for each in quality.categories if each.series.memory == "ours"}
    assert {name: each.questions for name, each in kinds.items()} == {
        "abstention": 1,
        "single-hop": 3,
        "temporal": 1,
    }
    assert kinds["single-hop"].accuracy.mean == pytest.approx(2 / 3)
    assert kinds["abstention"].accuracy == (1, 1, 1)
    assert kinds["abstention"].values["f1"] is None
    assert kinds["single-hop"].values["cost"] == pytest.approx(0.03)


def test_the_difference_of_two_memories_is_paired(journal):
    (found,) = read_quality([journal(RECORDS)]).differences
    assert (found.first.memory, found.second.memory) == ("ours", "last-n")
    assert found.questions == 4
    # In one conversation ours is 3 of 3 better, in the other it is 1 of 1 worse.
    assert found.apart == (0.5, -1, 1)


def test_a_memory_without_a_limit_is_compared_with_each_budget(journal):
    records = [
        each
        for budget, memory in [(500, "ours"), (900, "ours"), (0, "full-context")]
        for each in (
            answered("a", "1", memory=memory, budget=budget),
            judged("a", "1", budget == 900, memory=memory, budget=budget),
        )
    ]
    quality = read_quality([journal(records)])
    found = {
        (each.first.budget, each.second.budget): each.apart.mean for each in quality.differences
    }
    assert found == {(500, 0): 0, (900, 0): 1}
    (table,) = [each for each in quality_tables(quality) if each.title == "Paired differences"]
    assert [row[:2] for row in table.rows] == [
        ["ours, 500", "full-context, all"],
        ["ours, 900", "full-context, all"],
    ]


def test_a_run_and_itself_do_not_differ(journal):
    path = journal(RECORDS)
    quality = read_quality([path, path])
    assert list(quality.runs) == ["run (1)", "run (2)"]
    between = [each for each in quality.differences if each.first.run != each.second.run]
    assert len(between) == 2
    assert all(each.apart == (0, 0, 0) for each in between)


def test_other_questions_with_the_same_ids_are_not_paired(journal):
    other = [answered("a", "1", asked="Who?"), answered("a", "2"), judged("a", "1", right=True)]
    paths = [journal(RECORDS), journal([*other, judged("a", "2", right=True)], "other.jsonl")]
    quality = read_quality(paths)
    (found,) = [each for each in quality.differences if each.first.run != each.second.run]
    assert found.questions == 1


def test_without_a_judge_f1_is_compared(journal):
    records = [each for each in RECORDS if not isinstance(each, Judged)]
    quality = read_quality([journal(records)])
    ours, _ = quality.figures
    assert (ours.judged, ours.accuracy, ours.values["cost_per_right"]) == (0, None, None)
    assert ours.values["f1"] == pytest.approx(0.5)
    (found,) = quality.differences
    assert found.questions == 3
    assert found.apart.mean == pytest.approx(0.5)


def test_two_judges_stand_beside_each_other(journal):
    second = [
        judged("a", "1", True, judge="other"),
        judged("a", "2", False, judge="other"),
        judged("b", "1", False, judge="other"),
    ]
    quality = read_quality([journal([*RECORDS, *second])])
    by_judge = {each.series.judge: each for each in quality.figures if each.series.memory == "ours"}
    assert by_judge["judge"].accuracy.mean == 0.75
    assert (by_judge["other"].judged, by_judge["other"].questions) == (3, 4)
    assert by_judge["other"].accuracy.mean == pytest.approx(1 / 3)
    # They agree on 2 of 3; by chance on (2/3 * 1/3 + 1/3 * 2/3) = 4/9.
    (found,) = quality.agreements.values()
    assert found.share == pytest.approx(2 / 3)
    assert found.kappa == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        # The example of Cohen's paper is one of three kinds; this one of two kinds is worked out
        # in full: 20 + 15 of 50 agree, chance is 0.5 * 0.6 + 0.5 * 0.4 = 0.5, so kappa is 0.4.
        ((20, 5, 10, 15), 0.4),
        ((5, 0, 0, 5), 1.0),
        ((0, 5, 5, 0), -1.0),
        ((7, 0, 0, 0), None),
        ((5, 5, 0, 0), 0.0),
    ],
)
def test_kappa_is_that_of_cohen(counts, kappa):
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    pairs = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    found = agreement(pairs)
    assert found.share == pytest.approx((counts[0] + counts[3]) / sum(counts))
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))


def test_a_price_that_is_not_known_makes_the_cost_unknown(journal):
    ours, last = read_quality([journal([ingested("c", cost=None), *RECORDS])]).figures
    assert ours.values["filling_cost"] is None
    assert ours.values["cost"] is None
    assert ours.values["cost_per_right"] is None
    assert ours.values["filling_tokens"] == 330
    assert last.values["cost"] == pytest.approx(0.04)


def test_a_failure_and_a_torn_line_are_no_answers(journal):
    place = {"conversation": "b", "memory": "ours", "error": "X: y"}
    made_good = [
        Failed(step="answer", question="1", budget=1000, **place),
        Failed(step="ingest", **place),
    ]
    path = journal([*made_good, *RECORDS])
    with path.open("ab") as file:
        file.write(b'{"kind":"answer","conversa')
    whole = read_quality([path])
    assert whole == read_quality([journal(RECORDS)])
    assert [each.failed for each in whole.figures] == [0, 0]
    missing = [
        Failed(step="answer", question="9", budget=1000, **place),
        Failed(step="answer", question="9", budget=1000, **place),
        Failed(step="ingest", **(place | {"conversation": "c"})),
        Failed(step="judgement", question="1", budget=1000, judge="judge", **place),
        Failed(step="answer", question="1", budget=4000, **place),
    ]
    ours, last = read_quality([journal([*RECORDS, *missing])]).figures
    assert (ours.questions, ours.failed, last.failed) == (4, 2, 0)


@pytest.mark.parametrize("records", [[], [ingested("a")]])
def test_without_an_answer_there_is_no_report(journal, records):
    with pytest.raises(InvalidArgumentError, match="no answer"):
        read_quality([journal(records)])


def test_memory_does_not_grow_with_the_texts(journal):
    """The blocks are most of a file, and none of them is kept."""
    block = "x" * 200_000
    path = journal([answered("a", str(number), block=block) for number in range(100)])
    read_quality([path])
    tracemalloc.start()
    try:
        read_quality([path])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < path.stat().st_size / 5


def test_an_empty_file_is_no_run(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InvalidArgumentError, match="empty"):
        read_quality([tmp_path / "empty.jsonl"])


@given(data=st.data())
def test_the_order_of_lines_and_repeated_lines_do_not_matter(tmp_path_factory, data):
    lines = [*RECORDS, judged("a", "1", False, judge="other")]
    again = data.draw(st.lists(st.sampled_from(lines), max_size=5))
    shuffled = data.draw(st.permutations([*lines, *again]))
    folder = tmp_path_factory.mktemp("order")
    found = []
    for number, records in enumerate([lines, shuffled]):
        path = folder / f"{number}" / "run.jsonl"
        path.parent.mkdir()
        made = Journal(path)
        for record in [RUN, *records]:
            made.write(record)
        made.close()
        found.append(read_quality([path]))
    assert found[0] == found[1]


VALUES = st.floats(-1, 1, allow_subnormal=False)


@given(st.lists(st.lists(VALUES, max_size=4), min_size=1, max_size=6).filter(any))
def test_an_interval_holds_the_mean_and_stays_within_the_values(groups):
    values = [each for group in groups for each in group]
    found = grouped_interval(groups)
    assert found.mean == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
    assert found.low <= found.mean <= found.high
    assert min(values) - 1e-9 <= found.low
    assert found.high <= max(values) + 1e-9
    assert grouped_interval(groups) == found


def test_conversations_are_drawn_and_not_questions():
    """Questions of a conversation that all come out the same tell as much as one."""
    few = grouped_interval([[1.0] * 50, [0.0] * 50])
    many = grouped_interval([[1.0], [0.0]] * 50)
    assert (few.low, few.high) == (0, 1)
    assert many.high - many.low < 0.3


def test_of_one_conversation_the_questions_are_drawn():
    """An interval without a width would call any difference a certain one."""
    values = [1.0] * 6 + [0.0] * 4
    found = grouped_interval([values])
    assert found == grouped_interval([[each] for each in values])
    assert found.low < found.mean < found.high


def test_an_interval_is_about_that_of_the_normal_distribution():
    """For many groups of one value the bootstrap is near the formula for a share."""
    found = grouped_interval([[1.0]] * 700 + [[0.0]] * 300)
    half = 1.96 * math.sqrt(0.7 * 0.3 / 1000)
    assert found.low == pytest.approx(0.7 - half, abs=0.005)
    assert found.high == pytest.approx(0.7 + half, abs=0.005)


def test_without_values_there_is_no_interval_and_no_agreement():
    with pytest.raises(InvalidArgumentError):
        grouped_interval([[]])
    with pytest.raises(InvalidArgumentError):
        agreement([])


HOSTILE = '<img src=x onerror=alert(1)> | [x](javascript:y) `c` **b** &lt;\n# h \u202e"'


def hostile(journal):
    run = RUN.model_copy(update={"memories": (HOSTILE,), "file": HOSTILE, "answer": HOSTILE})
    records = [
        answered("a", "1", memory=HOSTILE, category=HOSTILE, answer=HOSTILE, block=HOSTILE),
        judged("a", "1", True, memory=HOSTILE, judge=HOSTILE),
    ]
    return quality_tables(read_quality([journal(records, run=run)]))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_of_a_journal_is_markup(journal):
    tables = hostile(journal)
    markdown = write_markdown(tables, ["plot.svg"])
    for page in (write_html(tables, []), MarkdownIt("commonmark").enable("table").render(markdown)):
        tags = Tags()
        tags.feed(page)
        names = {name for name, _ in tags.found}
        assert not names & {"script", "a", "strong", "em", "code", "iframe"}
        assert [attrs["src"] for name, attrs in tags.found if name == "img"] in ([], ["plot.svg"])
        assert not any(key.startswith("on") for _, attrs in tags.found for key in attrs)
        assert "\u202e" not in page
        assert page.count("<tr") == sum(1 + len(table.rows) for table in tables)


def test_a_page_needs_no_other_file(journal):
    tables = quality_tables(read_quality([journal(RECORDS)]))
    page = write_html(tables, ["<svg></svg>"])
    assert "<svg></svg>" in page
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert [table.title for table in tables] == [
        "Accuracy",
        "What it took",
        "By category",
        "Paired differences",
        "Runs",
    ]
    assert "0.750 (0.000 to 1.000)" in page
    assert "+0.500 (-1.000 to +1.000)" in page


def test_the_report_is_plain_json(journal):
    path = journal([*RECORDS, judged("a", "1", True, judge="other")])
    document = read_quality([path, path]).to_dict()
    assert orjson.loads(orjson.dumps(document)) == document
    first = document["figures"][0]
    assert first["series"] == {
        "run": "run (1)", "memory": "ours", "budget": 1000, "judge": "judge",
    }  # fmt: skip
    assert first["accuracy"] == {"mean": 0.75, "low": 0.0, "high": 1.0}
    assert document["runs"]["run (1)"]["file"] == "conversations.json"
    assert set(document["agreements"]) == {"run (1): judge and other", "run (2): judge and other"}
