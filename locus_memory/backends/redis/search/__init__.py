"""Search in Redis: by text, by vectors, and by the time of the last update.

Texts are in the library's own inverted index (`texts.py`), on every server. Vectors are in the
vector sets of Redis 8, or in hashes that are read whole (`vectors.py`). `hits.py` turns names into
items.
"""
