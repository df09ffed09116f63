"""The command `eval`: measures retrieval."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.common import AsJson, Url
from locus_memory.cli.options.models import RerankerOption, open_embedder, open_reranker
from locus_memory.cli.options.plots import PlotOption, ReportOption, write_plot
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.search_notes import search_notes
from locus_memory.cli.printing.tables import Cell, print_records, print_table
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.cli.printing.plots import LineChart
    from locus_memory.evaluation.dataset import Conversation
    from locus_memory.evaluation.metrics import Interval
    from locus_memory.evaluation.report import Report, Scores
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["evaluate", "recall_chart"]

_IN_MEMORY = "sqlite::memory:"


def evaluate(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Data set, by default a small one of the package; or a run to judge again.",
            show_default=False,
        ),
    ] = None,
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Further runs, with --report.", show_default=False),
    ] = None,
    *,
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Embedding model, such as local; none by default."),
    ] = None,
    reranker: RerankerOption = None,
    plot: PlotOption = None,
    answer: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Ask this model the questions, with a memory each."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Let this model judge the answers, also of a run."),
    ] = None,
    extract: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Model that extracts memories; by default --answer."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Memory to ask, repeatable; ours by default."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="N,...", help="Tokens that a question is shown of a memory.")
    ] = "4000",
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Ask so many questions, drawn at random."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw.")] = 0,
    out: Annotated[
        Path, typer.Option(metavar="FILE.jsonl", help="File for all that is asked and answered.")
    ] = Path("eval.jsonl"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the file of --out.")] = False,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Calls of models at once.")
    ] = 4,
    prices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Prices of models, TOML or JSON."),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="DOLLARS", min=0, help="Stop when this call has spent so much."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Endpoint of --answer and --extract.")
    ] = None,
    judge_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Endpoint of --judge.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Report runs: what their answers are worth.")
    ] = False,
    report_to: ReportOption = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well questions find the turns that answer them.

    Without --url, the evaluation runs in memory. With --url, it indexes the conversations in the
    namespace locus-memory-evaluation and deletes this namespace before and after.

    With --answer, a model is asked the questions, from what each --memory shows, and --judge says
    which answers are right. With --judge alone, FILE is a file of --out, and its answers are judged
    again.

    With --report, FILE and each RUN is a file of --out, and nothing is asked: accuracy with its
    interval, F1, evidence, tokens and cost, by category too, and the differences of runs.
    """
    if report or report_to is not None:
        if path is None or answer is not None or judge is not None:
            raise UsageError("--report needs the file of a run, and nothing is asked or judged")
        from locus_memory.cli.quality.report import report_runs  # noqa: PLC0415 - help must be quick

        session = Session.of(context, None, as_json=as_json)
        report_runs(session, [path, *(more or [])], report_to)
        return
    if more:
        raise UsageError("several files are compared with --report")
    if answer is not None or judge is not None:
        if reranker or plot or url:
            raise UsageError("--reranker, --plot and --url are of retrieval, without --answer")
        from locus_memory.cli.quality.questions import Questions  # noqa: PLC0415 - help must be quick

        Questions(
            path=path,
            answer=answer,
            judge=judge,
            extract=extract,
            memory=memory or ["ours"],
            budget=budget,
            sample=sample,
            seed=seed,
            out=out,
            resume=resume,
            concurrency=concurrency,
            prices=prices,
            max_cost=max_cost,
            embedder=embedder,
            base_url=base_url,
            judge_url=judge_url,
        ).run(Session.of(context, None, as_json=as_json))
        return
    if memory or extract or prices or sample is not None or max_cost is not None or resume:
        raise UsageError(
            "--memory, --extract, --prices, --sample, --max-cost and --resume need --answer"
        )
    session = Session.of(context, url or context.obj.url or _IN_MEMORY, as_json=as_json)
    _measure(session, path, embedder, reranker, plot)


