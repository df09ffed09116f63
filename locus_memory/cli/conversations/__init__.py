"""Conversations in files and in threads: reading, writing, importing and measuring them.

A transcript becomes a thread of checkpoints and searchable turns, and can be exported without
loss. Threads of a framework are decoded without building any of the framework's classes.

Read `transcripts.py` first, then `importer.py`.
"""
