"""An extractor without a model: a table of English phrases, for demos and tests.

A text is cut into clauses, and rules are matched against each clause. It recognises few facts, but
always the same ones.

Read `extractor.py` first, then `heard.py` and `clauses.py`, which leave out what `material.py`
finds, and `grammar.py`; `person.py`, `agenda.py` and `corrections.py` are the rules. `standing.py`
refuses what is not understood by itself, `confirming.py` reads what a user agrees to, and
`voice.py` changes the person of a text. `digest.py` sums up a conversation by the same sentences,
with the themes that `themes.py` counts.
"""
