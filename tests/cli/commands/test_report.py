from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from locus_memory.evaluation.journal import Answered, Journal, Judged, Run

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def journal(empty_directory):
    """Writes a journal of four questions about two conversations, of which `right` are right."""

    def write(name, right, judge="judge"):
        made = Journal(empty_directory / name)
        made.write(
            Run(
                file="a.json", digest="0" * 64, seed=0, sample=None, answer="m", judge=judge,
                memories=("ours",), budgets=(500, 1000),
            )
        )  # fmt: skip
        for budget in (500, 1000):
            for number in range(4):
                place = {"conversation": f"c{number % 2}", "question": str(number)}
                used = {"prompt_tokens": 90, "completion_tokens": 10, "cost": 0.001}
                made.write(
                    Answered(
                        **place, **used, memory="ours", budget=budget, asked=HOSTILE,
                        category=HOSTILE if number else "temporal", expected=("Oslo",),
                        abstain=False, answer=HOSTILE, block=HOSTILE, block_tokens=budget - 1,
                        evidence=None,
                    )
                )  # fmt: skip
                if judge:
                    made.write(
                        Judged(
                            **place, **used, memory="ours", budget=budget, judge=judge,
                            right=number < right, reason=HOSTILE,
                        )
                    )  # fmt: skip
        made.close()
        return name

    return write


@pytest.mark.usefixtures("on_a_pipe")
def test_a_report_of_one_run(run, journal):
    journal("one.jsonl", right=3)
    document = run("eval", "--report", "one.jsonl", "--json").json
    small, large = document["figures"]
    assert (small["series"]["budget"], large["series"]["budget"]) == (500, 1000)
    assert small["accuracy"]["mean"] == 0.75
    assert small["values"]["cost"] == pytest.approx(0.004)
    printed = run("eval", "--report", "one.jsonl").out
    assert "ours\t500\tjudge\t4\t0\t4\t0.750 (0.500 to 1.000)\t0.000\t0.000\t—\t499" in printed


@pytest.mark.usefixtures("on_a_pipe")
def test_two_runs_are_compared(run, journal):
    runs = journal("one.jsonl", right=3), journal("two.jsonl", right=1)
    printed = run("eval", "--report", *runs).out
    assert "one: ours, 1,000\ttwo: ours, 1,000\tjudge\t4\t+0.500 (+0.500 to +0.500)" in printed


def test_a_page_of_html(ok, journal, empty_directory):
    document = ok(
        "eval", "--report", journal("one.jsonl", right=3), "--report-to", "r.html", "--json"
    ).json
    page = (empty_directory / "r.html").read_text()
    assert document["report"] == "r.html"
    assert HOSTILE not in page
    assert page.count("<svg") == 2
    assert "0.750 (0.500 to 1.000)" in page


def test_markdown_has_its_plots_beside_it(ok, journal, empty_directory):
    journal("one.jsonl", right=3)
    assert "report: my r.md" in ok("eval", "one.jsonl", "--report-to", "my r.md").out
    page = (empty_directory / "my r.md").read_text()
    assert "![Plot](my%20r-1.svg)" in page
    assert HOSTILE not in page
    lines, bars = (ET.fromstring((empty_directory / f"my r-{n}.svg").read_text()) for n in (1, 2))
    assert len(lines.findall(f"{SVG}circle")) == 2
    # The first question, which is right, is the only one of its kind.
    widths = [float(each.get("width")) for each in bars.findall(f"{SVG}rect")[1:]]
    assert sorted(widths) == [pytest.approx(400 * 2 / 3, abs=0.1), 400]


def test_without_a_judge_the_plots_show_f1(ok, journal, empty_directory):
    journal("one.jsonl", right=0, judge=None)
    assert "failed 0, judged 0" in ok("eval", "one.jsonl", "--report-to", "r.html").out
    assert (empty_directory / "r.html").read_text().count("<svg") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--report"], "needs the file of a run"),
        (["--report", "one.jsonl", "--judge", "m"], "nothing is asked"),
        (["one.jsonl", "one.jsonl"], "compared with --report"),
        (["--report", "one.jsonl", "--report-to", "r.pdf"], ".md or .html"),
        (["--report", "one.jsonl", "--report-to", "nowhere/r.md"], "a folder that exists"),
    ],
)
def test_what_cannot_be_reported_is_a_line(run, journal, arguments, told):
    journal("one.jsonl", right=1)
    result = run("eval", *arguments)
    assert result.code == 2
    assert told in result.err


def test_a_file_that_is_no_run_is_refused(run, write):
    write("bad.jsonl", '{"kind":"run"}\n')
    result = run("eval", "--report", "bad.jsonl")
    assert result.code == 2
    assert result.err.startswith("error: bad.jsonl, line 1: ")
    assert "Traceback" not in run("eval", "--report", "none.jsonl").err
