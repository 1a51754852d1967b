"""Logs of arms, lists and prices: what is refused, and in which row; an arm that was impossible."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError
from dpbandit.agents import Uniform
from dpbandit.clients import read_lists, read_log, read_open_bandit, read_prices
from dpbandit.offline import Logged, LoggedLists, LoggedPrices, replay
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.each import each

SPEC = ContextualSpec(n_actions=3, dim=1, horizon=4)
COLUMNS = {"action": "a", "reward": "r", "reward_range": (0, 1)}
PRICES = PriceSpec(dim=1, low=1.0, high=3.0, horizon=2, reward_high=3.0, reward_low=0.0)


def arms(**changed):
    """Arm 2 cannot be drawn in the first row."""
    law = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    rows = {"action": [0, 1, 2, 2], "reward": [0, 1, 1, 0], "propensity": [0.5, 0.3, 0.5, 0.5]}
    return Logged(
        **{"spec": SPEC, "context": np.ones((4, 1)), "probabilities": law} | rows | changed
    )


def lists(**changed):
    rows = {"items": [[2, 0], [1, 2]], "clicks": [[0, 1], [0, 0]], "prefix": [[0.5, 0.25]] * 2}
    return LoggedLists(**{"n_items": 3} | rows | changed)


def prices(**changed):
    rows = {"price": [1.5, 2.0], "reward": [1.5, 0.0], "density": [0.5, 0.5]}
    return LoggedPrices(**{"spec": PRICES, "context": np.ones((2, 1))} | rows | changed)


def test_an_arm_that_could_not_be_drawn_is_no_false_propensity_but_replay_needs_all():
    """1,000 rows whose law knows two of three arms: refused without the law, kept with it."""
    n = 1000
    rows = {"action": np.arange(n) % 2, "reward": np.ones(n), "context": np.ones((n, 1))}
    with pytest.raises(InputError, match="arm 0 was logged"):
        arms(**rows, propensity=0.25, probabilities=None)
    with pytest.raises(InputError, match="arm 2 was logged as in 0 of n=1000"):
        arms(**rows, propensity=0.5, probabilities=None, lowest=0.1)
    log = arms(**rows, propensity=0.5, probabilities=np.tile([0.5, 0.5, 0.0], (n, 1)))
    with pytest.raises(InputError, match="every arm could be drawn"):
        replay(Uniform(), log)


@each(
    ("make", "changed", "sentence"),
    [
        (arms, {"probabilities": np.full((4, 3), 0.5)}, "sum to 1, got another in row 0"),
        (arms, {"propensity": [0.5, 0.3, 0.5, 0.4]}, "entry of `probabilities`, .* in row 3"),
        (arms, {"propensity": [0.5, 0.3, 0.0, 0.4]}, r"propensities in \(0, 1\], .* in row 2"),
        (arms, {"propensity": np.ones(4), "probabilities": None}, "drawn at random"),
        (arms, {"propensity": [0.9] * 4, "probabilities": None}, "so say the least probability"),
        (arms, {"propensity": [1e-300] * 4, "probabilities": None}, "propensities in"),
        (arms, {"adaptive": "yes"}, "adaptive='yes'"),
        (arms, {"spec": PRICES}, r"spec=PriceSpec\(.* to be a ContextualSpec"),
        (prices, {"spec": None}, "spec=None to be a PriceSpec"),
        (lists, {"items": [[2, 0], [1, 1]]}, "different items in a list, .* in row 1"),
        (lists, {"items": [[2, 0], [1, 3]]}, "below n_items=3, .* in row 1"),
        (lists, {"items": [2, 0]}, r"shape \(n, m\)"),
        (lists, {"clicks": [[0, 1], [0, 2]]}, "0 or 1, .* in row 1"),
        (lists, {"prefix": [[0.5, 0.25], [0.5, 0.6]]}, "do not rise along a list, .* in row 1"),
        (lists, {"marginal": [[0.5, 0.25], [0.5, 0.0]]}, r"marginal .* \(0, 1\], .* in row 1"),
        (lists, {"marginal": [[0.5, 0.25], [0.4, 0.5]]}, "those of the prefix, .* in row 1"),
        (lists, {"context": [[1.0]]}, r"shape \(2, d\)"),
        (prices, {"density": [0.5, 0.0]}, r"densities > 0, up to 1e\+50, got another in row 1"),
        (prices, {"density": [0.5, 1e60]}, r"densities > 0, up to 1e\+50, got another in row 1"),
        (
            prices,
            {"spec": replace(PRICES, reward_high=1e300)},
            "high=1e\\+300, both at most 1e\\+50",
        ),
        (prices, {"price": [1.5, 4.0]}, "prices from 1 to 3, got another in row 1"),
        (prices, {"reward": [np.nan, 0]}, "finite rewards, got another in row 0"),
        (prices, {"reward": np.ma.masked_array([1, 0], [0, 1])}, "rewards to be an array of"),
        (prices, {"price": ["a", "b"]}, "prices to be an array of numbers"),
        (prices, {"price": [], "reward": []}, "at least one logged round"),
    ],
)
def test_mistakes(make, changed, sentence):
    assert make() is not None
    with pytest.raises(InputError, match=sentence):
        make(**changed)


@pytest.mark.parametrize("make", [arms, lists, prices])
def test_a_part_of_a_log_is_a_log_in_its_order(make):
    log = make(adaptive=True)
    part = log[1:2]
    assert (part.adaptive, part.reward.tolist()) == (True, log.reward[1:2].tolist())
    for wrong in (slice(None, None, -1), slice("a"), slice(0, 2, 0), 0, [True, False]):
        with pytest.raises(InputError, match="as a slice, such as"):
            log[wrong]
    if make is not arms:
        with pytest.raises(InputError, match="to be Logged, rows of arms"):
            replay(Uniform(), log)


TABLE = {"a": ["x", "y"], "r": [0, 1], "p": [0.5, 0.5], "short": [1]}


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda: read_log({"a": [], "r": []}, **COLUMNS), "at least one logged round"),
        (lambda: read_log({"a": ["x"], "r": [1]}, **COLUMNS), "arms=, .* 'x' is all that occurs"),
        (lambda: read_log(TABLE, arms=2, **COLUMNS), "arms=2 to list what was on offer"),
        (
            lambda: read_log(TABLE, context=["r", "short"], context_bound=1.0, **COLUMNS),
            "one entry for each row",
        ),
        (lambda: read_open_bandit(TABLE, n_items="all"), "n_items='all'"),
        (lambda: read_log(TABLE, context={"r": (0, [1])}, **COLUMNS), "range of 'r' to be"),
        (
            lambda: read_lists(TABLE, n_items=2, items=3, clicks=["r"], prefix=["p"]),
            "list of names of columns, got 3",
        ),
    ],
)
def test_tables_that_are_no_logs(read, sentence):
    with pytest.raises(InputError, match=sentence):
        read()


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
