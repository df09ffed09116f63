"""Datasets: conversations with questions, and the turns that hold the answers.

The public files are read as they are; the shape of a file says which it is:

- LoCoMo, `locomo10.json`: A. Maharana et al., "Evaluating very long-term conversational memory of
  LLM agents", ACL 2024, https://github.com/snap-research/locomo.
- LongMemEval, `_s`, `_m` and `_oracle`: D. Wu et al., "LongMemEval: benchmarking chat assistants on
  long-term interactive memory", ICLR 2025, https://github.com/xiaowu0162/LongMemEval.
- BEAM, a folder of chats: M. Tavakoli et al., "Beyond a million tokens", 2025,
  https://github.com/mohammadtavakoli78/BEAM.
- REALTALK, a chat or the folder of all: D.-H. Lee et al., "REALTALK: a 21-day real-world dataset
  for long-term conversation", 2025, https://github.com/danny911kr/REALTALK.
- MemoryBank, with its questions beside it: W. Zhong et al., "MemoryBank: enhancing large language
  models with long-term memory", AAAI 2024,
  https://github.com/zhongwanjun/MemoryBank-SiliconFriend.
- Our own form: a list of conversations, each with `id`, `sessions` (each with `date_time` and
  `turns` of `id`, `speaker`, `text` and optionally `image_caption` and `date_time`) and `questions`
  (each with `question`, `category` and optionally `evidence`, the ids of turns, `answer`, which may
  be a list of several right ones, `id`, `abstain` and `asked_at`).

`public_sets` turns each of the others into our own form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from locus_memory._internal.quoting import quote, shorten
from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.public_sets.files import read_document
from locus_memory.evaluation.public_sets.shapes import in_own_form
from locus_memory.retrieval.turns import Turn

__all__ = ["Conversation", "Question", "Session", "load_sample", "parse_dataset", "read_dataset"]

_CATEGORIES: Final = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_ADVERSARIAL: Final = 5
_NO_MOMENT: Final = datetime.min.replace(tzinfo=UTC)
# Some lists of evidence are one string: "D8:6; D9:17".
_TURN_ID: Final = re.compile(r"[^\s;,]+")
_WEEKDAY: Final = re.compile(r" \(\w+\)")
_DATE_FORMATS: Final = (
    "%I:%M %p on %d %B, %Y",
    "%I:%M %p on %d %B %Y",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%B-%d-%Y",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation.

    Attributes:
        text: The question.
        category: The kind of question.
        evidence: The ids of the turns that hold the answer; empty: the file names none.
        id: The id in the conversation.
        expected: The right answers, of which one is enough; empty: the file has none.
        abstain: Whether the right answer is that it is not known.
        asked_at: The moment at which it is asked; where the file names none, that of the last turn.
    """

    text: str
    category: str
    evidence: tuple[str, ...]
    id: str = ""
    expected: tuple[str, ...] = ()
    abstain: bool = False
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A part of a conversation at one time.

    Attributes:
        name: Its name in the conversation.
        turns: Its turns, each with an id.
    """

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and questions about it.

    Attributes:
        id: The id.
        sessions: The sessions in the order of time.
        questions: The questions that have an answer and evidence for it, which a search can find.
        others: The questions whose right answer is that it is not known, and those without
            evidence.
    """

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    others: tuple[Question, ...] = ()

    @property
    def asked(self) -> tuple[Question, ...]:
        """All questions, which a model can be asked."""
        return self.questions + self.others


_CHECKED: Final = TypeAdapter(Conversation)


def read_dataset(path: str | Path) -> list[Conversation]:
    """Return the conversations of a file or a folder.

    Raises:
        OSError: A file cannot be read.
        InvalidArgumentError: It holds no conversations in a form that is known.
    """
    return parse_dataset(read_document(Path(path)), str(path))


def load_sample() -> list[Conversation]:
    """Return the small dataset of the package: invented, and free to use."""
    return read_dataset(Path(str(files("locus_memory.evaluation").joinpath("conversations.json"))))


