"""The pages of the store: namespaces as a tree, items with filters, and changes of one item.

A change holds the tag of the version that the page showed, so that it is a compare-and-swap;
`changes.py` shows both sides when somebody else was faster. `tree.py` and `conditions.py` are
pure.

Read `browsing.py` first, then `changes.py` and `conditions.py`.
"""

from __future__ import annotations

from locus_memory.web.pages.frame.visit import Group, get, post
from locus_memory.web.pages.store import browsing, changes

__all__ = ["GROUP"]

GROUP = Group(
    "/store",
    "Store",
    (
        get("/store", browsing.show_tree),
        get("/store/namespace", browsing.show_namespace),
        get("/store/item", browsing.show_item),
        get("/store/edit", changes.show_form),
        post("/store/edit", changes.put),
        get("/store/delete", changes.preview_deletion),
        post("/store/delete", changes.delete),
    ),
)
