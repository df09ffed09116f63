"""Documents: what real folders cost to index, and how often 30 questions find their chunk.

The folders are this repository, the documentation of three installed packages, and a handbook of
PDF files. The models come from the extra `local`: without it, only words are measured.
"""

from __future__ import annotations

import pydoc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np
from fpdf import FPDF
from rows import Row

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.documents import (
    ChunkConfig,
    ContextConfig,
    DocumentIndex,
    HybridOptions,
    chunk_text,
    get_documents,
    inject_context,
)
from locus_memory.documents.context import find_context
from locus_memory.documents.fusion import Retriever
from locus_memory.documents.layout import Document, chunk_put
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.retrieval.rerankers.registry import get_reranker
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUESTIONS = HERE / "documents_questions.tsv"
UNRELATED = HERE / "unrelated.txt"
SOFTWARE = HERE / "unrelated_software.txt"
"""Those of the unrelated questions that are about software, as most of the folders are."""
MODULES = (
    *("asyncpg.pool", "asyncpg.connection", "tenacity.wait", "tenacity.stop"),
    "hypothesis.strategies",
)
HANDBOOK = HERE / "documents_handbook.txt"
CHUNKING = ChunkConfig()
DIMENSION = 384
ALL = ContextConfig(max_context_tokens=100_000)
"""What the lowest score leaves, however long it is."""


@dataclass(frozen=True)
class Question:
    """A question, and the chunk that answers it."""

    source: str
    phrase: str
    text: str


def questions(path: Path = QUESTIONS) -> list[Question]:
    lines = path.read_text("utf-8").splitlines()
    return [Question(*line.split("\t")) for line in lines if line]


def _handbook() -> dict[str, list[str]]:
    pages: dict[str, list[str]] = {}
    for line in HANDBOOK.read_text("utf-8").splitlines():
        name, _, text = line.partition("\t")
        pages.setdefault(name, []).append(text)
    return pages


def render(modules: Sequence[str], folder: Path) -> None:
    """Write the documentation of modules into a folder."""
    for name in modules:
        text = pydoc.plain(pydoc.render_doc(import_module(name)))
        (folder / f"{name}.md").write_text(text, "utf-8")


def make_folders(folder: Path) -> dict[str, Path]:
    """Return the folders to index, by the prefix of their sources."""
    packages, handbook = folder / "packages", folder / "handbook"
    packages.mkdir()
    handbook.mkdir()
    render(MODULES, packages)
    for name, pages in _handbook().items():
        made = FPDF()
        made.set_font("helvetica", size=12)
        for page in pages:
            made.add_page()
            made.multi_cell(0, 8, page)
        (handbook / f"{name}.pdf").write_bytes(bytes(made.output()))
    own = {"docs/": ROOT / "docs"}
    return {**own, "packages/": packages, "handbook/": handbook}


async def fill(index: DocumentIndex, folders: dict[str, Path]) -> int:
    done = [await index.add_path(path, prefix=name) for name, path in folders.items()]
    return sum(each.chunks for each in done)


def place_of(asked: Question, found: Sequence[object]) -> int | None:
    """Return the rank of the first chunk that answers, from 1."""
    for place, each in enumerate(found, 1):
        content = " ".join(getattr(each, "content", "").replace("|", " ").split())
        source = getattr(each, "source", "")
        if source.endswith(asked.source) and asked.phrase in content:
            return place
    return None


async def recall(index: Retriever, asked: Sequence[Question]) -> dict[str, float]:
    places = [place_of(each, await index.retrieve(each.text, top_k=10)) for each in asked]
    known = [place for place in places if place is not None]
    count = len(places)
    first = [each for each, place in zip(asked, places, strict=True) if place and place <= 5]
    shown = [await find_context(each.text, index, config=ALL) for each in first]
    sources = [context.sources if context else () for context in shown]
    stay = list(map(place_of, first, sources))
    return {
        "hit@1": sum(place <= 1 for place in known) / count,
        "hit@5": sum(place <= 5 for place in known) / count,
        "hit@10": len(known) / count,
        "MRR": sum(1 / place for place in known) / count,
        "stay": sum(place is not None for place in stay) / len(first),
    }


def unrelated() -> dict[str, list[str]]:
    """Return the questions that no folder answers: about other subjects, and about software."""
    asked = [line for line in UNRELATED.read_text("utf-8").splitlines() if line]
    near = set(SOFTWARE.read_text("utf-8").splitlines())
    others = [each for each in asked if each not in near]
    return {"silent": others, "silent, software": [each for each in asked if each in near]}


async def injected(index: Retriever) -> dict[str, float]:
    """Return the shares of unrelated questions for which nothing is shown."""
    shares: dict[str, float] = {}
    silent = 0
    for name, asked in unrelated().items():
        quiet = await silence(index, asked)
        shares[name] = quiet / len(asked)
        silent += quiet
    return {**shares, "silent, all": silent / sum(map(len, unrelated().values()))}


async def silence(index: Retriever, asked: Sequence[str]) -> int:
    """Return for how many questions nothing is shown."""
    return sum([not await inject_context(each, [], index) for each in asked])


