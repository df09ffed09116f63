"""Embedders: what turns texts into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.embedders.batching import BatchingEmbedder
    from locus_memory.retrieval.embedders.caching import CachingEmbedder
    from locus_memory.retrieval.embedders.fastembed import FastEmbedEmbedder
    from locus_memory.retrieval.embedders.function import CallableEmbedder
    from locus_memory.retrieval.embedders.local import LocalEmbedder
    from locus_memory.retrieval.embedders.model2vec import Model2VecEmbedder
    from locus_memory.retrieval.embedders.openai import OpenAIEmbedder
    from locus_memory.retrieval.embedders.registry import (
        as_embedder,
        get_embedder,
        list_embedders,
        register_embedder,
    )
    from locus_memory.retrieval.embedders.retrying import RetryingEmbedder
    from locus_memory.retrieval.embedders.static import StaticEmbedder
    from locus_memory.retrieval.embedders.wrapper import EmbedderWrapper

__all__ = [
    "BatchingEmbedder",
    "CachingEmbedder",
    "CallableEmbedder",
    "Embedder",
    "EmbedderWrapper",
    "FastEmbedEmbedder",
    "LocalEmbedder",
    "Model2VecEmbedder",
    "OpenAIEmbedder",
    "RetryingEmbedder",
    "StaticEmbedder",
    "as_embedder",
    "get_embedder",
    "list_embedders",
    "register_embedder",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BatchingEmbedder": "batching",
        "CachingEmbedder": "caching",
        "CallableEmbedder": "function",
        "Embedder": "base",
        "EmbedderWrapper": "wrapper",
        "FastEmbedEmbedder": "fastembed",
        "LocalEmbedder": "local",
        "Model2VecEmbedder": "model2vec",
        "OpenAIEmbedder": "openai",
        "RetryingEmbedder": "retrying",
        "StaticEmbedder": "static",
        "as_embedder": "registry",
        "get_embedder": "registry",
        "list_embedders": "registry",
        "register_embedder": "registry",
    },
)
