"""What .mkdocs.yml cannot say by itself: the version that the pages are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory import __version__

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Say the version, and the licence, at the foot of each page."""
    config.copyright = f"locus_memory {__version__}, licence: Apache-2.0"
    return config
