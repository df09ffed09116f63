from locus_memory import InMemoryStore
from locus_memory.conversation.roles import BLOCK_MARK
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import SUMMARY_MARK
from locus_memory.conversation.summary.thread import root_digest
from locus_memory.conversation.validation import repair
from locus_memory.messages import Message, ToolCall, ToolResult

SYSTEM = Message.system("be brief")
BLOCK = Message(role="system", content="Ada lives in Berlin.", metadata={BLOCK_MARK: True})
SPACE = ("locus_memory", "summaries")


def turns(count, topic="tea"):
    return [Message.user(f"{topic} {number}") for number in range(count)]


def test_it_names_the_first_message_that_is_said():
    root = root_digest(turns(5))
    assert isinstance(root, str)
    assert root == root_digest(turns(1)) == root_digest([BLOCK, SYSTEM, BLOCK, *turns(3)])
    assert root == root_digest([BLOCK.model_copy(update={"role": "user"}), *turns(3)])
    assert root != root_digest(turns(5, "wine"))
    assert root_digest([]) is root_digest([SYSTEM, BLOCK]) is None


def test_repair_does_not_change_it():
    result = Message.tool(ToolResult(tool_call_id="x", name="look", content="lost"))
    caller = Message.assistant(None, [ToolCall(id="", name="look")])
    for broken in ([result, *turns(2)], [SYSTEM, caller, caller, result]):
        assert repair(broken) != broken
        assert root_digest(repair(broken)) == root_digest(broken)


async def test_every_stored_summary_of_a_conversation_has_it():
    store = InMemoryStore()
    manager = SummarizingManager(4, 2, lambda asked: "a summary", store=store)
    messages = turns(30)
    for count in range(1, 31):
        await manager.async_apply([SYSTEM, *messages[:count]])
    edited = [*messages[:3], Message.user("water"), *messages[4:]]
    await manager.async_apply(edited)
    await manager.async_apply(turns(9, "wine"))
    root = root_digest(messages)
    found = await store.search(SPACE, filter={"root": {"$in": [root]}}, limit=100)
    keys = await store.list_keys(SPACE)
    assert len(found) == len(keys) - 1 > 5
    assert {item.value["root"] for item in found} == {root}


async def test_it_survives_feeding_back_what_is_shown():
    store = InMemoryStore()
    manager = SummarizingManager(4, 2, lambda asked: "a summary", store=store)
    messages = turns(30)
    shown = []
    for message in messages:
        shown = await manager.async_apply([SYSTEM, *shown[1:], message])
    assert len(shown) < 8
    assert root_digest(shown) == root_digest(messages)
    found = await store.search(SPACE, filter={"root": root_digest(messages)}, limit=100)
    assert len(found) == len(await store.list_keys(SPACE)) > 5


def test_a_summary_that_carries_none_is_passed_over():
    shown = SummarizingManager(4, 2).apply([SYSTEM, *turns(9)])
    rootless = shown[1].model_copy(update={"metadata": {SUMMARY_MARK: True}})
    assert root_digest([SYSTEM, rootless, *shown[2:]]) == root_digest(shown[2:])
    assert root_digest([SYSTEM, rootless]) is None
    again = SummarizingManager(4, 2).apply([SYSTEM, rootless, *turns(3)])
    assert again == [SYSTEM, rootless, *turns(3)]
