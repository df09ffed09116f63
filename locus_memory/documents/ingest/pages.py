"""Pages of HTML as Markdown: headings, paragraphs, lists, tables and code, without the rest."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Final, NamedTuple

__all__ = ["charset_of", "markdown_of"]

_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS: Final = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "dialog"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
        *("header", "hr", "html", "legend", "main", "menu", "nav", "ol"),
        *("option", "p", "search", "section", "summary", "ul"),
    ]
)
_STRUCTURE: Final = _BLOCKS | {"li", *_HEADINGS}
_SKIPPED: Final = frozenset(["noscript", "script", "style", "svg", "template"])
"""Elements whose content nobody reads."""

_LISTS: Final = frozenset(["menu", "ol", "ul"])
_DEEPEST: Final = 8
"""Items of deeper lists are not indented further."""

_SPACES: Final = re.compile(r"\s+")
_FENCE: Final = re.compile("`{3,}")
# Python refuses numbers of thousands of digits; eight of them stand for no character.
_NUMBER: Final = re.compile("&#(?=[0-9])0*([0-9]{0,8})[0-9]*")
_COMMENT: Final = "<!--"
_OPENING: Final = re.compile("<!--|<(?:[!?]|(/?)([a-zA-Z][^\\s/>]*))")
_QUOTE_OR_END: Final = re.compile("=\\s*([\"'])|>")
_ALT: Final = re.compile("\\salt\\s*=\\s*([\"'])(.*?)\\1", re.IGNORECASE | re.DOTALL)
_RAW: Final = {
    each: re.compile(f"</{each}", re.IGNORECASE) for each in ("script", "style", "textarea")
}
"""Elements in which a `<` begins no tag."""

_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*(?:[\"']\s*)?([\w.:-]{1,40})", re.IGNORECASE
)
_LOOKED_AT: Final = 1024
"""A page says its character set here, see
https://html.spec.whatwg.org/multipage/semantics.html#charset."""


def charset_of(content: bytes) -> str | None:
    """Return the character set that the beginning of a page names, if Python knows it."""
    found = _CHARSET.search(content[:_LOOKED_AT])
    if found is None:
        return None
    name = found[1].decode("ascii", "replace")
    try:
        b"a".decode(name)
        return codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        return None


def markdown_of(page: str) -> str:
    """Return the text of a page as Markdown.

    A page that is not well-formed is read as far as its tags tell, and in linear time: the parser
    of the standard library needs quadratic time for some, see CVE-2025-6069. The title stands as
    the first heading if the page has no heading of the first level.
    """
    reader = _PageReader()
    for part in _parts(_NUMBER.sub(r"&#0\1", page)):
        reader.read(part)
    return reader.text()


class _Part(NamedTuple):
    """A tag, or the text between two tags.

    Attributes:
        tag: The name of the tag; empty for a text.
        text: The attributes of the tag as they are written, or the text.
        is_end: Whether the tag ends an element.
    """

    tag: str
    text: str
    is_end: bool = False


def _parts(page: str) -> Iterator[_Part]:
    """Yield the tags and the texts of a page; comments are left out."""
    place, end_of_tag = 0, _EndOfTag(page)
    while found := _OPENING.search(page, place):
        yield _Part("", unescape(page[place : found.start()]))
        end = end_of_tag(found)
        if end < 0:
            # Nothing closes it, so all that follows is text; an open comment hides it.
            place = len(page) if found[0] == _COMMENT else found.start()
            break
        place = end
        if found[2] is None:
            continue
        tag = found[2].lower()
        yield _Part(tag, page[found.end() : end - 1], found[1] == "/")
        if tag in _RAW and not found[1]:
            closing = _RAW[tag].search(page, place)
            place = len(page) if closing is None else closing.start()
    yield _Part("", unescape(page[place:]))


