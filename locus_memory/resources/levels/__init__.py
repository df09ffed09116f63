"""The three levels of a text: abstract, overview and detail.

`rules.py` makes the first two from headings and first sentences, `modelled.py` with one call of a
model.

Read `rules.py` first.
"""
