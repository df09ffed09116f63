"""Recall: the memories that a message calls for.

`recall` finds them by search and orders them; `found` is the form in which it hands them over.
`as_of` does the same for the memories of an earlier moment, and `warming` keeps a recall that was
prepared after the turn before.
"""
