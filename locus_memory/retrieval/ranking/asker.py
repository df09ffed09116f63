"""The speaker that a question means by "I" or "you"; pure.

In a chat of one user with an assistant, "What did I say about tea?" asks for a turn of the user,
and "Which film did you recommend?" for one of the assistant. Among several people it is unknown
who asks, so that these words mean nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal

__all__ = ["Person", "is_question", "meant", "person_of"]

Person = Literal["asker", "asked"]
"""The one who asks, or the one who is asked."""

# No "ai" alone, which is also a name.
_ASSISTANTS: Final = frozenset(
    ("assistant", "ai assistant", "bot", "chatbot", "model", "asistente", "assistent", "助手")
)

_ASKING: Final = frozenset("?？؟")  # noqa: RUF001 - question marks of other scripts
_CLOSING: Final = " \t\n\r\"'”’»)]"  # noqa: RUF001 - quotation marks

# English, German, French, Spanish, Italian, Portuguese, Chinese, Japanese, Arabic, Hindi.
_ASKER_WORDS: Final = "i ich je j yo io eu 我 私 僕 俺 わたし ぼく أنا मैं मैंने मुझे"
_ASKED_WORDS: Final = "you du tu usted ustedes vous 你 您 あなた 君 أنت तुम तुमने आप आपने"
_OWN_WORDS: Final = """
my mine our mein meine meinen meinem meiner meines unser mon ma mes notre mi mis mío mía nuestro
nuestra mio mia meu minha मेरा मेरी मेरे
"""
_THEIR_WORDS: Final = """
your yours dein deine deinen deinem deiner deines ton ta tes votre vos आपका आपकी तुम्हारा
"""


def _persons(asker: str, asked: str) -> dict[str, Person]:
    """Return whom each word means."""
    told: tuple[tuple[Person, str], ...] = (("asker", asker), ("asked", asked))
    return {word: person for person, words in told for word in words.split()}


# A subject tells more than an owner: "What did you say about my cat?"
_TELLING: Final = (
    _persons(_ASKER_WORDS, _ASKED_WORDS),
    _persons(_OWN_WORDS, _THEIR_WORDS),
)

# A request to the assistant before the question, as in "can you tell me where I live?".
_REQUEST: Final = re.compile(
    r"\b(?:do|can|could|would|will)\s+you\s+(?:please\s+|still\s+)?"
    r"(?:remember|recall|know|tell|remind|help|find|check|list|give|summari[sz]e)\b"
    r"|\b(?:wei(?:ß|ss)t|kannst|könntest|erinnerst)\s+du\b"
    r"|\b(?:sais|peux|pourrais|souviens)[\s-]tu\b|\btu\s+(?:te\s+souviens|sais|peux)\b"
    r"|[你您](?:还|能)?(?:记得|知道|能告诉|可以告诉|告诉我)(?!过)",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[!?\n؟।。！？]+|(?<!\d)\.(?=\s)")  # noqa: RUF001 - of other scripts
# The clauses of a question, and the conjunctions that begin one which only says when or why.
_CLAUSE_END: Final = re.compile(r"[.,;:!?\n،؛؟।、。！，：；？]+")  # noqa: RUF001 - of other scripts
# Signs that end no clause: within a number or a time, and after a title, an initial or "e.g".
_NO_END: Final = re.compile(
    r"(?<=\d)[.,:](?=\d)|\b(?i:Dr|Dra|Mr|Mrs|Ms|Prof|Sr|Sra|Hr|Fr|Nr|St|vs|bzw|ca)\."
    r"|\b[A-HJ-Z]\.|\b[a-hj-z]\.(?=\s*(?:[a-z]|[A-Z]\.))"
)
_ASIDE: Final = re.compile(
    r"\s*(?:when|while|after|before|if|since|because|although|als|wenn|nachdem|bevor|weil|obwohl"
    r"|quand|lorsque|après|avant|si|parce|cuando|después|antes|porque|quando|dopo|prima|depois)\b"
    r"|\s*(?:当|如果|因为|虽然)",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(
    r"わたし|ぼく|あなた|[我你您私僕俺君]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+[\u0900-\u097f]*"
)


def is_question(text: str) -> bool:
    """Whether a text ends in a question mark of any script."""
    return text.rstrip(_CLOSING)[-1:] in _ASKING


def person_of(text: str) -> Person | None:
    """Return whom a question means: the first "I" or "you", or else the first "my" or "your".

    The last sentence that has such a word decides, as in "Thank you! Where is my cat?". In it, the
    last clause decides, as in "I asked you about tea, what did you say?". Clauses such as "when I
    asked you" count only if there is no other. Requests to the assistant, such as "do you
    remember", do not count.
    """
    sentences = _SENTENCE_END.split(_NO_END.sub(" ", _REQUEST.sub(" ", text)))
    for sentence in reversed(sentences):
        person = _person_of_sentence(sentence)
        if person is not None:
            return person
    return None


def _person_of_sentence(sentence: str) -> Person | None:
    clauses = _CLAUSE_END.split(sentence)
    clauses.reverse()
    asides = [clause for clause in clauses if _ASIDE.match(clause)]
    told = [clause for clause in clauses if clause not in asides]
    for part in (told, asides):
        words = [match[0].casefold() for each in part for match in _PRONOUN.finditer(each)]
        for persons in _TELLING:
            known: list[Person] = [persons[word] for word in words if word in persons]
            if known:
                return known[0]
    return None


def meant(person: Person | None, known: Collection[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    """Return the speakers whom a question means.

    Args:
        person: The person of the question.
        known: The speakers of the candidates, each with the role if it is known.

    Returns:
        The assistants, or the one user beside them; empty if there is no assistant, or if several
        users may be asking.
    """
    if person is None:
        return frozenset()
    assistants = frozenset(each for each in known if _is_assistant(each))
    if not assistants or person == "asked":
        return assistants
    users = frozenset(each for each in known if each and each not in assistants)
    return users if len({each[0] for each in users}) == 1 else frozenset()


def _is_assistant(speaker: tuple[str, ...]) -> bool:
    return any(name.strip().casefold() in _ASSISTANTS for name in speaker)
