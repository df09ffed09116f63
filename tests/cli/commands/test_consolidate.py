"""The command `consolidate`."""

from __future__ import annotations

import asyncio
import time

import pytest

from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.registry import open_backend
from tests.memory.transcripts import transcript_puts

DAY = 86_400
EXPIRED = "2021-03-01"
OLD = "2020-03-01T10:00:00.000000+00:00"


@pytest.fixture
def told():
    """Leave a fact that has expired, one that endures, and old records, of two users."""

    async def tell():
        clock = lambda: time.time() - 100 * DAY  # noqa: E731
        async with open_backend("sqlite:./locus.db", clock=clock) as backend:
            for user in ("ada", "bob"):
                manager = LLMMemoryManager(backend.store, clock=clock).for_user(user)
                await manager.save(
                    [
                        Memory(MemoryType.USER, "tea", "Ada likes tea.", {"expires_at": EXPIRED}),
                        Memory(MemoryType.USER, "nut", "No walnuts.", {"importance": 1.0}),
                    ]
                )
                scope = Scope(("locus_memory", "users", user))
                when = {"started_at": OLD, "ended_at": OLD}
                old = Episode(session_id="t", notes=(Note("An old session."),), **when)
                turns = transcript_puts(scope, "t", [Message.user("Ahoy.")], 1, OLD)
                await backend.store.put_batch([episode_put(scope, old), *turns])

    asyncio.run(tell())


@pytest.mark.slow
def test_everything_then_nothing(ok, told):
    dry = ok("consolidate", "--dry-run")
    assert dry.out == (
        "memories                       would change\n"
        "expired, moved to the history             2\n"
        "old sessions' notes erased                2\n"
        "old turns erased                          2\n"
    )
    assert len(ok("memories", "--all-users", "--json").json["memories"]) == 2
    done = ok("consolidate").out
    assert done.split() == dry.out.replace("would change", "changed").split()
    assert [m["key"] for m in ok("memories", "--all-users", "--json").json["memories"]] == [
        "nut",
        "nut",
    ]
    assert ok("consolidate").out == "nothing to change\n"
    assert "Ada likes tea." in ok("undo", "tea", "--user", "ada").out


def test_one_user_and_their_retention(ok, fails, told):
    report = ok("consolidate", "--user", "ada", "--retention-days", "0", "--json").json
    assert report["user"] == "ada"
    assert (report["scopes"], report["evicted"], report["pruned_episodes"]) == (1, 1, 0)
    assert ok("history", "tea", "--user", "bob", "--json").json["versions"][0]["until"] is None
    report = ok("consolidate", "--user", "ada", "--json").json
    assert (report["pruned_episodes"], report["pruned_turns"]) == (1, 1)
    assert fails(1, "consolidate", "--user", "eve") == "error: no memories for user 'eve'\n"


def test_without_memories(ok):
    ok("put", "notes", "a", "b")
    assert ok("consolidate").out == "no memories\n"


@pytest.mark.parametrize(
    "wrong",
    [
        ("--retention-days", "-1"),
        ("--retention-days", "nan"),
        ("--retention-days", "4000"),
        ("--floor", "1.1"),
        ("--base-url", "http://localhost"),
    ],
)
def test_wrong_options(fails, wrong):
    assert wrong[0] in fails(2, "consolidate", *wrong)


def test_forget_counts_the_layers(ok, told):
    ok("consolidate", "--retention-days", "0")
    out = ok("forget", "--user", "ada", "--yes").out
    for line in ("sessions with notes", "turns", "log entries"):
        assert line in out
    assert ok("consolidate", "--json").json["scopes"] == 1
