"""The configuration of mem0, as arguments of `AsyncMemory`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote as escaped

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.backends.providers import PROVIDERS
from locus_memory.chat.registry import get_model
from locus_memory.errors import ConfigurationError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.retrieval.embedders.registry import get_embedder

__all__ = ["arguments_of"]

_OPTIONS: Final[Mapping[str, str]] = {
    **{name: name for name in ("api_key", "base_url", "temperature", "top_p", "max_tokens")},
    "openai_base_url": "base_url",
    "embedding_dims": "dimension",
}
"""The options of a model or an embedder, and their names here."""

_MODELS: Final = {"llm": "gpt-4.1-mini", "embedder": "text-embedding-3-small"}
"""The models of OpenAI, where a section names none."""

_ADDRESSES: Final = ("connection_string", "redis_url", "url", "path")
_INSTRUCTIONS: Final = ("custom_instructions", "custom_fact_extraction_prompt")
_READ: Final = frozenset(
    (*_INSTRUCTIONS, "vector_store", "llm", "embedder", "version", "history_db_path")
)


def arguments_of(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Resource]]:
    """Return the keyword arguments of a configuration, and what is to be closed.

    One warning names what is not used.

    Raises:
        UnknownProviderError: The model or the embedder is unknown.
        ConfigurationError: It is no configuration, or options are invalid.
    """
    if not isinstance(config, Mapping):
        raise ConfigurationError(f"a configuration is an object, not {quote(config)}")
    unused = [name for name in config if name not in _READ]
    found: dict[str, Any] = {}
    if config.get("vector_store") is not None:
        where = _where(*_section(config, "vector_store"))
        found |= {} if where is None else {"where": where}
        unused += ["vector_store"] if where is None else []
    told = {name: config[name] for name in _INSTRUCTIONS if config.get(name)}
    if not all(isinstance(each, str) for each in told.values()):
        raise ConfigurationError(f"{' or '.join(told)} of the configuration is no text")
    if config.get("llm") is not None:
        name, options = _named(config, "llm")
        instructions = "\n".join(told.values())
        found["extract_fn"] = LLMExtractor(get_model(name, **options), instructions=instructions)
    else:
        unused += told
    if config.get("embedder") is not None:
        name, options = _named(config, "embedder")
        found["embedder"] = get_embedder(name, **options)
    if unused:
        parts = ", ".join(map(quote, unused))
        warnings.warn(
            f"{parts} of the configuration is not used: instructions are those of an llm, and "
            "memories and their history are in the database of the provider, by default ./locus.db",
            UserWarning,
            stacklevel=3,
        )
    made = (getattr(found.get("extract_fn"), "model", None), found.get("embedder"))
    return found, [each for each in made if isinstance(each, Resource)]


def _named(config: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """Return the string of the model of a section, and its options."""
    provider, told = _section(config, name)
    options = {_OPTIONS[each]: value for each, value in told.items() if each in _OPTIONS}
    model = told.get("model") or _MODELS[name]
    return f"{provider or 'openai'}:{model}", options


def _section(config: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the provider of a section, and its own configuration."""
    section = config[name]
    told = section.get("config") or {} if isinstance(section, Mapping) else None
    if not isinstance(told, Mapping):
        raise ConfigurationError(f"{name} of the configuration is an object, as is its config")
    return str(section.get("provider") or ""), told


def _where(provider: str, told: Mapping[str, Any]) -> str | None:
    """Return the provider string of a vector store; `None`: the library has no such one."""
    provider = "postgresql" if provider == "pgvector" else provider
    if provider not in PROVIDERS or PROVIDERS[provider].store is None:
        return None
    stated = next((told[name] for name in _ADDRESSES if told.get(name)), None)
    if stated is None and told.get("host"):
        stated = f"{told['host']}:{told['port']}" if told.get("port") else told["host"]
        who = [escaped(str(told[name]), safe="") for name in ("user", "password") if told.get(name)]
        if provider == "postgresql":
            stated = f"postgresql://{':'.join(who)}{'@' if who else ''}{stated}"
            stated += f"/{told.get('dbname', 'postgres')}"
    return provider if stated is None else f"{provider}:{stated}"
