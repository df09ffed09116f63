"""The parts of the conformance suite of stores; `locus_memory.testing` puts them together.

Each part is a class of tests on one promise of the contract. A test is skipped by a capability,
never by the name of a backend.

Read `base.py` first, then `items.py`.
"""
