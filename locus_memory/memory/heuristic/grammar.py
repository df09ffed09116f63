"""The words and pieces of the rules of the heuristic extractor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from locus_memory._internal.lazy import compiled_later
from locus_memory.memory.heuristic.standing import stands
from locus_memory.memory.models import MemoryType

__all__ = ["Retraction", "Rule", "pattern"]

_PIECES: Final = {
    "I": r"I|we",
    "IM": r"(?:I'm|I am|we're|we are)",
    "ADV": r"(?:(?:really|absolutely|also|actually|still|currently|now|do|totally|definitely|mostly"
    r"|usually|just|recently|already|finally|generally|personally|severely|both|all|very|so) )*",
    "CAP": r"(?-i:(?!I\b)[^\W\d_a-z][\w'&-]*)",
    "NAME": r"<CAP>(?: <CAP>){0,2}",
    "PLACE": r"(?:the )?<CAP>(?:,? (?:(?:of|de|am|upon|la) )?<CAP>){0,4}",
    "THING": r"[^.,;:!?()\u2014\"]{2,80}?",
    "LIST": r"[^.;:!?()\u2014\"]{2,120}?",
    "REST": r"[^\"\n]{3,240}",
    # What follows a statement that holds only then: "I don't eat breakfast before nine".
    "BOUND": r"(?:before|after|when|whenever|while|if|until|unless|during|without|on|at)\b",
    # The end of a name or a place.
    "STOP": r"(?=$|[.,;:!?()\u2014]|\s(?-i:(?![^\W\d_a-z])))",
    # No move away follows: "I moved to Rome but came back".
    "STAYED": r"(?!.*\b(?:and|but|then) (?:then |later |I )*(?:left(?! (?:my|our|an?)\b)"
    r"|returned|(?:came|went) back|moved (?:back|on|away|out))\b)",
    # Not after a name whose owner is all that it tells: "Bob's house", but "Macy's in Graz".
    "WHOLE": r"(?!(?<='s) (?!(?:in|at|as|on|near|outside|and|with|for|since|by|but|now|again|too|so"
    r"|because|while|when|where|which|who|until|after|before|from|today|right|these)\b))",
    # The end of a list, which continues after a comma.
    "LISTEND": r"(?=$|[.;:!?()\u2014\"]| (?:because|since|so|but|when|while|though|although|if"
    r"|after"
    r"|before|these days|right now|at the moment|lately|any ?more|and (?:I|my|we|have|am)|now)\b)",
    # The end of a noun phrase.
    "END": r"(?=$|[.,;:!?()\u2014\"]| (?:because|since|so|but|when|whenever|while|as|though"
    r"|although|if|after|before|too|very much|a lot|these days|right now|at the moment|lately"
    r"|anymore|itself|either|which|who|where|especially|even|and (?:I|my|we|it|the|that|have|am"
    r"|was)|for now|now|- )\b)",
    "OTHER": r"(?:it|its|that|this|these|those|you|your|he|she|him|her|his|hers|they|them|their|how"
    r"|what|when|where|why|who|the|seeing that|being able|to see|to hear|hearing|all|every"
    r"|everything|something|anything|stuff|things|myself|each|both|one|so|too|to|just|not|no longer"
    r"|having|knowing|being|making|some|any|such)\b|[^.,;:!?]*\b(?:this|these|those|here|him|it|you"
    r"|your)\b",
    # Before what somebody is allergic to: no pronoun and no joke follows.
    "REALLY": r"(?!(?:it|that|this|them|(?:hard )?work|mondays?|mornings?|bullshit|nonsense|people"
    r"|effort|exercise|stupidity|drama|meetings|fun|you)\b)",
    "DEGREE": r"(?:really|very|quite|rather|pretty|fairly|severe|mild|serious|slight|strong|bad"
    r"|nasty|terrible|horrible|awful|major|minor|moderate|chronic|dangerous|deadly|fatal|extreme"
    r"|life[- ]threatening|known|diagnosed|lifelong|new)",
    "KIN": r"wife|husband|partner|spouse|girlfriend|boyfriend|fianc[e\u00e9]e?|mother|mom|mum"
    r"|father|dad"
    r"|boss|manager|therapist|doctor",
    "KINS": r"brother|sister|son|daughter|child|kid|baby|cousin|aunt|uncle|nephew|niece|friend|best"
    r" friend|colleague|coworker|roommate|flatmate|neighbou?r|grandmother|grandfather|grandma"
    r"|grandpa|twin",
    "PET": r"dog|cat|puppy|kitten|pup|horse|parrot|rabbit|hamster|guinea pig|turtle|tortoise|snake"
    r"|fish|bird|goldfish|lizard|ferret|pony",
    "DAYS": r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June"
    r"|July"
    r"|August|September|October|November|December|Christmas|Easter|OMG|LOL|ASAP|Maybe|Later|Back"
    r"|Sorry|Home|Work|Night|Nights|Noon|Midnight)\b(?! Depot)",
    # Words with a capital letter after "I'm" that are no names.
    "TRAIT": r"(?:American|British|English|Scottish|Welsh|Irish|Canadian|Australian|German|Austrian"
    r"|Swiss|French|Italian|Spanish|Portuguese|Dutch|Belgian|Danish|Swedish|Norwegian|Finnish"
    r"|Polish|Czech|Slovak|Hungarian|Romanian|Bulgarian|Greek|Turkish|Russian|Ukrainian|Chinese"
    r"|Japanese|Korean|Indian|Pakistani|Mexican|Brazilian|Argentinian|Chilean|Colombian|African"
    r"|Asian|European|Nigerian|Egyptian|Iranian|Iraqi|Israeli|Jewish|Muslim"
    r"|Catholic|Buddhist|Hindu|Legend|Done|Ready|Here|Happy|Sad|Tired|Fine|Good|Great|Okay|OK"
    r"|Vegan|Vegetarian|Pescatarian|Diabetic|Coeliac|Celiac|Pregnant|Married|Engaged|Single"
    r"|Divorced|Widowed|Retired|Unemployed|Deaf|Blind|Autistic|Dyslexic|Late|Lost|Sick|Busy|Bored|Curious|Not|So|Very|Just|Also|Still|Really)\b",
    # Tools and teams to which people move without changing their home.
    "TOOL": r"(?:Python|Rust|Java\w*|Go|Slack|Postgres\w*|MySQL|SQLite|Redis|Mongo\w*|Kubernetes"
    r"|Docker|AWS|Azure|GCP|Linux|Ubuntu|Windows|Mac\w*|GitHub|GitLab|Jira|Linear|Notion|Teams"
    r"|Zoom|TypeScript|React|Vue|Angular|Django|Rails|Spring|Kafka|Terraform|Figma|Vim|Emacs|VS"
    r"|Gmail|Outlook|Android|iOS|Engineering|Marketing|Sales|Plan|Phase|Version|Chapter|Step"
    r"|Option|Stage|Part|Level)\b",
    # The end of a name or a place.
    "WORKER": r"engineer|developer|programmer|teacher|nurse|doctor|designer|student|manager|lawyer"
    r"|architect|artist|writer|author|journalist|scientist|researcher|analyst|accountant|chef|cook"
    r"|baker|consultant|musician|singer|dancer|photographer|painter|carpenter|plumber|electrician"
    r"|mechanic|pilot|driver|professor|lecturer|tutor|librarian|pharmacist|dentist|surgeon"
    r"|physician|therapist|psychologist|psychiatrist|veterinarian|vet|biologist|chemist|physicist"
    r"|mathematician|statistician|economist|editor|translator|interpreter|salesperson|realtor"
    r"|founder|entrepreneur|freelancer|contractor|administrator|technician|farmer|gardener|barista"
    r"|waiter|waitress|bartender|cashier|firefighter|paramedic|police officer|soldier|counselor"
    r"|counsellor|coach|trainer|actor|actress|director|producer|filmmaker|illustrator|animator"
    r"|owner|CEO|CTO|CFO|COO|VP|SRE|retiree|social worker|secretary|assistant|intern|trader|banker",
    "ORG": r"(?:an? |the |our |my )?(?:[\w&'-]+ ){0,3}(?:hospital|school|bank|start-?up|company"
    r"|university|college|firm|agency|lab|studio|clinic|restaurant|cafe|bakery|library|museum"
    r"|hotel|shop|store|charity|non-?profit|shelter)",
    "LANGUAGE": r"English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian"
    r"|Chinese|Mandarin|Cantonese|Japanese|Korean|Arabic|Hebrew|Hindi|Urdu|Bengali|Punjabi|Tamil"
    r"|Telugu|Turkish|Greek|Swedish|Norwegian|Danish|Finnish|Czech|Slovak|Hungarian|Romanian"
    r"|Bulgarian|Serbian|Croatian|Vietnamese|Thai|Indonesian|Malay|Tagalog|Swahili|Persian|Farsi"
    r"|Catalan|Basque|Irish|Welsh|Latin|Esperanto|sign language",
    "CONDITION": r"gluten[- ]free|gluten[- ]intolerant|lactose[- ]intolerant|c[o]?eliac|diabetic"
    r"|asthmatic|colou?r[- ]blind|deaf|blind|dyslexic|pregnant",
    "HOBBY": r"guitar|piano|violin|cello|drums|flute|clarinet|saxophone|trumpet|ukulele|chess"
    r"|tennis"
    r"|football|soccer|basketball|baseball|volleyball|rugby|cricket|golf|hockey|badminton|squash"
    r"|yoga|pilates|karate|judo|surfing|skiing|snowboarding|climbing|bouldering|swimming|running"
    r"|jogging|cycling|knitting|pottery|ballet",
    "COUNT": r"\d{1,2}|an?|another|one|two|three|four|five|six|seven|eight|nine|ten",
    "WHEN": r"(?:(?:on|by|at|before|in) )?(?P<when>[^.;!?()\"]{3,60}?)",
    "URL": r"(?:https?|ftp|file|s3|gs|ssh|git)://[^\s<>\"]+|www\.[^\s<>\"]+"
    r"|(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]+/?|[A-Za-z]:\\[^\s\"]+|\\\\[^\s\"]+"
    r"|#[\w-]{2,}",
    "DO": r"use|write|answer|reply|respond|include|add|run|ask|check|format|keep|show|start|end"
    r"|call"
    r"|put|make|tell|cite|explain|prefer|test|send|confirm|speak|talk|address|begin|commit|push"
    r"|deploy|delete|remove|change|assume|suggest|recommend|mention|quote|translate|summari[sz]e"
    r"|return|print|log|name|document|review|double-check|verify|provide|follow|avoid|be (?:brief"
    r"|concise|polite|honest|direct)",
}


def pattern(source: str) -> re.Pattern[str]:
    """Return the pattern of a source in which `<NAME>` refers to the piece of that name.

    It is compiled at its first use.
    """
    return compiled_later(partial(_compiled, source))


def _compiled(source: str) -> re.Pattern[str]:
    while (
        expanded := re.sub(r"<([A-Z]+)>", lambda found: f"(?:{_PIECES[found[1]]})", source)
    ) != source:
        source = expanded
    return re.compile(source, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One form in which users state a fact.

    Attributes:
        pattern: Matched at the start of a clause; its groups fill the templates.
        type: The type of the memory.
        key: The template of the key, filled with slots.
        content: The template of the sentence, filled with the user's words.
        importance: From 0 to 1.
        each: Whether the group `x` lists several things, each of which is a memory.
        whole: Whether it is matched against the whole sentence, not against each clause.
        opening: Whether it counts only in the first sentence of a message.
        reply: Whether it counts only in a correction: after the assistant's message, or "No, ...".
        check: Whether a group's words are understood by themselves; if not, nothing is kept.
    """

    pattern: re.Pattern[str]
    type: MemoryType
    key: str
    content: str
    importance: float = 0.5
    each: bool = False
    whole: bool = False
    opening: bool = False
    reply: bool = False
    check: Callable[[str], bool] = stands


@dataclass(frozen=True, slots=True)
class Retraction:
    """One form in which users say that a fact no longer holds.

    Attributes:
        pattern: Matched at the start of a clause.
        keys: Templates of the keys to retire, if such memories exist.
        named: Whether a retired memory must be about the named thing.
    """

    pattern: re.Pattern[str]
    keys: tuple[str, ...]
    named: bool = False
