"""Copy the threads and items of any LangGraph saver and store into a database of `locus_memory`.

Run it once, while nothing runs on the old threads. The checkpoints keep their pending writes, so
the history and interrupted runs stay. `config={"configurable": {"thread_id": ...}}` copies one
thread.
"""

import asyncio

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver, LocusStore
from locus_memory.integrations.langgraph.importing.items import import_items, items_of


async def copy_threads(old, new, config=None):
    found = [each async for each in old.alist(config)]
    for each in sorted(found, key=lambda each: each.checkpoint["id"]):
        place = {name: each.config["configurable"][name] for name in ("thread_id", "checkpoint_ns")}
        before = each.parent_config or {"configurable": place}
        versions = each.checkpoint["channel_versions"]
        stored = await new.aput(before, each.checkpoint, each.metadata, versions)
        writes = {}
        for task, channel, value in each.pending_writes:
            writes.setdefault(task, []).append((channel, value))
        for task, written in writes.items():
            await new.aput_writes(stored, written, task)


async def main():
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "Hello.")]})
    builder.add_edge(START, "answer")
    config = {"configurable": {"thread_id": "1"}}
    old, old_items = InMemorySaver(), InMemoryStore()
    await builder.compile(checkpointer=old).ainvoke({"messages": ["Hi."]}, config)
    await old_items.aput(("users", "ada"), "diet", {"text": "no penicillin"})

    async with open_backend("memory") as backend:
        saver, store = LocusSaver(backend), LocusStore(backend)
        await copy_threads(old, saver)
        await import_items(items_of(old_items), backend)
        graph = builder.compile(checkpointer=saver)
        state = await graph.ainvoke({"messages": ["And again."]}, config)
        print([message.content for message in state["messages"]])
        # > ['Hi.', 'Hello.', 'And again.', 'Hello.']
        print((await store.aget(("users", "ada"), "diet")).value)
        # > {'text': 'no penicillin'}


asyncio.run(main())
