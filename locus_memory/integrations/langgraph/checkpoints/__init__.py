"""How `LocusSaver` keeps the checkpoints and pending writes of LangGraph in ours.

A value becomes plain JSON and comes back exactly (`values.py`, `serializer.py`), and a checkpoint
becomes a document and its metadata (`records.py`). The rest reads, copies and deletes them.

Read `records.py` and `values.py` first, then `reading.py`.
"""
