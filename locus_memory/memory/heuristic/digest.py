"""A short account of a conversation by rules, for agents without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.conversation.roles import role_of
from locus_memory.memory.heuristic.clauses import Sentence, without_lead
from locus_memory.memory.heuristic.confirming import agreed
from locus_memory.memory.heuristic.corrections import ORDERS
from locus_memory.memory.heuristic.heard import (
    answer_before,
    heard,
    is_joke,
    is_secret,
    text_of,
)
from locus_memory.memory.heuristic.standing import is_order, stands
from locus_memory.memory.heuristic.themes import content_words, names_of, themes
from locus_memory.memory.heuristic.voice import about_user, has_verb, retold
from locus_memory.messages import Message

__all__ = ["Digest", "digest"]

_MOST_TOPICS, _MOST_ENTITIES, _MOST_ITEMS = 8, 12, 10
_MOST_SENTENCES, _LONGEST_SUMMARY, _LONGEST_SENTENCE = 3, 600, 240
# Sentences that are read closely; looking for secrets takes a millisecond each.
_MOST_READ = 100
_LONGEST_ANSWER = 2000
_ENOUGH = 1.5
# A question with fewer words that name something is not worth retelling.
_FEW = 3
# The Han and Kana characters that say about as much as a word.
_CHARACTERS = 4

_DECIDED: Final = re.compile(
    r"(?i)(?:(?:I|we)(?:'ve| have)? (?:now |just |finally |also )?(?:decided|agreed|settled|opted"
    r"|chosen|chose|picked|went with)\b"
    r"|(?:I|we)(?:'ll| will) (?:go with|stick (?:with|to)|use|take (?!an? (?:look|break|walk|nap"
    r"|rest|bath|shower|moment|while)\b|care\b|your\b|notes?\b|time\b|part\b|place\b))"
    r"|let's (?:go with|use|take|stick (?:with|to)|do)\b"
    r"|(?:the|our|my) (?:plan|decision) is\b"
    r"|(?:the|our|my) [\w ]{2,30} (?:has|have) (?:decided|agreed)\b)"
    r"(?!(?:.* )?(?:it|that|this|so)[.!]*$)"
)
_TASK: Final = re.compile(
    r"(?i)(?:I|we) (?:still |also |really |just )?(?:need to|have to|must|ought to|should)"
    r" (?!be\b|say\b|admit\b|have (?:been|known)\b|think\b)\w+ "
    r"|(?:I|we)(?:'ll| will|'m going to| am going to|'re going to| are going to) (?:call|email|send"
    r"|write|book|buy|order|pay|ask|check|bring|finish|fix|submit|test|review|prepare|schedule|meet"
    r"|update|deploy|visit|return|cancel|renew|register|sign|collect|pick up|talk to|look up|set up"
    r"|clean|move|migrate|add|remove|replace|measure|read|install)\b"
    r"|(?:(?:can|could|would) you (?:please )?|please )?remind me (?:to|about|of)\b"
    r"|(?:please )?don't (?:let me )?forget to\b"
    r"|(?:todo|to do|next steps?|action items?)(?: is| are)?: ?"
)
_TASK_LEAD: Final = re.compile(
    r"(?i)(?:todo|to do|next steps?|action items?)(?: is| are)?: ?"
    r"|(?:can|could|would) you (?:please )?|please "
)
_TALK: Final = re.compile(
    r"(?i)(?:(?:hi|hello|hey|thanks|thank you|bye|goodbye|good (?:morning|evening|night|afternoon"
    r"|luck)|see you|cheers|great|nice|cool|ok(?:ay)?|sure|yes|no|lol|haha+|wow|awesome|perfect"
    r"|congratulations|you're welcome|sorry|how are (?:you|things)|how is it going|how's it going"
    r"|what's up|and you|what about you|how about you|i'm (?:fine|good|well|ok(?:ay)?|great|tired)"
    r"|not (?:much|bad)|same here|you too|me too|take care|have a (?:nice|good|great) [\w ]+"
    r"|nice (?:weather|day)[\w ]*|tell me a(?:nother)? joke|are you (?:there|ok(?:ay)?|a (?:bot"
    r"|robot|human))|who are you|what can you do|nice to meet you)\b[\s,.!?'\u2026-]*)+"
    r"(?:(?:very|so) much|again|there|everyone|today|then|for (?:the |your )?\w+)?[\s.!?]*"
)
_HAN: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LOOSE: Final = re.compile(r"(?i)(?:it|that|this|they|those|these|he|she|then|which|so)\b")


@dataclass(frozen=True, slots=True)
class Digest:
    """A short account of a conversation.

    Attributes:
        summary: One to three sentences about the user, of at most 600 characters.
        topics: The themes, the most frequent ones first; at most 8.
        entities: Names that the user mentions, in the order of their first mention; at most 12.
        decisions: Sentences on what is decided; at most 10.
        action_items: Sentences on what is to be done; at most 10.
        salience: How much is worth remembering, from 0 to 1.
    """

    summary: str
    topics: tuple[str, ...]
    entities: tuple[str, ...]
    decisions: tuple[str, ...]
    action_items: tuple[str, ...]
    salience: float


def digest(messages: Sequence[Message]) -> Digest | None:
    """Return an account of a conversation in the user's own sentences, or `None` for small talk.

    Only the user's messages count, and what they agree to. Code, quotations, pasted texts, jokes,
    and sentences that hold or mention a secret are left out. Nothing is read but the messages,
    and equal messages give an equal digest. The time grows with the number of messages; of a
    message, the first 4,000 characters are read.

    Args:
        messages: The messages, oldest first.
    """
    told = _told(messages)
    if not told:
        return None
    scored = [(_score(sentence), -place, sentence) for place, sentence in enumerate(told)]
    decisions = [*_decisions(told), *_agreements(messages)]
    tasks = _tasks(told)
    ranked = sorted(scored, key=lambda each: each[:2], reverse=True)
    chosen = [each for each in ranked[:_MOST_SENTENCES] if each[0] >= _ENOUGH]
    if not chosen:
        return None
    best = [each[2] for each in sorted(chosen, key=lambda each: -each[1])]
    texts = [sentence.text for sentence in told]
    entities = names_of(texts, _answers(messages))
    return Digest(
        summary=_summary(best),
        topics=themes(texts, [each.text for each in best], entities)[:_MOST_TOPICS],
        entities=entities[:_MOST_ENTITIES],
        decisions=_distinct(decisions),
        action_items=_distinct(tasks),
        salience=_salience(told, len(decisions), len(tasks), len(entities)),
    )


def _answers(messages: Sequence[Any]) -> list[str]:
    """Return the beginnings of the assistant's messages."""
    said = (text_of(each) for each in messages if role_of(each) == "assistant")
    return [text[:_LONGEST_ANSWER] for text in said]


