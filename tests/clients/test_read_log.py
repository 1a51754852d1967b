"""Tables of the user's as logs: files or frames, of arms, lists and prices, and what is refused;
priors of logs, and what they cost wherever they are used."""

import json
from dataclasses import replace
from math import inf

import gymnasium as gym
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbandit import InputError, Prior, certify
from dpbandit.agents import FADE, PerPerson
from dpbandit.base import Streams
from dpbandit.clients import (
    Player,
    prior_from,
    read_lists,
    read_log,
    read_open_bandit,
    read_prices,
    record,
)
from dpbandit.clients.priors import _rounds
from dpbandit.commands.options import features_of
from dpbandit.envs import Arms, PricingFromLog
from dpbandit.offline import replay
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.specs import ContextualSpec
from dpbandit.testing.checks import check_joint_dp
from dpbandit.testing.tapes import recording
from tests.each import asserting, each, refused
from tests.slopes import differences

PRICES = [1.0, 1.5, 2.0, 3.0]
OFFERS = {
    "action": "price", "prices": PRICES, "unit_cost": 0.5,
    "context": {"age": (18, 90), "shop": ("A", "B", "C")},
}  # fmt: skip


def offers(n=400, seed=0):
    rng = np.random.default_rng(seed)
    price = rng.choice(PRICES, n)
    sold = rng.random(n) < np.exp(-price / 2)
    age, shop = rng.integers(18, 91, n), rng.choice(list("ABC"), n)
    return pd.DataFrame({"price": price, "sold": 1 * sold, "age": age, "shop": shop})


def test_logs_by_hand():
    """Margins of sales, words one-hot against the first, ranges on [-1, 1], over sqrt(1 + 3),
    whatever other rows are; rows outside are counted; without propensities arms are as likely."""
    table = {"price": [1.0, 3.0], "sold": [1, 1], "age": [18, 54], "shop": ["A", "C"]}
    logged = read_log(table, sold="sold", **OFFERS)
    assert logged.context.tolist() == [[0.5, -0.5, 0, 0], [0.5, 0, 0, 0.5]]
    alone = {name: column[:1] for name, column in table.items()}  # other rows change nothing
    assert read_log(alone, sold="sold", **OFFERS).context.tolist() == [[0.5, -0.5, 0, 0]]
    assert (logged.spec.context_bound, logged.spec.context_order) == (1.0, 2)
    assert logged.reward.tolist() == [0.5, 2.5]
    assert logged.spec.prices == tuple(PRICES)
    assert (logged.spec.unit_cost, logged.spec.reward_low, logged.spec.reward_high) == (0.5, 0, 2.5)
    frame = offers()
    frame.loc[:1, "age"] = 120
    with pytest.warns(UserWarning, match="2 of 400 rows .* lie outside .* column 'age'"):
        logged = read_log(frame, sold="sold", **OFFERS)
    assert "2 of 400 contexts (0.5 %)" in str(logged)
    twice = {"age": (18, 90), "wage": (0, 1)}
    with pytest.warns(UserWarning, match="2 of 400 rows"):
        logged = read_log(
            frame.assign(wage=[9, *[1] * 399]), sold="sold", **OFFERS | {"context": twice}
        )
    assert "2 of 400 contexts (0.5 %)" in str(logged)  # one of them by both
    costs = {"price": [1.0, 3.0], "units": [1, 9], "cost": [0.2, 0.9]}
    offer = {"prices": PRICES, "unit_cost": "cost", "context": {"cost": (0, 0.8)}, "unit": "EUR"}
    with (
        pytest.warns(UserWarning, match="above all column 'cost' outside"),
        pytest.warns(UserWarning, match="1 of 2 entries of 'units' .50 %. lie above at_most=4"),
    ):
        logged = read_log(
            costs, action="price", units="units", at_most=4, **offer, most_outside=0.5
        )
    assert logged.reward == pytest.approx([0.8, 4 * 2.2])  # units and costs are clipped
    assert (logged.spec.reward_unit, logged.spec.reward_high) == ("EUR", 12.0)
    assert "1 of 2 contexts (50 %) and 1 rewards (50 %)" in str(logged)
    table = {"a": [0, 1, 2.0], "r": [0, 1, 1]}
    logged = read_log(table, action="a", reward="r", reward_range=(0, 1))
    assert logged.propensity.tolist() == [1 / 3] * 3
    assert logged.lowest_is_public


