"""Chat models: the protocol of a model, and those that ship with the library.

A model is an async callable from messages to a message. `asking.py` is the one place that calls a
model, whatever it can do: tools, streaming, counts of tokens.

Read `base.py` first, then `asking.py`; `scripted.py` needs no endpoint, `openai/` any that speaks
OpenAI's protocol.
"""
