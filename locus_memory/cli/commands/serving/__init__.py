"""The commands that serve a database to other programs until they are stopped.

`mcp.py` serves memories to a model's host over the Model Context Protocol, `serve.py` everything as
JSON over HTTP. Each checks its options and calls the package that listens:
`locus_memory.integrations.mcp` and `locus_memory.web`.
"""
