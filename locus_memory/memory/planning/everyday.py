"""The everyday words of requests, which say nothing about anybody."""

from __future__ import annotations

from typing import Final

from locus_memory.store.text import stem

__all__ = ["CALENDAR_AND_LANGUAGES", "EVERYDAY"]

# The words of tasks, of texts and numbers, the general words for things and people, and the
# commonest verbs, adjectives and adverbs of English. Function words are stop words already.
_TASKS: Final = """
write rewrite explain translate summarize summarise calculate compute convert list name describe
compare recommend suggest give tell show help find make create generate draft compose fix check
correct improve edit proofread rephrase define spell count sort solve plan design build implement
add remove change replace update run test use using try start stop open close send read say speak
talk ask answer know think understand learn teach remember forget mean look see hear watch keep put
get take bring set let need want like love prefer enjoy hate feel seem become turn happen work live
go come leave call play pay buy sell eat drink cook meet wait begin end finish follow move stay hold
choose decide allow include provide believe expect consider support handle deal avoid prevent
recommendation suggestion explanation translation summary description comparison calculation
"""
_THINGS: Final = """
thing way word sentence paragraph text line letter message email note page title story poem joke
article essay report document file example idea question answer problem solution step reason result
difference meaning definition list number amount percent percentage sum total average list set group
kind sort type form part piece side point place area case fact name topic subject item detail
information data code function program script command method class error bug version option value
string variable table column row key app application website site page link tool software computer
phone program language word game book movie film song music picture photo image video news
person people man woman men women guy child children kid friend family parent user someone somebody
anyone anybody everyone everybody something anything everything nothing stuff life world country
city town home house room door window street road car money price cost job work business company
office team boss colleague school class course student teacher meeting project task plan goal
food meal dish recipe breakfast lunch dinner water coffee tea
"""
_TIMES: Final = """
time day week weekend month year hour minute second today tomorrow yesterday tonight morning
afternoon evening night moment date age century ago early late later soon now always never often
sometimes usually once twice first last next previous new old young recent current daily weekly
"""
_QUALITIES: Final = """
good better best bad worse worst great nice fine well big small large little long short high low
right wrong true false same different similar other another own certain sure possible likely easy
hard difficult simple simpler quick quickly fast slow slowly full empty free open clear main
important common general special real really actual actually basic popular famous favorite
favourite useful
healthy safe cheap expensive beautiful funny happy sad hot cold warm much many more most less least
few lot lots enough even still yet already maybe perhaps please thanks thank hello hi hey okay ok
yes one two three four five six seven eight nine ten hundred thousand half per every
white black red green blue
"""
_PERSONS: Final = "user users assistant ai bot person"

EVERYDAY: Final = frozenset(
    stem(word)
    for words in (_TASKS, _THINGS, _TIMES, _QUALITIES, _PERSONS)
    for word in words.split()
)
"""The stems of these words; a number is one too, see `locus_memory.memory.planning.evidence`."""

_CALENDAR: Final = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december christmas easter
"""
_LANGUAGES: Final = """
english german french spanish italian portuguese dutch polish russian ukrainian chinese mandarin
cantonese japanese korean arabic hebrew hindi urdu turkish greek swedish norwegian danish finnish
czech hungarian romanian latin american british european
"""
_UNITS: Final = "celsius fahrenheit utc gmt am pm ok i"

CALENDAR_AND_LANGUAGES: Final = frozenset(
    stem(word) for words in (_CALENDAR, _LANGUAGES, _UNITS) for word in words.split()
)
"""The stems of words that are capitalised but name nobody."""