class _EndOfTag:
    """Finds where a tag ends: at the first `>` outside of a quoted value."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._unclosed: set[str] = set()

    def __call__(self, opening: re.Match[str]) -> int:
        """Return the place after a tag or a comment; -1: it has no end."""
        page, start = self._page, opening.end()
        if opening[0] == _COMMENT:
            # An empty one may be as short as `<!-->`.
            end = page.find("-->", start - 2)
            return -1 if end < 0 else end + 3
        place = start
        while found := _QUOTE_OR_END.search(page, place):
            quote = found[1]
            if quote is None:
                return found.end()
            closing = -1 if quote in self._unclosed else page.find(quote, found.end())
            if closing < 0:
                # Nor has any later one a partner, so no part of the page is searched twice.
                self._unclosed.add(quote)
                return page.find(">", start) + 1 or -1
            place = closing + 1
        return -1


class _PageReader:
    """Collects the blocks of a page, in one pass."""

    def __init__(self) -> None:
        self._title: list[str] = []
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._prefix = ""
        self._lists: list[str] = []
        self._skipped: list[str] = []
        self._code: list[str] | None = None
        self._in_title = False
        self._row: list[str] | None = None
        self._in_cell = False
        self._has_rows = False

    def text(self) -> str:
        """Return all that was read."""
        self._end_code()
        self._end_row()
        self._end_block()
        title = _line(self._title)
        has_heading = any(each.startswith("# ") for each in self._blocks)
        head = [f"# {title}\n\n"] if title and not has_heading else []
        return "".join([*head, *self._blocks]).strip()

    def read(self, part: _Part) -> None:
        """Read the next part."""
        tag = part.tag
        if part.is_end and tag in self._skipped:
            del self._skipped[self._skipped.index(tag) :]
        elif not part.is_end and tag in _SKIPPED:
            # One that is closed at once has no content.
            if not part.text.endswith("/") and len(self._skipped) < _DEEPEST:
                self._skipped.append(tag)
        elif self._skipped:
            return
        elif not tag:
            self._read_text(part.text)
        elif tag == "title":
            self._in_title = not (part.is_end or self._title)
        elif part.is_end:
            self._end(tag)
        else:
            self._begin(tag, part.text)

    def _read_text(self, text: str) -> None:
        if self._in_title:
            self._title += [text] if text else []
        else:
            self._add(_SPACES.sub(" ", text) if self._code is None else text)

    def _add(self, text: str) -> None:
        (self._words if self._code is None else self._code).append(text)

    def _begin(self, tag: str, attributes: str) -> None:
        if tag == "br":
            self._add("\n")
        elif tag == "img":
            found = _ALT.search(attributes)
            self._add(f" {unescape(found[2])} " if found else " ")
        elif self._code is not None:
            return
        elif tag in ("td", "th"):
            self._end_cell()
            self._row = [] if self._row is None else self._row
            self._in_cell = True
        elif tag in ("table", "tr", "pre"):
            # A table in a cell: the outer one only places its parts.
            self._end_row()
            self._end_block()
            self._has_rows = self._has_rows and tag != "table"
            self._row = [] if tag == "tr" else None
            self._code = [] if tag == "pre" else None
        elif tag in _STRUCTURE:
            self._begin_block(tag)

    def _begin_block(self, tag: str) -> None:
        if self._in_cell:
            self._words.append(" ")
            return
        if tag not in _BLOCKS or tag in _LISTS or not self._prefix or _line(self._words):
            self._end_block()
        if tag in _LISTS:
            self._lists.append(tag)
        elif tag == "li":
            self._prefix = "  " * min(max(len(self._lists) - 1, 0), _DEEPEST) + "- "
        elif tag in _HEADINGS:
            self._prefix = _HEADINGS[tag]

    def _end(self, tag: str) -> None:
        if tag == "pre":
            self._end_code()
        elif self._code is not None:
            return
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self._end_row()
            self._has_rows = self._has_rows and tag == "tr"
        elif tag in _STRUCTURE and self._in_cell:
            self._words.append(" ")
        elif tag in _STRUCTURE:
            self._end_block()
            if tag in _LISTS and self._lists:
                self._lists.pop()

    def _end_block(self) -> None:
        """Write the words since the last block as one."""
        prefix, self._prefix = self._prefix, ""
        words, self._words = self._words, []
        lines = [_line([each]) for each in "".join(words).split("\n")]
        lines = [each for each in lines if each]
        if not lines:
            return
        if prefix.startswith("#"):
            lines = [" ".join(lines)]
        is_item = prefix.endswith("- ")
        self._write(prefix + "\n".join(lines), is_tight=is_item, may_follow="- ")

    def _write(self, block: str, *, is_tight: bool = False, may_follow: str = "") -> None:
        """Write a block; a tight one stands right below another one of its kind."""
        if is_tight and self._blocks and self._blocks[-1].lstrip().startswith(may_follow):
            self._blocks[-1] = self._blocks[-1][:-1]
        self._blocks.append(f"{block}\n\n")

    def _end_cell(self) -> None:
        if self._in_cell and self._row is not None:
            self._row.append(_line(self._words).replace("|", "\\|"))
            self._words = []
        self._in_cell = False

    def _end_row(self) -> None:
        self._end_cell()
        cells, self._row = self._row, None
        if not cells or not any(cells):
            return
        if len(cells) == 1:
            self._write(cells[0])
            return
        row = f"| {' | '.join(cells)} |"
        if not self._has_rows:
            row += "\n" + "| --- " * len(cells) + "|"
        self._write(row, is_tight=self._has_rows, may_follow="| ")
        self._has_rows = True

    def _end_code(self) -> None:
        if self._code is None:
            return
        code, self._code = "".join(self._code).strip("\n"), None
        if code.strip():
            longest = max([2, *(len(each[0]) for each in _FENCE.finditer(code))])
            fence = "`" * (longest + 1)
            self._write(f"{fence}\n{code}\n{fence}")


def _line(words: Sequence[str]) -> str:
    return _SPACES.sub(" ", "".join(words)).strip()
