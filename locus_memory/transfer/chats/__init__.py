"""Chats in files: what people bring from other places becomes conversations.

`formats.py` has a table of the formats, and the one walk over a file. A reader takes a stream of
entries, which are the values of a JSON array, of lines of JSON, or lines of text, and yields
conversations; what it cannot read, it names, and goes on.

Read `conversation.py` first, then `entries.py` and `formats.py`; each other file has readers.
"""

from __future__ import annotations

__all__: list[str] = []
