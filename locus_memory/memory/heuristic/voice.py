"""Changing the person of a text: from the user's own words to words about the user."""

from __future__ import annotations

import re
from typing import Final

from locus_memory.memory.heuristic.clauses import Sentence, without_lead

__all__ = ["about_user", "as_user", "has_verb", "is_past", "retold", "third_person"]

_THIRD: Final = {
    "i": "they",
    "i'm": "they are",
    "i've": "they have",
    "i'd": "they would",
    "i'll": "they will",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
    "we": "they",
    "we're": "they are",
    "we've": "they have",
    "we'd": "they would",
    "we'll": "they will",
    "us": "them",
    "ourselves": "themselves",
    "our": "their",
    "ours": "theirs",
    "am": "are",
}
_USER: Final = {
    "i": "the user",
    "i'm": "the user is",
    "i've": "the user has",
    "i'd": "the user would",
    "i'll": "the user will",
    "me": "the user",
    "my": "the user's",
    "mine": "the user's",
    "myself": "themselves",
    "we": "the user",
    "we're": "the user is",
    "we've": "the user has",
    "we'd": "the user would",
    "we'll": "the user will",
    "us": "the user",
    "our": "the user's",
    "ours": "the user's",
    "ourselves": "themselves",
}
_OURS: Final = frozenset(
    {"we", "we're", "we've", "we'd", "we'll", "us", "our", "ours", "ourselves"}
)
_WORD: Final = re.compile(r"[\w']+")
_ADVERBS: Final = (
    r"(?:(?:always|never|often|usually|really|also|still|just|only|sometimes|actually|already"
    r"|finally|probably|recently|currently|now|then|ever|almost|both|all|even|\w{3,20}ly) ){0,2}"
)
_SUBJECT: Final = re.compile(rf"(?i)(?:\bI|^we) (?P<adverbs>{_ADVERBS})(?P<verb>[a-z']+)")
_IRREGULAR: Final = {
    "am": "is",
    "are": "is",
    "were": "was",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    "aren't": "isn't",
    "weren't": "wasn't",
    "go": "goes",
}
# Verbs that are the same in the third person: modal ones, and irregular ones of the past.
_SAME: Final = frozenset(
    """
    knelt leapt crept swept wept slid sank bit bent blew bred clung dug fed fled forgave froze hung
    leant overcame sought shone shrank sped spilt spun sprang stung strode swung wound withdrew
    overslept laid mistook rebuilt rewrote undid redid
    can can't cannot could couldn't will won't would wouldn't shall shan't should shouldn't
    may might must mustn't was wasn't had hadn't did didn't said told sent gave went made got
    wrote put bought sold came saw took thought knew found left lost met paid ran read let set
    cut hit kept felt held heard led lent built began broke brought caught chose drew drank
    drove ate fell fought flew forgot grew hid lay lit rode rang rose sang shook shot slept
    spoke spent stood stole swam taught tore threw understood woke wore won became spread cost
    hurt quit split shut dealt dreamt meant learnt burnt swore stuck struck has is bet
    """.split()  # noqa: SIM905 - a table of words
)
_PLURAL_S: Final = ("s", "x", "z", "ch", "sh", "o")
_SWAPPED: Final = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "you": "me",
    "you're": "I'm",
    "you've": "I've",
    "you'd": "I'd",
    "you'll": "I'll",
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
}
# Where "you" is a subject: at the start, and after what joins clauses.
_YOU: Final = re.compile(
    r"(?i)(?:^|(?<=, )|\b(?:that|if|when|whenever|because|and|but|so|while|until|unless|what|how"
    r"|where|before|after|as) )you(?= (?!$))"
)
_MARK = "\x00"
_HOW: Final = re.compile(
    r"(?i)(?P<how>how|where|when|what|which \w+) (?:do|can|should|could|would|must) (?:I|we|one)"
    r" (?P<rest>.+)$"
)
_IS: Final = re.compile(
    r"(?i)(?P<what>what|who|where|when|why|how \w+|which \w+) (?P<is>is|are|was|were)"
    r" (?P<rest>(?:the |an? |my |our )?[\w' -]{2,60})$"
)
_REQUEST: Final = re.compile(
    r"(?i)(?:(?:can|could|would|will) you (?:please )?|please )(?P<rest>\w+ .+)$"
)
_IMPERATIVE: Final = re.compile(
    r"(?i)(?:write|make|fix|explain|find|give|show|help|create|summari[sz]e|translate|add|tell"
    r"|compare|plan|suggest|draft|check|review|list|book|remind|send|set|build|implement|refactor"
    r"|debug|generate|convert|describe|recommend|put|change|remove|update|run|rename|delete|use"
    r"|keep|stop|call|answer|propose|design|calculate|look up)\b(?! (?:is|are|was|were)\b)"
)
_WHETHER: Final = re.compile(r"(?i)(?:should|can|could|may) (?:I|we) (?P<rest>.+)$")
_ORDINARY: Final = re.compile(
    r"(?:The|A|An|These|Those|My|Our|It|He|She|They|There|Here|In|On|At|For|With|From|To"
    r"|After|Before|When|While|Two|Three|Four|Five|Some|All|Most|Many|Every|Each|No|Not|One)\b"
)
_VERB: Final = re.compile(
    r"(?i)\b(?:is|are|was|were|has|have|had|will|would|can|could|must|should|may|does|do|did"
    r"|isn't|can't|won't|comes|goes|needs|wants|takes|gave|\w{3,}ed)\b"
)
_SINGULAR: Final = {"do": "does", "are": "is", "have": "has", "were": "was", "don't": "doesn't"}
_TO_ASSISTANT: Final = re.compile(r"(?i)\b(do|are|have|were|don't) you\b")
_ASSISTANT: Final = {
    "you": "the assistant",
    "your": "the assistant's",
    "you're": "the assistant is",
    "you've": "the assistant has",
    "you'd": "the assistant would",
    "you'll": "the assistant will",
    "yours": "the assistant's",
    "yourself": "itself",
}


