"""Conversations in files and in threads: how they are read, written, imported and measured.

A transcript becomes a thread of checkpoints and searchable turns, and goes back to a file without
a loss. Threads that a framework keeps are decoded here, without building a class of its own.

Read `transcripts.py` first, then `importer.py`.
"""
