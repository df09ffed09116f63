"""The storage of `LocusSaver`: LangGraph's checkpoints and pending writes in a checkpointer.

A value becomes plain JSON and is restored exactly (`values.py`, `serializer.py`), and a checkpoint
becomes a document and its metadata (`records.py`). The other modules read, copy and delete them.

Read `records.py` and `values.py` first, then `reading.py`.
"""
