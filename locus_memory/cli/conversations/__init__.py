"""Conversations in files: reading and importing them.

A transcript becomes a thread of checkpoints and searchable turns. An import that was interrupted
continues where it stopped.

Read `transcripts.py` first, then `importer.py`.
"""
