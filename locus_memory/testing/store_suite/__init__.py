"""The parts of the conformance suite of stores; `locus_memory.testing` combines them.

Each part is a class of tests of one rule of the contract. A test is skipped because of a
capability, never because of the name of a backend.

Read `base.py` first, then `items.py`.
"""
