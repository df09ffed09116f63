"""Tools: functions that a model may call, described by their signatures."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, overload

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from typing_extensions import override

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.offload import call as call_function
from locus_memory._internal.quoting import quote
from locus_memory.chat.base import ToolSpec
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.messages import ToolCall, ToolResult

__all__ = ["Tool", "as_tool", "as_tools", "failed", "tool"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ARGUMENT = re.compile(r"\A\*{0,2}(\w+)(?: \([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call; `tool` and `as_tool` create one from a signature.

    A tool that you create from a `ToolSpec` and a function passes the model's arguments to the
    function unchecked. Calling the tool calls the function.

    Attributes:
        spec: The description for the model.
        function: The function; if it is not async, it runs in a worker thread.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    _arguments: type[BaseModel] | None = field(default=None, repr=False, compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    async def run(self, call: ToolCall) -> ToolResult:
        """Return the result of a model's call.

        Invalid arguments and any exception of the function become the result's `error`, which the
        model can act on. An exception also emits the event `agent.tool_failed`. The return value
        becomes text: a `str` as it is, a value that JSON can hold as JSON, anything else with
        `str`. Cancelling the call cancels an async function; a plain function continues in its
        thread, and its result is discarded. A `CancelledError` that the function itself raises is
        an error like any other.
        """
        started = time.perf_counter()
        try:
            result = await self._answer(call)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - reported
            raise_if_cancelled(failure)
            result = failed(call, failure)
        duration = (time.perf_counter() - started) * 1000
        return result.model_copy(update={"duration_ms": duration})

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a model's call, validated, by the names of the parameters.

        Raises:
            InvalidArgumentError: They do not fit the signature; the error names each field.
        """
        try:
            return _checked(arguments, self._arguments)
        except ValidationError as invalid:
            raise InvalidArgumentError(_whole(f"invalid arguments: {_faults(invalid)}")) from None

    async def _answer(self, call: ToolCall) -> ToolResult:
        try:
            arguments = self.checked(call.arguments)
        except InvalidArgumentError as invalid:
            return ToolResult(tool_call_id=call.id, name=call.name, error=str(invalid))
        content = _text(await call_function(self.function, **arguments))
        return ToolResult(tool_call_id=call.id, name=call.name, content=content)


def failed(call: ToolCall, failure: BaseException) -> ToolResult:
    """Return the result of a call that failed, and report it as `agent.tool_failed`."""
    emit("agent.tool_failed", error=failure, tool=call.name, call_id=call.id)
    error = _whole(f"{type(failure).__name__}: {_said(failure)}".removesuffix(": "))
    return ToolResult(tool_call_id=call.id, name=call.name, error=error)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Create a tool from a function, as `@tool` or `@tool(name=..., description=...)`.

    The JSON Schema of the arguments comes from the signature: type hints, defaults and
    `Annotated[..., Field(description=...)]`. The first paragraph of the docstring describes the
    tool, and its `Args:` section in Google style describes the arguments.

    Args:
        function: A sync or async function whose parameters can all be passed by name.
        name: Replaces the function's name: at most 64 letters, digits, `_` and `-`.
        description: Replaces the docstring's first paragraph.

    Raises:
        ConfigurationError: The name or the signature cannot be described to a model.
    """
    if function is not None:
        return _make(function, name, description)
    return lambda function: _make(function, name, description)


def as_tool(function: Callable[..., Any] | Tool) -> Tool:
    """Return a tool: the given one, or a new one from a function.

    Raises:
        ConfigurationError: It is neither, or cannot be described to a model.
    """
    return function if isinstance(function, Tool) else _make(function, None, None)


def as_tools(functions: Iterable[Callable[..., Any] | Tool]) -> dict[str, Tool]:
    """Return the tools by name, in order.

    Raises:
        ConfigurationError: Two tools have the same name, or as for `as_tool`.
    """
    if not isinstance(functions, Iterable):
        raise ConfigurationError(f"tools are a list of functions, not {type(functions).__name__}")
    tools: dict[str, Tool] = {}
    for each in map(as_tool, functions):
        if each.spec.name in tools:
            raise ConfigurationError(f"two tools are named {quote(each.spec.name)}: rename one")
        tools[each.spec.name] = each
    return tools


def _make(function: Callable[..., Any], given: str | None, description: str | None) -> Tool:
    if not callable(function):
        raise ConfigurationError(f"a tool is a function, not {type(function).__name__}")
    name = str(given or getattr(function, "__name__", type(function).__name__))
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"a tool's name is 1 to 64 letters, digits, '_' and '-', not {quote(name)}: pass name="
        )
    arguments = _arguments_model(function, name)
    summary, of_arguments = _documented(inspect.getdoc(function) or "")
    spec = ToolSpec(
        name=name,
        description=summary if description is None else description,
        parameters=_parameters(arguments, name, of_arguments),
    )
    return Tool(spec, function, arguments)


def _arguments_model(function: Callable[..., Any], name: str) -> type[BaseModel]:
    """Return the model of the function's arguments; its fields are `p0`, `p1` and so on.

    The parameters' own names are aliases, since not each of them is a valid field name.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"tool {quote(name)}: its signature cannot be read: {error}; type hints name what its"
            " module defines"
        ) from error
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(signature.parameters.values()):
        fields[f"p{number}"] = _field(parameter, name)
    try:
        return create_model(
            name,
            __config__=ConfigDict(extra="forbid"),
            __module__=getattr(function, "__module__", None) or __name__,
            **fields,
        )
    except PydanticUserError as error:
        raise _undescribable(name, error) from error


