"""Chunks: nothing is lost, the places are exact, the sizes are kept, and the time is linear."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_memory import ConfigurationError, InvalidArgumentError
from locus_memory.conversation.tokens import estimate_tokens
from locus_memory.documents import Chunk, ChunkConfig, chunk_text
from locus_memory.documents.chunking.atoms import atoms_of

KINDS = ("text", "markdown", "code")
SMALL = ChunkConfig(chunk_size=20, chunk_overlap=5, min_chunk_size=4)

_PIECES = st.sampled_from(
    [
        *("\n\n", "\n", "\r\n", "\r\n\r\n", "\r", "\f", " ", "   ", "\t", "\u3000", "\u2028"),
        *("# Title\n", "## Sub\n", "Title\n===\n", "```\n", "~~~py\n", "|a|b|\n|-|-|\n", "---\n"),
        *("word", "Sentence one. ", "def f():\n    return 1\n", "}\n", "1234567", "x" * 70),
        *(
            "\u8fd9\u662f\u4e00\u4e2a\u53e5\u5b50\u3002",
            "e\u0301\u0301",
            "\U0001f469\u200d\U0001f467",
        ),
        *(
            "\U0001f1e9\U0001f1ea",
            "\u0e01\u0e33\u0e25\u0e31\u0e07",
            "caf\u00e9 d\u00e9j\u00e0 ",
            "\x00",
            "[x](y)",
        ),
    ]
)
TEXTS = st.lists(_PIECES | st.text(max_size=5), max_size=60).map("".join)
CONFIGS = st.builds(
    lambda size, overlap, least, unit: ChunkConfig(
        chunk_size=size, chunk_overlap=min(overlap, size - 1), min_chunk_size=least, unit=unit
    ),
    st.integers(1, 90),
    st.integers(0, 30),
    st.integers(0, 40),
    st.sampled_from(["tokens", "words"]),
)


def places(chunk: Chunk) -> tuple[int, int]:
    return chunk.metadata["start"], chunk.metadata["end"]


@pytest.mark.slow
@given(TEXTS, CONFIGS, st.sampled_from(KINDS))
@example("a" + " " * 400 + "b" + "\n" * 400, SMALL, "text")
@example("# a\n" * 40, SMALL, "markdown")
def test_nothing_is_lost_and_the_places_are_exact(text, config, kind):
    chunks = chunk_text(text, source="s", config=config, kind=kind)
    covered = [not char.strip() for char in text]
    for number, chunk in enumerate(chunks):
        start, end = places(chunk)
        assert text[start:end] == chunk.content
        assert chunk.content.strip()
        assert (chunk.source, chunk.index) == ("s", number)
        assert chunk.metadata["line"] == 1 + text.count("\n", 0, start)
        assert chunk.metadata["end_line"] == 1 + text.count("\n", 0, end)
        covered[start:end] = [True] * (end - start)
    assert all(covered)
    ends = [places(chunk)[1] for chunk in chunks]
    assert ends == sorted(set(ends))
    assert chunks == chunk_text(text, source="s", config=config, kind=kind)


@pytest.mark.slow
@given(TEXTS, CONFIGS, st.sampled_from(KINDS))
def test_sizes_are_within_their_bounds(text, config, kind):
    starts, before = atoms_of(text, config)
    weights = [last - first for first, last in pairwise(before)]
    largest = max([config.chunk_size, *weights])
    chunks = chunk_text(text, config=config, kind=kind)
    for chunk in chunks:
        start, end = places(chunk)
        size = sum(
            weight
            for weight, first, last in zip(weights, starts, starts[1:], strict=False)
            if first < end and last > start
        )
        allowed = largest if chunk.index < len(chunks) - 1 else largest + config.min_chunk_size
        assert size <= allowed + 1e-6


@pytest.mark.slow
@given(TEXTS, st.sampled_from([SMALL, ChunkConfig(unit="words"), ChunkConfig()]))
def test_atoms_are_the_text(text, config):
    starts, _ = atoms_of(text, config)
    assert starts[0] == 0
    assert starts[-1] == len(text)
    assert list(starts) == sorted(set(starts))


@given(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=400))
def test_an_overlap_begins_with_a_word(words):
    text = " ".join(words)
    chunks = chunk_text(text, config=ChunkConfig(chunk_size=64, chunk_overlap=16))
    for chunk in chunks:
        start, end = places(chunk)
        assert start == 0 or text[start - 1] == " "
        assert end == len(text) or text[end] == " "


@pytest.mark.parametrize(
    "text",
    [
        "Plain words of an English text. " * 2000,
        "\u8fd9\u662f\u4e00\u4e2a\u53e5\u5b50\u3002" * 2000,
        "Les \u00e9l\u00e8ves \u00e9taient d\u00e9j\u00e0 \u00e0 l'\u00e9cole. " * 1000,
        "q" * 100_000,
        "a1b2c3d4" * 5000,
        "\U0001f469\u200d\U0001f467 " * 3000,
    ],
)
def test_the_estimate_of_a_chunk_is_within_its_size(text):
    chunks = chunk_text(text)
    assert len(chunks) > 10
    assert max(estimate_tokens(chunk.content) for chunk in chunks[:-1]) <= 512


@pytest.mark.parametrize("text", ["", " ", "\n\n\r\n\f\t \n", "\n" * 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_spaces_has_no_chunks(text, kind):
    assert chunk_text(text, kind=kind) == []


def test_a_short_text_is_one_chunk():
    [chunk] = chunk_text("  A note of a few words.\n")
    assert chunk.content == "  A note of a few words."
    assert (chunk.offset, chunk.index) == (0, 0)
    assert chunk.metadata == {"start": 0, "end": 24, "line": 1, "end_line": 1}


def test_a_short_tail_is_joined():
    words = ["word"] * 140
    config = ChunkConfig(chunk_size=100, chunk_overlap=10, min_chunk_size=50, unit="words")
    [chunk] = chunk_text(" ".join(words), config=config)
    assert chunk.content.split() == words


def test_words_are_windows_with_an_overlap():
    words = [f"w{number}" for number in range(250)]
    config = ChunkConfig(chunk_size=100, chunk_overlap=20, min_chunk_size=10, unit="words")
    chunks = chunk_text(" ".join(words), config=config)
    assert [chunk.offset for chunk in chunks] == [0, 80, 160]
    assert [chunk.content.split() for chunk in chunks] == [
        words[:100],
        words[80:180],
        words[160:],
    ]


def test_paragraphs_stay_whole_while_they_fit():
    paragraphs = [f"{name} " * 39 + "end." for name in ("one", "two", "three", "four")]
    config = ChunkConfig(chunk_size=100, chunk_overlap=0, min_chunk_size=10, unit="words")
    chunks = chunk_text("\r\n\r\n".join(paragraphs), config=config)
    assert [chunk.content for chunk in chunks] == [
        "\r\n\r\n".join(paragraphs[:2]),
        "\r\n\r\n".join(paragraphs[2:]),
    ]


def test_a_long_paragraph_is_cut_between_sentences():
    sentence = "A sentence that has exactly eight words here. "
    for chunk in chunk_text(sentence * 100, config=ChunkConfig(chunk_size=90)):
        assert chunk.content.endswith("here.")


def test_a_form_feed_ends_a_page():
    pages = ["page one " * 30, "page two " * 30]
    config = ChunkConfig(chunk_size=70, chunk_overlap=0, unit="words")
    chunks = chunk_text("\f".join(pages), config=config)
    assert [chunk.content for chunk in chunks] == [page.rstrip() for page in pages]


GUIDE = """\
# Guide

