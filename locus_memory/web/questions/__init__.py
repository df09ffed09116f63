"""The functions that ask the backend: each takes `Data` and a request, and returns an answer.

Requests and answers are pydantic models, from which the OpenAPI document is generated. The
functions know nothing of routes and headers, so that the API and pages share them; what a command
shows as well comes from `locus_memory.inspection`.

Read `data.py` first, then `items.py`, `threads.py` and `memories.py`.
"""