def _told(messages: Sequence[Any]) -> list[Sentence]:
    """Return the sentences that may be retold, in order: of many, those that say most."""
    said = [each for told in heard(messages) for each in told if each.before < 0]
    places = [
        place
        for place, sentence in enumerate(said)
        if not _TALK.fullmatch(sentence.text) and not is_joke(said, place)
    ]
    if len(places) > _MOST_READ:
        most = sorted(places, key=lambda place: (-_score(said[place]), place))[:_MOST_READ]
        places = sorted(most)
    return [said[place] for place in places if not is_secret(said, place)]


def _score(sentence: Sentence) -> float:
    """Return how much a sentence says; 2 and more is worth retelling."""
    text = without_lead(sentence.text)
    words = max(len(set(content_words(text))), len(_HAN.findall(text)) // _CHARACTERS)
    score = 0.4 * min(words, 6)
    score += 0.5 * bool(names_of([sentence.text])) + 0.4 * bool(re.search(r"\d", text))
    score += 0.4 * bool(re.match(r"(?i)(?:I|I'm|I've|we|we're|we've|my|our)\b", text))
    score += 1.5 * bool(_DECIDED.match(text) or _TASK.match(text)) + _is_rule(text)
    score -= 0.5 * (
        not sentence.asks and re.search(r"(?i)\b(?:I|we)\b", text) is None and not has_verb(text)
    )
    score -= 0.8 * (sentence.unsure and not sentence.asks)
    score -= 0.8 * bool(_LOOSE.match(text)) + 0.3 * bool(re.search(r"(?i)\byou(?:r|'re)?\b", text))
    return score - 0.5 * (sentence.asks and words < _FEW)


def _is_rule(text: str) -> bool:
    return any(not rule.reply and rule.pattern.match(text) for rule in ORDERS)


def _summary(chosen: Sequence[Sentence]) -> str:
    """Return the sentences in the third person, as many as fit."""
    summary = ""
    for sentence in chosen:
        line = _cut(retold(sentence))
        if len(summary) + len(line) < _LONGEST_SUMMARY:
            summary = f"{summary} {line}".strip()
    return summary


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_SENTENCE:
        return line
    return f"{line[:_LONGEST_SENTENCE].rsplit(' ', 1)[0].rstrip(' ,;:')}\u2026"


def _decisions(told: Sequence[Sentence]) -> list[str]:
    return [
        _cut(_line(about_user(text)))
        for sentence in told
        if not sentence.asks
        and not sentence.unsure
        and _DECIDED.match(text := without_lead(sentence.text))
    ]


def _agreements(messages: Sequence[Any]) -> list[str]:
    """Return what the assistant offers and the user accepts."""
    found = []
    for place, told in enumerate(heard(messages)):
        answer = answer_before(messages, place) if told else None
        offer = agreed(told, answer) if answer is not None else None
        if offer and stands(offer) and is_order(offer) and not is_secret(told, 0):
            found.append(_cut(_line(f"The user agreed: {about_user(offer)}")))
    return found


def _tasks(told: Sequence[Sentence]) -> list[str]:
    found = []
    for sentence in told:
        text = without_lead(sentence.text)
        if _TASK.match(text) and not (sentence.unsure and not sentence.asks):
            found.append(_cut(_line(about_user(_TASK_LEAD.sub("", text, count=1)))))
    return found


def _line(text: str) -> str:
    text = text.strip(" .!?")
    return f"{text[:1].upper()}{text[1:]}."


def _distinct(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple({line.casefold(): line for line in reversed(lines)}.values())[::-1][:_MOST_ITEMS]


def _salience(told: Sequence[Sentence], decisions: int, tasks: int, names: int) -> float:
    """Return 0.2, and more for each kind of content that people come back to; at most 1."""
    worth = sum(_score(sentence) >= _ENOUGH for sentence in told)
    rules = sum(_is_rule(without_lead(sentence.text)) for sentence in told)
    parts = (
        0.03 * min(worth, 10),
        0.1 * min(decisions, 2),
        0.08 * min(tasks, 2),
        0.1 * min(rules, 2),
        0.03 * min(names, 4),
    )
    return round(min(1.0, 0.1 + sum(parts)), 2)