def _measure(
    session: Session,
    path: Path | None,
    embedder: str | None,
    reranker: str | None,
    plot: Path | None,
) -> None:
    """Measure retrieval on a data set, and print and draw the figures."""
    from locus_memory.evaluation.dataset import (  # noqa: PLC0415 - help must be quick
        load_sample,
        read_dataset,
    )

    work = partial(
        _run,
        conversations=load_sample() if path is None else read_dataset(path),
        embedder=None if embedder is None else open_embedder(embedder),
        reranker=None if reranker is None else open_reranker(reranker),
    )
    measured = session.run(work, create=True)
    document = measured.to_dict()
    if plot is not None:
        write_plot(plot, recall_chart(measured))
        document["plot"] = str(plot)
    session.answer(document, partial(_render, report=measured, plot=plot))


async def _run(
    backend: Backend,
    *,
    conversations: list[Conversation],
    embedder: Embedder | None,
    reranker: Reranker | None,
) -> Report:
    from locus_memory.cli.printing.progress import one_bar  # noqa: PLC0415 - help must be quick
    from locus_memory.evaluation.run import evaluate as measure  # noqa: PLC0415 - the same

    with one_bar("evaluating") as show:

        def step(done: int, total: int) -> None:
            show(completed=done, total=total)

        with search_notes(has_embedder=embedder is not None):
            return await measure(
                conversations, backend.store, embedder, reranker=reranker, on_progress=step
            )


def recall_chart(report: Report) -> LineChart:
    """Return the chart of a report: the recall at k of each mode of search."""
    from locus_memory.cli.printing.plots import (  # noqa: PLC0415 - help must be quick
        Axis,
        Line,
        LineChart,
    )
    from locus_memory.evaluation.report import SIDES  # noqa: PLC0415 - the same

    modes = {report.mode: report.overall}
    modes |= {mode: report.sides[mode] for mode in SIDES if mode in report.sides}
    depths = tuple(report.overall.recall)
    questions = number(report.overall.questions)
    return LineChart(
        title="Recall at k",
        subtitle=(
            f"{questions} questions about {number(report.turns)} turns of "
            f"{number(report.conversations)} conversations; {_models(report)}"
        ),
        x=Axis(label="k, the number of hits", ticks=depths, covers=(0,)),
        y=Axis(label="share of the evidence among the first k hits", covers=(0, 1)),
        lines=[
            Line(
                f"{mode}: {scores.recall[depths[-1]]:.3f} at {depths[-1]}",
                list(scores.recall.items()),
            )
            for mode, scores in modes.items()
        ],
    )


def _models(report: Report) -> str:
    return ", ".join(filter(None, [report.embedder, report.reranker])) or "no model"


def _render(console: Console, report: Report, plot: Path | None) -> None:
    if plot is not None:
        remark(console, f"plot: {plot}")
    heading = (
        f"{report.conversations} conversations, {report.turns} turns; {report.mode} search, "
        f"{_models(report)}; median {report.median_ms:.1f} ms a query"
    )
    remark(console, heading)
    block = f"{report.block_recall:.3f} of the evidence in {report.block_tokens:,.0f} tokens"
    remark(console, f"the default block of memories, by words alone: {block}")
    margin = report.margin
    remark(
        console,
        f"{report.mode} search less the best of the others ({margin.best}): "
        f"R@10 {_interval(margin.recall)}, nDCG@10 {_interval(margin.ndcg)}",
    )
    found: list[list[Cell]] = [
        [name, each.questions, *_shares(each.recall), f"{each.ndcg:.3f}"]
        for name, each in _rows(report)
    ]
    evidence: list[list[Cell]] = [
        [name, *_shares(each.evidence_recall)] for name, each in _rows(report)
    ]
    if not console.is_terminal:
        print_records(console, [[*a, *b[1:]] for a, b in zip(found, evidence, strict=True)])
        return
    depths = [f">R@{depth}" for depth in report.overall.recall]
    console.print()
    print_table(console, ["category", ">questions", *depths, ">nDCG@10"], found)
    budgets = [f">{budget} tokens" for budget in report.overall.evidence_recall]
    console.print()
    print_table(console, ["evidence in", *budgets], evidence)


def _rows(report: Report) -> list[tuple[str, Scores]]:
    sides = [(f"all, {name}", each) for name, each in report.sides.items()]
    return [*report.categories.items(), *sides, ("all", report.overall)]


def _interval(apart: Interval) -> str:
    return f"{apart.mean:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})"


def _shares(scores: Mapping[int, float]) -> list[str]:
    return [f"{share:.3f}" for share in scores.values()]
