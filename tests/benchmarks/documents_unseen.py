"""Documents: questions that were written before any of them was asked.

No weight of the ranking was chosen with them. 30 have their answer in pages and packages that the
questions of `documents` do not touch, 10 have none. 12 more are about the source of the package.
"""

from __future__ import annotations

from pathlib import Path

from documents import HERE, ROOT, kinds_over, questions, recall, render, silence, unrelated
from rows import Row

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex

UNSEEN = HERE / "documents_unseen.tsv"
SOURCE = HERE / "documents_source.tsv"
MODULES = ("jinja2.environment", "pypdf._writer", "rich.progress")


async def unseen_documents(folder: Path, *, late: bool = False) -> list[Row]:
    """Recall and silence of each kind, for questions that nothing was tuned to."""
    packages = folder / "packages"
    packages.mkdir()
    render(MODULES, packages)
    return await _asked({"docs/": ROOT / "docs", "packages/": packages}, UNSEEN, 0.8, late)


async def source_documents(folder: Path, *, late: bool = False) -> list[Row]:
    """The same for the source of the package, whose vectors take minutes."""
    del folder
    return await _asked({"": ROOT / "locus_memory"}, SOURCE, 0.5, late)


async def _asked(
    folders: dict[str, Path],
    path: Path,
    bar: float,
    late: bool,  # noqa: FBT001 - as asked for
) -> list[Row]:
    answered = [each for each in questions(path) if each.source]
    others = [each.text for each in questions(path) if not each.source]
    far = [each for some in unrelated().values() for each in some]
    async with InMemoryStore() as store:
        kinds = await kinds_over(store, late=late)
        filled = kinds.get("hybrid") or kinds["text"]
        assert isinstance(filled, DocumentIndex)
        done = [await filled.add_path(each, prefix=name) for name, each in folders.items()]
        chunks = sum(each.chunks for each in done)
        print(f"\n{len(answered)} questions, {chunks} chunks")
        print("\n| kind | hit@1 | hit@5 | hit@10 | MRR | hits that stay | silent | silent of 200 |")
        print("|---|---|---|---|---|---|---|---|")
        found: dict[str, dict[str, float]] = {}
        for name, index in kinds.items():
            found[name] = await recall(index, answered)
            cells = " | ".join(f"{value:.2f}" for value in found[name].values())
            quiet = f"{await silence(index, others)} of {len(others)}"
            print(f"| {name} | {cells} | {quiet} | {await silence(index, far) / len(far):.2f} |")
    best = "hybrid" if "hybrid" in found else "text"
    detail = f"{len(answered)} questions, {chunks} chunks, {best}"
    name = f"documents: hit@5, {path.stem.removeprefix('documents_')}"
    return [Row(name, found[best]["hit@5"], bar, detail, at_least=True)]
