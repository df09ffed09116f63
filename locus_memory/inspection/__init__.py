"""What a person looks at and changes in a database, as plain data: threads, memories, erasures.

The commands print it, and the JSON API and the pages answer with it. A document here is a dict, as
`--json` prints it. Nothing in this package prints, and nothing knows of options or requests.

Read `names.py` first, then `threads.py` and `memories.py`.
"""
