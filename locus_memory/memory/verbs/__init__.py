"""The verbs of a memory manager for people and tools: one memory at a time, by id or by wish.

`single.py` reads and changes single memories with their history, `explicit.py` remembers and
searches on request, `layers.py` has what is beside the memories, and `sessions.py` takes in
conversations. A manager inherits them; they work on its scope.

Read `single.py` first.
"""