def _field(parameter: inspect.Parameter, name: str) -> tuple[Any, Any]:
    if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
        raise ConfigurationError(
            f"tool {name!r}: its parameter {parameter.name!r} cannot be given by name; a tool"
            " takes no *args, **kwargs or positional-only parameters"
        )
    hint = Any if parameter.annotation is parameter.empty else parameter.annotation
    default = ... if parameter.default is parameter.empty else parameter.default
    return Annotated[hint, Field(alias=parameter.name)], default


class _Untitled(GenerateJsonSchema):
    """A schema without the titles that only repeat the names."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore the warning: a default that is not JSON is left out."""


def _parameters(
    arguments: type[BaseModel], name: str, documented: Mapping[str, str]
) -> dict[str, Any]:
    try:
        schema = arguments.model_json_schema(schema_generator=_Untitled)
    except PydanticUserError as error:
        raise _undescribable(name, error) from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for parameter, described in schema["properties"].items():
        if parameter in documented:
            described.setdefault("description", documented[parameter])
    return schema


def _undescribable(name: str, error: PydanticUserError) -> ConfigurationError:
    reason = error.message.splitlines()[0]
    return ConfigurationError(f"tool {quote(name)}: JSON cannot describe its arguments: {reason}")


def _documented(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph, and the description of each argument."""
    summary = " ".join(docstring.partition("\n\n")[0].split())
    _, _, section = f"\n{docstring}\n".partition("\nArgs:\n")
    described: dict[str, str] = {}
    indent, latest = None, ""
    for line in section.splitlines():
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0:
            break
        indent = depth if indent is None else indent
        found = _ARGUMENT.fullmatch(line.strip()) if depth == indent else None
        if found:
            latest, described[found[1]] = found[1], found[2]
        elif latest:
            described[latest] = f"{described[latest]} {line.strip()}".strip()
    return summary, described


def _checked(given: dict[str, Any], model: type[BaseModel] | None) -> dict[str, Any]:
    """Return the arguments of a call, validated, by the parameters' names."""
    if model is None:
        return given
    arguments, fields = model.model_validate(given), model.model_fields
    return {each.alias or name: getattr(arguments, name) for name, each in fields.items()}


def _faults(invalid: ValidationError) -> str:
    faults = invalid.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{_place(each['loc'])}{each['msg']}" for each in faults)


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""


def _said(failure: BaseException) -> str:
    try:
        return str(failure)
    except Exception:  # noqa: BLE001 - reported with the error itself
        return ""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _whole(value)
    try:
        encoded = orjson.dumps(
            value, default=_plain, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
        )
    except TypeError:
        return _whole(str(value))
    return encoded.decode()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError


def _whole(text: str) -> str:
    """Return `text` with a question mark for each lone surrogate, which no store accepts."""
    return text.encode(errors="replace").decode()
