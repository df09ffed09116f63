"""What is known without a model: a small table of sentences that a user says of themselves.

Read `extractor.py` first, then `table.py` for the sentences, and `wording.py` for how a message
becomes sentences, and for what a user asks to remember, in several languages. `naming.py` gives a
sentence without a key its type and key.
"""
