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

BRANCHES = [
    "external_clear_resets_stale_branch_before_next_write",
    "external_clear_resets_stale_branch_before_pop",
    "post_clear_switch_synchronizes_generation_before_next_write",
    "advanced_session_basic_functionality",
    "advanced_tool_name_extraction",
    "branch_deletion_with_force",
    "branch_error_handling",
    "branch_ids_remain_reserved_after_delete_and_clear",
    "branch_specific_operations",
    "branch_usage_tracking",
    "branching_functionality",
    "conversation_structure_with_multiple_turns",
    "create_branch_from_content",
    "create_branch_from_content_uses_decoded_match",
    "create_branch_rejects_blank_name",
    "create_branch_rejects_populated_branch_id",
    "delete_branch_preserves_exact_branch_id",
    "empty_session_operations",
    "error_handling_in_usage_tracking",
    "find_turns_by_content",
    "find_turns_by_content_filters_session_and_branch",
    "find_turns_by_content_matches_literal_text",
    "find_turns_by_content_with_escaped_text_parts",
    "find_turns_by_content_with_list_content",
    "get_conversation_turns",
    "get_conversation_turns_with_list_content",
    "get_items_explicit_limit_overrides_session_settings",
    "get_items_limit_returns_fewer_when_history_exhausted",
    "get_items_uses_session_settings_limit",
    "get_items_with_parameters",
    "json_serialization_edge_cases",
    "message_structure_tracking",
    "output_tokens_details_persisted_when_input_details_missing",
    "runner_integration_with_usage_tracking",
    "runner_with_session_settings_override",
    "sequence_ordering",
    "session_isolation",
    "session_settings_constructor",
    "session_settings_default",
    "session_settings_resolve",
    "tool_execution_integration",
    "tool_name_extraction",
    "tool_usage_tracking",
    "tool_usage_tracking_collapses_reserved_same_name_namespace_shape",
    "tool_usage_tracking_counts_tool_search_output_without_matching_call",
    "tool_usage_tracking_preserves_namespaces_and_tool_search",
    "tool_usage_tracking_uses_bare_name_for_deferred_top_level_calls",
    "tool_usage_tracks_runner_shell_and_patch_calls_by_branch",
    "tool_usage_tracks_shell_and_patch_calls",
    "usage_tracking_storage",
]
"""Tests of their AdvancedSQLiteSession that look at no table of it; the others do not apply."""

ATTEMPTS = 2
"""Some of the tests wait for parts of a second."""


def folder_of(tests_of):
    """Return the folder of their tests, with their settings."""
    folder = tests_of("openai-agents")
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = session\n"
        "markers =\n    serial: run alone\n    allow_call_model_methods: may call a model\n"
    )
    return folder


@pytest.mark.slow
def test_the_tests_of_their_branches_and_usage_pass_with_ours(tests_of, run_tests):
    folder = folder_of(tests_of)
    file = "tests/extensions/memory/test_advanced_sqlite_session.py"
    names = [f"{file}::test_{name}" for name in BRANCHES]
    ended = run_tests(folder, names, "-p", "openai_agents_branches")
    assert len(ended) >= len(BRANCHES)
    assert {name for name, passed in ended.items() if not passed} == set()


@pytest.mark.slow
def test_the_tests_of_their_session_pass_with_ours(tests_of, run_tests):
    folder = folder_of(tests_of)
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
