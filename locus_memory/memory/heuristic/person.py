"""The rules of the heuristic extractor for facts about the users themselves."""

from __future__ import annotations

from typing import Any, Final

from locus_memory.memory.heuristic.agenda import AGENDA_RULES
from locus_memory.memory.heuristic.grammar import Retraction, Rule, pattern
from locus_memory.memory.models import MemoryType

__all__ = ["RETRACTIONS", "RULES"]


def _user(source: str, key: str, content: str, importance: float = 0.5, **more: Any) -> Rule:
    return Rule(pattern(source), MemoryType.USER, key, content, importance, **more)


_WHO: Final = (
    _user(
        r"my name(?:'s| is) (?!not\b|on\b)(?P<x>[^\W\d_][\w'-]+(?: <CAP>){0,3})<STOP>",
        "name",
        "The user's name is {x}.",
        0.9,
    ),
    _user(
        r"(?:(?:please|just|you can|everyone|people|friends) )*calls? me (?!<DAYS>)"
        r"(?P<x><NAME>)<STOP>",
        "name",
        "The user's name is {x}.",
        0.9,
    ),
    _user(r"(?:I go by|I'm called) (?P<x><NAME>)<STOP>", "name", "The user's name is {x}.", 0.9),
    _user(
        r"(?:I'm|I am|this is) (?!<DAYS>|<LANGUAGE>)(?P<x><NAME>)(?=$|,|\.)",
        "name",
        "The user's name is {x}.",
        0.8,
        opening=True,
    ),
    _user(
        r"I(?:'m| am| turned| just turned) (?P<x>1[3-9]|[2-9]\d)(?: years old\b|$|(?=,))",
        "age",
        "The user is {x} years old.",
    ),
    _user(
        r"my birthday(?:'s| is) (?:on )?(?P<x>[^.,;!?]*\d[^.,;!?]*)",
        "birthday",
        "The user's birthday is {x}.",
    ),
)

_WHERE: Final = (
    _user(
        r"(?:<I> <ADV>(?:live|reside)|<IM> <ADV>(?:living|based|located)|<I>(?:'ve| have)? <ADV>"
        r"(?:moved|relocated)(?: back)?|my home is) (?:in|to|near|outside|at) "
        r"(?!<DAYS>|Python|Rust|Java)(?P<x><PLACE>)<STOP>",
        "home",
        "The user lives in {x}.",
        0.8,
    ),
    _user(
        r"(?:<IM> <ADV>(?:originally )?from|I (?:originally )?(?:come|hail) from|I grew up in"
        r"|I was (?:born|raised|born and raised) in) (?P<x><PLACE>)<STOP>",
        "origin",
        "The user is from {x}.",
    ),
)

_WORK: Final = (
    _user(
        r"(?:I <ADV>work(?:ed)?(?<!ed)|<IM> <ADV>(?:working|employed)|I(?:'ve| have)? (?:just )?"
        r"(?:got|started|began|landed) (?:a )?(?:new )?(?:job|work|working)"
        r"|I joined [^.,;!?]{2,40}?)"
        r" as (?:an? |the )(?P<x><THING>)(?: (?:at|for) (?P<org><CAP>(?: <CAP>){0,3}))?<END>",
        "job",
        "The user works as {an} {x}.",
        0.7,
    ),
    _user(
        r"(?:I'm|I am) <ADV>(?:an?|the) (?P<x>(?:[\w-]+ ){0,3}?(?:<WORKER>))(?= (?:at|for|in|by"
        r"|from|with)\b|$|[.,;!])",
        "job",
        "The user is {an} {x}.",
        0.7,
    ),
    _user(
        r"my (?:job title|job|role|profession|occupation|title) is (?!to\b|so\b|not\b|really\b"
        r"|very\b)"
        r"(?:an? |the )?(?P<x><THING>)<END>",
        "job",
        "The user's job: {x}.",
        0.7,
    ),
    _user(
        r"(?:I <ADV>work|<IM> <ADV>(?:working|employed)|(?:I'm|I am) (?:an?|the) "
        r"(?:[\w-]+ ){0,4}?<WORKER>"
        r"|I (?:work|started)(?: working)? as an? [^.,;!?]{2,40}?|I (?:just )?(?:joined|started at)"
        r"|I got a (?:new )?job)(?: (?:at|for|with))? (?!<DAYS>)(?P<x><CAP>(?: (?:<CAP>|&|of|and"
        r"(?= <CAP>)))"
        r"{0,3}|<ORG>)<STOP>",
        "employer",
        "The user works at {x}.",
        0.6,
    ),
    _user(
        r"I(?:'m| am)? (?:study|studying|major in|majoring in) (?!for\b|hard\b|at\b|so\b)"
        r"(?P<x><THING>)"
        r"(?: (?:at|in) <CAP>)?<END>",
        "studies",
        "The user studies {x}.",
    ),
)