@each("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_file_is_its_table_and_agents_learn_demand_on_it(tmp_path, ending):
    path, frame = tmp_path / f"offers{ending}", offers()
    frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    logged, same = (read_log(table, sold="sold", **OFFERS) for table in (path, frame))
    assert np.array_equal(logged.context, same.context)
    assert np.array_equal(logged.reward, same.reward)
    config = FADE(epsilon=1.0, model="demand")
    assert replay(config, logged, passes=1).retained[0] > 50
    assert certify(config, logged.spec, accountants=False).holds


CLICKS = {"shown": ["old", "new"] * 50, "click": [0.0, 1.0] * 50, "chance": [0.5] * 100}
CLICKS |= {"age": np.linspace(20, 60, 100), "short": [1]}
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
        ({"units": "age", "at_most": 5}, "Expected reward=, the name of a column, or else sold="),
        ({"sold": None, "units": "age"}, "at_most= with units='age'"),
        ({"sold": None, "units": "age", "at_most": 20}, "400 entries of 'age' above at_most=20"),
        ({"unit_cost": "shop"}, "unit_cost='shop', a column, to have a public range, context="),
        ({"unit_cost": "age"}, "above the largest unit_cost=90 in 'age', got 1"),
        ({"unit": ""}, "unit='' to name a currency"),
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
        ({"arms": ["old", "new", "old"]}, "every one of arms=.* once, got 'old' twice"),
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
"""Arguments that replace good ones -> message, for the first and second table."""


@pytest.mark.parametrize("table", REFUSED)
def test_one_sentence_each(table):
    known = {"offers": (offers(), {"sold": "sold", **OFFERS}), "clicks": (CLICKS, SHOWN)}
    rows, told = known[table]
    for change, says in REFUSED[table]:
        with asserting(change):
            refused(says, read_log, rows, **{**told, **change})


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
)
@each("arms", [None, ["a", "b", "1", 0, 1]])
def test_actions_are_all_text_or_all_numbers(played, says, arms):
    """Broken on purpose: as an array, ["a", 1] is ["a", "1"]."""
    refused(says, read_log, {"a": played, "r": [0, 0, 1, 1]}, action="a", reward="r", arms=arms)


