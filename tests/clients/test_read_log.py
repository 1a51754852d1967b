"""Tables of the user's as logs: files or frames, of arms, lists and prices, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import FADE
from dpbandit.clients import read_lists, read_log, read_open_bandit, read_prices
from dpbandit.offline import replay
from tests.each import asserting, each

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
    alone = {name: column[:1] for name, column in table.items()}  # other rows change nothing
    assert read_log(alone, sold="sold", **OFFERS).context.tolist() == [[0.5, -0.5, 0, 0]]
    assert (logged.spec.context_bound, logged.spec.context_order) == (1.0, 2)
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


CLICKS = {
    "age": np.linspace(20, 60, 100),
    "shown": ["old", "new"] * 50,
    "click": [0.0, 1.0] * 50,
    "chance": [0.5] * 100,
    "short": [1],
}
SHOWN = {"action": "shown", "reward": "click", "propensity": "chance", "reward_range": (0, 1)}
OF_ARMS = {"a": ["x", "y"], "r": [0, 1], "p": [0.5, 0.5]}
REFUSED = {
    "offers": [
        ({"context": {"shop": ("A", "B")}}, r"only the levels .'A', 'B'. of context, got 'C' in"),
        ({"context": {"shop": ("A", "B", "A")}}, "every level of 'shop' once, got 'A' twice"),
        ({"unit_cost": None}, "prices=, the public list of prices, and unit_cost= together"),
        ({"unit_cost": 1.0}, "above unit_cost=1.0"),
        ({"prices": PRICES[:3]}, "only actions among prices=.* got 3.0"),
        ({"sold": None}, "Expected reward=, the name of a column, or else sold="),
        ({"sold": "age"}, "column 'age' to hold 0 and 1 only, got"),
        ({"context": ["shop"]}, "column 'shop' to hold numbers"),
    ],
    "clicks": [
        ({"action": "arm"}, "a column 'arm', the table has"),
        ({"reward": "shown"}, "column 'shown' to hold numbers"),
        ({"propensity": "p"}, "a column 'p'"),
        ({"arms": ["old", "newer"]}, "among arms=.* got 'new'"),
        ({"propensity": 2.0}, "propensities in"),
        ({"lowest": "a"}, "lowest='a'"),
        ({"context": ["shown"]}, "column 'shown' to hold numbers"),
        ({"arms": ["old", "new", "old"]}, "every arm once .* got 'old' twice"),
        ({"arms": 2}, "arms=2 to list what was on offer"),
        ({"context": {"age": (60, 20)}}, "range of 'age' to be .* low < high"),
        ({"context": {"age": (20, np.inf)}}, "range of 'age'"),
        ({"context": {"age": (0, [1])}}, "range of 'age' to be"),
        ({"context": {"age": 60}}, "bounds of feature 'age', such as .18, 90."),
        ({"context": {"age": (18, 90)}, "context_bound": 1.0}, "no context_bound=1.0 beside"),
        ({"context": ["age"], "context_bound": -1.0}, "context_bound=-1.0"),
        ({"context": ["age", "short"], "context_bound": 99.0}, "one entry for each row"),
        ({"context": {"wage": (0, 1)}}, "a column 'wage'"),
        ({"reward_range": None}, "reward_range=None to be two finite numbers"),
    ],
}
"""What is said of the first or second table."""


@pytest.mark.parametrize("table", REFUSED)
def test_one_sentence_each(table):
    known = {"offers": (offers(), {"sold": "sold", **OFFERS}), "clicks": (CLICKS, SHOWN)}
    rows, told = known[table]
    for change, says in REFUSED[table]:
        with asserting(change):
            with pytest.raises(InputError, match=says) as caught:
                read_log(rows, **{**told, **change})
            assert "\n" not in str(caught.value)


@each(
    ("played", "says"),
    [
        (["a", 1, "a", 1], "got 1 in row 1"),
        (["a", "b", None, "b"], "no missing entries in column 'a', got 1 of 4"),
        ([0, 1, np.nan, 1], "no missing entries in column 'a', got 1 of 4"),
        ([None] * 4, "no missing entries in column 'a', got 4 of 4"),
        ([[0], [0, 1], [1], [1]], r"got \[0\] in row 0"),
        ([[0], [1], [1], [1]], "column 'a' to hold one entry"),
    ],
    ids=str,
)
@each("arms", [None, ["a", "b", "1", 0, 1]])
def test_actions_are_all_text_or_all_numbers(played, says, arms):
    """Broken on purpose: as an array, ["a", 1] is ["a", "1"]."""
    with pytest.raises(InputError, match=says) as caught:
        read_log({"a": played, "r": [0, 0, 1, 1]}, action="a", reward="r", arms=arms)
    assert "\n" not in str(caught.value)


def test_tables_that_are_no_logs():
    columns = {"action": "a", "reward": "r", "reward_range": (0, 1)}
    for table, says in (
        ({"a": [], "r": []}, "at least one logged round"),
        ({"a": ["x"], "r": [1]}, "arms=, .* 'x' is all that occurs"),
    ):
        with pytest.raises(InputError, match=says):
            read_log(table, **columns)
    with pytest.raises(InputError, match="n_items='all'"):
        read_open_bandit(OF_ARMS, n_items="all")
    with pytest.raises(InputError, match="list of names of columns, got 3"):
        read_lists(OF_ARMS, n_items=2, items=3, clicks=["r"], prefix=["p"])


def test_without_propensities_all_arms_were_equally_likely():
    table = {"a": [0, 1, 2.0], "r": [0, 1, 1]}
    logged = read_log(table, action="a", reward="r", reward_range=(0, 1))
    assert logged.propensity.tolist() == [1 / 3] * 3
    assert logged.lowest_is_public


@each(
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


def test_tables_of_every_kind(tmp_path):
    """A frame, a CSV and a parquet file are the same log; columns come where they belong."""
    frame = pd.DataFrame({"a": [0, 1], "b": [2, 0], "c": [1, 0], "d": [0, 1], "p": [0.4, 0.4]})
    frame["q"], frame["price"], frame["age"] = [0.1, 0.2], [1.5, 2.5], [18, 54]
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "cut.csv.gz", index=False)
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "cut.csv.gz").read_bytes()[:60])
    with pytest.raises(InputError, match="to hold a table: "):
        read_log(tmp_path / "cut.csv.gz", action="a", reward="c", reward_range=(0, 1))
    for table in (frame, tmp_path / "log.csv", tmp_path / "log.parquet"):
        more = {"context": {"age": (18, 90)}, "adaptive": True}
        listed = read_lists(
            table, n_items=3, items=["a", "b"], clicks=["c", "d"], prefix=["p", "q"], **more
        )
        assert (listed.items[0].tolist(), listed.prefix[1].tolist()) == ([0, 2], [0.4, 0.2])
        names = {"price": "price", "reward": "c", "density": "p"}
        priced = read_prices(table, **names, price_range=(1, 3), reward_range=(0, 3), **more)
        assert (priced.price.tolist(), priced.adaptive) == ([1.5, 2.5], True)
        assert np.array_equal(priced.context, listed.context)
    law = {"arm": ["x", "y"], "r": [0, 1], "p": [0.3, 0.7], "px": [0.3, 0.3], "py": [0.7, 0.7]}
    columns = {"action": "arm", "reward": "r", "propensity": "p", "probabilities": ["px", "py"]}
    assert read_log(law, **columns, reward_range=(0, 1)).probabilities.tolist() == [[0.3, 0.7]] * 2
    page = {"item_id": [0, 3], "position": [1, 3], "click": [1, 0], "propensity_score": [0.25] * 2}
    log = read_open_bandit(page, n_items=4)
    assert (log.context @ [1, 0, 1] * 3**0.5).round(9).tolist() == [1, 2]
