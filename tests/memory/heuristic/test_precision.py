"""The precision of the shipped conversations: the whole table is in `docs/benchmarks.md`."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("rules", FOLDER / "rules_precision.py")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules["rules"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["rules"]


async def test_what_is_kept_of_the_shipped_conversations_is_right(script, capsys):
    assert await script.main([]) == 0
    row = capsys.readouterr().out.splitlines()[2].split("|")
    right, kept = map(int, re.findall(r"(\d+) of (\d+)", row[3])[0])
    assert right == kept >= 7
    found, wanted = map(int, re.findall(r"(\d+) of (\d+)", row[4])[0])
    assert found >= 7
    assert wanted == 23


async def test_an_output_without_a_label_counts_as_wrong(script, tmp_path, capsys):
    turns = [{"id": "S1:1", "speaker": "Ada", "text": "I live in Graz."}]
    talk = {"id": "talk", "sessions": [{"turns": turns}]}
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(talk), encoding="utf-8")
    assert await script.main([path]) == 1
    out = capsys.readouterr().out
    assert "| talk | - | 0 of 1, 0.000 | - |" in out
    assert "no label: " in out
    assert "home: The user lives in Graz." in out


def test_the_labels_hold_no_text_of_the_conversations(script):
    read = json.loads(script.LABELS.read_text(encoding="utf-8"))
    for labels in read["sets"].values():
        for name, label in labels.items():
            assert re.fullmatch(r"[0-9a-f]{16}", name)
            assert set(label) <= {"right", "why", "was"}
            assert label["right"] == ("why" not in label)
