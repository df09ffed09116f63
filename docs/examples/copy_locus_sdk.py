"""Copy threads, memories and items of the Locus SDK into `locus_memory`.

`copy_threads` needs a checkpointer that lists its threads; otherwise name the threads yourself.
"""

import asyncio

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends import MemoryCheckpointer
from locus.memory.manager import LLMMemoryManager, Memory, MemoryType
from locus.memory.store import InMemoryStore

from locus_memory.integrations.locus import LocusCheckpointer, LocusMemoryManager, LocusStore

EVERY = 1_000_000


async def copy_threads(old, new):
    for thread in await old.list_threads(EVERY):
        for checkpoint in reversed(await old.list_checkpoints(thread, EVERY)):
            await new.save(await old.load(thread, checkpoint), thread, checkpoint)


async def copy_memories(old, new):
    await new.save(list(reversed(await old.retrieve(EVERY))))


async def copy_items(old, new, namespace):
    for key in await old.list_keys(namespace, EVERY):
        item = await old.get_item(namespace, key)
        await new.put(namespace, key, item.value, item.metadata)


async def main():
    threads, items = MemoryCheckpointer(), InMemoryStore()
    memories = LLMMemoryManager(items)
    await threads.save(AgentState().with_message(Message.user("Hello.")), "t")
    await memories.save([Memory(MemoryType.USER, "home", "The user lives in Vienna.", {})])
    await items.put(("settings",), "theme", "dark")

    manager, store = LocusMemoryManager("memory"), LocusStore("memory")
    async with LocusCheckpointer("memory") as checkpointer:
        await copy_threads(threads, checkpointer)
        await copy_memories(memories, manager)
        await copy_items(items, store, ("settings",))
        print((await checkpointer.load("t")).messages[0].content)
        # > Hello.
        print([each.content for each in await manager.retrieve()])
        # > ['The user lives in Vienna.']
        print(await store.get(("settings",), "theme"))
        # > dark
    await manager.close()
    await store.close()


asyncio.run(main())
