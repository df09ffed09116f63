"""Every page with what the demo left, for the tests and for the pictures of the docs."""

from __future__ import annotations

from urllib.parse import urlencode

HOME = {"user": "noor", "type": "user", "key": "home"}

TURN = {"namespace": ["turns", "second-wind"], "key": "000015"}

PAGES = {
    "overview": ("/", {}),
    "events": ("/overview/events", {}),
    "threads": ("/threads", {}),
    "timeline": ("/threads/timeline", {"thread": "second-wind"}),
    "unforked": ("/threads/timeline", {"thread": "noor-trip"}),
    "branches": ("/threads/branches", {"thread": "second-wind"}),
    "conversation": ("/threads/at", {"thread": "noor-dinner"}),
    "message": ("/threads/at", {"thread": "second-wind", "place": 12}),
    "diff": ("/threads/diff", {"thread": "second-wind", "checkpoint": 10, "other_checkpoint": 14}),
    "prune": ("/threads/prune", {"thread": "second-wind", "keep_last": 5}),
    "delete-thread": ("/threads/delete", {"thread": "second-wind"}),
    "users": ("/memories", {}),
    "everybody": ("/memories", {"find": "walnuts"}),
    "memories": ("/memories/list", {"user": "noor"}),
    "search": ("/memories/list", {"user": "noor", "query": "walnuts"}),
    "past": ("/memories/list", {"user": "noor", "at": "2020-01-01T00:00"}),
    "memory": ("/memories/memory", HOME),
    "forget": ("/memories/forget", HOME),
    "identity": ("/memories/identity", {"user": "tess"}),
    "episodes": ("/memories/episodes", {"user": "noor"}),
    "transcripts": ("/memories/transcript", {"user": "noor"}),
    "transcript": ("/memories/transcript", {"user": "noor", "thread": "noor-dinner"}),
    "nothing-saw": ("/saw", {}),
    "saw": ("/saw", {"user": "noor"}),
    "saw-thread": ("/saw", {"thread": "noor-trip"}),
    "trace": ("/saw", {"thread": "noor-dinner", "place": 8}),
    "try": ("/try", {"user": "noor", "text": "Suggest a cake with walnuts."}),
    "store": ("/store", {}),
    "namespace": ("/store/namespace", {"namespace": ["turns", "second-wind"]}),
    "item": ("/store/item", TURN),
    "edit-item": ("/store/edit", TURN),
    "delete-item": ("/store/delete", TURN),
    "danger": ("/danger", {}),
    "forget-user": ("/danger/forget", {"user": "noor"}),
    "clear": ("/danger/clear", {"path": "turns/second-wind"}),
    "consolidate": ("/danger/consolidate", {}),
    "empty": ("/memories/list", {"user": "nobody"}),
    "missing": ("/nothing", {}),
}
"""The address of each page by a name."""


def address(name):
    """Return the path and the query of a page."""
    path, fields = PAGES[name]
    return f"{path}?{urlencode(fields, doseq=True)}" if fields else path
