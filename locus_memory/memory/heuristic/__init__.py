"""An extractor without a model: a table of English phrases, for demos and tests.

A text is cut into clauses, and each clause is matched with rules. It recognises few facts, and
always the same ones.

Read `extractor.py` first, then `clauses.py` and `grammar.py`; `person.py` and `agenda.py` are the
rules.
"""
