"""The sentences that users say of themselves, and the shapes of the values in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, NamedTuple

from locus_memory._internal.lazy import compiled_later
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.store.words.languages import STOP_WORDS

__all__ = ["LANGUAGE_RULE", "Told", "is_thing", "slot", "stated"]

_LONGEST_SLOT: Final = 80
_LONGEST_ABBREVIATION: Final = 4

_ARTICLE: Final = re.compile(r"^(?:the|a|an|my|our|their|some|any|to) ")
_NO_SLOT: Final = re.compile(r"[^\w'+#-]+")
_LISTED: Final = re.compile(r",? and |, ")
_PARTICLES: Final = frozenset("am bin da de del der di do dos du la le of the upon van von".split())  # noqa: SIM905 - a table of words
# Words that people capitalise, and that are no name of a person, a place or a company.
_ORDINARY: Final = frozenset(
    """
    afraid alone always amazed amazing angry annoyed anonymous asap ashamed awake awesome awful away
    awkward back bad beat beautiful bored boring broke busy calm close cold confused crazy crying
    curious cute danger dangerous dead delighted different difficult disappointed dizzy done drunk
    dying easy embarrassed everywhere evil excited exhausted fat fine forgotten free frustrated
    full fun funny furious glad good great guilty happy hard here hidden home hopeless horrible hot
    hungry hurt idle ill impressed important interested jealous late later lazy lonely long lost
    lovely lucky mad maybe me miserable missing misspelled mine mud naked nervous never nice
    night nobody none nonsense nothing noon nowhere ok okay old online outside paranoid peanuts
    perfect poor proud public ready relaxed rich sad safe scared secret serious shy sick silly
    single sleepy smart sober sorry speechless starving stressed strong stuck stupid sure surprised
    taken terrible terrified thirsty tired today tomorrow tonight trouble truth unemployed unhappy
    unknown unsure upset useless weak weekends weird well wild wonderful work working worried wrong
    yesterday yours anytime dawn dusk everybody everyone food height love money names often peace
    scale speed times monday tuesday wednesday thursday friday saturday sunday mondays fridays
    january february march april may june july august september october november december spring
    summer autumn winter christmas easter
    """.split()  # noqa: SIM905 - the same
) | (STOP_WORDS - {"will", "don"})
# States, programs and worlds of stories that people say they live in or come from.
_NOWHERE: Final = frozenset(
    """
    hope fear denial sin harmony heaven hell paradise limbo utopia dreams misery poverty
    hiding exile chaos bed limbo space earth mars venus jupiter saturn pluto moon sun krypton narnia
    mordor gondor rivendell hogwarts neverland wonderland westeros gotham atlantis asgard tatooine
    excel word powerpoint outlook gmail slack jira confluence notion figma photoshop vim emacs git
    github gitlab docker kubernetes linux windows python javascript java rust terminal minecraft
    reality madness dread science society anticipation hotels airports books trains clothes jeans
    fortnite bliss agony darkness silence luxury squalor ignorance future past
    """.split()  # noqa: SIM905 - the same
)
_ALLERGENS: Final = frozenset(
    """
    nuts nut peanuts peanut walnuts hazelnuts almonds cashews pistachios pecans milk dairy lactose
    eggs egg wheat gluten rye barley oats corn soy soya fish shellfish seafood shrimp shrimps
    prawns crab lobster squid mussels oysters sesame mustard celery lupin carrots apples peaches
    cherries strawberries kiwi kiwis bananas tomatoes avocado avocados mango citrus chocolate
    cinnamon garlic onions alcohol yeast sulfites sulphites histamine msg pollen dust mites mould
    mold grass hay birch ragweed cats cat dogs dog horses feathers fur bees bee wasps wasp stings
    insects latex nickel wool perfume perfumes fragrances penicillin sulfa codeine morphine aspirin
    ibuprofen paracetamol naproxen iodine cortisone insulin anaesthetics antibiotics
    """.split()  # noqa: SIM905 - the same
)
_REMEDY: Final = re.compile(
    r"\w{3,}(?:cillin|mycin|cyclin|cycline|oxacin|profen|caine)|(?>\w{3,}?sulfa)\w*|cef\w{4,}"
)
_DEGREES: Final = frozenset("tree bee wasp insect house dust stings mites contrast dye".split())  # noqa: SIM905 - the same

_PIECE: Final = re.compile("<([A-Z]+)>")
_PIECES: Final = {
    "IM": r"(?:I am|we are)",
    "NAME": r"[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*){0,3}",
    "PLACE": r"(?:the (?=UK|US|United|Netherlands|Philippines|Czech|Bahamas|Maldives|Bronx|Hague"
    r"|UAE|Bay Area))?[^\W\d_][\w'.-]*(?: [^\W\d_][\w'.-]*){0,3}(?:, [^\W\d_][\w'-]*"
    r"(?: [^\W\d_][\w'-]*){0,2})?",
    "ORG": r"[\w'-]+(?: (?:&|[\w'-]+)){0,3}",
    "THINGS": r"[\w-]+(?: [\w-]+)?(?:(?:,? and |, )[\w-]+(?: [\w-]+)?){0,4}",
    "WORDS": r"[\w'-]+(?: [\w'-]+){0,2}",
    "TRADE": r"engineer|developer|programmer|teacher|nurse|doctor|designer|manager|lawyer"
    r"|architect|journalist|scientist|researcher|analyst|accountant|chef|baker|consultant"
    r"|musician|photographer|carpenter|plumber|electrician|mechanic|professor|lecturer|tutor"
    r"|librarian|pharmacist|dentist|surgeon|physician|therapist|psychologist|psychiatrist"
    r"|veterinarian|biologist|chemist|physicist|mathematician|statistician|economist|editor"
    r"|translator|interpreter|freelancer|administrator|technician|farmer|barista|bartender"
    r"|cashier|firefighter|paramedic|police officer|soldier|social worker|midwife|hairdresser"
    r"|student",
    "CALLING": r"<TRADE>|pilot|driver|cook|waiter|waitress|writer|author|artist|painter|singer"
    r"|dancer|actor|actress|gardener|director|producer|coach|trainer|secretary|assistant|intern"
    r"|trader|banker|cleaner|receptionist|salesperson|postman|butcher|tailor|builder",
    "FIELD": r"software|data|web|senior|junior|staff|lead|principal|frontend|backend|front-end"
    r"|back-end|full-stack|machine learning|mechanical|electrical|civil|chemical|product|project"
    r"|graphic|primary school|high school|secondary school|school|kindergarten|maths?|music"
    r"|science|university|medical|research|tax|business|security|systems?|registered|PhD|doctoral",
    "MONTH": r"(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)",
    "DATE": r"(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? <MONTH>(?:,? \d{4})?"
    r"|<MONTH> (?:the )?\d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|\d{4}-\d\d-\d\d"
    r"|\d{1,2}[./]\d{1,2}(?:[./]\d{4})?",
    "KIN": r"wife|husband|partner|spouse|girlfriend|boyfriend|fianc[e\u00e9]e?|mother|mom|mum"
    r"|father|dad",
    "KINS": r"brother|sister|son|daughter|cousin|aunt|uncle|nephew|niece|best friend|grandmother"
    r"|grandfather",
    "PET": r"dog|cat|puppy|kitten|horse|parrot|rabbit|hamster|guinea pig|tortoise|pony",
    "COUNT": r"\d{1,2}|two|three|four|five|six|seven|eight|nine|ten",
    "FOOD": r"(?:red )?meat|pork|beef|chicken|poultry|fish|seafood|shellfish|dairy|milk|cheese"
    r"|eggs|gluten|wheat|nuts|peanuts|sugar|soy|mushrooms|alcohol|coffee|caffeine|wine|beer",
    "CONDITION": r"gluten[- ](?:free|intolerant)|lactose[- ]intolerant|coeliac|celiac|diabetic"
    r"|asthmatic|epileptic|colou?r[- ]?blind|dyslexic|autistic|pregnant",
    "ILLNESS": r"(?:type [12] )?diabetes|asthma|epilepsy|c(?:o)?eliac disease|high blood pressure"
    r"|hypertension|migraines|adhd|arthritis|tinnitus",
    "LANGUAGE": r"English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian"
    r"|Chinese|Mandarin|Cantonese|Japanese|Korean|Arabic|Hebrew|Hindi|Urdu|Bengali|Punjabi|Tamil"
    r"|Telugu|Turkish|Greek|Swedish|Norwegian|Danish|Finnish|Czech|Slovak|Hungarian|Romanian"
    r"|Bulgarian|Serbian|Croatian|Vietnamese|Thai|Indonesian|Malay|Tagalog|Swahili|Persian|Farsi"
    r"|Catalan|Basque|Irish|Welsh|Latin|Esperanto|sign language",
    "HOBBY": r"guitar|piano|violin|cello|drums|flute|clarinet|saxophone|trumpet|ukulele|chess"
    r"|tennis|football|soccer|basketball|baseball|volleyball|rugby|cricket|golf|hockey|badminton"
    r"|squash",
    "SUBJECT": r"medicine|law|physics|chemistry|biology|mathematics|maths|computer science"
    r"|informatics|economics|psychology|philosophy|history|engineering|architecture|music|art"
    r"|literature|linguistics|sociology|business|journalism|geography|political science",
    "KIND": r"colou?r|food|dish|drink|fruit|animal|flower",
    "TITLED": r"language|programming language|band|author|book|film|movie|city",
    "STYLE": r"emojis?|emoticons|(?:bullet )?lists|bullet points|tables|headings|headers|markdown"
    r"|exclamation marks|semicolons|em dashes|jargon|slang|acronyms|abbreviations|footnotes"
    r"|(?:metric|imperial|SI) units|(?:British|American) (?:English|spelling)|celsius|fahrenheit"
    r"|code comments|type hints|mocks",
    "DEED": r"(?:answer|reply|respond|write|speak|talk)(?: to me)? (?:in (?:(?:short|long|full"
    r"|simple|plain|complete|formal|informal) (?:sentences|words|language|<LANGUAGE>)"
    r"|bullet points|prose|<LANGUAGE>)|briefly|concisely|politely|formally)"
    r"|(?:use|include|add) <STYLE>|be (?:brief|concise|polite|formal|informal|direct)"
    r"|keep (?:your |the )?(?:answers|replies|responses|explanations)"
    r" (?:short|brief|concise|simple)"
    r"|cite (?:your )?sources|show your (?:work|steps|sources)|run the (?:tests|linter)"
    r"|explain your (?:reasoning|steps)",
}


class Told(NamedTuple):
    """A fact or a rule that a sentence states.

    Attributes:
        change: The memory to add.
        value: The words of the user that it is about.
    """

    change: MemoryChange
    value: str


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A sentence with a gap, and the templates of what it states.

    Attributes:
        source: The pattern of the whole sentence; the group `x` is the gap, and a name of
            `_PIECES` in angle brackets stands for that piece.
        key: The template of the key.
        content: The template of the content.
        importance: From 0 to 1.
        fits: Whether a value has the shape that it must have.
        each: Whether the gap may have several values.
        type: The type.
    """

    source: str
    key: str
    content: str
    importance: float = 0.5
    fits: Callable[[str], bool] = bool
    each: bool = False
    type: MemoryType = MemoryType.USER


