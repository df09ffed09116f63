"""Datasets: conversations with questions, and the turns that hold the answers.

Two formats are read. The first is LoCoMo's own file: A. Maharana et al., "Evaluating very long-term
conversational memory of LLM agents", ACL 2024, https://github.com/snap-research/locomo. The
second is simpler: a list of conversations, each with `id`, `sessions` (each with `date_time` and
`turns` of `id`, `speaker`, `text` and optionally `image_caption`) and `questions` (each with
`question`, `category` and `evidence`, the ids of turns).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.turns import Turn

__all__ = ["Conversation", "Question", "Session", "load_sample", "parse_dataset", "read_dataset"]

_CATEGORIES: Final = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_ANSWERED: Final = frozenset({1, 2, 3, 4})
# Some lists of evidence are one string: "D8:6; D9:17".
_TURN_ID: Final = re.compile(r"[^\s;,]+")
_SESSION: Final = re.compile(r"session_(\d+)")
_DATE_FORMATS: Final = ("%I:%M %p on %d %B, %Y", "%I:%M %p on %d %B %Y")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation.

    Attributes:
        text: The question.
        category: The kind of question.
        evidence: The ids of the turns that hold the answer.
    """

    text: str
    category: str
    evidence: tuple[str, ...]


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
        questions: The questions that have an answer and evidence for it.
    """

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


def read_dataset(path: str | Path) -> list[Conversation]:
    """Return the conversations of a file.

    Raises:
        OSError: The file cannot be read.
        InvalidArgumentError: It holds no conversations in either format.
    """
    content = Path(path).read_bytes()
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidArgumentError(f"{path}: not JSON: {error}") from None
    return parse_dataset(document, str(path))


def load_sample() -> list[Conversation]:
    """Return the small dataset of the package: invented, and free to use."""
    name = "conversations.json"
    content = files("locus_memory.evaluation").joinpath(name).read_bytes()
    return parse_dataset(orjson.loads(content), name)


def parse_dataset(document: Any, source: str = "the data") -> list[Conversation]:
    """Return the conversations of a JSON document; `source` names it in errors.

    Only questions of categories 1 to 4 with evidence are kept: the others have no turn to find.
    Evidence that names no turn of the conversation is left out.

    Raises:
        InvalidArgumentError: It holds no conversations in either format.
    """
    if not isinstance(document, list) or not document:
        raise InvalidArgumentError(f"{source}: a data set is a list of conversations")
    try:
        return [_conversation(entry) for entry in document]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise InvalidArgumentError(f"{source}: not a conversation: {problem}") from error


def _conversation(entry: Mapping[str, Any]) -> Conversation:
    locomo = "conversation" in entry
    sessions = tuple(_locomo_sessions(entry["conversation"]) if locomo else _sessions(entry))
    known = {turn.id for session in sessions for turn in session.turns}
    questions = (_question(each, known) for each in entry["qa" if locomo else "questions"])
    return Conversation(
        id=str(entry["sample_id" if locomo else "id"]),
        sessions=sessions,
        questions=tuple(each for each in questions if each is not None),
    )


def _sessions(entry: Mapping[str, Any]) -> Iterator[Session]:
    for number, session in enumerate(entry["sessions"], 1):
        moment = _moment(session.get("date_time"))
        turns = (_turn(turn, "id", "image_caption", moment) for turn in session["turns"])
        yield Session(f"session-{number:04}", tuple(turns))


def _locomo_sessions(conversation: Mapping[str, Any]) -> Iterator[Session]:
    numbers = sorted(int(match[1]) for match in map(_SESSION.fullmatch, conversation) if match)
    for number in numbers:
        moment = _moment(conversation.get(f"session_{number}_date_time"))
        turns = conversation[f"session_{number}"]
        read = (_turn(turn, "dia_id", "blip_caption", moment) for turn in turns)
        yield Session(f"session-{number:04}", tuple(read))


def _turn(turn: Mapping[str, Any], name: str, caption: str, moment: datetime | None) -> Turn:
    return Turn(
        text=turn.get("text") or "",
        speaker=turn["speaker"],
        said_at=moment,
        caption=turn.get(caption) or "",
        id=str(turn[name]),
    )


def _moment(text: str | None) -> datetime | None:
    for each in _DATE_FORMATS:
        try:
            return datetime.strptime(text or "", each).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return None


def _question(question: Mapping[str, Any], known: set[str | None]) -> Question | None:
    category = question["category"]
    listed = "\n".join(question.get("evidence") or ())
    named: list[str] = _TURN_ID.findall(listed)
    evidence = tuple(dict.fromkeys(name for name in named if name in known))
    if category not in _ANSWERED or not evidence:
        return None
    return Question(question["question"], _CATEGORIES[category], evidence)
