"""The parts of the conformance suite of document indexes.

Each module has the tests of one theme; `DocumentConformance` puts them together.

Read `base.py` first.
"""