def slot(text: str) -> str:
    """Return the part of a key for a noun phrase: lower case, no article, not too long."""
    lowered = _ARTICLE.sub("", text.casefold().strip()).replace("color", "colour")
    return _NO_SLOT.sub(" ", lowered).strip()[:_LONGEST_SLOT].strip()


def stated(clause: str) -> list[Told]:
    """Return what a clause states, if the table has the whole of it."""
    return [told for phrase in _TABLE for told in _filled(phrase, clause)]


def _filled(phrase: _Phrase, clause: str) -> Iterator[Told]:
    found = _expanded(phrase.source).fullmatch(clause)
    if found is None:
        return
    words = {name: value.strip() for name, value in found.groupdict("").items()}
    values = _LISTED.split(words["x"]) if phrase.each else [words["x"]]
    if not all(map(phrase.fits, values)):
        return
    for value in values:
        filled = {**words, "x": value, "an": "an" if value[:1].lower() in "aeiou" else "a"}
        key = phrase.key.format_map({name: slot(each) for name, each in filled.items()})
        content = " ".join(phrase.content.format_map(filled).split())
        yield Told(
            MemoryChange(
                op="add",
                type=phrase.type,
                key=key,
                content=content,
                importance=phrase.importance,
            ),
            value,
        )


def _is_name(value: str) -> bool:
    """Return whether each word has a capital, as far as its script has any, and none is ordinary.

    In capitals are only abbreviations such as "NYC": a shouted text has no names.
    """
    words = [word for word in re.split(r"[ ,]+", value) if word not in _PARTICLES | {"&", "and"}]
    return (
        bool(words)
        and not any(word[0].islower() for word in words)
        and all(_is_abbreviation(word) for word in words if word.isupper() and len(word) > 1)
        and not any(word.casefold() in _ORDINARY and not _is_abbreviation(word) for word in words)
    )


