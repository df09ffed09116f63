"""The address of a bucket: its accepted forms, and its form in messages."""

from __future__ import annotations

import re
from typing import Final

from locus_memory.errors import ConfigurationError

__all__ = ["parse_bucket"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_FORMS: Final = "'oci:bucket', 'oci:bucket/namespace' or 'oci://bucket@namespace'"


def parse_bucket(where: str | None) -> tuple[str, str | None]:
    """Return the bucket and the namespace of a hint; `None` for the tenancy's own namespace.

    Args:
        where: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.

    Raises:
        ConfigurationError: It is none of these.
    """
    if where is None:
        raise ConfigurationError(f"oci: needs a bucket: {_FORMS}")
    is_url = where.lower().startswith("oci://")
    text = where[len("oci://") :] if is_url else where
    bucket, separator, namespace = text.partition("@" if is_url else "/")
    names = [bucket, namespace] if separator else [bucket]
    if not all(map(_NAME.fullmatch, names)):
        # What was given may be anything, a secret too.
        raise ConfigurationError(
            f"oci: an address is {_FORMS}; a name has letters, digits, '-', '_' and '.'"
        )
    return bucket, namespace if separator else None
