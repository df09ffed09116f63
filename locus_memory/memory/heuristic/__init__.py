"""An extractor without a model: a table of English phrases, for demos and tests.

A text is cut into clauses, and rules are matched against each clause. It recognises few facts, but
always the same ones.

Read `extractor.py` first, then `clauses.py` and `grammar.py`; `person.py` and `agenda.py` are the
rules.
"""
