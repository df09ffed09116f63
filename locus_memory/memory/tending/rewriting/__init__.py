"""The consolidation of facts by a model, which proposes operations and never writes.

Facts that are near each other are found without a model, and it sees only these. Each operation it
proposes is checked alone, and one that could lose a fact is refused.

Read `groups.py` first, then `proposal.py` and `consolidation.py`.
"""