def parse_dataset(document: Any, source: str = "the data") -> list[Conversation]:
    """Return the conversations of a JSON document; `source` names it in errors.

    Evidence that names no turn of the conversation is left out, and so is an id that several turns
    have; each of these turns gets its place in the conversation behind its id.

    Raises:
        InvalidArgumentError: It holds no conversations in a form that is known.
    """
    found = []
    for number, entry in enumerate(in_own_form(document, source), 1):
        try:
            found.append(_CHECKED.validate_python(_conversation(entry)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = shorten(f"{type(error).__name__}: {error}")
        else:
            continue
        raise InvalidArgumentError(f"{source}: not a conversation: number {number}: {problem}")
    _check_unique((each.id for each in found), f"{source}: two conversations")
    for conversation in found:
        asked = f"{source}: {quote(conversation.id)}: two questions"
        _check_unique((each.id for each in conversation.asked), asked)
    return found


def _conversation(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a conversation; their types are checked afterwards."""
    sessions: list[dict[str, Any]] = [
        {
            "name": f"session-{number:04}",
            "turns": [_turn(turn, session.get("date_time")) for turn in session["turns"]],
        }
        for number, session in enumerate(entry["sessions"], 1)
        if session["turns"]
    ]
    moments = [
        next((turn["said_at"] for turn in session["turns"] if turn["said_at"]), None)
        for session in sessions
    ]
    # A session without a moment stays behind the one before it. The sort is stable.
    keys = accumulate(moments, lambda before, moment: moment or before, initial=_NO_MOMENT)
    ranked = sorted(zip([*keys][1:], sessions, strict=True), key=itemgetter(0))
    sessions = [session for _, session in ranked]
    turns = [turn for session in sessions for turn in session["turns"]]
    last = max((turn["said_at"] for turn in turns if turn["said_at"]), default=None)
    counts = Counter(turn["id"] for turn in turns)
    known = {name for name, count in counts.items() if count == 1}
    for place, turn in enumerate(turns, 1):
        if counts[turn["id"]] > 1:
            turn["id"] += f" ({place})"
    asked = [_question(each, n, known, last) for n, each in enumerate(entry["questions"], 1)]
    return {
        "id": str(entry["id"]),
        "sessions": sessions,
        "questions": [each for each in asked if each["evidence"] and not each["abstain"]],
        "others": [each for each in asked if each["abstain"] or not each["evidence"]],
    }


def _turn(entry: Mapping[str, Any], day: str | None) -> dict[str, Any]:
    return {
        "text": entry.get("text") or "",
        "speaker": entry["speaker"],
        "said_at": _moment(entry.get("date_time")) or _moment(day),
        "caption": entry.get("image_caption") or "",
        "id": str(entry["id"]),
    }


def _question(
    entry: Mapping[str, Any], number: int, known: set[str], last: datetime | None
) -> dict[str, Any]:
    category, answers = entry["category"], entry.get("answer")
    abstain, evidence = entry.get("abstain"), entry.get("evidence") or ()
    if not isinstance(abstain, bool | None):
        raise TypeError("abstain is true or false")
    named: list[str] = []
    for each in [evidence] if isinstance(evidence, str) else map(str, evidence):
        named += [each] if each in known else _TURN_ID.findall(each)
    answers = answers if isinstance(answers, list) else [answers]
    return {
        "text": entry["question"],
        "category": _CATEGORIES.get(category, str(category)),
        "evidence": list(dict.fromkeys(name for name in named if name in known)),
        "id": str(entry.get("id", number)),
        "expected": [str(each) for each in answers if each is not None and str(each).strip()],
        "abstain": category == _ADVERSARIAL or bool(abstain),
        "asked_at": _moment(entry.get("asked_at")) or last,
    }


def _moment(text: str | None) -> datetime | None:
    bare = _WEEKDAY.sub("", text or "")
    for each in _DATE_FORMATS:
        try:
            return datetime.strptime(bare, each).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        found = datetime.fromisoformat(bare)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _check_unique(names: Iterable[str], what: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidArgumentError(f"{what} have the id {quote(name)}")
