"""The command `demo`: a conversation that survives its process, and an agent with a memory.

Each step runs a real command or process on a real database, kills some of them, and checks
the data that it read back. The sample conversation is part of the package.

Read `command.py` first, then `play.py` with `steps.py`, then `agent_play.py` with
`agent_steps.py`, and last `tending_play.py` with `tending_steps.py`.
"""
