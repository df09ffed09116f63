"""The web application over a backend: a JSON API, and the server that runs it.

`make_app(backend, settings)` returns an ASGI application. Each endpoint is a function that asks
the backend: it takes one pydantic model and returns another, so that pages can call it as well.
`locus-memory serve` runs the application on this machine.

Read `settings.py` first, then `app.py`, `security/guard.py`, `questions/` and `api/`.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("fastapi", "ui", needed_by="locus_memory.web")

from locus_memory.web.app import make_app  # noqa: E402 - once FastAPI is there
from locus_memory.web.server import serve  # noqa: E402 - the same
from locus_memory.web.settings import Settings  # noqa: E402 - the same

__all__ = ["Settings", "make_app", "serve"]
