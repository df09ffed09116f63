"""What .mkdocs.yml cannot say by itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from locus_memory import __version__

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Say the version, and the licence, at the foot of each page."""
    config.copyright = f"locus_memory {__version__}, licence: Apache-2.0"
    return config


def on_post_build(config: MkDocsConfig) -> None:
    """Put the source of each page beside it: llms.txt links to these."""
    source, site = Path(config.docs_dir), Path(config.site_dir)
    for page in source.rglob("*.md"):
        shutil.copyfile(page, site / page.relative_to(source))
