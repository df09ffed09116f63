"""The prompts that a host shows its user: what to recall, to remember, and what is known."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from locus_memory._internal.quoting import quote

__all__ = ["get_prompt", "list_prompts"]

_SUBJECT: Final = types.PromptArgument(
    name="subject", description="a question, or the subject in a few words", required=True
)
_FACT: Final = types.PromptArgument(
    name="fact", description="one fact, a full sentence", required=True
)

_PROMPTS: Final[dict[str, tuple[types.Prompt, str]]] = {
    each.name: (each, text)
    for each, text in (
        (
            types.Prompt(
                name="recall",
                title="Recall",
                description="Find what is remembered about a subject.",
                arguments=[_SUBJECT],
            ),
            (
                "Call `recall` for the subject below, and tell me what is remembered about it and"
                " since when. Say so if there is nothing.\n\n{subject}"
            ),
        ),
        (
            types.Prompt(
                name="remember",
                title="Remember",
                description="Keep a fact beyond this conversation.",
                arguments=[_FACT],
            ),
            "Call `remember` for the fact below, and tell me what is kept.\n\n{fact}",
        ),
        (
            types.Prompt(
                name="about_me",
                title="What do you know about me?",
                description="List what is remembered about the user.",
                arguments=[],
            ),
            (
                "Call `list_memories`, and tell me in plain words what you know about me: what is"
                " certain first, and since when."
            ),
        ),
    )
}


_TOOLS: Final = {"recall": "recall", "remember": "remember", "about_me": "list_memories"}
"""The tool that each prompt asks the model to call."""


def list_prompts(tools: Collection[str]) -> types.ListPromptsResult:
    """Return the prompts of a caller who has these tools."""
    prompts = [prompt for name, (prompt, _) in _PROMPTS.items() if _TOOLS[name] in tools]
    return types.ListPromptsResult(prompts=prompts)


def get_prompt(
    params: types.GetPromptRequestParams, tools: Collection[str]
) -> types.GetPromptResult:
    """Return the message of a prompt, for a caller who has these tools.

    Raises:
        MCPError: There is no such prompt, or an argument is missing.
    """
    if _TOOLS.get(params.name) not in tools:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {quote(params.name)}")
    prompt, text = _PROMPTS[params.name]
    given = params.arguments or {}
    missing = [each.name for each in prompt.arguments or () if not given.get(each.name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"the prompt needs the argument {missing[0]}")
    content = types.TextContent(type="text", text=text.format_map(given))
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])
