from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.journal import Used
from locus_memory.evaluation.questions.costs import Price, Purse, PurseEmptyError, read_prices

USED = st.builds(
    Used,
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**6),
    counted=st.booleans(),
    calls=st.integers(0, 5),
    cost=st.none() | st.integers(0, 100).map(float),
)


def test_prices_in_toml_and_in_json(tmp_path):
    toml, plain = tmp_path / "prices.toml", tmp_path / "prices.json"
    toml.write_text('["openai:gpt-4.1-mini"]\nprompt = 0.4\ncompletion = 1.6\ncached = 0.1\n')
    plain.write_text(json.dumps({"local": {"prompt": 0, "completion": 0}}))
    assert read_prices(toml) == {
        "openai:gpt-4.1-mini": Price(prompt=0.4, completion=1.6, cached=0.1)
    }
    assert read_prices(plain) == {"local": Price(prompt=0, completion=0)}


def test_a_cached_token_has_its_own_price():
    used = Used(prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=400_000)
    assert Price(prompt=2, completion=8, cached=0.5).cost(used) == pytest.approx(1.2 + 0.2 + 4)
    assert Price(prompt=2, completion=8).cost(used) == pytest.approx(2 + 4)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[a]\nprompt = -1\ncompletion = 2\n", "a.prompt"),
        ("[a]\nprompt = nan\ncompletion = 2\n", "a.prompt"),
        ("[a]\nprompt = inf\ncompletion = 2\n", "a.prompt"),
        ("[a]\nprompt = 1\n", "a.completion"),
        ("[a]\nprompt = 1\ncompletion = 2\nprice = 3\n", "a.price"),
        ('[a]\nprompt = "1"\ncompletion = 2\n', "a.prompt"),
        ("[a]\nprompt = true\ncompletion = 2\n", "a.prompt"),
        ("[a]\nprompt = 1\ncompletion = 2\ncached = [1]\n", "a.cached"),
        ("a = 1\n", "'a'"),
        ("a = " + "[" * 20_000, "no table of prices"),
        ("no table", "no table of prices"),
        ("\xff", "no table of prices"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, content, told):
    path = tmp_path / "prices.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidArgumentError, match=told):
        read_prices(path)


@given(st.lists(USED, max_size=6))
def test_what_calls_take_adds_up(calls):
    total = sum(calls, Used(prompt_tokens=0, completion_tokens=0, calls=0, cost=0.0))
    assert total.prompt_tokens == sum(each.prompt_tokens for each in calls)
    assert total.calls == sum(each.calls for each in calls)
    assert total.counted is any(each.counted for each in calls)
    costs = [each.cost for each in calls]
    assert total.cost == (None if None in costs else sum(costs))


def test_a_purse_is_empty_at_its_limit():
    purse = Purse(1.0)
    purse.check()
    purse.spent = 1.0
    with pytest.raises(PurseEmptyError, match=r"\$1.0000 of \$1 are spent"):
        purse.check()
    Purse(None, 10**6).check()
