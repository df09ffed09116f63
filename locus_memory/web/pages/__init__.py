"""The pages: HTML over the same questions as the API, made from templates on this machine.

`make_pages()` returns what `make_app` takes. A group of pages is one module, or one folder, that
exports a `Group`; `groups.py` lists them. A page asks the functions in `locus_memory.web.questions`
and renders a template of `locus_memory/web/templates`.

Read `frame/visit.py` first, then `groups.py` and `overview.py`.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("jinja2", "ui", needed_by="locus_memory.web.pages")
require("python_multipart", "ui", needed_by="locus_memory.web.pages")

from locus_memory.web.pages.groups import make_pages  # noqa: E402 - once Jinja2 is there

__all__ = ["make_pages"]
