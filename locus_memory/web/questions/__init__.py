"""The functions that ask the backend: each takes `Data` and a request, and returns an answer.

Requests and answers are pydantic models, from which the OpenAPI document is generated. The
functions know nothing of routes and headers, so that the API and pages share them; where a command
does the same, they call its function.

Read `data.py` first, then `items.py`, `threads.py` and `memories.py`.
"""
