"""The demo's memory that tends itself: the output of the step and its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus_memory.cli.demo import tending_steps as steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus_memory.cli.demo.stage import Stage

__all__ = ["play_tending"]

_FADED: Final = 0.01
_FLOOR: Final = 0.2
_PRINTED: Final = 3


def play_tending(stage: Stage) -> None:
    """Play the step on the demo's database, for a user of its own."""
    stage.title("What a memory keeps and shows: unused facts fade, and everything known is shown")
    found = stage.found["tending"] = dict[str, Any]()
    for step in (_fade, _talk, _overrule):
        step(stage, found)


def _fade(stage: Stage, found: dict[str, Any]) -> None:
    year = found["year"] = stage.session.run(steps.pass_a_year)
    stage.say(f"{year['weeks']} weeks later, in which nobody asked about two facts:")
    for kept in year["kept"]:
        stage.say(f"  today: {kept['content']} [salience {kept['salience']:.2f}]")
    salience = {kept["content"]: kept["salience"] for kept in year["kept"]}
    stage.check(
        "the fact that nobody used has faded, and is still known",
        ok=0 <= salience.get(steps.TEA, 1) < _FADED,
    )
    stage.check(
        "the allergy, a fact of importance 1.0, has not faded below the floor",
        ok=salience.get(steps.ALLERGY, 0) >= _FLOOR,
    )


def _talk(stage: Stage, found: dict[str, Any]) -> None:
    talk = found["talk"] = stage.session.run(steps.talk)
    stage.say(f"now {len(talk['facts'])} facts are known, and the user said {steps.SAID!r};")
    stage.say("what the model is shown of them:")
    _print(stage, talk["shown"])
    known = {f"- {text}" for text in (*talk["facts"], steps.SAID)}
    stage.check(
        "all facts are shown, and the user's own words, whatever the message says",
        ok=len(talk["facts"]) > steps.MANY
        and all(known <= set(each["lines"]) for each in talk["shown"]),
    )
    stage.check(
        "they stand in the system prompt, which is the same for both messages",
        ok=len({each["system"] for each in talk["shown"]}) == 1
        and all(line in str(talk["shown"][0]["system"]) for line in known),
    )


def _overrule(stage: Stage, found: dict[str, Any]) -> None:
    ruled = found["override"] = stage.session.run(steps.overrule)
    newer = ruled["newer_facts"]
    stage.say(f"the user fixes a rule, {ruled['rule']!r}, and {newer} newer facts follow:")
    _print(stage, ruled["shown"])
    stage.check(
        f"with {newer} newer facts, the rule still reaches the model",
        ok=newer == steps.MANY and ruled["shown"][0]["lines"][:1] == [f"- always: {steps.RULE}"],
    )


def _print(stage: Stage, shown: Sequence[dict[str, Any]]) -> None:
    for each in shown:
        stage.say(f"> {each['query']}")
        first, last = each["lines"][:_PRINTED], each["lines"][_PRINTED:][-1:]
        stage.say(f"  {len(each['lines'])} lines, {each['tokens']} tokens")
        for line in (*first, "...", *last):
            stage.say(f"  {line}")
