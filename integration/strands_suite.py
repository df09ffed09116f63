"""A pytest plugin: the tests of Strands get our repository and our storage for theirs."""

from __future__ import annotations

import pytest
import strands.session
import strands.session.file_session_manager
import strands.storage
import strands.storage.in_memory_storage
import tests.fixtures.mock_session_repository as mocked
from strands.session import RepositorySessionManager

from locus_memory.integrations.strands import LocusSessionRepository, LocusStorage

OPENED = []


class OurRepository(LocusSessionRepository):
    """Our repository in the place of the one in memory that their tests use."""

    def __init__(self):
        super().__init__("memory")


class OurManager(RepositorySessionManager, LocusSessionRepository):
    """A manager over our repository with the arguments of their `FileSessionManager`."""

    def __init__(self, session_id, storage_dir=None):
        where = "memory" if storage_dir is None else f"sqlite:{storage_dir}/sessions.db"
        LocusSessionRepository.__init__(self, where)
        OPENED.append(self)
        super().__init__(session_id, session_repository=self)


class OurStorage(LocusStorage):
    """Our storage in the place of their `InMemoryStorage`."""

    def __init__(self, *, search_strategy=None):
        super().__init__("memory", search_strategy=search_strategy)


mocked.MockedSessionRepository = OurRepository
strands.session.FileSessionManager = OurManager
strands.session.file_session_manager.FileSessionManager = OurManager
strands.storage.InMemoryStorage = OurStorage
strands.storage.in_memory_storage.InMemoryStorage = OurStorage


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPENED:
        LocusSessionRepository.close(OPENED.pop())
