"""The English wordings that the gate recognises, as patterns over a folded message.

A folded message is in lower case, without apostrophes, and with single spaces, see `folded`. Each
table lists forms in which people ask; the first rule that matches decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from locus_memory._internal.lazy import compiled_later
from locus_memory.memory.planning.decision import Section

__all__ = [
    "ACKNOWLEDGEMENT",
    "EXPLETIVES",
    "PRONOUNS",
    "WORDINGS",
    "Wording",
    "concerns_user",
    "ends",
    "folded",
]

_LOOKED_AT: Final = 200
"""How many characters of each end of a long message are read: a question is at one of them."""

_APOSTROPHES: Final = re.compile("['\u2018\u2019\u02bc\u00b4`\uff07]")
_SPACE: Final = re.compile(r"\s+")

_PIECES: Final = {
    "WE": r"(?:we|you and i|you and me|i and you)",
    "HAVE": r"(?:have |had |ve |d )?(?:just |already |last |once |previously |originally )?",
    "SAY": r"(?:say|said|write|wrote|written|tell|told|ask|asked|answer|answered|type|typed|send"
    r"|sent|put|phrase|phrased|word|worded|promise|promised)",
    "WHATS": r"(?:what ?s|what (?:is|are|was|were)|whats|tell me|remind me (?:of |what )?|give me"
    r"|do you (?:still )?(?:know|remember)|remember)",
    "OWN": r"(?:my|our)",
    "TASTE": r"(?:like|love|prefer|enjoy|avoid|hate|dislike|favou?r|eat|drink|order|take|use|wear"
    r"|read|watch|listen to|play|want)",
    "TALK": r"(?:conversation|chat|session|discussion|talk|thread|exchange|meeting|call)",
    "WHEN": r"(?:last (?:time|week|session|month|night|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday)|yesterday|this morning"
    r"|the other day|back then|(?:a while|some time|\w+ (?:days|weeks|months)) (?:ago|back))",
    "AGO": r"(?:last|previous|prior|earlier|past|first|recent|yesterday ?s|mondays|tuesdays"
    r"|wednesdays|thursdays|fridays)",
    "TALKED": r"(?:discuss(?:ed)?|talk(?:ed|ing)? (?:about|over|through)|spoke (?:about|of)"
    r"|sp(?:eak|oken) (?:about|of)|decided?|agreed?|settled?(?: on)?|plan(?:ned)?|conclude[d]?"
    r"|cover(?:ed)?|work(?:ed|ing)? on|go(?:ne)? over|went over|come up with|came up with"
    r"|choo?se|chosen|pick(?:ed)?|look(?:ed)? at|brainstorm(?:ed)?|draft(?:ed)?|outlined?"
    r"|sketch(?:ed)?|sort(?:ed)? out|arranged?|set up|figured? out|finish(?:ed)?|start(?:ed)?)",
}


@dataclass(frozen=True, slots=True)
class Wording:
    """A way of asking for one section.

    Attributes:
        section: The section.
        reason: What was asked, in two or three words.
        pattern: Searched in the folded message.
        unless: Where this is found too, the wording does not count.
    """

    section: Section
    reason: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None = None


def ends(text: str) -> str:
    """Return a short message as it is, and the two ends of a long one."""
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def folded(text: str) -> str:
    """Return the two ends of a message, casefolded, without apostrophes and with single spaces."""
    return _SPACE.sub(" ", _APOSTROPHES.sub("", ends(text)).casefold()).strip()


def _pattern(*forms: str) -> re.Pattern[str]:
    """Return a pattern of whole words for any of the forms; `<NAME>` stands for a piece."""
    source = "|".join(forms)
    for name, piece in _PIECES.items():
        source = source.replace(f"<{name}>", piece)
    return compiled_later(partial(re.compile, rf"\b(?:{source})\b"))


_EXACT_WORDS: Final = _pattern(
    r"(?:the |my |your |our |his |her |their |those |these )?(?:exact|precise|very same|literal)"
    r" (?:words|wording|phrase|phrasing|sentence|text|quote|message|question|answer|reply|command)"
    r"(?= (?:i|you|we|of|from|that|my|he|she|they)\b| ?[?.!]| ?$)",
    r"(?:what|how) (?:exactly|precisely) (?:did|had|was it) (?:i|you|we|that i|that you) ?<SAY>?",
    r"(?:what|how) did (?:i|you|we) (?:exactly |precisely |literally )<SAY>",
    r"(?:what|how) did (?:i|you|we) <SAY>(?: \w+){0,4} (?:exactly|precisely|literally)",
    r"exactly (?:what|how) (?:i|you|we) <SAY>",
    r"verbatim",
    r"word for word",
    r"(?:letter for letter|to the letter) what",
    r"quote (?:me|us|yourself)(?! (?:a )?(?:price|on this))",
    r"quote (?:back )?(?:what|my|your|our|the (?:message|part|line|sentence))"
    r"(?: \w+){0,6} (?:i|you|we|message|messages|words|question|answer)",
    r"in (?:my|your) (?:own|exact|original) words when",
    r"repeat (?:back )?(?:exactly )?(?:what|the (?:thing|message|sentence)) (?:i|you|we) <SAY>",
    r"(?:what|which) (?:were|was) (?:my|your|our) (?:exact|original|actual|precise|last|first)"
    r" (?:words?|message|question|sentence|request|instruction)s?",
    r"(?:show|find|pull up|dig up|look up|search)(?: me| for)? (?:the )?(?:message|messages|place"
    r"|part|line|spot|turn) (?:where|in which|that|when) (?:i|you|we)",
)

# "Translate this word for word" asks for a task on a text that is in the message itself.
_TASK_ON_TEXT: Final = _pattern(
    r"(?:translate|copy|transcribe|reproduce|type out|paste|memori[sz]e|recite|render)",
    r"(?:the following|this (?:text|sentence|paragraph|passage|email|letter|document|line))",
    r"(?:meaning|definition|difference|origin|synonym|pronounce|mean)",
)

_ABOUT_SELF: Final = _pattern(
    r"<WHATS> <OWN> (?:(?:first|last|full|middle|sur|family|given|maiden|nick|real|own) ?)?names?"
    r"(?! (?:mean|tag|server|come))",
    r"<WHATS> my (?:surname|nickname|age|job|occupation|profession|job title|employer|company"
    r"|workplace|home ?town|home city|home address|nationality|citizenship|native language"
    r"|mother tongue|background)(?! of\b)",
    r"who (?:am i|i am)(?= ?[?.!,]| ?$| again| really| to you| and | in )",
    r"what am i called",
    r"(?:what|which|how much|anything|everything|something|all|whatever)(?: \w+){0,2}? (?:do )?you"
    r"(?: already| currently| actually)? (?:know|knew|remember|learned|learnt|recall"
    r"|have (?:stored|saved|noted|learned|learnt|remembered)|found out|think you know)"
    r" (?:about|of|on) (?:me|us|my (?:life|family|job|work|background|self))",
    r"(?:do|did|can) you (?:still |even |actually )?(?:know|remember|recall|recogni[sz]e)"
    r" (?:me|who i am|my name)",
    r"(?:tell|show|remind) me (?:something |everything |what you know |more )?about (?:me|myself)",
    r"(?:describe|introduce) (?:me|myself)",
    r"(?:what|which) (?:facts|things|details|information|memories|notes)(?: \w+){0,3}"
    r" (?:about|on|of) me",
    r"where (?:do|did|am|was) i (?:currently |now |actually |still )?(?:live|living|work|working"
    r"|come from|from|born|based|grow up)",
    r"(?:which|what) (?:city|town|country|place|village|street|company|firm|school|university)"
    r" (?:do|did|am|was) i (?:currently |now )?(?:live|living|work|working|from|born|based|go to"
    r"|attend|study)",
    r"how old am i(?! if| when| in \d)",
    r"when was i born",
    r"what do i do (?:for a living|for work|professionally|at work)",
    r"what languages? (?:do|can) i speak",
    r"(?:do|did) (?:i|we) have (?:any )?(?:kids?|child(?:ren)?|sons?|daughters?|siblings?|brothers?"
    r"|sisters?|pets?|a (?:wife|husband|partner|girlfriend|boyfriend|dog|cat))",
    r"(?:am i|are we) (?:still )?(?:married|single|engaged|divorced|retired)",
)

_OWN_TASTE: Final = _pattern(
    r"(?:do|can|did|could) you (?:still )?(?:remember|recall|know) (?:my|our|what i|how i|which"
    r" \w+ i) (?:preference|preferences|favou?rites?|usual|taste|tastes|diet|dietary|allerg\w+"
    r"|habits?|like|prefer|take|usually|always|want|eat|drink)",
    r"(?:my|our) usual",
    r"(?:my|our)(?: all.time| absolute| second)? favou?rites?",
    r"my (?:preferred|go.to|regular|standard|default|typical)",
    r"how (?:do|did|would) i (?:usually |normally |always |typically )?(?:like|prefer|take|want"
    r"|drink) (?:my|our|it|them)",
    r"(?:what|which|who|where)(?: \w+){0,3}? (?:do|did|would) i (?:usually |normally |always"
    r" |typically |generally |really |most |never |tend to |like to |prefer to )?<TASTE>"
    r"(?! to (?:be able|make sure))",
    r"what (?:am|was) i (?:allergic|intolerant|sensitive|used|afraid|scared|into|interested)",
    r"am i (?:allergic|intolerant|sensitive|afraid|lactose|gluten)",
    r"(?:do|did) i (?:usually |really |still |even )?(?:like|love|prefer|enjoy|hate|dislike|mind)",
    r"(?:what|which) (?:are|were|is|was) my (?:\w+ )?(?:preferences?|allerg(?:y|ies)|hobb(?:y|ies)"
    r"|interests?|tastes?|habits?|dislikes?|likes|goals?|diet|requirements|restrictions?|routine"
    r"|settings|conventions?)",
    r"(?:the way|just how|how|what) i (?:usually |always |normally )?(?:like|prefer|take)"
    r" (?:it|them|my|things|to)",
    r"(?:according to|based on|considering|given|respecting|with|fits?|suits?|match(?:es)?) my"
    r" (?:\w+ )?(?:preferences?|tastes?|allerg(?:y|ies)|diet|interests?|likes|goals|habits"
    r"|restrictions?|style)",
    r"as (?:i )?(?:always|usual)(?: like)? (?:for me|please)?(?= ?[?.!]| ?$)",
    r"you know (?:what|how|which) (?:\w+ )?i (?:like|prefer|want|mean)",
)

# Questions about the user's own life, as opposed to "How do I boil an egg?".
_OWN_LIFE: Final = _pattern(
    r"(?:what|which|where|when|who|whose|whom|how (?:many|much|often|long|far))(?: \w+){0,5}?"
    r" (?:did|have|had|was|am) i(?! (?:supposed|allowed|to|looking|doing wrong|say|said|tell|told"
    r"|mention|ask|write|do wrong|missing|kidding|talking|speaking|dealing)\b)",
    r"(?:what|which|where|when|who|whose|how (?:many|much|often|long))(?: \w+){0,5}? do i"
    r" (?:usually |normally |always |still |currently |regularly |often )?(?:have(?! to)|own"
    r"|keep|collect|play|live|work|study|teach|drive|ride|practi[sc]e|volunteer|belong|grow|speak|train|meet|sing"
    r"|walk|run|swim|paint|owe|pay|earn|bank|support|visit|attend|wear|take my)",
    r"(?:do|did|have|had) (?:i|we) (?:still |ever |already )?(?:have (?:a|an|any)|own|been|visited"
    r"|met|seen|booked|paid|bought)",
    r"(?:am i|are we) (?:still )?(?:vegetarian|vegan"
    r"|left.handed|diabetic|pregnant|insured)",
    r"(?:whats|whos|whens|wheres|what|who|when|where|which|how (?:old|tall|big)) (?:is|are|was|were"
    r"|does|do|did|s)?(?: the (?:names?|age|date|day|title|number|address|brand|model|colou?r"
    r"|breed)s? of)? ?(?:my|our) (?!(?:ip|best (?:bet|option|chance)|rights|options|chances?"
    r"|browser|computer|screen|laptop|phone|code|function|loop|query|regex|program|script)\b)",
)

_PAST_TALK: Final = _pattern(
    r"(?:what|which|why|how|when|where|who|did|had|have|hadnt|didnt|havent|whether|if|as|that"
    r"|like|things?|topics?|stuff|everything|anything|something)(?: \w+){0,3}? <WE> <HAVE><TALKED>",
    r"<WE> (?:(?:have|had|just|already|last|once|previously|originally|were|recently|both|also"
    r"|finally|never|briefly) ){0,2}(?:discussed|talked|talking|spoke|spoken|agreed|decided"
    r"|settled|concluded|covered|brainstormed|drafted|went over|came up with|figured out"
    r"|planned|chose|chosen|picked)",
    r"(?:did|have|had|didnt|havent|hadnt) <WE> (?:already |ever |not |finally |once )?<TALKED>",
    r"(?:do you )?(?:remember|recall) (?:when|that time|the time|the day|our|the (?:conversation"
    r"|discussion|chat|idea|plan|story|trip|thing|one|problem|bug|issue|meeting|project))",
    r"(?:do|can|did) you (?:still |even )?(?:remember|recall)(?: \w+){0,4}? (?:i|we|me|my|us|our)",
    r"(?<!the )last time(?= (?:i|we|you)\b| ?[?.!,]| ?$| around)",
    r"(?:the|that) last time (?:i|we|you)",
    r"(?:we|our|us)\b[^.?!]{0,60}? <WHEN>",
    r"(?:what|which|when|where|who|why|how|did|was|were)(?: \w+){0,4}? (?:i|my|me)\b[^.?!]{0,60}?"
    r" <WHEN>",
    r"<WHEN>(?: \w+){0,2} (?:we|our)",
    r"last (?:week|session|month|night)s (?:<TALK>|plan|decision|topic)",
    r"(?:our|my|the|that|your) <AGO> <TALK>s?",
    r"(?:last|previous|earlier|prior|yesterdays) (?:session|conversation|chat)s?",
    r"where (?:were|did|had|was) (?:we|i)(?: (?:leave|left|stop|stopped|get to|got to|up to|end"
    r"|ended|at))?(?: off| things| it| with| on)?(?= ?[?.!,]| ?$| in | with | on | yesterday"
    r"| last | before )",
    r"(?:where|what) (?:we|i) (?:left off|left it|stopped|were (?:doing|at|up to|working on))",
    r"(?:pick|carry|take|start) (?:it |things |this )?(?:up )?(?:on )?(?:again )?(?:from )?where"
    r" (?:we|i)",
    r"(?:continue|resume|go on|carry on|get back to|back to|go back to) (?:with )?(?:our|where"
    r"|from (?:last|yesterday|before|where)|what we|the (?:thing|topic|project|plan|draft|story)"
    r" (?:we|from|you))",
    r"(?:did|have|had|didnt|havent|hadnt) i (?:already |ever |not |once |even |just )?(?:tell|told"
    r"|mention|mentioned|say|said|ask|asked|show|shown|showed|send|sent|share|shared|give|given"
    r"|explain|explained|talk|talked|describe|described)",
    r"i (?:(?:already|once|just|had|have|previously|definitely|think i|thought i) ){0,2}(?:told"
    r"|mentioned(?: to)?|showed|asked|sent|gave|said to) (?:you|that|this|it)",
    r"(?:as|like|what|which|that|the \w+|thing|things) (?:i|we) (?:(?:have|had|just|already"
    r"|previously|ve) )?(?:said|told you|mentioned|asked you|wrote|described|explained|shared"
    r"|discussed|agreed|decided|planned|worked on) (?:earlier|before|about|to you|you|last|on|in"
    r"|yesterday|the other)",
    r"(?:have|had|did|didnt|havent) you (?:already |ever |not |just |once )?(?:tell|told|mention"
    r"|mentioned|say|said|suggest|suggested|recommend|recommended|promise|promised|explain"
    r"|explained|propose|proposed|advise|advised|give me|given me|gave me|show|shown)",
    r"(?:what|which|who|where|why|how|that|the \w+|the \w+ \w+)(?: \w+){0,2}? you (?:(?:had|have"
    r"|just|already|ve|once) )?(?:told|mentioned|suggested|recommended|promised|explained|proposed"
    r"|advised|gave|sent|showed|said|wrote|came up with|helped) ?(?:me|us|earlier|before|last"
    r"|yesterday|in|on|about|to|with)?",
    r"you (?:(?:had|have|just|already|once|previously) )?(?:told|suggested|recommended|promised"
    r"|advised|warned|reminded|helped|gave|showed) (?:me|us)",
    r"(?:what|which|who|where|why|when)(?: \w+){0,3}? did you (?:(?:just|already|actually"
    r"|originally|finally|last) ){0,2}(?:say|tell|decide|agree|plan|choose|pick|conclude|suggest"
    r"|recommend|mention|promise|ask|advise|propose|explain|write|give|send|show)",
    r"(?:what|which|who|where|why|when)(?: \w+){0,3}? did i (?:(?:just|already|last) ){0,2}(?:say"
    r"|tell|mention|ask)",
    r"(?:any|some|whats the|what is the) (?:news|update|updates|progress|status)(?: \w+)? (?:on"
    r"|about|with|of|from) (?:my|our|the thing)",
    r"(?:what|which)(?: \w+)? (?:action items|open (?:tasks|points|questions|items|todos)|to.?dos"
    r"|next steps|decisions)(?: \w+){0,3} (?:we|i|our|my|left|open|pending|outstanding|so far)",
    r"(?:my|our) (?:open|pending|outstanding|remaining) (?:tasks|points|questions|items|todos"
    r"|to.dos|action items)",
)

# "When was the last time a comet passed" asks about the world.
_OF_THE_WORLD: Final = _pattern(
    r"(?:write|compose|translate|proofread|rephrase|rewrite|paraphrase)(?: \w+){0,8}?"
    r" (?:email|letter|poem|story|note|message|sentence|text|speech|dialogue|essay)",
    r"(?:translate|proofread|rephrase|paraphrase|how do you say|conjugate)",
)

WORDINGS: Final = (
    Wording("transcript", "exact words", _EXACT_WORDS, _TASK_ON_TEXT),
    Wording("identity", "about the user", _ABOUT_SELF, _OF_THE_WORLD),
    Wording("pinned", "the user's taste", _OWN_TASTE, _OF_THE_WORLD),
    Wording("episode", "an earlier talk", _PAST_TALK, _OF_THE_WORLD),
    Wording("pinned", "the user's life", _OWN_LIFE, _OF_THE_WORLD),
)
"""The rules 1 to 4, from the most specific. A question about the user's own life belongs to rule 3,
but its words are the most general: a talk goes first."""

PRONOUNS: Final = re.compile(
    r"\b(?:(?P<person>(?:he|she|him|her|hers|they|them|theirs)\b)"
    r"|(?P<thing>(?:it|its|that|this|those|these)\b)"
    r"(?= ?[?.!,;]| ?$| (?:again|now|yet|then|work|works|worked|go|goes|went|done|ok|okay|please"
    r"|so|too|still|already|any|any ?more|finished|ready|out|up|down|off|on|over|for (?:me|us"
    r"|tomorrow|today|monday|friday)|to (?:me|us|him|her|them|my)|with|in (?:the|my|our)|first"
    r"|instead|better|shorter|longer|tomorrow|today|tonight|later|happen|happened|help|helped"
    r"|turn|turned|is|was|all|and|or|but|before|after|a bit|a little|more|less|into|a|one|ones"
    r"|look|looked|sound|sounds|fix|fixed|fail|failed|break|broke|pass|passed|ever)\b))"
)
"""The pronouns of rule 6. A thing counts only where it stands alone: "this" before a noun points
at something in the message."""

EXPLETIVES: Final = _pattern(
    # "It" and "they" that stand for nothing that was said before.
    r"what time (?:is|was|does)(?: it)?",
    r"(?:time|day|date|late|early|far|hot|cold|warm|dark) (?:is|was|will|would) it",
    r"(?:is|was|isnt|would|will|does|did|could|can|might|should) it (?:be |really |still |ever"
    r" |even |usually |always |actually )?(?:safe|ok|okay|possible|true|better|worth|good|bad"
    r"|normal|legal|illegal|healthy|necessary|easy|hard|rude|correct|wrong|common|important"
    r"|dangerous|cheaper|faster|raining|rain|snow|snowing|take|matter|make sense|mean|hurt|help"
    r"|cost)\b",
    r"(?:how (?:long|much|many|hard|far|easy|difficult|expensive)|why)(?: \w+){0,2} (?:does|did"
    r"|will|would|is|should|do|can|could) (?:it|they)",
    r"it (?:is|was|s|takes?|took|rains?|snows?|seems?|depends|turns out|takes|makes sense)",
    r"what does (?:it|this|that) mean (?:to|when|if)",
    r"that(?: is|s)? (?:said|being)",
    r"(?:this|that|these|those) (?:time|way|kind|sort|year|month|week|morning|evening)",
    r"(?:do|did|does|have|are|were|would|will|can|could|should) they (?:say|call)",
    r"(?:thats|this is|that is) (?:it|all|great|fine|good|nice|cool|funny|amazing|awesome|ok|okay"
    r"|right|true|interesting|wonderful|perfect|enough|helpful|kind|lovely|sad)",
    r"(?:got|get|love|like|hate|make|nailed|take|forget|believe|do|doing|done|find|said|say|stop"
    r"|drop|call|mean) (?:it|that|this)(?= ?[?.!,]| ?$)",
)
"""Uses of the pronouns that refer to nothing; they are removed before rule 6 looks."""

ACKNOWLEDGEMENT: Final = re.compile(
    r"(?:thanks|thank you|thx|cheers|ok|okay|k|cool|great|nice|perfect|awesome|wow|lol|haha?|good"
    r"|got it|sure|yes|yeah|yep|no|nope|never ?mind|sorry|bye|goodbye|good ?night|hello|hi|hey)\b"
)
"""The start of a message that reacts, and asks for nothing."""

_PERSONAL: Final = _pattern(
    r"(?:my|mine|our|ours|myself|ourselves|we|us|me)",
    r"i(?:m|ve|d|ll)? (?!(?:do|can|could|would|should|use|make|get|say|write|know|find)\b)\w+",
    r"(?:should|shall|may|am|was|have) i",
    r"(?:recommend\w*|suggest\w*|advise|plan|planning|propose|book|order|recipe|menu|restaurant"
    r"|gifts?|present for|itinerary|remind)",
    # A question about the past of a definite thing, which the user and the assistant know.
    r"(?:did|was|were|had|became of|happened (?:to|with)|replaced|won|built|made)"
    r" (?:\w+ ){0,2}?the",
    r"what (?:can|could|should|shall|do) i (?:eat|cook|wear|read|watch|give|bring|pack|buy|order)",
)

_IMPERSONAL: Final = _pattern(
    r"(?:give|tell|show|teach|sing|let|help|write|make|tell|explain to|draw|read|send) (?:me|us)",
    r"(?:how|why|when|where|what|can|could)(?: \w+){0,2}? (?:do|does|can|could|would|should)"
    r" (?:i|we)(?! (?:eat|cook|wear|read|watch|give|bring|pack|buy|order))",
    r"me and \w+|between (?:me|us)",
)

_ENGLISH: Final = _pattern(
    r"the|is|what|whats|how|of|to|and|for|with|does|do|are|can|could|you|your|my|i|im|who|why|when"
    r"|where|this|that|it|its|should|would|me|be|have|has",
)


def concerns_user(text: str) -> bool:
    """Return whether a message speaks of the user, or asks for advice; or is not in English.

    "How do I boil an egg?" and "Tell me a joke" concern nobody.
    """
    message = folded(text)
    if _PERSONAL.search(_IMPERSONAL.sub(" ", message)):
        return True
    return _ENGLISH.search(message) is None
