"""`MemoryMiddleware`: a memory manager in an agent that `create_agent` of LangChain made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage
from langgraph.runtime import Runtime
from typing_extensions import override

from locus_memory.integrations.langgraph.graph_memory import GraphMemory

__all__ = ["MemoryMiddleware"]


class MemoryMiddleware(GraphMemory, AgentMiddleware[AgentState[Any], Any, Any]):
    """A `GraphMemory` as a middleware: what it knows before the model, the turn after the agent.

    ```python
    memory = MemoryMiddleware("sqlite:./agent.db")
    agent = create_agent(model, tools, middleware=[memory])
    agent.invoke(inputs, {"configurable": {"thread_id": "1", "user_id": "ada"}})
    ```

    The arguments are those of `GraphMemory`. It needs `langchain` besides `langgraph`. A run that
    is interrupted or fails is remembered once it is completed.
    """

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(_showing(request, self._now_recalled(_state_of(request))))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(_showing(request, await self._recalled(_state_of(request))))

    @override
    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        del runtime
        self._now_remembered(state)

    @override
    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        del runtime
        await self._remembered(state)


def _state_of(request: ModelRequest[Any]) -> dict[str, Any]:
    """Return the state of a run with the messages of a request."""
    system = [] if request.system_message is None else [request.system_message]
    return {**request.state, "messages": [*system, *request.messages]}


def _showing(request: ModelRequest[Any], messages: list[Any]) -> ModelRequest[Any]:
    """Return the request with other messages, the first of which may be its system prompt."""
    if not messages or not isinstance(messages[0], SystemMessage):
        return request.override(messages=messages)
    return request.override(system_message=messages[0], messages=messages[1:])
