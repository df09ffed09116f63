"""The storage of `LocusStore`: the items of LangGraph's store in a store of the library.

Each operation of LangGraph's batch is answered through the store contract, with exact pages. The
notes beside the items mark vectors that are out of date.

Read `writing.py` (puts, deletes and TTL) and `search.py` first; each other module has one task.
"""
