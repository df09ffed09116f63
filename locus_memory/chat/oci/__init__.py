"""A chat model of OCI Generative AI, through the `oci` SDK.

Messages are written in the service's generic format (`wire.py`), and answers are read as those of
OpenAI's protocol, which have the same parts.

Read `model.py` first, then `wire.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.chat.oci.model import OCIChat
else:
    __getattr__, __dir__ = lazy_names(__name__, {"OCIChat": "model"})

__all__ = ["OCIChat"]
