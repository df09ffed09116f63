"""The generic chat format of OCI Generative AI, by the models of the SDK.

https://docs.oracle.com/iaas/api/#/en/generative-ai-inference/20231130/datatypes/GenericChatRequest
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from locus_memory.chat.base import ToolSpec
from locus_memory.chat.openai.wire import read_answer
from locus_memory.errors import ModelAnswerError
from locus_memory.messages import Message, Role
from locus_memory.store.json_values import encode_json

__all__ = ["read_result", "serving_mode", "write_message", "write_tool"]

_ENDPOINT: Final = "ocid1.generativeaiendpoint."
"""The beginning of the id of an endpoint of a dedicated cluster."""


def serving_mode(models: Any, model: str) -> Any:
    """Return how a model is served: on demand, or by an endpoint of its own."""
    if model.startswith(_ENDPOINT):
        return models.DedicatedServingMode(endpoint_id=model)
    return models.OnDemandServingMode(model_id=model)


def write_message(models: Any, message: Message) -> Any:
    """Return a message for the API."""
    content = [models.TextContent(text=message.content or "")]
    if message.role == Role.SYSTEM:
        return models.SystemMessage(content=content)
    if message.role == Role.USER:
        return models.UserMessage(content=content)
    if message.role == Role.TOOL:
        return models.ToolMessage(content=content, tool_call_id=message.tool_call_id)
    calls = [
        models.FunctionCall(
            id=call.id, name=call.name, arguments=encode_json(call.arguments).decode()
        )
        for call in message.tool_calls
    ]
    given = {"tool_calls": calls} if calls else {}
    return models.AssistantMessage(content=content if message.content or not calls else [], **given)


def write_tool(models: Any, tool: ToolSpec) -> Any:
    """Return a tool for the API."""
    return models.FunctionDefinition(
        name=tool.name, description=tool.description, parameters=tool.parameters
    )


def read_result(result: Any) -> Message:
    """Return the first choice of a `ChatResult` as an assistant message.

    Raises:
        ModelAnswerError: There is no choice, or a part of it violates the protocol.
    """
    response = getattr(result, "chat_response", None)
    choices = getattr(response, "choices", None)
    if response is None or not choices:
        raise ModelAnswerError("the service answered without a message")
    completion = SimpleNamespace(
        model=result.model_id,
        usage=response.usage or choices[0].usage,
        choices=[
            SimpleNamespace(
                finish_reason=choices[0].finish_reason, message=_said(choices[0].message)
            )
        ],
    )
    return read_answer(completion)


def _said(message: Any) -> Any:
    if message is None:
        return None
    parts: Sequence[Any] = message.content or []
    return SimpleNamespace(
        content=[{"text": getattr(each, "text", None)} for each in parts],
        refusal=getattr(message, "refusal", None),
        tool_calls=[
            SimpleNamespace(
                id=each.id,
                function=SimpleNamespace(
                    name=getattr(each, "name", None), arguments=getattr(each, "arguments", None)
                ),
            )
            for each in getattr(message, "tool_calls", None) or []
        ],
    )
