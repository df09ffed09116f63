"""Chunking: documents cut into pieces, with their exact places.

`chunk_text` is pure: it weighs the words of a text, finds its blocks, and puts blocks together up
to a size. Nothing is lost, and the time is linear, also for a text without spaces or lines.

Read `config.py` first, then `chunks.py`, `atoms.py` and `blocks.py`.
"""