def _is_abbreviation(word: str) -> bool:
    return word.isupper() and 1 < len(word) <= _LONGEST_ABBREVIATION


def _is_place(value: str) -> bool:
    return _is_name(value) and _NOWHERE.isdisjoint(value.casefold().split())


def _is_allergen(value: str) -> bool:
    *before, thing = value.casefold().split()
    known = thing in _ALLERGENS or thing in _DEGREES or _REMEDY.fullmatch(thing) is not None
    return known and all(word in _DEGREES or word in _ALLERGENS for word in before)


def is_thing(value: str) -> bool:
    """Return whether words name something by themselves: no pronoun, article or question word."""
    return STOP_WORDS.isdisjoint(value.casefold().split())


@cache
def _expanded(source: str) -> re.Pattern[str]:
    while _PIECE.search(source):
        source = _PIECE.sub(lambda found: f"(?:{_PIECES[found[1]]})", source)
    return re.compile(source, re.IGNORECASE)


def _rule(source: str, content: str, key: str = "rule:{x}") -> _Phrase:
    polite = rf"(?:please |just |you (?:should|must) )*{source}(?:,? please)?"
    return _Phrase(polite, key, content, 0.9, type=MemoryType.FEEDBACK)


LANGUAGE_RULE: Final = compiled_later(
    partial(_expanded, r"rule:(?:answer|reply|respond|write|speak|talk)(?: to me)? in <LANGUAGE>")
)
"""The keys of the rules for the language of answers, of which there is one at a time."""

