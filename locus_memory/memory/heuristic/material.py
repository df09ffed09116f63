"""Leaving out what the user does not state: code, quotations, pasted texts, played roles."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["begins_play", "ends_play", "spoken"]

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", re.DOTALL)
_CODE_LINE: Final = re.compile(
    r"(?m)^[ \t]*(?:(?:async )?def \w|class \w+[(:]|import \w|from [\w.]+ import|function\b"
    r"|(?:const|let|var) \w+ ?=|#include|public |private |return\b|(?:if|for|while) ?\(|SELECT )"
    r"|[{};][ \t]*$|\)(?: ->.*)?:[ \t]*$"
)
# Beside code, comments and what is indented belong to it.
_OF_CODE: Final = re.compile(r"(?m)^(?:[ \t]*(?:#|//|/\*|\*)|[ ]{2,}|\t).*$")
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
# Another person's words in a pasted log: "[12:01] Bob: I live in Paris".
_SPEAKER: Final = re.compile(
    r"(?m)^[ \t]*(?:\[[^\]\n]{1,30}\][ \t]*)?(?!(?:I|My|We|Our)\b|(?:Note|Notes|Remember|Update"
    r"|Correction|PS|FYI|Important|Reminder|Edit|Background|Context|Profile|Fact|Preference"
    r"|Feedback|Rule|Also|Please|Hi|Hello|Hey|Yes|No|OK|Sorry|Thanks|Actually)\b)"
    r"[A-Z][\w.-]{0,20}(?: [A-Z][\w.-]{0,20})?(?: \([^)\n]{1,30}\))?[:>] .*$"
)
_TEXT: Final = (
    r"(?:text|e-?mail|letter|paragraph|sentence|essay|message|article|bio|cv|resume|post|draft"
    r"|review|transcript|chat|log|quote|poem|story|passage|summary|note|example|output)s?\b"
)
# A text to work on, not a statement: "Translate this: my name is Bob".
_MATERIAL: Final = re.compile(
    r"(?i)\b(?:translat|summari[sz]|proofread|rewrit|paraphras|rephras|correct|edit|draft|compos"
    r"|improv|polish|shorten|fix|analy[sz]|classif|pars)"
    r"\w*\b[^.!?\n]{0,80}:.*"
    r"|\bwrite\b[^.!?\n]{0,60}\b(?:story|poem|novel|scene|dialogue|song"
    r"|(?<!python )(?<!shell )(?<!bash )(?<!sql )(?<!build )(?<!node )(?<!ruby )script)\b.*"
    r"|\b(?:check|fix|improve|edit|correct|read|review|polish|translate|summari[sz]e|rewrite"
    r"|rephrase|analy[sz]e)\b[^.!?\n]{0,40}\b(?:this|these|the following|below|my)\b"
    rf"[^.!?\n]{{0,40}}\b{_TEXT}.*"
    rf"|\bwrite\b[^.!?\n]{{0,60}}\b(?!notes?\b){_TEXT}[^.!?\n]{{0,40}}:.*"
    rf"|\bhere(?:'s| is| are)\b[^.!?\n]{{0,60}}\b{_TEXT}[^.!?\n]{{0,40}}(?:[:\n]).*"
    r"|\b(?:repeat|say (?:it|this|that)?) ?after me\b.*"
    r"|^[ \t]*(?:dear\b[^\n]{0,60}\n|(?:subject|from):|to whom it may concern).*",
    re.DOTALL | re.MULTILINE,
)
_LONG_QUOTE: Final = re.compile(r"\"[^\"\s]+(?:\s+[^\"\s]+){3,}\"")
_PLAY: Final = re.compile(
    r"(?im)\b(?:role-?play|let's (?:play|pretend)|(?:act|behave|respond|answer) as(?: if|:)? "
    r"(?:you|an?|the|my)\b|pretend\b|in (?:this|the) (?:scenario|role|game|story|scene|sketch)\b"
    r"|imagine (?:that|you|we|I)\b|hypothetical)"
    r"|^you are an? (?!(?:\w+ )?(?:great|good|star|hero|genius|lifesaver|angel|gem|legend|treasure"
    r"|true|real|wonderful|amazing|big|huge|friend|champ|marvel)\b)"
)
_NO_PLAY: Final = re.compile(
    r"(?i)\b(?:(?:stop|end|enough|done|over|out)\b[^.!?\n]{0,30}\b(?:role-?play\w*|game|pretending"
    r"|character|playing|scenario)|(?:game|role-?play|scenario) (?:is )?(?:over|done)"
    r"|back to reality|(?:seriously|for real),? now)\b"
)


def spoken(text: str) -> str:
    """Return a text without code, quotations, pasted logs and letters, and texts to work on."""
    plain = _CODE.sub(" ", text)
    if _CODE_LINE.search(plain):
        plain = _OF_CODE.sub("", plain)
    told = _SPEAKER.sub("\n", _MATERIAL.sub("\n", _QUOTED_LINE.sub("\n", plain)))
    play = _PLAY.search(told)
    if play:
        told = told[: max(told.rfind(end, 0, play.start()) for end in ".!?\n") + 1]
    return _LONG_QUOTE.sub(" ", told)


def begins_play(text: str) -> bool:
    """Return whether a message begins a game of roles, in which statements are not meant."""
    return re.search(r"(?i)\brole-?play|\blet's (?:play|pretend)\b", text) is not None


def ends_play(text: str) -> bool:
    """Return whether a message ends such a game."""
    return _NO_PLAY.search(text) is not None
