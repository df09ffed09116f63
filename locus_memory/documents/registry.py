"""Indexes of documents by name: from two strings to an index."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args, overload

from locus_memory._internal.options import Keywords, with_profile
from locus_memory._internal.quoting import quote
from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.documents.context import ContextConfig
from locus_memory.documents.fusion import HybridOptions
from locus_memory.documents.index import DocumentIndex, Kind
from locus_memory.errors import ConfigurationError, UnknownProviderError
from locus_memory.presets import documents_table

__all__ = [
    "documents_from_config",
    "get_documents",
    "list_document_indexes",
    "register_document_index",
]

_Factory = TypeVar("_Factory", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z0-9_.+-]+")
_KINDS: Final = cast("tuple[str, ...]", get_args(Kind))
_OLD: Final = {"sqlite": "text", "faiss": "dense", "colbert": "late"}
"""Names of kinds in another system, and where they are here."""

_PROFILES: Final = {
    "openjarvis": {"chunking": ChunkConfig(unit="words"), "hybrid": HybridOptions.classic()}
}
_SETTINGS: Final = {
    "context_from_memory": "enabled",
    "default_backend": "kind",
    "context_top_k": "top_k",
    "context_min_score": "min_score",
    "context_max_tokens": "max_context_tokens",
}
"""Names of settings in another system, and here."""

_registered: dict[str, Callable[..., Any]] = {}


def get_documents(where: Any = "memory", *, kind: str = "hybrid", **options: Any) -> DocumentIndex:
    """Return a new index of documents, which the caller closes.

    Args:
        where: A provider string, such as `"sqlite:./kb.db"`, a store, or a backend.
        kind: `text`, `dense`, `bm25`, `late` or `hybrid`, see `DocumentIndex`; or a registered
            name.
        **options: Keyword arguments of `DocumentIndex`, or of the registered factory.
            `options="openjarvis"` stands for the defaults of OpenJarvis.

    Raises:
        UnknownProviderError: There is no such kind; the message lists the known ones.
        ConfigurationError: As for `DocumentIndex`.
        MissingDriverError: A package that the store or the kind needs is not installed.
    """
    options = with_profile(options, _PROFILES)
    if kind in _registered:
        return cast("DocumentIndex", _registered[kind](where, **options))
    if kind in _OLD:
        warnings.warn(
            f"the kind {quote(kind)} is now {quote(_OLD[kind])}", DeprecationWarning, stacklevel=2
        )
        kind = _OLD[kind]
    if kind not in _KINDS:
        known = ", ".join(list_document_indexes())
        raise UnknownProviderError(f"unknown kind of index {quote(kind)}. Known: {known}")
    return DocumentIndex(where, kind=cast("Kind", kind), **options)


def documents_from_config(
    store: Mapping[str, Any] | str | Path | None = None,
) -> tuple[DocumentIndex, ContextConfig]:
    """Return a new index, and what of it is shown, by the table `[tool.locus_memory.documents]`.

    Its settings are `url`, `kind`, the fields of `ChunkConfig` and of `ContextConfig`, and other
    options of `get_documents`, such as `embedder`.

    Args:
        store: A configuration, or the path of one; `None`: the files that presets are in.

    Raises:
        KeyError: There is no such table.
        ConfigurationError: A file is not readable, or holds a literal secret; or as for
            `get_documents`.
        TypeError: There is no such setting.
    """
    table = {_SETTINGS.get(name, name): value for name, value in documents_table(store).items()}
    table = with_profile(table, _PROFILES)
    usual = Keywords(table, {}).into(ChunkConfig, chunking=table.pop("chunking", None))
    sizes = {each.name: table.pop(each.name) for each in fields(usual) if each.name in table}
    named = Keywords(table, table)
    context = named.into(ContextConfig, context=None)
    named.rest["chunking"] = replace(usual, **sizes)
    return get_documents(named.rest.pop("url", "memory"), **named.rest), context


@overload
def register_document_index(name: str) -> Callable[[_Factory], _Factory]: ...
@overload
def register_document_index(name: str, factory: _Factory) -> _Factory: ...
def register_document_index(name: str, factory: Callable[..., Any] | None = None) -> Any:
    """Register your own kind of index, by a call or as a decorator.

    It takes precedence over a built-in kind of the same name.

    Args:
        name: The kind, as `get_documents` takes it.
        factory: Called with the store, as `get_documents` got it, and the caller's options.

    Raises:
        ConfigurationError: The name has other characters than letters, digits and `_.+-`, or the
            factory cannot be called.
    """
    if not _NAME.fullmatch(str(name)):
        raise ConfigurationError(f"a kind's name is letters, digits and '_.+-', not {quote(name)}")
    if factory is None:
        return lambda given: register_document_index(name, given)
    if not callable(factory):
        raise ConfigurationError(f"a factory can be called, and {quote(factory)} cannot")
    _registered[name] = factory
    return factory


def list_document_indexes() -> list[str]:
    """Return the kinds that `get_documents` accepts, in alphabetical order."""
    return sorted({*_KINDS, *_registered})
