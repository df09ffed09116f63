"""The speaker that a question means by "I" or "you"; pure.

In a chat of one user with an assistant, a question is about what the user said, as "What did I say
about tea?" and "Which tea fits my taste?" are. Only one such as "Which film did you recommend?"
asks for what the assistant said; "Can you recommend a film?" is a request. Among several people it
is unknown who asks, so that nobody is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal

from locus_memory._internal.lazy import compiled_later

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
_SUBJECTS: Final[dict[str, Person]] = {
    **dict.fromkeys(_ASKER_WORDS.split(), "asker"),
    **dict.fromkeys(_ASKED_WORDS.split(), "asked"),
}
_OWNERS: Final[dict[str, Person]] = {
    **dict.fromkeys(_OWN_WORDS.split(), "asker"),
    **dict.fromkeys(_THEIR_WORDS.split(), "asked"),
}

# What is asked of somebody now, as in "can you tell me where I live?" and "which tea would you
# recommend?", does not ask for what was said.
_REQUEST: Final = compiled_later(
    re.compile,
    r"\b(?:do|can|could|would|will|should|might)\s+you\b"
    r"|\byou(?:\s+(?:can|could|would|will|should|might|think)\b|['’](?:d|ll)\b)"  # noqa: RUF001
    r"|\b(?:wei(?:ß|ss)t|kannst|könntest|würdest|erinnerst)\s+du\b"
    r"|\b(?:sais|peux|pourrais|souviens)[\s-]tu\b|\btu\s+(?:te\s+souviens|sais|peux)\b"
    r"|(?:能不能|能否|可以|能|请|麻烦)\s*[你您]"
    r"|[你您](?:还|也)?(?:能|可以|会|建议|觉得|认为|知道|记得|告诉我(?!过))",
    re.IGNORECASE,
)
_SENTENCE_END: Final = compiled_later(re.compile, r"[!?\n؟।。！？]+|(?<!\d)\.(?=\s)")  # noqa: RUF001 - of other scripts
# No sign within a number or a time ends a clause.
_CLAUSE_END: Final = compiled_later(re.compile, r"[;،؛、，：；]|[,:](?!\d)")  # noqa: RUF001 - of other scripts
_PRONOUN: Final = compiled_later(
    re.compile,
    r"わたし|ぼく|あなた|[我你您私僕俺君]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+[\u0900-\u097f]*",
)


def is_question(text: str) -> bool:
    """Whether a text ends in a question mark of any script."""
    return text.rstrip(_CLOSING)[-1:] in _ASKING


def person_of(text: str) -> Person | None:
    """Return whom a question means: the first "I" or "you" of the last clause that has one.

    So "I asked you about tea, what did you say?" means the one who is asked. Only the last sentence
    that has such a word, or else "my" or "your", is looked at. Requests, such as "do you remember",
    do not count.
    """
    for sentence in reversed(_SENTENCE_END.split(_REQUEST.sub(" ", text))):
        clauses = reversed(_CLAUSE_END.split(sentence.casefold()))
        words = [word for each in clauses for word in _PRONOUN.findall(each)]
        # A subject tells more than an owner: "What did you say about my cat?"
        for persons in (_SUBJECTS, _OWNERS):
            known: list[Person] = [persons[word] for word in words if word in persons]
            if known:
                return known[0]
    return None


def meant(person: Person | None, known: Collection[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    """Return the speakers whom a question means.

    Args:
        person: The person of the question; `None`, as for a question without one, is the asker.
        known: The speakers of the candidates, each with the role if it is known.

    Returns:
        The assistants, or the one user beside them; empty if there is no assistant, or if several
        users may be asking.
    """
    assistants = frozenset(
        each for each in known if any(name.strip().casefold() in _ASSISTANTS for name in each)
    )
    if not assistants or person == "asked":
        return assistants
    users = frozenset(each for each in known if each and each not in assistants)
    return users if len({each[0] for each in users}) == 1 else frozenset()
