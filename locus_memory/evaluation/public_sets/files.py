"""The files of public sets: which of them belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.public_sets.shapes import in_own_form

__all__ = ["read_document"]

_BEAM_QUESTIONS: Final = "probing_questions/probing_questions.json"


def read_document(path: Path) -> Any:
    """Return the JSON of a file, or that of all chats of a folder.

    Raises:
        OSError: A file cannot be read.
        InvalidArgumentError: It is not JSON, or nothing of it is a chat.
    """
    if not path.is_dir():
        document = _json(path.read_bytes(), path)
        return _with_questions(document, path) if _is_memory_bank(document) else document
    found = [_beam_files(each, path) for each in path.rglob(_BEAM_QUESTIONS)]
    found.sort(key=lambda entry: (len(entry["id"]), entry["id"]))
    for each in () if found else sorted(path.glob("*.json")):
        found += in_own_form(read_document(each), str(each))
    return found


def _is_memory_bank(document: Any) -> bool:
    people = document.values() if isinstance(document, dict) else ()
    return any(isinstance(each, dict) and "history" in each for each in people)


def _with_questions(people: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    """Return MemoryBank's people with their questions, which are in a file beside."""
    beside = path.with_name(f"{path.stem.replace('memory_bank', 'probing_questions')}.jsonl")
    if not beside.is_file():
        raise InvalidArgumentError(f"{path}: the questions of MemoryBank are in {beside.name}")
    asked: dict[str, Any] = {}
    for line in filter(None, beside.read_bytes().splitlines()):
        asked |= _json(line, beside)
    return [{**person, "asked": asked.get(name, [])} for name, person in people.items()]


def _beam_files(asked: Path, root: Path) -> dict[str, Any]:
    """Return the files of a chat; the shortened one, where there is one, as BEAM's harness does."""
    folder = asked.parents[1]
    short = folder / "chat_trunecated.json"
    chat = short if short.is_file() else folder / "chat.json"
    return {
        "id": "/".join(folder.relative_to(root).parts) or folder.resolve().name,
        "chat": _json(chat.read_bytes(), chat),
        "probing_questions": _json(asked.read_bytes(), asked),
    }


def _json(content: bytes, path: Path) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidArgumentError(f"{path}: not JSON: {error}") from None
