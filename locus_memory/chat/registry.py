"""Chat models by name: from a string to a model.

| string | meaning |
|---|---|
| `openai:gpt-4.1-mini` | a model of OpenAI, or of the endpoint that `OPENAI_BASE_URL` names |
| `oci:meta.llama-3.3-70b-instruct` | a model of OCI Generative AI |
| `scripted` | a `ScriptedModel`: fixed rules, no endpoint |

`register_model` adds others. So does an installed distribution with an entry point of the group
`locus_memory.models` whose name is the name of the model and whose value is a factory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from locus_memory._internal.providers.models import ModelRow, ModelTable
from locus_memory._internal.resource import Resource
from locus_memory.chat.asking import check_model
from locus_memory.errors import UnknownProviderError

__all__ = ["as_model", "get_model", "list_models", "register_model"]

ENTRY_POINTS: Final = "locus_memory.models"
"""The entry point group of third-party models."""

_TABLE: Final = ModelTable[Any](
    "model",
    Callable,  # type: ignore[arg-type] # it is a class for isinstance
    {
        "openai": ModelRow(f"{__name__}:open_openai", "model"),
        "oci": ModelRow(f"{__name__}:open_oci", "model"),
        "scripted": ModelRow("locus_memory.chat.scripted:ScriptedModel"),
    },
    group=ENTRY_POINTS,
)


def open_openai(model: str, **options: Any) -> Any:
    """Return the model of a name; a function, because its class takes any option of the API."""
    from locus_memory.chat.openai.model import OpenAIChat  # noqa: PLC0415 - only where it is used

    return OpenAIChat(model, **options)


def open_oci(model: str, **options: Any) -> Any:
    """Return the model of a name; a function, because its class takes any option of the API."""
    from locus_memory.chat.oci.model import OCIChat  # noqa: PLC0415 - only where it is used

    return OCIChat(model, **options)


def get_model(where: str, **options: Any) -> Any:
    """Return a new chat model; the caller closes one that is a `Resource`, such as `OpenAIChat`.

    Args:
        where: Its name and, after a colon, its hint: `"openai:gpt-4.1-mini"`, `"scripted"`.
        **options: Keyword arguments of its class, such as `base_url`.

    Raises:
        UnknownProviderError: The name is not registered; the message lists the known ones.
        UnknownOptionError: Its class has no such option.
        MissingDriverError: A package that it needs is not installed.
        ConfigurationError: An invalid string, or arguments that its class refuses.
    """
    try:
        return _TABLE.make(where, options)
    except UnknownProviderError as error:
        raise UnknownProviderError(
            f"{error}; a model of OpenAI or of a compatible endpoint is 'openai:<its name>', and "
            "register_model adds others"
        ) from None


def as_model(model: object) -> tuple[Any, bool]:
    """Return a chat model, and whether the caller owns it and has to close it.

    Args:
        model: A model, or a string for `get_model`.

    Raises:
        ConfigurationError: It is neither, or as for `get_model`.
    """
    if not isinstance(model, str):
        check_model(model)
        return model, False
    made = get_model(model)
    return made, isinstance(made, Resource)


def list_models() -> list[str]:
    """Return the names that `get_model` accepts, in alphabetical order."""
    return _TABLE.names()


def register_model(name: str, factory: Callable[..., Any]) -> Callable[[], None]:
    """Register your own chat model as `name`; it takes precedence over a built-in one.

    Args:
        name: The name, as strings spell it before the colon.
        factory: Called with the part after the colon, or `None`, and the caller's options. It
            returns a `ChatModel` or a `ToolModel`.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid in such a string.
    """
    return _TABLE.register(name, factory)
