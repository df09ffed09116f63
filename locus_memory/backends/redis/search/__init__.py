"""Search in Redis: by words, by vectors, and by the time of the last update.

A server with the RediSearch module answers by `redisearch.py` and `indexed.py`, any other by our
own inverted index (`texts.py`) and by vector sets (`vectors.py`). `layout.py` decides which of
them holds a key prefix, once.

Read `layout.py` first, then the pair that interests you; `hits.py` turns names into items.
"""
