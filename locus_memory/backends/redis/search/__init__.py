"""Search in Redis: by text, by vectors, and by the time of the last update.

On a server with the RediSearch module, `redisearch.py` and `indexed.py` search. On any other server
the library's own inverted index (`texts.py`) and vector sets (`vectors.py`) do. `layout.py` decides
once per key prefix which of them holds its data.

Read `layout.py` first, then either pair of modules; `hits.py` turns names into items.
"""
