"""Chunking: documents cut into pieces, with their exact places.

`chunk_text` is pure: it weighs the words of a text, finds its blocks, and puts blocks together up
to a size. Nothing is lost, and the time is linear, also for a text without spaces or lines: the
package `semantic-text-splitter` takes 15 s for 10 MB of Markdown, and 109 s for a line of 5 MB.

Read `config.py` first, then `chunks.py`, `atoms.py`, `blocks.py` and `markdown.py`.
"""
