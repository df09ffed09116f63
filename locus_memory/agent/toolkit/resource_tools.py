"""The tools of a tree: a model lists, reads, finds and writes below one root."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from locus_memory._internal.neutral import neutralise
from locus_memory.agent.toolkit.scope import Row, Writes
from locus_memory.errors import ConfigurationError, MemoryAccessDenied
from locus_memory.resources.uri import MemoryURI, as_uri
from locus_memory.resources.verbs import MemoryVerbs
from locus_memory.tools import Tool, tool

__all__ = ["resource_tools"]

_MOST_LISTED: Final = 50
_MOST_FOUND: Final = 10
_PAGE: Final = 8_000
"""Characters of a text in one answer."""

_URI: Final = "a memory:// URI, as a listing or a search shows it"


def resource_tools(
    tree: MemoryVerbs, *, root: str | MemoryURI = "memory://", write: bool = False
) -> list[Tool]:
    """Return tools for a tree, ready for `Agent(tools=...)`.

    They are `list_resources`, `read_resource`, `find_resources` and, with `write`,
    `write_resource`. A URI outside the root is refused, whatever its form. Texts are neutralised
    line by line, and a long one is read in pages of 8,000 characters. A run writes at most 20
    times.

    Args:
        tree: A `MemoryTree`, bound to the user if there are several, or a handle.
        root: Nothing above it or beside it is read or written.
        write: Whether the model may write.

    Raises:
        InvalidMemoryURI: The root is no URI.
        ConfigurationError: The tree is something else.
    """
    if not isinstance(tree, MemoryVerbs):
        raise ConfigurationError(
            f"resource_tools needs a MemoryTree or a handle, not {type(tree).__name__}"
        )
    top = as_uri(root).as_folder
    tools = [_list_tool(tree, top), _read_tool(tree, top), _find_tool(tree, top)]
    return [*tools, _write_tool(tree, top)] if write else tools


def _within(uri: str, top: MemoryURI) -> MemoryURI:
    """Return the URI of a call.

    Raises:
        InvalidMemoryURI: It is no URI.
        MemoryAccessDenied: It is outside the root.
    """
    found = MemoryURI.parse(uri)
    if not found.is_within(top):
        raise MemoryAccessDenied(f"only URIs that begin with {top} are allowed")
    return found


def _list_tool(tree: MemoryVerbs, top: MemoryURI) -> Tool:
    text = f"List a folder of resources. The root is {top}. Folders end in a slash."

    @tool(name="list_resources", description=text)
    async def list_resources(
        uri: Annotated[str, Field(description=_URI)] = str(top),
        after: Annotated[str | None, Field(description="the last URI of the page before")] = None,
    ) -> object:
        found = await tree.list(_within(uri, top), limit=_MOST_LISTED, after=after)
        return [{"uri": each.uri, "bytes": each.size} for each in found.entries]

    return list_resources


def _read_tool(tree: MemoryVerbs, top: MemoryURI) -> Tool:
    text = (
        "Read a resource: its abstract, its overview or all of it (detail). A folder has an"
        " abstract and an overview."
    )

    @tool(name="read_resource", description=text)
    async def read_resource(
        uri: Annotated[str, Field(description=_URI)],
        level: Annotated[
            Literal["abstract", "overview", "detail"], Field(description="how much to read")
        ] = "overview",
        offset: Annotated[int, Field(ge=0, description="next_offset of the page before")] = 0,
    ) -> object:
        found = await tree.read(_within(uri, top), level)
        return _page(found.uri, str(found.data), offset)

    return read_resource


def _find_tool(tree: MemoryVerbs, top: MemoryURI) -> Tool:
    text = f"Find resources below {top} by a question or a few words."

    @tool(name="find_resources", description=text)
    async def find_resources(
        query: Annotated[str, Field(description="the subject, in a few words")],
        uri: Annotated[str, Field(description="the folder to search")] = str(top),
    ) -> object:
        found = await tree.find(query, _within(uri, top), _MOST_FOUND)
        return [
            {"uri": each.uri, "score": round(each.score, 3), "snippet": each.snippet}
            for each in found.hits
            if MemoryURI.parse(each.uri).is_within(top)
        ]

    return find_resources


def _write_tool(tree: MemoryVerbs, top: MemoryURI) -> Tool:
    writes = Writes()
    text = f"Write a resource below {top}. Missing folders come into being."

    @tool(name="write_resource", description=text)
    async def write_resource(
        uri: Annotated[str, Field(description="a memory:// URI")],
        content: Annotated[str, Field(description="the text")],
        mode: Annotated[
            Literal["replace", "append", "create"],
            Field(description="create fails if it exists; append adds a line"),
        ] = "replace",
    ) -> object:
        place = _within(uri, top)
        if place.segments == top.segments:
            raise MemoryAccessDenied(f"{top} is a folder: name an entry in it")
        refused = writes.allow()
        if refused is not None:
            return {"error": refused}
        done = await tree.write(place, content, mode=mode)
        return {"uri": done.uri, "bytes": done.bytes_written}

    return write_resource


def _page(uri: str, text: str, offset: int) -> Row:
    page = text[offset : offset + _PAGE]
    lines = "\n".join(map(neutralise, page.split("\n")))
    answer: dict[str, Any] = {"uri": uri, "text": lines}
    if offset + _PAGE < len(text):
        answer["next_offset"] = offset + _PAGE
    return answer