_TABLE: Final = (
    _Phrase(
        r"my (?:first |full )?name is (?P<x><NAME>)",
        "name",
        "The user's name is {x}.",
        0.9,
        _is_name,
    ),
    _Phrase(
        r"(?:(?:please |you (?:can|may) |just )+call me|I go by"
        r"|(?:everyone|everybody|people|my friends) calls? me) (?P<x><NAME>)(?: from now on)?",
        "name",
        "The user's name is {x}.",
        0.9,
        _is_name,
    ),
    _Phrase(r"my pronouns are (?P<x>\w+/\w+(?:/\w+)?)", "pronouns", "The user's pronouns: {x}."),
    _Phrase(r"I am (?P<x>1[3-9]|[2-9]\d)(?: years old)?", "age", "The user is {x} years old."),
    _Phrase(r"my birthday is (?:on )?(?P<x><DATE>)", "birthday", "The user's birthday is {x}."),
    _Phrase(
        r"(?:(?:I|we) (?:live|reside)|<IM> (?:living|based|located)) in (?P<x><PLACE>)",
        "home",
        "The user lives in {x}.",
        0.8,
        _is_place,
    ),
    _Phrase(
        r"(?:I|we) live (?P<at>near|outside) (?P<x><PLACE>)",
        "home",
        "The user lives {at} {x}.",
        0.8,
        _is_place,
    ),
    _Phrase(
        r"(?:<IM> (?:originally )?|I come )from (?P<x><PLACE>)",
        "origin",
        "The user is from {x}.",
        fits=_is_place,
    ),
    _Phrase(
        r"my time ?zone is (?P<x>[A-Z]{2,5}(?:[+-]\d{1,2})?|[A-Z]\w+/[A-Z]\w+)",
        "time zone",
        "The user's time zone is {x}.",
    ),
    _Phrase(
        r"I (?:work|am working) as an? (?P<x>(?:[\w-]+ ){0,3}?(?:<CALLING>))"
        r"(?: (?:at|for) (?-i:[A-Z])[\w'&-]*(?: [\w'&-]+){0,3})?",
        "job",
        "The user works as {an} {x}.",
        0.7,
        is_thing,
    ),
    _Phrase(
        r"I am an? (?P<x>(?:(?:<FIELD>) ){0,2}(?:<TRADE>))",
        "job",
        "The user is {an} {x}.",
        0.7,
    ),
    _Phrase(r"I am (?P<x>retired|self-employed)", "job", "The user is {x}.", 0.7),
    _Phrase(
        r"I (?:work|am working)(?: as an? (?:[\w-]+ ){0,3}?(?:<CALLING>))? (?:at|for) (?P<x><ORG>)",
        "employer",
        "The user works at {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(r"I (?:study|am studying) (?P<x><SUBJECT>)", "studies", "The user studies {x}."),
    _Phrase(
        r"my (?P<kin><KIN>)(?: is (?:called|named)|'s name is) (?P<x><NAME>)",
        "family:{kin}",
        "The user's {kin} is called {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(
        r"my (?P<kin><KINS>)(?: is (?:called|named)|'s name is) (?P<x><NAME>)",
        "family:{kin}:{x}",
        "The user's {kin} is called {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(
        r"(?:my|our) (?P<kin><PET>)(?: is (?:called|named)|'s name is) (?P<x><NAME>)",
        "pet:{x}",
        "The user's {kin} is called {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(
        r"(?:I|we) have an? (?P<kin><PET>) (?:named|called) (?P<x><NAME>)",
        "pet:{x}",
        "The user has a {kin} called {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(
        r"(?:I|we) have (?P<x><COUNT>) (?P<kin>kids|children|daughters|sons|dogs|cats|siblings"
        r"|brothers|sisters|grandchildren)",
        "count:{kin}",
        "The user has {x} {kin}.",
    ),
    _Phrase(r"<IM> (?P<x>married|engaged|divorced|widowed)", "marital status", "The user is {x}."),
    _Phrase(
        r"<IM> (?:\w{2,12}ly )?allergic to (?P<x><THINGS>)",
        "allergy:{x}",
        "The user is allergic to {x}.",
        0.95,
        _is_allergen,
        each=True,
    ),
    _Phrase(
        r"I have an? (?:(?:really |very )?(?:severe|serious|bad|mild|strong) )?allergy to"
        r" (?P<x><THINGS>)",
        "allergy:{x}",
        "The user is allergic to {x}.",
        0.95,
        _is_allergen,
        each=True,
    ),
    _Phrase(
        r"I have an? (?:severe |serious |bad |mild |strong )?(?P<x>[\w-]+) allergy",
        "allergy:{x}",
        "The user has {an} {x} allergy.",
        0.95,
        _is_allergen,
    ),
    _Phrase(
        r"<IM> (?:an? )?(?:strict )?(?P<x>vegan|vegetarian|pescatarian|pescetarian)",
        "diet",
        "The user is {x}.",
        0.9,
    ),
    _Phrase(
        r"(?:I|we) (?:eat|keep) (?P<x>vegan|vegetarian|kosher|halal)",
        "diet",
        "The user eats {x}.",
        0.9,
    ),
    _Phrase(
        r"(?:I|we) (?:do not|never|cannot) (?:eat|drink|have) (?P<x><FOOD>)",
        "diet:no {x}",
        "The user does not eat or drink {x}.",
        0.8,
    ),
    _Phrase(r"I am (?:an? )?(?P<x><CONDITION>)", "health:{x}", "The user is {x}.", 0.9),
    _Phrase(r"I have (?P<x><ILLNESS>)", "health:{x}", "The user has {x}.", 0.9),
    _Phrase(
        r"I prefer (?P<x><WORDS>) (?P<over>(?:to|over|rather than) (?P<y><WORDS>))",
        "likes:{x}",
        "The user prefers {x} {over}.",
        0.6,
        is_thing,
    ),
    _Phrase(
        r"my favou?rite (?P<kind><KIND>) is (?P<x><WORDS>)",
        "favourite:{kind}",
        "The user's favourite {kind}: {x}.",
        0.6,
        is_thing,
    ),
    _Phrase(
        r"my favou?rite (?P<kind><TITLED>) is (?P<x><NAME>)",
        "favourite:{kind}",
        "The user's favourite {kind}: {x}.",
        0.6,
        _is_name,
    ),
    _Phrase(
        r"I speak (?P<x><LANGUAGE>(?:(?:,? and |, )<LANGUAGE>){0,4})",
        "speaks:{x}",
        "The user speaks {x}.",
        each=True,
    ),
    _Phrase(
        r"my (?:native language|first language|mother tongue) is (?P<x><LANGUAGE>)",
        "native language",
        "The user's native language is {x}.",
    ),
    _Phrase(
        r"I am (?:learning|studying) (?P<x><LANGUAGE>)", "learns:{x}", "The user is learning {x}."
    ),
    _Phrase(r"I play (?:the )?(?P<x><HOBBY>)", "hobby:{x}", "A hobby of the user: {x}."),
    _rule(r"always (?P<x><DEED>)", "Always {x}."),
    _rule(r"never (?P<x><DEED>)", "Never {x}."),
    _rule(r"from now on,? (?:please )?(?P<x><DEED>)", "From now on: {x}."),
    _rule(r"(?P<x><DEED>) from now on", "From now on: {x}."),
    _rule(r"do not (?P<x><DEED>) (?:any ?more|ever)", "Do not {x} any more."),
    _rule(r"stop using (?P<x><STYLE>)", "Do not use {x}.", "rule:use {x}"),
)
"""All sentences; if several match a clause, each adds what it states."""
