"""The command `demo`: a conversation that survives its process, and an agent that remembers.

Each step runs a real command or process against a real database, kills some of them, and checks
what it read back before it prints a line. The conversation ships with the package.

Read `command.py` first, then `play.py` with `steps.py`, then `agent_play.py` with
`agent_steps.py`.
"""
