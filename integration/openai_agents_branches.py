"""A pytest plugin: tests of the OpenAI Agents SDK get our session for its AdvancedSQLiteSession."""

from __future__ import annotations

import sys
from types import ModuleType

import agents.extensions.memory
from openai_agents_sessions import Ours, _closed

__all__ = ["_closed"]


class OurBranches(Ours):
    """Our session with the arguments of theirs, and the name that they read."""

    def __init__(self, *, session_id, create_tables=False, logger=None, **given):
        super().__init__(session_id, **given)

    @property
    def _current_branch_id(self):
        return self.branch


agents.extensions.memory.AdvancedSQLiteSession = OurBranches
# The tests ask whether it is installed, and use nothing of it.
sys.modules.setdefault("sqlalchemy", ModuleType("sqlalchemy"))
