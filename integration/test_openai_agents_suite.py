"""The session tests of the OpenAI Agents SDK, from its source package, with our session."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("agents")

LEAST = 1000
"""About as many such tests as openai-agents 0.24 has: fewer, and something was not run."""

FILES = [
    *("memory", "deferred_session_writes", "extensions/memory/test_encrypt_session.py"),
    *("test_hitl_session_scenario.py", "test_max_turns.py", "test_programmatic_tool_calling.py"),
    *("test_run_impl_resume_paths.py", "test_soft_cancel.py", "test_tool_batch_failure_history.py"),
]

INTERNALS = {
    "the connections, locks and rows of their SQLiteSession": [
        r"sqlite_session_close",
        r"sqlite_session_closed_rejects_empty_add_items",
        r"sqlite_session_(reaps|keeps)_connections",
        r"sqlite_session_file_lock",
        r"sqlite_session_failed_add_items_releases_write_lock",
        r"sqlite_session_failed_(clear|pop)_",
        r"sqlite_session_post_commit_cancellation",
        r"sqlite_session_rollback_failure",
        r"settled_(pop|clear)_failure_invalidates_response_chain",
        r"handoff_resume_after_cancelled_compaction_commits",
    ],
    "a trigger in the file of their SQLiteSession, or a gate around a method of it": [
        r"suffix_transaction_.*\[sqlite\]",
        r"failed_encrypted_suffix_transaction_.*\[sqlite-",
    ],
    "rows that the test damages in the file of their SQLiteSession": [
        r"sqlite_session_pop_item_(skips|returns_none)",
        r"sqlite_session_get_items_.*corrupt",
    ],
    "their EncryptedSession treats only their SQLiteSession this way": [
        r"encrypted_pop_(wrong_key|rechecks|authentication|cancellation)",
    ],
    "SQLite takes a negative LIMIT for none; here it is an error": [
        r"encrypted_session_scan_budget_rejects_negative_limit_before_read",
    ],
}
"""The tests that do not apply, and why."""

NOT_OURS = re.compile("|".join(name for names in INTERNALS.values() for name in names))

ATTEMPTS = 2
"""Some of the tests wait for parts of a second."""


@pytest.mark.slow
def test_the_tests_of_their_session_pass_with_ours(tests_of, run_tests):
    folder = tests_of("openai-agents")
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = session\n"
        "markers =\n    serial: run alone\n    allow_call_model_methods: may call a model\n"
    )
    options = ["-p", "openai_agents_sessions"]
    ended = run_tests(folder, [f"tests/{name}" for name in FILES], *options)
    assert len(ended) >= LEAST
    failed = {name for name, passed in ended.items() if not passed}
    for _ in range(ATTEMPTS - 1):
        again = sorted(name for name in failed if not NOT_OURS.search(name))
        failed = {
            name
            for name, passed in (run_tests(folder, again, *options) if again else {}).items()
            if not passed
        }
    assert failed == set()