def third_person(text: str) -> str:
    """Return a user's statement about themselves with "they", "them" and "their"."""
    return _WORD.sub(_of_third, text)


def about_user(text: str) -> str:
    """Return a user's statement with "the user" for the speaker, so that it stands alone.

    "We" and "our" are "the user" only at the start of the text, else "they" and "their".
    """

    def conjugated(found: re.Match[str]) -> str:
        return f"the user {found['adverbs']}{_singular(found['verb'])}"

    def told(found: re.Match[str]) -> str:
        word = found.group().lower()
        words = _THIRD if word in _OURS and found.start() else _USER
        return words.get(word, found.group())

    return _WORD.sub(told, _SUBJECT.sub(conjugated, text))


def as_user(text: str) -> str:
    """Return an assistant's sentence about the user as the user says it: "You are" is "I am"."""
    marked = _YOU.sub(lambda found: found.group()[:-3] + _MARK, text.replace(_MARK, ""))
    swapped = _replaced(marked, _SWAPPED).replace(_MARK, "I")
    return re.sub(r"\bI are\b", "I am", swapped)


def has_verb(text: str) -> bool:
    """Return whether a text has a word that is surely a verb."""
    return _VERB.search(text) is not None


def is_past(word: str) -> bool:
    """Return whether a word is a modal verb, or an irregular one in the past."""
    return word in _SAME


def _of_third(found: re.Match[str]) -> str:
    word, before = found.group(), found.string[: found.start()].rstrip()
    is_hour = word.lower() == "am" and before[-1:].isdigit()
    return word if is_hour else _THIRD.get(word.lower(), word)


def _replaced(text: str, words: dict[str, str]) -> str:
    return _WORD.sub(lambda found: words.get(found.group().lower(), found.group()), text)


def _singular(verb: str) -> str:
    """Return the form of a verb after "the user", of its form after "I"."""
    low = verb.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _SAME or (low.endswith("ed") and not low.endswith("eed")):
        return verb
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return f"{verb[:-1]}ies"
    return verb + ("es" if low.endswith(_PLURAL_S) else "s")


def retold(sentence: Sentence) -> str:
    """Return a sentence of the user as a sentence about the user."""
    text = without_lead(sentence.text)
    told = _asked(text) if sentence.asks else _stated(text)
    told = _TO_ASSISTANT.sub(lambda found: _SINGULAR[found[1].lower()] + " you", told)
    told = _WORD.sub(lambda found: _ASSISTANT.get(found.group().lower(), found.group()), told)
    told = " ".join(told.split())
    return f"{told[:1].upper()}{told[1:].rstrip(' .!?,;:')}."


def _asked(text: str) -> str:
    text = text.rstrip("?! ")
    if found := _HOW.match(text):
        return f"The user asked {found['how'].lower()} to {about_user(found['rest'])}"
    if found := _IS.match(text):
        rest = about_user(found["rest"])
        return f"The user asked {found['what'].lower()} {rest} {found['is'].lower()}"
    if found := _REQUEST.match(text):
        return f"The user asked the assistant to {about_user(_lowered(found['rest']))}"
    if found := _WHETHER.match(text):
        return f"The user asked whether to {about_user(found['rest'])}"
    return f"The user asked: {about_user(text)}?"


def _stated(text: str) -> str:
    if found := _REQUEST.match(text):
        return f"The user asked the assistant to {about_user(_lowered(found['rest']))}"
    if _IMPERATIVE.match(text):
        return f"The user asked the assistant to {about_user(_lowered(text))}"
    told = about_user(text)
    if told.lower().startswith("the user"):
        return told
    if _ORDINARY.match(told) and has_verb(told.split(",")[0]):
        return f"The user said that {_lowered(told)}"
    return f"The user said: {told}"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
