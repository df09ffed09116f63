"""Questions about conversations: memories are told them, a model answers, another one judges.

A run asks the same questions of each memory, within the same budgets of tokens. All that was asked
and answered is in a journal, from which a run goes on.

Read `answering.py` first, the run itself; then `memories.py` and `peers.py`, what is compared;
`judging.py`, the prompts; `asking.py` and `costs.py`, the calls of models and what they cost.
"""
