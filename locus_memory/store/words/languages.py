"""The language of a text, and the words that say nothing about its subject.

A language is recognised by its function words. Words that are also English words with a meaning of
their own, such as the German "war", only count as function words once the language is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

__all__ = ["STOP_WORDS", "is_english", "is_stop_word", "language_of"]

# Articles and pronouns, question words, auxiliaries with the rests of their contractions,
# conjunctions, prepositions, and adverbs that name no subject.
_ENGLISH: Final = """
a an the i me my mine myself we us our ours you your yours he him his she her hers it its
they them their theirs this that these those there here some any each both all such
what which who whom whose when where why how
am is are was were be been being do does did doing done has have had having can could
will would shall should might must s t d ll m re ve don didn doesn isn wasn aren weren
hasn haven hadn couldn wouldn shouldn won
and or but nor not no if then than so as at by for from in into of on onto to with without
about between through during before after above below again also just only very too while
because until
"""

STOP_WORDS: Final = frozenset(_ENGLISH.split())
"""Words without information about the subject of a query: function and question words."""

# Folded, as in text search. First those that tell the language, then those that do not.
_OTHERS: Final = {
    "german": (
        """ich du er wir ihr mein meine meinen meinem meiner dein deine seine unser der das dem ein
        eine einen einem einer und oder aber nicht kein keine ist sind wurde wurden habe haben
        hatte hatten kann wird auf bei nach von zu zum zur fur uber unter wegen wenn weil dass
        wie wann wo wohin woher wer wen wem warum wieso welche welcher welches welchen auch noch
        nur schon sehr sich mich mir dich dir uns""",
        "sie es die des den war waren hat bin bist an am im in als so um aus was man mit sein",
    ),
    "french": (
        """je il elle nous vous ils elles mes ses notre votre leur leurs le les une du et ou mais
        ne pas est sont etait etaient avons avez ont avait dans avec chez vers quand quel quelle
        quels quelles qui que quoi pourquoi combien cette ces aux""",
        """moi te tu se en y au de par sans mon ma ton son sa ta tes la un des l d j c s n m qu
        comment as a plus tres sur pour ce ai""",
    ),
    "spanish": (
        """yo el ella nosotros usted ustedes ellos mi mis sus nuestro nuestra los las del una unos
        unas pero estan fue eran tengo tiene tienen habia por cuando donde que quien cual cuales
        cuanto cuanta porque muy tambien""",
        """la lo un o u y no si en de a al se le les me te he ha has han era soy sin mas ya es son
        esta su tu tus hay para como con""",
    ),
    "italian": (
        """lui lei noi voi loro mio miei tuo suo gli sono erano abbiamo hanno nel nella sul sulla
        che chi cosa quando dove perche quale quali quanto anche molto della dello delle dei
        degli""",
        """il la le lo un uno una o e ed in a al di da del su se si mi ti ci io mia tua sua come ho
        ha hai era non per con ma piu""",
    ),
    "portuguese": (
        """eu ele ela eles meu minha meus minhas uma nao sao foi eram tenho tem tinha em quem qual
        quais quando onde porque quanto muito tambem""",
        """o a e os as um no na nos nas do da dos das de se me te ao com como mais mas ja era esta
        isso por para que seu sua teu tua""",
    ),
    "dutch": (
        """ik jij hij zij wij jullie mijn jouw zijn onze het een niet geen heb heeft hebben wordt
        bij naar wanneer waar wie waarom welke ook nog maar zeer zich""",
        """je me we is was er die dat de en in aan om als of wat van te voor met uit over op had
        hoe haar kan""",
    ),
}
_MARKERS: Final = {name: frozenset(told.split()) for name, (told, _) in _OTHERS.items()}
_ANY_MARKER: Final = frozenset().union(*_MARKERS.values())
_STOP_WORDS: Final = {
    name: frozenset(f"{told} {other}".split()) for name, (told, other) in _OTHERS.items()
}

_CHINESE: Final = frozenset(
    "的了吗呢吧啊呀我你您他她它们们是在有和与也都就还这那哪什么么谁几个些过给对为把被跟从到很"
    "说想要会能可以没不一上下里时候怎样曾经多少之其此于而但或"
)
_SHORT: Final = 2
_HIRAGANA: Final = re.compile("[\u3041-\u309f]")


def language_of(words: Iterable[str]) -> str | None:
    """Return the language of folded words by its name in Snowball; `None`: English, or unknown.

    It is the language with the most function words, if it has more than English. Words that both
    have, such as "was", count for neither. A single one of two letters is not enough: "ER" is also
    a place.
    """
    found = _ANY_MARKER.intersection(words)
    if not found:
        return None
    return _language_of(frozenset(found), STOP_WORDS.intersection(words))


@lru_cache(maxsize=4096)
def _language_of(found: frozenset[str], english: frozenset[str]) -> str | None:
    counts = {name: len(markers & found) for name, markers in _MARKERS.items()}
    best = max(counts, key=counts.__getitem__)
    told = _MARKERS[best] & found
    is_clear = len(told) > 1 or any(len(word) > _SHORT for word in told)
    return best if is_clear and len(told) > len(english - _STOP_WORDS[best]) else None


def is_english(words: Sequence[str]) -> bool:
    """Whether enough of the folded words of a text are function words, and not a single one.

    In English prose they are about half of all words, in the notes of an engineer a quarter. Of
    other languages, a tenth look the same.
    """
    found = sum(map(STOP_WORDS.__contains__, words))
    return found > 1 and 4 * found >= len(words)


def is_stop_word(word: str, language: str | None) -> bool:
    """Whether a folded word of a query says nothing about its subject.

    Args:
        word: The word; of Chinese and Japanese, one or two characters.
        language: The result of `language_of`.
    """
    if word.isascii():
        return word in STOP_WORDS or (language is not None and word in _STOP_WORDS[language])
    if len(word) == 1 and _HIRAGANA.match(word):
        return True
    return _CHINESE.issuperset(word)
