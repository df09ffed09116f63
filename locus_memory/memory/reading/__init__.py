"""What a run is shown of what is known: a stable part, and a tail for the message.

The stable part is built when a thread begins and stays as it is, so that a provider's prompt cache
holds: what always holds, the facts and notes, and the turns of the user that no extraction has
read. The tail stands in front of the latest message: what answers it, and what is new.

Read `reader.py` first, then `stable.py`, `tail.py` and `lines.py`; `fixed.py` reads what always
holds, and `gate.py` keeps the tail back where tokens are counted. `reading.py` names what they are
read from, and `uses.py` is what comes after.
"""
