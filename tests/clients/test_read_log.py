"""A table of the user's as a log: a file or a frame, words, prices, and what lies outside."""

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import FADE
from dpbandit.clients import read_log
from dpbandit.offline import replay
from tests.each import each

PRICES = [1.0, 1.5, 2.0, 3.0]
OFFERS = {
    "action": "price",
    "prices": PRICES,
    "unit_cost": 0.5,
    "context": {"age": (18, 90), "shop": ("A", "B", "C")},
}


def offers(n=400, seed=0):
    rng = np.random.default_rng(seed)
    price = rng.choice(PRICES, n)
    sold = rng.random(n) < np.exp(-price / 2)
    age, shop = rng.integers(18, 91, n), rng.choice(list("ABC"), n)
    return pd.DataFrame({"price": price, "sold": 1 * sold, "age": age, "shop": shop})


def test_prices_by_hand():
    """Margins of sales, words one-hot against the first, ranges on [-1, 1], over sqrt(1 + 3)."""
    table = {"price": [1.0, 3.0], "sold": [1, 1], "age": [18, 54], "shop": ["A", "C"]}
    logged = read_log(table, sold="sold", **OFFERS)
    assert logged.context.tolist() == [[0.5, -0.5, 0, 0], [0.5, 0, 0, 0.5]]
    assert logged.reward.tolist() == [0.5, 2.5]
    assert logged.spec.prices == tuple(PRICES)
    assert (logged.spec.unit_cost, logged.spec.reward_low, logged.spec.reward_high) == (0.5, 0, 2.5)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_file_is_its_table_and_agents_learn_demand_on_it(tmp_path, ending):
    path = tmp_path / f"offers{ending}"
    frame = offers()
    frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    logged, same = (read_log(table, sold="sold", **OFFERS) for table in (path, frame))
    assert np.array_equal(logged.context, same.context)
    assert np.array_equal(logged.reward, same.reward)
    config = FADE(epsilon=1.0, model="demand")
    assert replay(config, logged, passes=1).kept[0] > 50
    assert certify(config, logged.spec, accountants=False).holds


def test_rows_outside_their_bounds_are_counted():
    frame = offers()
    frame.loc[:1, "age"] = 120
    with pytest.warns(UserWarning, match="2 of 400 rows .* lie outside .* column 'age'"):
        logged = read_log(frame, sold="sold", **OFFERS)
    assert "2 of 400 contexts (0.5 %)" in str(logged)


@each(
    ("change", "says"),
    [
        ({"context": {"shop": ("A", "B")}}, r"only the levels .'A', 'B'. of context, got 'C' in"),
        ({"context": {"shop": ("A", "B", "A")}}, "every level of 'shop' once, got 'A' twice"),
        ({"unit_cost": None}, "prices=, the public list of prices, and unit_cost= together"),
        ({"unit_cost": 1.0}, "above unit_cost=1.0"),
        ({"prices": PRICES[:3]}, "only actions among prices=.* got 3.0"),
        ({"sold": None}, "Expected reward=, the name of a column, or else sold="),
        ({"sold": "age"}, "column 'age' to hold 0 and 1 only, got"),
        ({"context": ["shop"]}, "column 'shop' to hold numbers"),
    ],
    ids=str,
)
def test_one_sentence_each(change, says):
    with pytest.raises(InputError, match=says) as caught:
        read_log(offers(), **{"sold": "sold", **OFFERS, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("prices.xls", "a", "to end in .csv, .csv.gz, .parquet"),
        ("prices.csv", "", "to hold a table: No columns"),
        ("prices.parquet", "no", "to hold a table"),
        ("none.csv", None, "Cannot read .*none.csv"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=says):
        read_log(str(tmp_path / name), sold="sold", **OFFERS)
