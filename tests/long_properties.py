"""The long properties of the suites of `locus_memory.testing`, which carry no mark of ours."""

from __future__ import annotations

import pytest

__all__ = ["LONG_PROPERTIES", "is_long_property"]

LONG_PROPERTIES = {
    "TestHistory",
    "TestScopes",
    "test_a_filter_has_so_many_terms_and_no_more",
    "test_a_mapping_in_a_message_is_changed_in_place",
    "test_a_store_behaves_like_a_dict",
    "test_a_thread_has_no_hidden_cap",
    "test_a_tree_behaves_like_a_dict",
    "test_any_change_in_place_is_saved_and_nothing_else",
    "test_any_filter_agrees_with_plain_evaluation",
    "test_any_item_comes_back",
    "test_any_json_comes_back",
    "test_any_json_comes_back_equal",
    "test_any_names_never_meet",
    "test_any_query_over_any_text",
    "test_any_sequence_matches_a_list_of_states",
    "test_any_text_comes_back",
    "test_deletes_and_writes_at_once_leave_a_tree",
    "test_deleting_any_leaves_every_other",
    "test_forks_of_forks_are_whole_whatever_was_removed",
    "test_many_namespaces",
    "test_no_chain_is_longer_than_allowed",
    "test_no_uri_reaches_another_user",
    "test_no_verb_has_a_hidden_cap",
    "test_only_changes_are_written",
    "test_recall_beside_a_far_larger_neighbour",
    "test_twenty_writers_of_one_entry",
    "test_vacuum_pages_through_many_threads",
    "test_versions_that_are_written_at_once_leave_one",
    "test_what_is_recalled_is_what_was_saved",
}
"""The names of inherited tests, and of their classes, that take half a second on most backends."""


def is_long_property(item: pytest.Function) -> bool:
    """Return whether a test is a long property of a suite."""
    return not LONG_PROPERTIES.isdisjoint({item.originalname, getattr(item.parent, "name", "")})
