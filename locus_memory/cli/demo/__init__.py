"""The command `demo`: a conversation that survives its process, and an agent with a memory.

Each step runs a real command or process on a real database, kills some of them, and checks
the data that it read back. The sample conversation is part of the package.

Read `command.py` first, then `stage.py`, `play.py`, `agent_play.py` and `tending_play.py`;
`parts.py` is what runs in the processes that are killed.
"""
