"""The tool `search_documents`: a model looks for itself what the documents say."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from locus_memory.documents.context import ContextConfig, find_context
from locus_memory.documents.fusion import Retriever
from locus_memory.errors import ConfigurationError
from locus_memory.tools import Tool, tool

__all__ = ["documents_tool"]

_MOST: Final = 20
"""The most chunks that a call may ask for."""

_TEXT: Final = (
    "Search the knowledge base. The answer is a list of numbered extracts with their sources, the"
    " most relevant first; cite those that you use."
)
_NOTHING: Final = "nothing was found"
_DEFAULT: Final = ContextConfig()


def documents_tool(index: Retriever, *, config: ContextConfig = _DEFAULT) -> Tool:
    """Return the tool `search_documents(query, top_k)`, ready for `Agent(tools=[...])`.

    Its answer is the fenced text of `inject_context`. No memory is extracted from it.

    Args:
        index: A `DocumentIndex`, or anything with its `retrieve`.
        config: The lowest score, the budget of tokens, and the filter, which no call can change.

    Raises:
        ConfigurationError: The index cannot retrieve.
    """
    if not callable(getattr(index, "retrieve", None)):
        raise ConfigurationError(f"an index has retrieve, and {type(index).__name__} lacks it")

    @tool(name="search_documents", description=_TEXT)
    async def search_documents(
        query: Annotated[str, Field(description="a question, or the subject in a few words")],
        top_k: Annotated[int, Field(description="how many extracts", ge=1, le=_MOST)] = 5,
    ) -> str:
        found = await find_context(query, index, config=replace(config, top_k=top_k))
        return _NOTHING if found is None else found.text

    return search_documents
