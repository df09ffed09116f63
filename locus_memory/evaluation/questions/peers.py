"""The memories of other makers, by their own packages, on this machine.

Each extracts with the model of a run through LangChain, and finds with its embedder. A message
begins with its day, because neither package has a place for it that its model sees.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Final

from locus_memory._internal.neutral import neutralise
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError, MissingDriverError, ModelUnavailableError
from locus_memory.evaluation.dataset import Session
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.questions.memories import Block, Memory, message_of, needed
from locus_memory.messages import Message
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.pack import pack

__all__ = ["langmem", "mem0"]

_HITS: Final = 200
_USER: Final = "user"


@dataclass(frozen=True, slots=True)
class _Peer:
    """A memory of another maker.

    Attributes:
        model: The model that extracts.
        add: Takes in messages.
        search: Returns the memories for a question, the best first.
    """

    model: Counted
    add: Callable[[list[dict[str, str]]], Awaitable[object]]
    search: Callable[[str], Awaitable[Iterable[str]]]

    async def ingest(self, session: Session, moment: datetime) -> None:
        self.model.asked.purse.check()
        messages = [message_of(turn) for turn in session.turns if turn.words.strip()]
        await self.add(
            [
                {"role": each["role"], "content": f"({moment.date()}) {each['content']}"}
                for each in messages
            ]
        )

    async def block(self, question: str, moment: datetime, budget: int) -> Block:
        del moment
        found = [neutralise(each) for each in await self.search(question)]
        return Block("\n".join(pack(found, budget, counter=expected_tokens).items))


@asynccontextmanager
async def langmem(counted: Counted, embedder: Embedder | None) -> AsyncGenerator[Memory]:
    """Yield a `MemoryStoreManager` of LangMem over LangGraph's store in memory.

    Raises:
        ConfigurationError: There is no embedder, or the model is not OpenAI-compatible.
        MissingDriverError: A package is not installed.
    """
    finder = needed(embedder, "langmem")
    package = _package("langmem", "langmem", "langmem langchain-openai")
    stores = _package("langmem", "langgraph.store.memory", "langmem langchain-openai")

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [list(each) for each in await finder.embed(texts, kind="document")]

    store = stores.InMemoryStore(index={"dims": finder.dimension, "embed": embed})
    model = _chat(counted, "langmem")
    manager = package.create_memory_store_manager(model, namespace=(_USER,), store=store)

    async def search(question: str) -> Iterable[str]:
        found = await store.asearch((_USER,), query=question, limit=_HITS)
        return (str(item.value["content"]["content"]) for item in found)

    yield _Peer(counted, lambda said: manager.ainvoke({"messages": said}), search)


@asynccontextmanager
async def mem0(counted: Counted, embedder: Embedder | None) -> AsyncGenerator[Memory]:
    """Yield a `Memory` of mem0 over its own local Qdrant, in a folder that is deleted.

    Raises:
        ConfigurationError: There is no embedder, or the model is not OpenAI-compatible.
        MissingDriverError: A package is not installed.
    """
    finder, loop = needed(embedder, "mem0"), asyncio.get_running_loop()
    # A measurement is nobody else's business.
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    pip = "'mem0ai[nlp,extras]' langchain-openai"
    package = _package("mem0", "mem0", pip)
    embeddings = _package("mem0", "langchain_core.embeddings", pip)

    class Vectors(embeddings.Embeddings):  # type: ignore[name-defined,misc] # of an optional package
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            made = asyncio.run_coroutine_threadsafe(finder.embed(texts, kind="document"), loop)
            return [list(map(float, each)) for each in made.result()]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    with TemporaryDirectory() as folder:
        store = {"path": f"{folder}/qdrant", "embedding_model_dims": finder.dimension}
        settings = {
            "llm": {"provider": "langchain", "config": {"model": _chat(counted, "mem0")}},
            "embedder": {"provider": "langchain", "config": {"model": Vectors()}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{folder}/history.db",
        }
        memory = await asyncio.to_thread(package.Memory.from_config, settings)

        async def search(question: str) -> Iterable[str]:
            asked = {"filters": {"user_id": _USER}, "top_k": _HITS}
            found = await asyncio.to_thread(memory.search, question, **asked)
            return (str(each["memory"]) for each in found["results"])

        yield _Peer(
            counted, lambda said: asyncio.to_thread(memory.add, said, user_id=_USER), search
        )


def _package(name: str, module: str, pip: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingDriverError(f"the memory {name!r} needs: pip install {pip}") from error


def _chat(counted: Counted, name: str) -> Any:
    """Return LangChain's chat model of the same endpoint, whose calls are counted."""
    ours = counted.asked.model
    if not isinstance(ours, OpenAIChat):
        raise ConfigurationError(f"the memory {name!r} extracts with an OpenAI-compatible model")
    pip = "langchain-openai"
    handlers = _package(name, "langchain_core.callbacks", pip)

    class Counting(handlers.BaseCallbackHandler):  # type: ignore[name-defined,misc] # of an optional package
        def __init__(self) -> None:
            self.begun = dict[Any, tuple[float, str]]()

        def on_chat_model_start(self, _: Any, messages: Any, *, run_id: Any, **more: Any) -> None:
            del more
            self.begun[run_id] = time.perf_counter(), "\n".join(str(m.content) for m in messages[0])

        def on_llm_end(self, response: Any, *, run_id: Any, **more: Any) -> None:
            del more
            start, asked = self.begun.pop(run_id)
            told = response.generations[0][0].message
            usage = dict(told.usage_metadata or {})
            usage["cached_tokens"] = (usage.get("input_token_details") or {}).get("cache_read")
            answer = Message.assistant(str(told.content)).model_copy(
                update={"metadata": {"usage": usage}}
            )
            seconds = time.perf_counter() - start
            counted.used += counted.asked.spent([Message.user(asked)], answer, seconds)

        def on_llm_error(self, error: BaseException, **more: Any) -> None:
            # A package may handle it, and go on with nothing extracted.
            del more
            counted.error = ModelUnavailableError(f"{type(error).__name__}: {error}")

    return _package(name, "langchain_openai", pip).ChatOpenAI(
        model=ours.model,
        base_url=str(ours.client.base_url),
        api_key=ours.client.api_key,
        max_retries=5,
        callbacks=[Counting()],
    )
