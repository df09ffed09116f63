"""The pages of the store: namespaces as a tree, items with filters, and changes of one item.

A change holds the tag of the version that the page showed, so that it is a compare-and-swap;
`changes.py` shows both sides when somebody else was faster. `conditions.py` is
pure.

Read `browsing.py` first, then `changes.py` and `conditions.py`.
"""

from __future__ import annotations

from locus_memory.web.models import LIMIT
from locus_memory.web.pages.frame.visit import Group, get, post, shown
from locus_memory.web.pages.store import browsing, changes
from locus_memory.web.questions.items import get_item, list_namespaces

__all__ = ["GROUP"]

GROUP = Group(
    "/store",
    "Store",
    (
        shown("/store", list_namespaces, "store/tree.html", "page", limit=LIMIT, prefix=()),
        get("/store/namespace", browsing.show_namespace),
        shown("/store/item", get_item, "store/item.html", "item"),
        get("/store/edit", changes.show_form),
        post("/store/edit", changes.put),
        shown("/store/delete", get_item, "store/delete.html", "item"),
        post("/store/delete", changes.delete),
    ),
)
