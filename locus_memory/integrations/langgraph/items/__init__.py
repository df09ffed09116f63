"""How `LocusStore` keeps the items of LangGraph's store in ours.

Each operation of LangGraph's batch is answered through our contract, page by exact page. The
notes beside the items say which vectors are out of date.

Read `writing.py` (puts, deletes and TTL) and `search.py` first; the others answer one question
each.
"""
