"""The indexes, each with its mappings, its settings and its migrations.

The library creates its indexes itself, and an index knows its version: `_meta` of its mappings. An
index has a number, such as `locus-checkpoints-000001`, and is used by its alias,
`locus-checkpoints`. Writes require the alias, so that no write ever creates an index with fields
that the server guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["CHECKPOINTS", "META", "Features", "Index"]

META: Final = "locus_memory"
"""The name of the version in `_meta`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of a cluster.

    Attributes:
        version: Its version, such as `(3, 6, 0)`; `()` if it does not tell.
        cluster: The id of the cluster; empty if it does not tell.
        knn: Whether its plugin for vectors is installed.
    """

    version: tuple[int, ...] = ()
    cluster: str = ""
    knn: bool = False


def _no_settings(features: Features) -> dict[str, Any]:
    del features
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index of the library.

    Attributes:
        suffix: Its name after the prefix.
        properties: Its fields, as in `mappings.properties`, of its newest version.
        settings: Returns its settings for a cluster, beside the shards, replicas and durability.
        migrations: The fields that each version after the first adds, oldest first. A migration
            only adds fields, so it runs while older versions of the library write.
        options: Further parts of its mappings, such as `_routing`.
    """

    suffix: str
    properties: Mapping[str, Any]
    settings: Callable[[Features], dict[str, Any]] = field(default=_no_settings)
    migrations: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def version(self) -> int:
        """The version of its fields, from 1."""
        return len(self.migrations) + 1

    def mappings(self) -> dict[str, Any]:
        """Return its mappings; a field that is not in them is kept and not indexed."""
        return {
            **self.options,
            "dynamic": False,
            "_meta": {META: self.version},
            "properties": dict(self.properties),
        }

    def body(self, alias: str, features: Features, *, shards: int, replicas: int | None) -> Any:
        """Return the request that creates it.

        Args:
            alias: Its name.
            features: The features of the cluster.
            shards: The number of its shards.
            replicas: The number of its replicas; `None`: one if there is a second node.
        """
        copies: dict[str, Any] = {"auto_expand_replicas": "0-1"}
        if replicas is not None:
            copies = {"number_of_replicas": replicas}
        settings = {
            "number_of_shards": shards,
            # A write is acknowledged once it is on the disk of every copy.
            "translog.durability": "request",
            **copies,
            **self.settings(features),
        }
        return {
            "settings": {"index": settings},
            "mappings": self.mappings(),
            "aliases": {alias: {"is_write_index": True}},
        }


def _settings_of_checkpoints(features: Features) -> dict[str, Any]:
    del features
    return {
        # The text of bytes in Base64 shrinks to about the bytes.
        "codec": "best_compression",
        # A list refreshes the index itself.
        "refresh_interval": "30s",
    }


CHECKPOINTS: Final = Index(
    suffix="checkpoints",
    properties={
        # Of the document of a thread: the sortable beginning of its name.
        "thread": {"type": "keyword"},
        # Everything else is bytes and numbers, which no search reads.
        "body": {"type": "object", "enabled": False},
    },
    settings=_settings_of_checkpoints,
)