_FAMILY: Final = (
    _user(
        r"(?:this is )?my (?P<kin><KIN>)(?:'s name is| is (?:called|named)|'s called|,)? "
        r"(?!<DAYS>)(?P<x><NAME>)"
        r"(?<!')<STOP>",
        "family:{kin}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"my (?:\w+ )?(?P<kin><KINS>)(?:'s name is| is (?:called|named)|'s called|,)? (?!<DAYS>)"
        r"(?P<x><NAME>)"
        r"(?<!')<STOP>",
        "family:{kin}:{x}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"(?:my|our) (?:\w+ )?(?P<kin><PET>)(?:'s name is| is (?:called|named)|'s called|,)? "
        r"(?!<DAYS>)(?P<x><NAME>)"
        r"(?<!')<STOP>",
        "pet:{x}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"(?:<I>(?:'ve| have)?(?: got)?|<I> (?:got|adopted)) (?:<COUNT>) (?:[\w-]+ ){0,2}?"
        r"(?P<kin><KINS>|<PET>)s?,?"
        r" (?:named|called) (?P<x><CAP>(?:(?:, | and |, and )<CAP>){0,4})",
        "pet:{x}",
        "The user has a {kin} called {x}.",
        0.6,
        each=True,
    ),
    _user(
        r"<I>(?:'ve| have)(?: got)? (?P<n>(?!an?\b|another\b)(?:<COUNT>)) (?P<kin>kids|children"
        r"|daughters|sons|dogs|cats"
        r"|siblings|brothers|sisters|grandchildren)\b",
        "count:{kin}",
        "The user has {n} {kin}.",
    ),
    _user(
        r"(?:I'm|I am|I got|we got) <ADV>(?P<x>married|engaged|divorced|widowed)(?: to "
        r"(?P<who><CAP>))?<STOP>",
        "marital status",
        "The user is {x}.",
    ),
)

_HEALTH: Final = (
    _user(
        r"<IM> <ADV>(?:\w+ly )?allergic to (?!(?:it|that|this|them)\b)(?P<x><LIST>)<LISTEND>",
        "allergy:{x}",
        "The user is allergic to {x}.",
        0.95,
        each=True,
    ),
    _user(
        r"I have an? (?:\w+ )??(?P<x>[\w-]+) allergy",
        "allergy:{x}",
        "The user has {an} {x} allergy.",
        0.95,
    ),
    _user(
        r"<IM> <ADV>(?:an? )?(?:strict )?(?P<x>vegan|vegetarian|pescatarian|pescetarian)<STOP>",
        "diet",
        "The user is {x}.",
        0.9,
    ),
    _user(
        r"I <ADV>(?:eat|keep) (?P<x>vegan|vegetarian|kosher|halal)<STOP>",
        "diet",
        "The user eats {x}.",
        0.9,
    ),
    _user(
        r"<IM> <ADV>(?:an? )?(?P<x>gluten[- ]free|gluten[- ]intolerant|lactose[- ]intolerant"
        r"|c[o]?eliac|diabetic"
        r"|celiac|asthmatic|colou?r[- ]blind|deaf|blind|dyslexic|pregnant)<STOP>",
        "health:{x}",
        "The user is {x}.",
        0.9,
    ),
    _user(
        r"I (?:don't|do not|never|can't|cannot) (?:eat|drink) (?!(?:it|that|this|them|much|too"
        r"|enough|any of)\b)"
        r"(?P<x><LIST>)<LISTEND>",
        "diet:no {x}",
        "The user does not eat or drink {x}.",
        0.8,
        each=True,
    ),
)

_TASTES: Final = (
    _user(
        r"I <ADV>(?:like|love|enjoy|adore)(?P<to> to)? (?!<OTHER>)(?P<x><THING>)<END>",
        "likes:{x}",
        "The user likes {to} {x}.",
    ),
    _user(
        r"<IM> <ADV>(?:(?:an? )?(?:huge |big |massive |great )?fan of|(?:into|fond of"
        r"|passionate about|crazy about"
        r"|keen on)) (?!<OTHER>)(?P<x><THING>)<END>",
        "likes:{x}",
        "The user likes {x}.",
    ),
    _user(
        r"I <ADV>(?:hate|dislike|detest|loathe|despise|can't stand|cannot stand|don't "
        r"(?:really )?(?:like|enjoy))"
        r"(?! to\b| .*any ?more\b) (?!<OTHER>)(?P<x><THING>)<END>",
        "likes:{x}",
        "The user dislikes {x}.",
    ),
    _user(
        r"I(?:'d)? <ADV>prefer (?!<OTHER>)(?P<x><THING>)(?P<y> (?:over|to|rather than"
        r"|instead of) <THING>)?<END>",
        "likes:{x}",
        "The user prefers {x} {y}.",
        0.6,
    ),
    _user(
        r"(?:one of )?my (?:all-time )?favou?rite (?!one\b|part\b|thing\b)"
        r"(?P<what>[\w' -]{2,40}?)(?:'s| is| has to be| would be| are) "
        r"(?!<OTHER>|(?:when|probably|definitely|hard|getting)\b)(?P<x><THING>)<END>",
        "favourite:{what}",
        "The user's favourite {what}: {x}.",
        0.6,
    ),
    _user(
        r"(?P<x>(?!<OTHER>|there|here)[\w'-]+(?: [\w'-]+){0,3}) (?:is|are) my "
        r"(?:all-time )?favou?rite"
        r" (?!part\b|thing\b)(?P<what>[\w' -]{2,40}?)<END>",
        "favourite:{what}",
        "The user's favourite {what}: {x}.",
        0.6,
        whole=True,
    ),
    _user(
        r"I(?:'ve)? <ADV>(?:been |started |took up )?(?:play|playing|practi[cs]ing|doing"
        r"|do)? ?(?:the )?"
        r"(?P<x>(?:acoustic |electric |bass )?<HOBBY>)<END>",
        "hobby:{x}",
        "A hobby of the user: {x}.",
    ),
    _user(
        r"(?:I <ADV>speak|<IM> <ADV>fluent in|I'm a native speaker of) (?:some |fluent |basic "
        r"|a little )?"
        r"(?P<x><LANGUAGE>(?:(?:, | and |, and )<LANGUAGE>)*)",
        "speaks:{x}",
        "The user speaks {x}.",
        each=True,
    ),
    _user(
        r"my (?:native language|first language|mother tongue) is (?P<x><LANGUAGE>)",
        "native language",
        "The user's native language is {x}.",
    ),
    _user(
        r"<IM> <ADV>(?:learning|studying) (?P<x><LANGUAGE>)<STOP>",
        "learns:{x}",
        "The user is learning {x}.",
    ),
)

RULES: Final[tuple[Rule, ...]] = (
    *AGENDA_RULES,
    *_WHO,
    *_WHERE,
    *_WORK,
    *_FAMILY,
    *_HEALTH,
    *_TASTES,
)
"""All rules; if several match a clause, each adds its memories."""


def _gone(source: str, *keys: str, named: bool = False) -> Retraction:
    return Retraction(pattern(source), keys, named)


_NOT: Final = r"(?:don't|do not|no longer)"
_ANY_MORE: Final = r"(?: any ?more| any longer| these days)"

RETRACTIONS: Final[tuple[Retraction, ...]] = (
    _gone(
        rf"I (?:{_NOT} live in (?P<x><PLACE>){_ANY_MORE}|no longer live in (?P<z><PLACE>))",
        "home",
        named=True,
    ),
    _gone(
        rf"I (?:{_NOT} work (?:at|for) (?P<x><THING>){_ANY_MORE}|no longer work (?:at|for) "
        rf"(?P<z><THING>)<END>"
        r"|(?:quit|left) (?:my job at )?(?P<w><CAP>(?: <CAP>){0,2})<STOP>)",
        "employer",
        named=True,
    ),
    _gone(r"I(?:'ve| have)? (?:just )?(?:quit|lost|left) my job", "job", "employer"),
    _gone(r"I(?:'m| am) (?:retired|unemployed|between jobs)", "job", "employer"),
    _gone(
        rf"I (?:don't|do not) (?:like|love|enjoy|hate|mind) (?P<x><THING>){_ANY_MORE}|I no longer"
        r" (?:like|love|enjoy|hate) (?P<z><THING>)<END>",
        "likes:{x}",
    ),
    _gone(
        r"<IM> (?:no longer|not) (?:allergic to (?P<x><THING>))(?: any ?more)?<END>", "allergy:{x}"
    ),
    _gone(
        r"<IM> (?:no longer (?:an? )?(?:vegan|vegetarian|pescatarian)|not (?:an? )?(?:vegan"
        r"|vegetarian|pescatarian)"
        r" any ?more)",
        "diet",
    ),
    _gone(
        r"I(?:'ve| have)? (?:stopped|quit|gave up|given up) (?:learning|studying) "
        r"(?P<x><LANGUAGE>)",
        "learns:{x}",
    ),
    _gone(
        r"<IM> (?:no longer|not) working on (?P<x><THING>)(?: any ?more)?<END>", "working on:{x}"
    ),
)
"""All rules that retract a fact; the extractor itself handles "forget that ..."."""