def test_tables_of_every_kind_and_of_none(tmp_path):
    """A frame, a CSV and a parquet file are the same log; columns come where they belong."""
    frame = pd.DataFrame({"a": [0, 1], "b": [2, 0], "c": [1, 0], "d": [0, 1], "p": [0.4, 0.4]})
    frame["q"], frame["price"], frame["age"] = [0.1, 0.2], [1.5, 2.5], [18, 54]
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "cut.csv.gz", index=False)
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "cut.csv.gz").read_bytes()[:60])
    with pytest.raises(InputError, match="to hold a table: "):
        read_log(tmp_path / "cut.csv.gz", action="a", reward="c", reward_range=(0, 1))
    damaged = pa.Table.from_pandas(frame).replace_schema_metadata({"pandas": "[]"})
    parquet.write_table(damaged, tmp_path / "damaged.parquet")
    says = r"metadata for pandas are damaged \(TypeError\)"
    refused(
        says, read_lists, tmp_path / "damaged.parquet", n_items=3, items=[], clicks=[], prefix=[]
    )
    refused(says, Arms, law="table", table=tmp_path / "damaged.parquet")
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
    columns = {"action": "a", "reward": "r", "reward_range": (0, 1)}
    for table, says in (
        ({"a": [], "r": []}, "at least one logged round"),
        ({"a": ["x"], "r": [1]}, "arms=, .* 'x' is all that occurs"),
    ):
        refused(says, read_log, table, **columns)
    refused("n_items='all'", read_open_bandit, OF_ARMS, n_items="all")
    with pytest.raises(InputError, match="list of names of columns, got 3"):
        read_lists(OF_ARMS, n_items=2, items=3, clicks=["r"], prefix=["p"])
    for name, content, says in (
        ("prices.xls", "a", "to end in .csv, .csv.gz, .parquet"),
        ("prices.csv", "", "to hold a table: No columns"),
        ("prices.parquet", "no", "to hold a table"),
        ("none.csv", None, "Cannot read .*none.csv"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        refused(says, read_log, str(tmp_path / name), sold="sold", **OFFERS)


def test_words_and_numbers_stay_what_they_are(tmp_path):
    """Only an empty cell is missing; postcodes keep their zeros, and two of them are levels; ids
    beyond 2^53 are kept apart or refused; 1 beside "1" is refused."""
    file, big = tmp_path / "log.csv", 2**53

    def read(text, **told):
        file.write_text(text)
        return read_log(file, **{"action": "a", "reward": "r", "reward_range": (0, 1), **told})

    log = read("a,r,area,hour\nnull,1,NA,08\nNone,0,EU,10\nnan,0,NA,23\n", context={
        "area": ("NA", "EU"), "hour": (0, 24),
    })  # fmt: skip
    assert log.action.tolist() == [2, 0, 1]  # None, nan, null
    wanted = [[0, -1 / 3], [1, -1 / 6], [0, 11 / 12]]
    np.testing.assert_allclose(3**0.5 * log.context[:, 1:], wanted)
    for cell, says in (("", "missing entries in column 'age', got 1"), ("NA", "2.5, got 'NA'")):
        refused(says, read, f"a,r,age\n1,0,20\n2,1,{cell}\n", context={"age": (18, 90)})
    log = read("a,r\n01099,0\n1099,1\n")
    assert (log.spec.n_actions, log.action.tolist()) == (2, [0, 1])
    text = "a,r,zip,in\n1,0,10115,true\n2,0,10117,false\n"
    context = features_of(["zip=10115,10117", "in=True,False"])
    log = read(text, arms=["2", "1"], context=context)
    assert log.action.tolist() == [1, 0]
    assert np.allclose(3**0.5 * log.context, [[1, 0, 0], [1, 1, 1]])
    between = "a,r,zip\n1,0,10115\n2,0,10116\n"
    refused("only the levels .* got 10116", read, between, context=features_of(["zip=10115,10117"]))
    refused("arms=.* once, got 1 twice", read, "a,r\n1,0\n2,1\n", arms=["2", "1.0", "1"])
    assert read(f"a,r\n{big},0\n{big + 1},1\n").action.tolist() == [0, 1]
    arms = [str(big + 1), str(big)]
    assert read(f"a,r\n{big},0\n{big + 1},1\n", arms=arms).action.tolist() == [1, 0]
    table = {"a": [2.0**53, 1.0], "r": [0, 1]}
    refused("below 2.53, got 9.* write them as text", read_log, table, **COLUMNS)
    mixed = offers().assign(day=[1, "1", *range(2, 400)])
    sold = {"price_range": (1, 3), "unit_cost": 0.5, "features": {}}
    refused("'day' to be all text or all numbers", PricingFromLog, mixed, **sold, clusters="day")
    parquet.write_table(
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "x.parquet"
    )
    refused("name of its own, got 'a' twice", read_log, tmp_path / "x.parquet", **COLUMNS)


COLUMNS = {"action": "a", "reward": "r", "reward_range": (0, 1)}


WORLD = {"n_actions": 3, "dim": 4, "world_seed": 3}


def logged(env="GLMBandit", horizon=300, **arguments):
    return record(env, horizon=horizon, env_kwargs=arguments or WORLD)


def test_a_public_log_is_regressed_exactly():
    """Oracle: ridge regressions by numpy of rewards above the middle on directions, and a Newton
    step of a logistic model at the mean, by finite differences of its likelihood."""
    log = logged()
    prior, half = prior_from(log, protect=False), log.spec.half_range
    for arm in range(3):
        x = log.context[log.action == arm]
        u = x / np.linalg.norm(x, axis=1, keepdims=True)
        A = u.T @ u + np.eye(4)
        part = slice(4 * arm, 4 * arm + 4)
        mean = np.linalg.solve(A, u.T @ log.reward[log.action == arm])
        np.testing.assert_allclose(np.array(prior.mean)[part], mean, atol=1e-9)
        np.testing.assert_allclose(prior.matrix[part, part], half**2 * np.linalg.inv(A), atol=1e-9)
    slates = logged("Recommendation", horizon=200, n_actions=3)
    rows, action, r = _rounds(slates)
    phi, y = rows[np.arange(200), action], (r + 1) / 2
    start = np.zeros(phi.shape[1])
    start[0] = np.log(y.mean() / (1 - y.mean()))

    def slope(theta):
        return phi.T @ (y - 1 / (1 + np.exp(-phi @ theta)))

    step = np.linalg.solve(np.eye(len(start)) - differences(slope, start), slope(start))
    found = np.array(prior_from(slates, protect=False).mean)
    np.testing.assert_allclose(found, start + step, atol=1e-6)


@pytest.mark.parametrize("env", ["GLMBandit", "OJPricing"])
def test_rows_enter_by_the_mechanism_alone(env):
    """With the release held fixed, a prior knows nothing of a row; without, it moves."""
    log = logged(env, world_seed=1)
    other = replace(log, context=log.context.copy(), reward=log.reward.copy())
    other.context[7], other.reward[7] = -log.context[7], log.spec.reward_high
    with recording() as calls:
        prior = prior_from(log, protect=True)
    assert len(calls.queries) == 300
    with recording(calls):
        assert prior_from(other, protect=True) == prior
    assert prior_from(other, protect=True) != prior
    # no two releases share noise: without the data they would tell it, and their sum every row
    noises = [
        np.array(prior_from(log, protect=True, epsilon=e, seed=seed).covariance)
        - np.array(prior_from(log, protect=True, epsilon=1e6, seed=seed).covariance)
        for e, seed in ((0.5, 3), (0.5, 3), (0.25, 3), (0.5, None))
    ]
    same = [np.abs(np.corrcoef(noises[0].ravel(), n.ravel())[0, 1]) > 0.9999 for n in noises]
    assert same == [True, True, False, False]


def test_what_a_prior_cost_stands_in_certificates():
    """Oracle: mu of people in both is the root of the sum of squares, and within the target; of
    disjoint people the larger; a public log's costs nothing and is named."""
    log, target = logged(), certify(FADE(), "GLMBandit", env_kwargs=WORLD).mu
    for how, named in (
        ({"protect": False}, "prior of a log of 300 rounds, which count as public"),
        ({"protect": True, "epsilon": 0.5}, "released at epsilon 0.5, delta 1e-05"),
        ({"protect": True, "epsilon": 0.5, "disjoint": True}, "released at epsilon 0.5"),
    ):
        prior = prior_from(log, **how)
        proof = certify(FADE(prior=prior), "GLMBandit", env_kwargs=WORLD)
        assert named in str(proof)
        assert proof.holds
        assert proof.mu == pytest.approx(target, rel=1e-4)
        assert (prior.mu > 0) == how["protect"]
        assert ("CONDITIONAL: nobody of the prior's log" in str(proof.notion)) == prior.disjoint
        assert certificate_from_dict(json.loads(json.dumps(proof.as_dict()))) == proof
        own = certify(FADE(prior=replace(prior, mu=0.0)), "GLMBandit", env_kwargs=WORLD).mu
        both = FADE(prior=prior).make(ContextualSpec(n_actions=3, dim=4, horizon=99), Streams([0]))
        spends = both.ledger.spends
        if prior.mu and not prior.disjoint:
            assert spends[1].mu == prior.mu
            assert spends[0].mu == pytest.approx((own**2 - prior.mu**2) ** 0.5, rel=1e-4)
        elif prior.mu:
            assert spends[0].mu == max(part.mu for part in spends[0].parts)
    centred = FADE(prior=prior_from(log, protect=True, epsilon=0.5), centring="private")
    assert certify(centred, "GLMBandit", env_kwargs=WORLD).holds


def test_what_was_learned_from_a_prior_still_says_what_that_cost(tmp_path):
    """Catches a cost that vanishes where one study hands its prior on to the next; whoever starts
    from one is private; and mistakes get one sentence."""
    prior = prior_from(logged(), protect=True, epsilon=0.5)
    env = gym.make("dpbandit/GLMBandit-v0", **WORLD, horizon=99)
    player = Player(FADE(prior=prior), env, horizon=99, context_bound=1.0, reward_range=(-1.4, 1.4))
    assert player.learned.mu == prior.mu
    with pytest.raises(InputError, match="than the prior cost"):
        certify(FADE(epsilon=0.1, prior=player.learned), "GLMBandit", env_kwargs=WORLD)
    spec = ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0)
    prior = Prior(np.ones(4), 0.1, mu=0.1, source="a log of 9 rounds")
    assert check_joint_dp(FADE(prior=prior, first_batch=3), spec, swapped=[1, 9], replicas=4)
    log = logged()
    prior = prior_from(log, protect=True)
    prior.save(tmp_path / "log.json")
    assert Prior.load(tmp_path / "log.json") == prior
    for wrong, said in (
        (lambda: prior_from(log, protect="yes"), "Expected protect="),
        (lambda: prior_from(log, protect=True, epsilon=inf), "finite with protect=True"),
        (lambda: prior_from(3, protect=True), "Expected a log of arms"),
        (lambda: Prior([1.0], 1.0, mu=0.5), "Expected source='' of a prior to say in words"),
        (lambda: Prior([1.0], 1.0, mu=-1.0), "Expected mu=-1"),
        (lambda: PerPerson(FADE(prior=prior)), "protects rows of a log"),
        (lambda: certify(FADE(prior=prior), "GLMBandit", env_kwargs=WORLD), "than the prior cost"),
    ):
        refused(said, wrong)
