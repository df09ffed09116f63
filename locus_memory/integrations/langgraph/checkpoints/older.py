"""The documents that versions before binary values wrote, in the form of today; pure.

They hold bytes as text: each byte is the Latin-1 character of its number, with two exceptions.
UTF-8 sequences are the characters they encode, those of Latin-1 itself moved to a private range;
and phrases that every LangChain message holds are one private character each. The long texts of a
document are in its list `t`, and a private character stands for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from locus_memory.errors import CheckpointCorruptError

__all__ = ["bytes_of", "tree_of"]

_PHRASES = (
    "\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$",
    "\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9$",
    "\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json",
    "\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content",
    "\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content",
    "\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content",
    "\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content",
    "\xb1additional_kwargs\x80\xb1response_metadata\x80",
    "\xb1additional_kwargs\x80\xb1response_metadata",
    "\xa4type\xa5human\xa4name\xc0\xa2id",
    "\xa4type\xa2ai\xa4name\xc0\xa2id",
    "\xa4type\xa4tool\xa4name",
    "\xa4type\xa6system\xa4name\xc0\xa2id",
    "\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xacinput_tokens",
    "\xadoutput_tokens",
    "\xactotal_tokens",
    "\xb3model_validate_json",
    "\xaatool_calls",
    "\xactool_call_id",
    "\xa8artifact\xc0\xa6status\xa7success",
    "\xaamodel_name",
    "\xadfinish_reason",
)
"""A phrase is the private character of its position."""

# Private characters: U+E000 to U+E0FF are phrases, U+E180 to U+E1FF Latin-1's upper half, and
# all from U+F0000 on are places in the list of texts.
_TOKENS = {chr(0xE000 + position): phrase for position, phrase in enumerate(_PHRASES)}
_LOWERED = {number + 0xE100: number for number in range(0x80, 0x100)}
_BEYOND = re.compile(
    "[\ue000-\ue0ff\U000f0000-\U0010ffff]|[^\x00-\xff\ue000-\ue0ff\U000f0000-\U0010ffff]+"
)
_FIRST_PLACE = 0xF0000


def bytes_of(text: str, texts: Sequence[str]) -> bytes:
    """Return the bytes of a text.

    Args:
        text: The text.
        texts: The long texts of its document.

    Raises:
        CheckpointCorruptError: The text has a private character without a meaning.
    """

    def latin(match: re.Match[str]) -> str:
        run = match[0]
        if run in _TOKENS:
            return _TOKENS[run]
        if run >= "\U000f0000":
            return _BEYOND.sub(latin, texts[ord(run) - _FIRST_PLACE])
        if "\ue000" <= run[0] <= "\ue0ff":
            raise IndexError
        return run.translate(_LOWERED).encode().decode("latin-1")

    try:
        return _BEYOND.sub(latin, text).encode("latin-1")
    except IndexError as error:
        reason = "a value of it was written by a newer version"
        raise CheckpointCorruptError("", None, reason) from error


def tree_of(encoded: Any, texts: Sequence[str]) -> Any:
    """Return the tree of a value; see `values`."""
    if isinstance(encoded, str):
        return bytes_of(encoded, texts)
    if isinstance(encoded, list):
        kind, text = cast("list[str]", encoded)
        return [kind, bytes_of(text, texts)]
    if isinstance(encoded, dict):
        parts = cast("dict[str, Any]", encoded)
        if "s" in parts:
            return {"s": tree_of(parts["s"], texts)}
        return {"l": [tree_of(element, texts) for element in parts["l"]]}
    return encoded