{intro}

## Install

{install}

```sh
# not a heading
{shell}
```

Setup
-----

| name | what |
|------|------|
{table}
"""


def test_markdown_carries_its_headings():
    text = GUIDE.format(
        intro="Read this first. " * 20,
        install="Run the installer. " * 20,
        shell="pip install it\n\n" * 20,
        table="| row | text |\n" * 15,
    )
    config = ChunkConfig(chunk_size=200, chunk_overlap=20)
    chunks = chunk_text(text, config=config, kind="markdown")
    assert list(dict.fromkeys(chunk.metadata["heading"] for chunk in chunks)) == [
        "Guide",
        "Guide > Install",
        "Guide > Setup",
    ]
    assert chunks[1].text == f"Guide > Install\n{chunks[1].content}"
    shell = re.search(r"```.*```", text, re.DOTALL)
    assert shell is not None
    assert [chunk for chunk in chunks if shell[0] in chunk.content]
    assert [chunk for chunk in chunks if chunk.content.count("| row") == 15]


def test_no_overlap_is_before_a_heading():
    text = "\n".join(f"# Part {number}\n\n" + "Some words of it. " * 30 for number in range(5))
    chunks = chunk_text(text, config=ChunkConfig(chunk_size=300), kind="markdown")
    assert [chunk.content.splitlines()[0] for chunk in chunks] == [
        f"# Part {number}" for number in range(5)
    ]


def test_code_is_cut_between_definitions():
    body = "\n".join(f"    value_{number} = compute({number})\n" for number in range(6))
    text = "\n\n".join(f"def function_{number}():\n{body}" for number in range(12))
    chunks = chunk_text(text, config=ChunkConfig(chunk_size=300, chunk_overlap=0), kind="code")
    assert len(chunks) > 2
    assert all(chunk.content.startswith("def function_") for chunk in chunks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x" * 5_000_000, "text"),
        ("\u8fd9\u662f\u4e00\u4e2a\u53e5\u5b50\u3002" * 100_000, "text"),
        ("\n \r\n" * 300_000, "code"),
        ("# a\n" * 100_000, "markdown"),
        ("```\n" * 100_000, "markdown"),
        ("|a|b|\n|-|-|\n" * 50_000, "markdown"),
        (" " * 1_000_000 + "end", "text"),
    ],
)
def test_odd_texts_take_linear_time(text, kind):
    """A quadratic step in any of these would take minutes."""
    started = time.process_time()
    chunks = chunk_text(text, kind=kind)
    assert time.process_time() - started < 20
    assert sum(len(chunk.content) for chunk in chunks) <= 2 * len(text)


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_size": 0},
        {"chunk_overlap": -1},
        {"chunk_size": 10, "chunk_overlap": 10},
        {"min_chunk_size": -1},
        {"chunk_size": "512"},
        {"chunk_size": True},
        {"unit": "bytes"},
    ],
)
def test_sizes_are_checked(options):
    with pytest.raises(
        ConfigurationError, match=next(iter(set(options) - {"chunk_size"}), "chunk")
    ):
        ChunkConfig(**options)


def test_arguments_are_checked():
    with pytest.raises(InvalidArgumentError, match="strings"):
        chunk_text(b"bytes")
    with pytest.raises(InvalidArgumentError, match="'pdf'"):
        chunk_text("text", kind="pdf")
