from __future__ import annotations

import asyncio

import pytest

from locus_memory.errors import ConfigurationError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

USERS = ["a", "a/b", "ab", "users", "history", "user", "queue", "cursors", "*", "ü", "a\x00", " "]


def fact(content, key="secret"):
    return Memory(MemoryType.USER, key, content)


def run_of(user, *texts, thread="t", **metadata):
    roles = (Message.user, Message.assistant)
    messages = tuple(roles[n % 2](text) for n, text in enumerate(texts))
    return AgentState(
        messages=messages, metadata={"user_id": user, "thread_id": thread, **metadata}
    )


async def test_no_user_changes_anothers_memories(make):
    manager = make()
    for user in USERS:
        view = manager.for_user(user)
        await view.save([fact(f"first of {user!r}")])
        await view.save([fact(f"second of {user!r}")])
    await manager.for_user("a").forget("secret")
    await manager.for_user("users").undo("secret")
    for user in USERS:
        found = [memory.content for memory in await manager.for_user(user).history("secret")]
        expected = [f"second of {user!r}", f"first of {user!r}"]
        assert found == {"a": [], "users": expected[::-1]}.get(user, expected)


async def test_concurrent_runs_never_mix(make):
    manager = make()
    for user in USERS:
        await manager.for_user(user).save([fact(f"secret of {user!r}")])
    states = [run_of(user, "What is my secret?") for user in USERS for _ in range(3)]
    started = await asyncio.gather(*map(manager.on_session_start, states))
    for state in started:
        lines = [line for line in state.messages[0].content.splitlines() if "secret of" in line]
        assert len(lines) == 1
        assert f"secret of {state.metadata['user_id']!r}".replace("\x00", "")[:12] in lines[0]


@pytest.mark.parametrize("user", [7, ["a"], True, b"a", ""])
async def test_a_user_who_cannot_be_told_apart_gets_nothing(make, events, user):
    manager = make()
    await manager.save([fact("of everybody")])
    state = run_of(user, "Hi", "Ho")
    assert await manager.on_session_start(state) is state
    await manager.on_session_end(state)
    assert events.names == ["memory.scope_failed"] * 2


async def test_a_run_without_a_user_has_what_belongs_to_all(make):
    manager = make()
    await manager.save([fact("of everybody")])
    state = await manager.on_session_start(run_of(None, "Hi"))
    assert "of everybody" in state.messages[0].content


async def test_a_resolver_decides(make, scripted):
    def resolver(state):
        tenant = state.metadata.get("tenant")
        return None if tenant is None else ("tenants", tenant)

    extractor = scripted([fact("of acme")])
    manager = make(extract_fn=extractor, namespace_prefix=resolver)
    await manager.on_session_end(run_of("a", "Hi", "Ho", tenant="acme"))
    assert [m.content for m in await manager.scoped(("tenants", "acme")).retrieve()] == ["of acme"]
    state = await manager.on_session_start(run_of("a", "Hi", tenant="acme"))
    assert "of acme" in state.messages[0].content
    other = await manager.on_session_start(run_of("a", "Hi", tenant="umbrella"))
    assert len(other.messages) == 1
    without = await manager.on_session_start(state.with_metadata(tenant=None))
    assert len(without.messages) == 1
    await manager.on_session_end(run_of("a", "Hi", "Ho"))
    assert len(extractor.calls) == 1


async def test_a_resolver_may_be_async(make):
    async def resolver(state):
        return ("tenants", state.metadata["user_id"])

    manager = make(namespace_prefix=resolver)
    await manager.scoped(("tenants", "a")).save([fact("of a")])
    state = await manager.on_session_start(run_of("a", "Hi"))
    assert "of a" in state.messages[0].content


@pytest.mark.parametrize("answer", ["users", (), ("a", ""), RuntimeError("no tenant")])
async def test_a_resolver_that_fails_gives_no_memory(make, events, answer):
    def resolver(state):
        if isinstance(answer, Exception):
            raise answer
        return answer

    manager = make(namespace_prefix=resolver)
    await manager.save([fact("of everybody")])
    state = run_of("a", "Hi")
    assert await manager.on_session_start(state) is state
    assert events.names == ["memory.scope_failed"]


async def test_the_old_name_of_a_resolver_is_read_beside_a_prefix():
    with pytest.warns(DeprecationWarning, match="namespace_resolver is now namespace_prefix"):
        manager = LLMMemoryManager(
            "memory", namespace_prefix=("mine",), namespace_resolver=lambda state: ("tenants", "a")
        )
    with (
        pytest.warns(DeprecationWarning, match="namespace_resolver"),
        pytest.raises(ConfigurationError, match="namespace_prefix is a function"),
    ):
        LLMMemoryManager("memory", namespace_resolver=("a",))
    async with manager:
        assert manager.namespace == ("mine",)
        run = await manager.for_run(run_of("a", "Hi"))
        assert run is not None
        assert run.namespace == ("tenants", "a")


async def test_a_bound_manager_keeps_to_its_scope(make):
    manager = make()
    view = manager.for_user("a")
    await view.save([fact("of a")])
    state = await view.on_session_start(run_of("b", "Hi"))
    assert "of a" in state.messages[0].content
    assert view.for_user("b").namespace == ("locus_memory", "users", "b")
    assert repr(view).endswith("namespace=('locus_memory', 'users', 'a'))")
