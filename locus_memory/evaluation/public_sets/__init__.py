"""The public sets of conversations and questions, as their makers publish them.

`files.py` reads a file or a folder, `shapes.py` turns what it holds into our own form. The set is
known by its shape.
"""
