"""Sessions: how turns become episodes, facts and a transcript.

A turn is queued with its transcript in one write (`transcribing.py`). Once the session is over, it
is distilled with one model call, and everything is written together (`distillation.py`).
Conversations of the past are ingested the same way (`ingestion.py`).

Read `distillation.py` first.
"""
