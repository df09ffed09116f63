"""Pages of HTML are documents: their text as Markdown, whatever their tags are like."""

from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.documents import chunk_text, get_documents
from locus_memory.documents.ingest.formats import kind_of, read_text
from locus_memory.documents.ingest.pages import markdown_of

PAGE = """<!doctype html><html><head><title>Petrel &amp; Co</title>
<style>p { color: red }</style><script>if (a < b) { say("<p>hidden</p>") }</script></head>
<body><nav><a href="/" title="a > b">Home</a></nav>
<h2>Rig</h2><p>The mast is of <b>spruce</b>;<br>oil it in March.
<h3>Spars</h3><ul><li>Gaff<li><p>Boom</p><ol><li>of ash</ol></ul>
<table><tr><th>Spar<th>Wood<tr><td>Gaff|yard<td>Ash</table>
<pre><code>haul()
  ease()</code></pre><!-- <p>hidden --><svg><title>hidden</title></svg>
<img src="a.png" alt="A cutter"></body></html>"""

READ = """# Petrel & Co

Home

## Rig

The mast is of spruce;
oil it in March.

### Spars

- Gaff
- Boom
  - of ash

| Spar | Wood |
| --- | --- |
| Gaff\\|yard | Ash |

```
haul()
  ease()
```

A cutter"""


def test_a_page_is_markdown():
    assert markdown_of(PAGE) == READ
    assert kind_of("a.HTM") == kind_of("a.html") == "markdown"


async def test_a_page_is_found_by_its_text_and_says_where(tmp_path):
    (tmp_path / "rig.html").write_text(PAGE, "utf-8")
    async with get_documents("memory", kind="text") as index:
        assert (await index.add_path(tmp_path)).added == 1
        [best] = await index.retrieve("When is the mast oiled?", top_k=1)
        assert await index.retrieve("hidden color script") == []
    assert "oil it in March" in best.content
    start, end = best.metadata["start"], best.metadata["end"]
    assert READ[start:end] == best.content


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("just text", "just text"),
        ("a < b and c > d", "a < b and c > d"),
        ("a <b", "a <b"),
        ("<a b='x", "<a b='x"),
        ("a<!-->b<!-- c", "ab"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("a<pre>```\nb```", "a\n\n````\n```\nb```\n````"),
        ("<td>x<td>y", "| x | y |\n| --- | --- |"),
        ("<table><tr><td><h1>One</h1> cell</table>", "One cell"),
        ("<svg>no", ""),
        ("<svg/>yes", "yes"),
        ("<title>a</title><h1>b</h1>", "# b"),
        ("<p>&#xD800;&nosuch;&eacute;", "\ufffd&nosuch;\u00e9"),
        ("<script>never ends <p>x", ""),
    ],
)
def test_pages_that_are_not_well_formed(page, text):
    assert markdown_of(page) == text


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=9)))
def test_no_word_of_a_page_is_lost(words):
    page = "".join(f"<p>{escape(each)}</p>" for each in words)
    found = markdown_of(page)
    assert found.split() == words
    chunks = chunk_text(found, kind="markdown")
    for each in chunks:
        assert found[each.metadata["start"] : each.metadata["end"]] == each.content


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(st.sampled_from("<>/!-='\"abptdrsvgl &;\n"), max_size=200))
def test_any_page_is_read(page):
    assert isinstance(markdown_of(page), str)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *("<!--", "<", "<a ", '<a b="', "</", "<![CDATA[", "&", "<ul><li>", "<table><tr><td>"),
        *("<svg>", "<script>", "<pre>", " alt =", "<img alt='", "<p =", "<title>"),
    ],
)
def test_a_hostile_page_is_read(part):
    # A parser that reads any of it twice for each part would need hours.
    assert isinstance(markdown_of(part * 50_000), str)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"<meta charset='iso-8859-2'><p>\xb3\xf3d\xbc", "\u0142\u00f3d\u017a"),
        (b"<meta charset=nope><p>caf\xe9", "caf\u00e9"),
        (b"<meta charset=hex><p>caf\xe9", "caf\u00e9"),
        ("<meta charset=latin-1><p>caf\u00e9".encode(), "caf\u00e9"),
    ],
)
def test_the_character_set_of_a_page(content, text):
    assert read_text("a.html", content).text == text
