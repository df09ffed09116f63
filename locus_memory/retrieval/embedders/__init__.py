"""Embedders: from texts to vectors.

An embedder is any object with one async method. The classes here use models on this machine, an
endpoint, or the caller's own function. A mark beside each vector names its model, so that vectors
of two models are never compared.

Read `base.py` and `registry.py` first; `wrappers/` batches, caches and retries, `models/` finds
and runs model files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.retrieval.embedders.base import Embedder
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
    from locus_memory.retrieval.embedders.scale import Scale, register_scale, scale_of
    from locus_memory.retrieval.embedders.static import StaticEmbedder
    from locus_memory.retrieval.embedders.wrappers.base import EmbedderWrapper
    from locus_memory.retrieval.embedders.wrappers.batching import BatchingEmbedder
    from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
    from locus_memory.retrieval.embedders.wrappers.retrying import RetryingEmbedder

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
    "Scale",
    "StaticEmbedder",
    "as_embedder",
    "get_embedder",
    "list_embedders",
    "register_embedder",
    "register_scale",
    "scale_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BatchingEmbedder": "wrappers.batching",
        "CachingEmbedder": "wrappers.caching",
        "CallableEmbedder": "function",
        "Embedder": "base",
        "EmbedderWrapper": "wrappers.base",
        "FastEmbedEmbedder": "fastembed",
        "LocalEmbedder": "local",
        "Model2VecEmbedder": "model2vec",
        "OpenAIEmbedder": "openai",
        "RetryingEmbedder": "wrappers.retrying",
        "Scale": "scale",
        "StaticEmbedder": "static",
        "as_embedder": "registry",
        "get_embedder": "registry",
        "list_embedders": "registry",
        "register_embedder": "registry",
        "register_scale": "scale",
        "scale_of": "scale",
    },
)
