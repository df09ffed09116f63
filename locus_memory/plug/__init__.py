"""Memory for coding agents at the terminal: what their hooks call, and what sets these up.

Read `hosts.py` first: what each host calls its events and files. `settings.py` writes them,
`command.py` is what they call, `hook.py` answers an event, `transcripts.py` reads what was said,
`projects.py` names a project.
"""
