"""The rules of the heuristic extractor for facts about the users themselves."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from locus_memory.memory.heuristic.agenda import AGENDA_RULES
from locus_memory.memory.heuristic.grammar import Retraction, Rule, pattern
from locus_memory.memory.heuristic.standing import is_taste
from locus_memory.memory.models import MemoryType

__all__ = ["RETRACTIONS", "RULES"]


def _user(source: str, key: str, content: str, importance: float = 0.5, **more: Any) -> Rule:
    return Rule(pattern(source), MemoryType.USER, key, content, importance, **more)


_WHO: Final = (
    _user(
        r"my name(?:'s| is) (?:now )?(?P<x>(?:Dr\.|Prof\.|Mr\.|Mrs\.|Ms\.)? ?<CAP>"
        r"(?: <CAP>){0,3}<STOP>|(?!(?:not|on|too|very|so|really|misspelled|wrong|long|short|common"
        r"|rare|hard|difficult|unusual|spelled|spelt|pronounced|important|irrelevant|mentioned"
        r"|missing|still|also|now|just|only|no|in|the|an?|at|of|my|your|his|her|there|here|fine"
        r"|unique|taken|public|private|secret|none|that|this|it|easy|everywhere|nowhere)\b)"
        r"[^\W\d_][\w'-]+(?=$|[.,;!)]| (?:and|but|from)\b))",
        "name",
        "The user's name is {x}.",
        0.9,
    ),
    _user(
        r"(?:(?:please|just|you can|you may|you should|everyone|people|friends|from now on,?"
        r"|going forward,?|in future,?|always|but) )*calls? me (?!<DAYS>)"
        r"(?P<x>(?:Dr\.|Prof\.|Mr\.|Mrs\.|Ms\.)? ?<NAME>)<STOP>",
        "name",
        "The user's name is {x}.",
        0.9,
    ),
    _user(r"(?:I go by|I'm called) (?P<x><NAME>)<STOP>", "name", "The user's name is {x}.", 0.9),
    _user(
        r"(?:(?:I'm|I am) (?!<DAYS>|<TRAIT>)(?P<x><NAME>)(?=$|,|\.)"
        r"|this is (?!<DAYS>|<TRAIT>)(?P<y><NAME>) (?:here|speaking)$)",
        "name",
        "The user's name is {x}{y}.",
        0.8,
        opening=True,
    ),
    _user(
        r"I(?:'m| am| turned| just turned) (?P<x>1[3-9]|[2-9]\d)(?: years old\b|$|(?=,))",
        "age",
        "The user is {x} years old.",
    ),
    _user(
        r"my birthday(?:'s| is) (?:on )?(?P<x>(?=[^.,;!?]*(?:January|February|March|April"
        r"|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug"
        r"|Sept?|Oct|Nov|Dec|\d[./-]\d))[^.,;!?]*\d[^.,;!?]*)",
        "birthday",
        "The user's birthday is {x}.",
    ),
)


def _home(at: str, content: str) -> Rule:
    return _user(
        r"(?:<I> <ADV>(?:live|reside)|<IM> <ADV>(?:living|based|located)|<I>(?:'ve| have)? <ADV>"
        r"(?:moved|relocated)(?: back| house)?(?: from <PLACE>)?|my home is(?: now)?)"
        rf" (?:{at}) (?!<DAYS>|<TOOL>)(?P<x><PLACE>)<STOP><WHOLE>"
        r"(?! (?:sometimes|part|half|for now|until"
        r"|temporarily|during|(?:in|over) (?:the )?(?:summer|winter)"
        r"|for (?:a|the|two|three|\d+)\b))<STAYED>",
        "home",
        content,
        0.8,
    )


_WHERE: Final = (
    _home("in|to|at", "The user lives in {x}."),
    _user(
        r"<I>(?:'ve| have) <ADV>(?:lived|been living) in (?!<DAYS>)(?P<x><PLACE>)"
        r" (?:for (?!a while\b)|since |all (?:my|our) li)",
        "home",
        "The user lives in {x}.",
        0.8,
    ),
    _home("(?P<near>near|outside)", "The user lives {near} {x}."),
    _user(
        r"(?:<IM> <ADV>(?:originally )?from|I (?:originally )?(?:come|hail) from|I grew up in"
        r"|I was (?:born|raised|born and raised) in) (?!<DAYS>)(?P<x><PLACE>)<STOP><WHOLE>",
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
        r"(?:I'm|I am) <ADV>(?:an?|the) (?!bit of\b|lot of\b|.* by (?:training|education|degree)\b)"
        r"(?P<x>(?:[\w-]+ ){0,3}?(?:<WORKER>))"
        r"(?= (?:at|for|in|by"
        r"|from|with)\b|$|[.,;!])",
        "job",
        "The user is {an} {x}.",
        0.7,
    ),
    _user(
        r"my (?:(?:job title|job|role|profession|occupation|title) is (?:an? |the )"
        r"(?!(?:bit|lot|mess|nightmare|joke|pain|dream|disaster|problem|one)\b)(?P<x><THING>)"
        r"|(?:job title|job|role|profession|occupation|title) is "
        r"(?P<y>(?:[\w-]+ ){0,3}?(?:<WORKER>)))"
        r"<END>",
        "job",
        "The user's job: {x}{y}.",
        0.7,
    ),
    _user(
        # Who works with Bob works at another place.
        r"(?!<I> <ADV>work with\b|<IM> <ADV>working with\b)"
        r"(?:(?:I <ADV>work|<IM> <ADV>(?:working|employed)|(?:I'm|I am) (?:an?|the) "
        r"(?:[\w-]+ ){0,4}?<WORKER>|I (?:work|started)(?: working)? as an? [^.,;!?]{2,40}?"
        r"|I (?:just )?started|I got a (?:new )?job) (?:at|for|with)|I (?:just )?joined) "
        r"(?!<DAYS>|an? (?:company|firm|shop|store|agency|start-?up)\b)"
        r"(?P<x><CAP>(?: (?:<CAP>|&|of|and"
        r"(?= <CAP>)))"
        r"{0,3}|<ORG>)<STOP><WHOLE>"
        r"(?! for (?:an? |some )?(?:\w+ )?(?:breakfast|brunch|lunch|dinner|supper|coffee|tea"
        r"|drinks?|beers?|meal|walk|run|ride|swim|hike|call|chat|trip|weekend|game)\b)",
        "employer",
        "The user works at {x}.",
        0.6,
    ),
    _user(
        r"I(?:'m| am)? (?:study|studying|major in|majoring in) "
        r"(?!(?:for|hard|at|so|the|how|what)\b)(?P<x><THING>)"
        r"(?: (?:at|in) <CAP>)?<END>",
        "studies",
        "The user studies {x}.",
    ),
)

_FAMILY: Final = (
    _user(
        r"(?:this is )?my (?P<kin><KIN>)(?:'s name is| is (?:called|named)|'s called|,)? "
        r"(?!<DAYS>)(?P<x><NAME>)"
        r"(?<!')(?<!'s)<STOP>"
        r"(?! (?:died|passed away|is dead|used to|ran away|and I (?:broke|split))\b)",
        "family:{kin}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"my (?:\w+ )?(?P<kin><KINS>)(?:'s name is| is (?:called|named)|'s called|,)? (?!<DAYS>)"
        r"(?P<x><NAME>)"
        r"(?<!')(?<!'s)<STOP>"
        r"(?! (?:died|passed away|is dead|used to|ran away|and I (?:broke|split))\b)",
        "family:{kin}:{x}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"(?:my|our) (?:\w+ )?(?P<kin><PET>)(?:'s name is| is (?:called|named)|'s called|,)? "
        r"(?!<DAYS>)(?P<x><NAME>)"
        r"(?<!')(?<!'s)<STOP>"
        r"(?! (?:died|passed away|is dead|used to|ran away|and I (?:broke|split))\b)",
        "pet:{x}",
        "The user's {kin} is called {x}.",
        0.6,
    ),
    _user(
        r"(?:<I>(?:'ve| have)?(?: got)?|<I> (?:got|adopted)) (?:<COUNT>) (?:[\w-]+ ){0,2}?"
        r"(?P<kin><KINS>|<PET>)s?,?"
        r" (?:named|called) (?P<x><CAP>(?:(?:, | and |, and )<CAP>){0,4})"
        r"\b(?!,? (?:but|who|which|and|until) .*\b(?:died|passed away|is dead|ran away|is gone)\b)",
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
        r"(?P<who><CAP>))?<STOP>(?! (?:in|with|by|at|on|off)\b)",
        "marital status",
        "The user is {x}.",
    ),
)

_HEALTH: Final = (
    _user(
        r"<IM> <ADV>(?:\w+ly )?allergic to <REALLY>"
        r"(?P<x><LIST>)<LISTEND>",
        "allergy:{x}",
        "The user is allergic to {x}.",
        0.95,
        each=True,
    ),
    _user(
        r"I(?:'ve| have)(?: got)? an? (?:<DEGREE> )*allergy to <REALLY>"
        r"(?P<x><LIST>)<LISTEND>",
        "allergy:{x}",
        "The user is allergic to {x}.",
        0.95,
        each=True,
    ),
    _user(
        r"I(?:'ve| have)(?: got)? an? (?:\w+ )??(?!(?:<DEGREE>) )(?P<x>[\w-]+) allergy(?! to\b)",
        "allergy:{x}",
        "The user has {an} {x} allergy.",
        0.95,
    ),
    _user(
        r"<IM> (?!(?:mostly|usually|generally|not)\b)<ADV>(?:an? )?(?:strict )?"
        r"(?P<x>vegan|vegetarian|pescatarian|pescetarian)<STOP>",
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
        r"<IM> <ADV>(?:an? )?(?P<x><CONDITION>)<STOP>(?! (?:to|with)\b)",
        "health:{x}",
        "The user is {x}.",
        0.9,
    ),
    _user(
        r"I (?:(?:don't|do not|never) (?:eat|drink)|(?:can't|cannot|can not|am not allowed to)"
        r" (?:eat|drink|have))"
        r" (?!(?:it|that|this|them|much|more|too|enough|any|and|or|out|kids|children|pets"
        r"|everything"
        r"|anything|both|all|a|an|the|my|your|another|<BOUND>)\b)"
        r"(?P<x><LIST>)<LISTEND>(?! <BOUND>)(?<!\bany)",
        "diet:no {x}",
        "The user does not eat or drink {x}.",
        0.8,
        each=True,
    ),
)

_taste = partial(_user, check=is_taste)

_TASTES: Final = (
    _taste(
        r"I <ADV>(?:like|love|enjoy|adore)(?P<to> to)? (?!<OTHER>)(?P<x><THING>)<END>",
        "likes:{x}",
        "The user likes {to} {x}.",
    ),
    _taste(
        r"<IM> <ADV>(?:(?:an? )?(?:huge |big |massive |great )?fan of|(?:into|fond of"
        r"|passionate about|crazy about"
        r"|keen on)) (?!<OTHER>)(?P<x><THING>)<END>",
        "likes:{x}",
        "The user likes {x}.",
    ),
    _taste(
        r"I <ADV>(?:hate|dislike|detest|loathe|despise|can't stand|cannot stand|don't "
        r"(?:really )?(?:like|enjoy))"
        r"(?! to\b| .*any ?more\b) (?!<OTHER>)(?P<x><THING>)<END>(?! <BOUND>)",
        "likes:{x}",
        "The user dislikes {x}.",
    ),
    _taste(
        r"I(?:'d)? <ADV>prefer (?!<OTHER>)(?P<x><THING>)(?P<y> (?:over|to|rather than"
        r"|instead of) <THING>)?<END>",
        "likes:{x}",
        "The user prefers {x} {y}.",
        0.6,
    ),
    _taste(
        r"(?:one of )?my (?:all-time )?favou?rite (?!one\b|part\b|thing\b|time\b)"
        r"(?P<what>[\w' -]{2,40}?)(?:'s| is| has to be| would be| are) "
        r"(?!<OTHER>|(?:when|probably|definitely|hard|getting)\b)(?P<x><THING>)<END>",
        "favourite:{what}",
        "The user's favourite {what}: {x}.",
        0.6,
    ),
    _taste(
        r"(?P<x>(?!<OTHER>|there|here)[\w'-]+(?: [\w'-]+){0,3}) (?:is|are) my "
        r"(?:all-time )?favou?rite"
        r" (?!part\b|thing\b)(?P<what>[\w' -]{2,40}?)<END>",
        "favourite:{what}",
        "The user's favourite {what}: {x}.",
        0.6,
        whole=True,
    ),
    _taste(
        r"I(?:'ve)? <ADV>(?:been |started |took up )?(?:play|playing|practi[cs]ing|doing"
        r"|do)? ?(?:the )?"
        r"(?P<x>(?:acoustic |electric |bass )?<HOBBY>)<END>",
        "hobby:{x}",
        "A hobby of the user: {x}.",
    ),
    _taste(
        r"(?:I <ADV>speak|<IM> <ADV>fluent in|I'm a native speaker of) (?:some |fluent |basic "
        r"|a little )?"
        r"(?P<x><LANGUAGE>(?:(?:, | and |, and )<LANGUAGE>)*)",
        "speaks:{x}",
        "The user speaks {x}.",
        each=True,
    ),
    _taste(
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
"""All rules for facts; if several match a clause, each adds its memories."""


def _gone(source: str, *keys: str, named: bool = False) -> Retraction:
    return Retraction(pattern(source), keys, named)


_NOT: Final = r"(?:don't|do not|no longer)"
_ANY_MORE: Final = r"(?: any ?more| any longer| these days)"

RETRACTIONS: Final[tuple[Retraction, ...]] = (
    _gone(
        r"(?:please )?(?:don't|do not|never|stop) call(?:ing)? me (?P<x><NAME>)<STOP>",
        "name",
        named=True,
    ),
    _gone(
        rf"<I> (?:{_NOT} live in (?P<x><PLACE>){_ANY_MORE}|no longer live in (?P<z><PLACE>))",
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
    _gone(
        rf"I(?:'m| am) (?:no longer (?:an? )?(?P<x>[\w' -]{{3,40}}?)|not (?:an? )?"
        rf"(?P<z>[\w' -]{{3,40}}?){_ANY_MORE}|not an? (?P<w>[\w' -]{{3,40}}?))<END>",
        "job",
        named=True,
    ),
    _gone(r"I(?:'m| am) (?:now )?(?:retired|unemployed|between jobs)", "job", "employer"),
    _gone(
        rf"I (?:don't|do not) (?:like|love|enjoy|hate|mind) (?P<x><THING>){_ANY_MORE}|I no longer"
        r" (?:like|love|enjoy|hate) (?P<z><THING>)<END>",
        "likes:{x}",
    ),
    _gone(
        r"<IM> (?:no longer|not) (?:allergic to (?P<x><THING>))(?: any ?more)?<END>", "allergy:{x}"
    ),
    _gone(
        rf"<IM> (?:no longer (?P<x><CONDITION>)|not (?P<z><CONDITION>){_ANY_MORE})", "health:{x}"
    ),
    _gone(
        rf"<IM> (?:no longer (?P<x>married|engaged)|not (?P<z>married|engaged){_ANY_MORE})",
        "marital status",
        named=True,
    ),
    _gone(
        rf"my (?:all-time )?favou?rite (?P<x>[\w' -]{{2,40}}?) (?:is no longer|is not .*{_ANY_MORE}"
        rf"|isn't .*{_ANY_MORE})",
        "favourite:{x}",
    ),
    _gone(
        r"<IM> (?:no longer (?:an? )?(?:vegan|vegetarian|pescatarian)|not (?:an? )?(?:vegan"
        rf"|vegetarian|pescatarian){_ANY_MORE})",
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
