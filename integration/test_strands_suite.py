"""The tests of Strands, from its source package, with our repository and our storage."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("strands", reason="it has an environment of its own: make frameworks")

LEAST = 350
"""About as many such tests as strands-agents 1.62 has: fewer, and something was not run."""

FILES = [
    *("session/test_file_session_manager.py", "session/test_repository_session_manager.py"),
    *("session/test_snapshot_session_manager.py", "agent/test_agent_storage.py"),
    *("storage/test_in_memory_storage.py", "storage/test_storage.py", "storage/search"),
    *("types/test_session.py", "vended_memory_stores/file_memory_store"),
]

NEEDED = ["moto", "responses", "requests", "charset-normalizer", "werkzeug", "markupsafe"]
NEEDED += ["xmltodict", "jinja2"]
"""What the tests of their storage on S3 need, whose settings all of their tests import."""

INTERNALS = {
    "the paths and files of their FileSessionManager": [
        r"test_file_session_manager.*::test_(create|delete)_session$",
        r"test_file_session_manager.*::test_create_(agent|message|multi_agent)$",
        r"test_message_durable_id_persists",
        r"test_corrupted_json_file",
        r"test__get_(session|agent|message)_path",
        r"test_create_session_multi_agent_directory_structure",
    ],
    "`clear`, which only their storage in memory has": [r"test_clear$", r"namespace_clear_only"],
    "values that do not outlive the process are kept in the snapshot; ours outlive it": [
        r"test_save_includes_inline_stash_for_ephemeral_storage",
        r"test_save_omits_stash_when_empty",
        r"test_immutable_snapshot_includes_stash",
        r"test_ephemeral_detection_survives_namespacing",
    ],
    "the dictionary of their storage in memory, which the test changes": [
        r"test_skips_keys_where_read_returns_none"
    ],
}
"""The tests that do not apply, and why."""

NOT_OURS = re.compile("|".join(name for names in INTERNALS.values() for name in names))


def test_the_tests_of_their_repository_and_storage_pass_with_ours(tests_of, run_tests):
    folder = tests_of("strands-agents", NEEDED)
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    ended = run_tests(folder, [f"tests/strands/{name}" for name in FILES], "-p", "strands_suite")
    assert len(ended) >= LEAST
    assert {name for name, passed in ended.items() if not passed and not NOT_OURS.search(name)} == (
        set()
    )