async def ingest(folder: Path) -> list[Row]:
    """The repository, twice: what a first and a second run cost."""
    async with get_documents(f"sqlite:{folder / 'kb.db'}", kind="text") as index:
        first = await index.add_path(ROOT)
        second = await index.add_path(ROOT)
    share = second.seconds / first.seconds
    detail = f"{first.added} files, {first.chunks} chunks, {first.seconds:.1f} s"
    text = "\n\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    text = (text * (1 + 10_000_000 // len(text)))[:10_000_000]
    taken: list[float] = []
    for kind in ("text", "markdown", "code"):
        started = time.process_time()
        chunk_text(text, kind=kind)
        taken.append(time.process_time() - started)
    return [
        Row("documents: a second run / the first", share, 0.1, detail),
        Row("documents: added by the second run", float(second.added), 0),
        Row(
            "documents: 10 MB of text are cut, seconds",
            taken[0],
            2,
            f"Markdown {taken[1]:.2f}, code {taken[2]:.2f}",
        ),
    ]


async def quick(folder: Path) -> list[Row]:
    """Retrieval among 10,000 chunks with vectors, without the time of the model."""
    random = np.random.default_rng(7)
    words = [f"w{number}" for number in range(3000)]
    vectors = random.standard_normal((10_000, DIMENSION)).astype("float32")

    class Fixed:
        name = "fixed"
        dimension = DIMENSION

        async def embed(self, texts: Sequence[str], *, kind: str) -> list[list[float]]:
            del kind
            return [random.standard_normal(DIMENSION).tolist() for _ in texts]

    async with SQLiteStore(folder / "quick.db") as store:
        index = DocumentIndex(store, embedder=Fixed())
        puts: list[Put] = []
        for number in range(10_000):
            text = " ".join(random.choice(words, 60))
            document = Document.of(text, f"{number}", index.chunking)
            [chunk] = chunk_text(text)
            put = chunk_put(index.namespace, document, chunk)
            puts.append(
                Put(
                    namespace=put.namespace,
                    key=put.key,
                    value=put.value,
                    metadata=put.metadata,
                    embedding=vectors[number].tolist(),
                )
            )
        await store.put_batch(puts)
        taken: list[float] = []
        for _ in range(60):
            query = " ".join(random.choice(words, 5))
            # Of all threads: other work on the machine must not count.
            started = time.process_time()
            await index.retrieve(query)
            taken.append((time.process_time() - started) * 1000)
    name = "documents: retrieve among 10,000 chunks, ms"
    return [Row(name, median(taken[10:]), 15, "p50 of processor time")]


async def documents(folder: Path, *, late: bool = False) -> list[Row]:
    """Recall and silence of each kind, on real folders."""
    rows = [*await ingest(folder), *await quick(folder)]
    folders = make_folders(folder)
    async with InMemoryStore() as store:
        kinds = await kinds_over(store, late=late)
        filled = kinds.get("hybrid") or kinds["text"]
        chunks = await fill(filled, folders)
        print(
            "\n| kind | hit@1 | hit@5 | hit@10 | MRR | hits that stay | silent | software | all |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        found: dict[str, dict[str, float]] = {}
        for name, index in kinds.items():
            found[name] = {**await recall(index, questions()), **await injected(index)}
            cells = " | ".join(f"{value:.2f}" for value in found[name].values())
            print(f"| {name} | {cells} |")
    best = "hybrid" if "hybrid" in found else "text"
    detail = f"{len(questions())} questions, {chunks} chunks, {best}"
    rows.append(Row("documents: hit@5", found[best]["hit@5"], 0.8, detail, at_least=True))
    rows.append(
        Row(
            "documents: unrelated, nothing shown",
            found[best]["silent, all"],
            0.95,
            best,
            at_least=True,
        )
    )
    if best == "hybrid":
        for measure in ("hit@10", "MRR"):
            sides = max(found[name][measure] for name in ("text", "dense"))
            value = found["hybrid"][measure] / sides
            name = f"documents: {measure} of hybrid / better side"
            rows.append(Row(name, value, 1, at_least=True))
    return rows


async def kinds_over(
    store: BaseStore, chunking: ChunkConfig = CHUNKING, *, late: bool = False
) -> dict[str, Retriever]:
    """Return an index of each kind, over the same chunks; `late` only if asked for."""
    made: dict[str, Retriever] = {"text": DocumentIndex(store, kind="text", chunking=chunking)}
    try:
        embedder = get_embedder("local")
        reranker = get_reranker("late-interaction") if late else None
    except (ConfigurationError, MissingDriverError):
        return made
    options = {"embedder": embedder, "chunking": chunking}
    made |= {
        "dense": DocumentIndex(store, kind="dense", **options),
        "hybrid": DocumentIndex(store, **options),
        "hybrid, classic": DocumentIndex(store, hybrid=HybridOptions.classic(), **options),
    }
    if reranker is not None:
        made["late"] = DocumentIndex(store, kind="late", reranker=reranker, **options)
    return made
