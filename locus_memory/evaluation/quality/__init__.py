"""The report of runs of questions: accuracy, its intervals, and what the answers took.

`figures.py` computes from the journals, which it reads once, `documents.py` writes Markdown and
HTML. No answer is kept in memory.
"""
