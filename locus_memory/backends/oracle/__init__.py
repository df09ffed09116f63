"""The Oracle Database backend, over oracledb in its thin mode.

The exact JSON of a value is in a BLOB, names are bytes in code point order, and moments are
numbers. So nothing depends on the settings of a session: no `NLS` parameter, no time zone.

Read `backend.py` and `store.py` first, then `connection/`, `items/` and `search/`; `checkpoints.py`
and `records.py` stand alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

require("oracledb", "oracle")

if TYPE_CHECKING:
    from locus_memory.backends.oracle.backend import OracleBackend
    from locus_memory.backends.oracle.checkpoints import OracleCheckpointer, OracleDeltaStorage
    from locus_memory.backends.oracle.connection.connection import OraclePool
    from locus_memory.backends.oracle.options import OracleOptions
    from locus_memory.backends.oracle.store import OracleStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "OracleBackend": "backend",
            "OracleCheckpointer": "checkpoints",
            "OracleDeltaStorage": "checkpoints",
            "OracleOptions": "options",
            "OraclePool": "connection.connection",
            "OracleStore": "store",
        },
    )

__all__ = [
    "OracleBackend",
    "OracleCheckpointer",
    "OracleDeltaStorage",
    "OracleOptions",
    "OraclePool",
    "OracleStore",
]
