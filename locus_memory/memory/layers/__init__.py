"""The layers beside the current memories: vital signs, episodes, transcript, log.

Each layer is a frozen record with pure changes, and a book that reads and writes the records of a
scope. The write path fills them, the reader shows them, and the consolidator erases what is old.

Read `vitals.py` first, then `episodes.py` and `log.py`; `records.py` makes JSON of
records, and back. `blocks.py` drops what runs were shown. `identity.py` has what a person fixed,
and reads what earlier versions kept of it. `asking.py` gets the text of a model's answer.
"""
