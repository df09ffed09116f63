from __future__ import annotations

import pytest

from locus_memory.memory.ledger.likeness import gist, same_content


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada likes tea.", "ada likes tea!"),
        ("The user likes tea.", "user likes  Tea"),
        ("Ships on  Friday\u3002", "ships on friday"),
        ("Uses .NET at work.", "uses .NET at work"),
    ],
)
def test_near_duplicates_mean_the_same(one, other):
    assert gist(one) == gist(other) != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Page when load is > 5.", "Page when load is < 5."),
        ("It must be >0.", "It must be 0."),
        ("The limit is <= 3", "The limit is < 3"),
        ("The file is at /srv/Data.", "The file is at /srv/data."),
        ("Negation is written !debug.", "Negation is written debug."),
        ("Write x ! y", "Write x y"),
        ("The user is a manager.", "The user has a manager."),
        ("The user is cold.", "The user has a cold."),
        ("The user has few friends.", "The user has a few friends."),
        ("Acme is a customer.", "Acme has a customer."),
        ("The project uses .NET.", "The project uses net."),
        ("The user works in IT.", "The user works in."),
        ("The user works in IT.", "The user works in it."),
        ("The user likes universe.", "The user likes university."),
        ("The organization is X.", "The organ is X."),
        ("The user does have AIDS.", "The user aids."),
        ("It is this Friday.", "It is Friday."),
        ("It is at 5 am.", "It is at 5."),
        ("Grade A.", "Grade."),
        ("C is used.", "c is used."),
        ("The file is README.", "The file is readme."),
        ("Is 6' tall", 'Is 6" tall'),
        ("I like tea.", "She likes tea."),
        ("The team uses Expo.", "The team uses expos."),
    ],
)
def test_different_facts_are_never_taken_for_one(one, other):
    assert gist(one) != gist(other)
    assert not same_content(one, other)


def test_under_one_key_only_spaces_do_not_count():
    assert same_content("Ada  likes\ttea. ", "Ada likes tea.")
    assert not same_content("Ada likes tea.", "ada likes tea!")


@pytest.mark.parametrize("content", ["the", "?!", "..."])
def test_what_says_nothing_has_no_gist(content):
    assert gist(content) == ()
