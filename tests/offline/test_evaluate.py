"""`evaluate`, in Python and as a command: who is unbiased, what is said, and what is refused in one
sentence."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbandit import InputError
from dpbandit.agents import BestFixed, LinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.clients import read_log, read_observed, record
from dpbandit.commands.logs import earning, gain_sentence
from dpbandit.offline import ListLaw, Logged, LoggedLists, LoggedPrices, assess, evaluate
from dpbandit.offline.intervals import Stakes, betting
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.each import asserting, each, refused


def arms(n=2000, *, adaptive=False, lowest_arm=0.2, seed=1000, **changed):
    """Three arms, two types of users, means that depend on both; a policy that knows the type."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    pb = np.tile([0.8 - lowest_arm, 0.2, lowest_arm], (n, 1))
    mean = np.array([[0.2, 0.5, 0.7], [0.6, 0.3, 0.4]])[kind]
    action = (pb.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    rows = np.arange(n)
    rows = {
        "spec": ContextualSpec(n_actions=3, dim=2, horizon=n, reward_low=0.0),
        "context": np.eye(2)[kind],
        "action": action,
        "reward": (rng.random(n) < mean[rows, action]) * 1.0,
        "propensity": pb[rows, action],
        "probabilities": pb,
        "adaptive": adaptive,
    }
    policy = np.where(kind[:, None] == 0, [0.1, 0.1, 0.8], [0.7, 0.2, 0.1])
    return Logged(**rows | changed), policy, 0.5 * (0.1 * 0.7 + 0.8 * 0.7 + 0.42 + 0.06 + 0.04)


class Says:
    """A frozen policy, by a method."""

    def __init__(self, **answers):
        for name, answer in answers.items():
            setattr(self, name, lambda context, answer=answer: answer)


WEIGHTED = {"estimators": "dr", "intervals": "weighted"}


@each(
    ("policy", "options", "sentence"), [
        (LinUCB(), {}, "frozen policy, got the learner LinUCB.*replay"),
        (BestFixed(), {}, "hindsight needs all rewards"),
        ("fade", {}, "policy='fade' to have probabilities"),
        (lambda x: x, {}, r"to have probabilities\(contexts\)"),
        (np.zeros(60), {}, r"shape \(60, 3\), got \(60,\)"),
        (np.full((60, 3), 0.5), {}, "sum to 1, got another in row 0"),
        (np.tile([1.5, -0.5, 0], (60, 1)), {}, "sum to 1, got another in row 0"),
        (np.full((60, 3), np.nan), {}, "sum to 1, got another in row 0"),
        (None, {"estimators": "mips"}, "features=, feature_law= and a log with `probabilities`"),
        (None, {"estimators": "mips", "features": np.zeros(60)}, "together"),
        (None, {"estimators": ["clipped-ips"]}, "clip=None to be a number"),
        (None, {"estimators": ["dros"]}, "shrinkage=None"),
        (None, {"estimators": ["dr", "tmle"]}, "estimators='tmle'"),
        (None, {"estimators": []}, r"estimators=\[\] to name some of ips, "),
        (None, {"estimators": 5}, r"estimators=5 to name some of ips, "),
        (None, {"q": np.zeros((60, 3))}, "q_is_honest=True beside q="),
        (None, {"q": np.zeros((60, 2)), "q_is_honest": True}, r"q of shape \(60, 3\)"),
        (None, {"q": lambda: 0, "q_is_honest": True}, r"q to take \(contexts\), it takes \(\)"),
        (None, {"q": np.full((60, 3), 1e60), "q_is_honest": True}, r"q up to 1e\+50 in size"),
        (None, {"intervals": "betting-cv"}, "w_max=, a public bound"),
        (None, {"intervals": "betting-cv", "w_max": 1.5}, "w_max=1.5 to be at least every weight"),
        (None, {"intervals": "weighted"}, "law=, the logging policy"),
        (None, {"intervals": "weighted", "law": lambda i, x: x}, r"estimators=\['dr'\]"),
        (None, {**WEIGHTED, "law": np.ones(3)}, "a function of i and contexts, or a TypeLaw"),
        (
            None, {**WEIGHTED, "law": lambda i, x: np.ones((i, 3))},
            r"law\(1, \.\.\.\) of probabilities that sum to 1",
        ),
        (None, {"intervals": "z"}, "intervals='z'"), (None, {"level": 95}, "level=95"),
        (None, {"support": "ignore"}, "support='ignore'"), (None, {"folds": 1}, "folds=1"),
    ],
)  # fmt: skip
def test_mistakes(policy, options, sentence):
    log, fine, _ = arms(60)
    refused(sentence, evaluate, fine if policy is None else policy, log, **options)


def test_policies_are_frozen_objects_or_arrays():
    """Running agents, rewards beyond their bounds and what is no log are refused."""
    log, policy, _ = arms(60)
    agent = LinUCB().make(log.spec, Streams([0]))
    refused(r"the running agent .* trained on other rows", evaluate, agent, log)
    loud = log.reward.copy()
    loud[7] = 1.5
    spec = ContextualSpec(n_actions=3, dim=2, horizon=60, reward_low=0.0, most_outside=0.1)
    with pytest.warns(UserWarning, match="outside"):
        log = arms(60, reward=loud, spec=spec)[0]
    refused("rewards from 0 to 1, the spec's, got another in row 7", evaluate, policy, log)
    refused("to be Logged, LoggedPrices or LoggedLists", evaluate, policy, {"action": [1]})
    log, policy, _ = arms(200)
    one, *others = (
        evaluate(given, log, "ips")
        for given in (policy, policy.tolist(), Says(probabilities=policy))
    )
    assert all(one.equals(other) for other in others)
    named = arms(200, index=[f"row {i}" for i in range(200)])[0]
    counted = {"q": lambda x: pd.DataFrame(x @ np.ones((2, 3))), "q_is_honest": True}
    assert evaluate(policy, named, "dm", **counted)["estimate"].item() == pytest.approx(1)


def test_intervals_fit_what_is_known_of_weights():
    """A policy that plays arm 2 with .8 for half the users: refused; dropped, .45 is left out, and
    only bets hold. A control variate is taken where weights are small and public."""
    log, policy, truth = arms(3000, lowest_arm=0.0)
    says = r"rows, the first of them row 0, .* 4[3-7].* % of the policy"
    refused(says, evaluate, policy, log)
    for name in ("betting-cv", "empirical-bernstein", "bootstrap", "t"):
        found = evaluate(policy, log, ["ips"], support="drop", intervals=name, w_max=5.0)
        lost = f"{name}: {100 * policy[:, 2].mean():.3g} % of the policy's choices could not"
        assert found["interval"].item() == "betting"
        assert found["refused"].item().startswith(lost)
    assert found["low"].item() < found["estimate"].item() < truth < found["high"].item()
    for rounds, name in ((200, "betting"), (250, "t")):  # 89 and 113 effective rows, of 100
        rows, known, _ = arms(rounds)
        assert evaluate(known, rows, "ips")["interval"].item() == name
    log, policy, truth = arms(2000, adaptive=True)
    plain, varied, large = (evaluate(policy, log, "ips", w_max=w) for w in (None, 5.0, 80.0))
    taken = [found["interval"].item() for found in (plain, varied, large)]
    assert taken == ["betting", "betting-cv", "betting"]
    bernstein = evaluate(policy, log, "ips", w_max=5.0, intervals="empirical-bernstein")
    assert "the log is adaptive" in bernstein["note"].item()
    widths = [(f["high"] - f["low"]).item() for f in (plain, varied)]
    assert widths[1] < widths[0]
    assert plain["low"].item() < truth < plain["high"].item()
    nothing, known = arms(60, reward=np.zeros(60))[0], {"w_max": 3.9, "intervals": "betting-cv"}
    weight = (policy[:60] / nothing.probabilities)[np.arange(60), nothing.action]
    row = rf"every weight, got {weight.max():.4g} in row {weight.argmax()}"
    refused(row, evaluate, policy[:60], nothing, "ips", **known)


def test_few_rows_leave_bets_alone_and_none_leave_everything_open():
    """9 rows of a policy, a policy whose only arm was never logged, and one row; also arm 1 logged
    at a third of what is said, an arm too rare for `Logged` to see."""
    log, policy, _ = arms(9)
    found = evaluate(policy, log, ["ips", "dr"], intervals="bootstrap")
    assert found["interval"].tolist() == ["betting"] * 2
    assert found["refused"].str.startswith("bootstrap: effective sample size").all()
    assert found["note"].tolist() == ["", "interval of ips: the estimate may lie outside"]
    chance = log.probabilities
    found = evaluate(policy, log, "dr", intervals="weighted", law=lambda i, x: chance[: len(x)])
    assert found["interval"].item() == "betting"
    assert found["refused"].item().startswith("weighted: effective sample size")
    never = np.eye(3)[(log.action + 1) % 3]
    found = evaluate(never, log, ["ips", "snips", "sndr"])
    assert found[["low", "high"]].values.tolist() == [[0.0, 1.0]] * 3
    assert found["estimate"].tolist() == pytest.approx([0, np.nan, np.nan], nan_ok=True)
    unseen = found["note"].str.contains("no row agrees with the policy")
    assert unseen.tolist() == [False, True, True]
    first = evaluate(policy[:1], log[:1], "ips")
    assert "one row has no standard error" in first["note"].item()
    log, policy, _ = arms(600, probabilities=None)
    log.propensity = np.where(log.action == 2, 0.1, log.propensity)
    found = evaluate(policy, log, "ips")
    assert found["interval"].item() == "betting"
    assert "propensities or support wrong: mean weight" in found["note"].item()
    log.adaptive = True  # then the mean weight need not be near 1
    assert evaluate(policy, log, "ips", intervals="t")["interval"].item() == "t"


def test_gains_on_the_logs_own_policy():
    """Its value is 0.43. Of 200 logs at least 181 intervals at 95 % cover both gains: fewer have
    probability 3e-3. They are a tenth narrower than the estimate's, whose noise the log shares."""
    covered, width = np.zeros((2, 2, 2))
    for seed in range(200):
        log, policy, truth = arms(500, seed=seed)
        found = evaluate(policy, log, ["ips", "dr"])
        for row, (what, value) in enumerate((("gain", truth - 0.43), ("percent", truth / 0.0043))):
            value -= 100 * (what == "percent")
            low, high = found[f"{what}_low"], found[f"{what}_high"]
            covered[row] += low.le(value) & high.ge(value)
            unit = 100 / found["logged"] if what == "percent" else 1
            width[row] += (high - low) / (found["high"] - found["low"]) / unit / 200
        assert found["gain"].values == pytest.approx(found["estimate"] - log.reward.mean())
    assert np.all([covered >= 181, width < 0.9])
    few = evaluate(policy, log, "ips", intervals="betting").iloc[0]
    assert few["gain_low"] < truth - 0.43 < few["gain_high"] < 1 < few["percent_high"]
    assert few["gain_high"] - few["gain_low"] > 1.5 * (few["high"] - few["low"])
    how = {"log": log, "estimators": "ips", "intervals": "sequence"}  # for both policies
    low, high = (evaluate(p, level=0.975, **how).iloc[0] for p in (policy, log.probabilities))
    assert evaluate(policy, **how)["gain_low"].item() == pytest.approx(low["low"] - high["high"])
    turned = replace(log, reward=np.repeat([0.0, 1.0], 250))  # the log's own has no one mean
    assert np.isnan(evaluate(policy, turned, "ips", intervals="betting")["gain_low"].item())
    own = evaluate(log.probabilities, log, ["ips", "snips"])  # the log's own policy gains nothing
    assert own[["gain", "gain_low", "gain_high", "percent"]].abs().values.max() < 1e-12
    log.adaptive = True
    unsaid = evaluate(policy, log, "ips")
    assert unsaid[["gain_low", "percent", "percent_high"]].isna().values.all()
    below = replace(log.spec, reward_low=-1.0)
    moved = evaluate(policy, replace(log, spec=below, reward=log.reward - 0.43, adaptive=False))
    assert moved[["percent", "gain_low"]].isna().mean().tolist() == [1, 0]
    for what, low, high, words in (
        ("percent", -35.9, -12.8, "24.4 % less (95 % interval 12.8 to 35.9 % less)"),
        ("percent", -51.9, 21.3, "24.4 % less (95 % interval between 51.9 % less and 21.3 % more)"),
        ("gain", -35.9, -12.8, "2,440 dollars less (95 % interval 1,280 to 3,590 dollars less)"),
    ):
        found = {"estimator": "dr", "logged": 0.05, "percent": np.nan, what: -24.4}
        found = pd.DataFrame([found | {f"{what}_low": low, f"{what}_high": high}])
        said = gain_sentence("b", found, 0.95, earning("hundreds of dollars"))
        assert said == f"The log's own policy earned 5 dollars a row; b earns {words}, by dr."


def test_rare_rewards():
    """Auto bets with 8 clicks in 160 rows that match, as t covers 90 % there; with 32 it is t."""
    covered, truth = 0, 0.05 * 0.92 - 0.04 * 0.92
    for seed, clicks in [*((seed, 0.05) for seed in range(200)), (0, 0.2)]:
        rng = np.random.default_rng(seed)
        action = (rng.random(2000) < 0.08) * 1
        reward = 1.0 * (rng.random(2000) < np.where(action, clicks, 0.04))
        spec = ContextualSpec(n_actions=2, dim=1, horizon=2000, reward_low=0.0)
        drawn = {"context": np.ones((2000, 1)), "action": action, "reward": reward}
        log = Logged(spec=spec, **drawn, propensity=np.where(action, 0.08, 0.92))
        found = evaluate(np.tile([0.0, 1.0], (2000, 1)), log, ["ips"]).iloc[0]
        covered += found["gain_low"] <= truth <= found["gain_high"]
        assert found["interval"] == ("betting" if clicks < 0.1 else "t")
    assert covered >= 190


def test_prices_bet_on_nothing_and_say_what_half_the_bandwidth_says():
    """A steep demand: half the bandwidth is further off than a standard error, which is said."""
    rng = np.random.default_rng(1000)
    price, n = rng.uniform(0.5, 1.5, 4000), 4000
    spec = PriceSpec(dim=1, low=0.5, high=1.5, horizon=n, reward_low=0.0)
    rows = {"context": np.ones((n, 1)), "price": price, "density": np.ones(n)}
    log = LoggedPrices(spec=spec, reward=(price < 1) * 1.0, **rows)
    found = evaluate(np.full(n, 0.9), log, bandwidth=0.2)
    assert found["interval"].tolist() == ["t"] * 3
    assert found["note"].str.contains("the kernel's bias is in no interval").all()
    assert not found["note"].str.contains("mean weight").any()
    edge = evaluate(np.full(n, 1.5), log, "snips", bandwidth=0.2)
    assert "mean weight 0." in edge["note"].item()
    for rounds, name in ((30, "none"), (50, "t")):  # 22 and 35 effective rows, of 30 that t needs
        found = evaluate(np.full(rounds, 0.9), log[:rounds], "ips", bandwidth=0.2)
        assert found["interval"].item() == name
    few = evaluate(np.full(n, 0.9), log, "ips", bandwidth=0.001, kernel="epanechnikov")
    assert (few["interval"].item(), "no mean of 1" in few["refused"].item()) == ("none", True)
    for options, sentence in (
        ({}, "bandwidth=None"),
        ({"bandwidth": 0.0}, "bandwidth=0.0 to be"),
        ({"bandwidth": 0.1, "kernel": "box"}, "kernel='box'"),
        ({"bandwidth": 1e-30}, "bandwidth=1e-30 to be at least 1e-09 of the range"),
    ):
        refused(sentence, evaluate, np.full(n, 0.9), log, **options)
    with pytest.raises(InputError, match=r"prices from 0\.5 to 1\.5, got another in row 0"):
        evaluate(np.full(n, 2.0), log, bandwidth=0.1)


def test_bets_are_scaled_by_public_bounds_and_lists_bet_on_clicks():
    """Oracle: rewards 5 r - 2 between -2 and 3 have the interval of r, moved along; a list of one
    item is an arm, and where two positions are alike, clicks are twice that."""
    log, policy, _ = arms(300, reward=np.tile([0.25, 0.5, 0.75], 100))
    spec = ContextualSpec(n_actions=3, dim=2, horizon=300, reward_low=-2.0, reward_high=3.0)
    moved, _, _ = arms(300, spec=spec, reward=5 * log.reward - 2)
    plain, wide = (evaluate(policy, rows, "ips", intervals="betting") for rows in (log, moved))
    for end in ("low", "high"):
        assert wide[end].item() == pytest.approx(5 * plain[end].item() - 2, abs=1e-12)
    far = replace(spec, reward_low=1e6, reward_high=1e6 + 1)
    found = evaluate(policy, arms(300, spec=far, reward=log.reward + 1e6)[0], intervals="betting")
    assert found["note"].str.contains("lies outside its interval")[0]
    rng = np.random.default_rng(1000)
    clicks = rng.random((300, 1)) < 0.3
    alone = np.tile([0.25, 0.75], 150)[:, None]
    items = np.tile([0, 1], (300, 1))
    w = (2 * alone)[:, 0]
    low, high = betting(Stakes(w * clicks[:, 0], w * ~clicks[:, 0]), 0.05, "betting")
    for m in (1, 2):
        rows = {"items": items[:, :m], "clicks": np.tile(clicks, (1, m))}
        log = LoggedLists(n_items=2, **rows, prefix=np.full((300, m), 0.5))
        law = ListLaw(np.tile(alone, (1, m)))
        found = evaluate(law, log, "interaction-ips", intervals="betting")
        assert found[["low", "high"]].values[0] == pytest.approx([m * low, m * high], abs=1e-12)


COLUMNS = [
    "--propensity", "propensity", "--reward-range=-1.4:1.4", "--lowest", "0.13", "--adaptive",
]  # fmt: skip


@cache
def logged():
    env = {"n_actions": 3, "dim": 2}
    log = record("GLMBandit", horizon=800, agent="linucb", explore=0.4, env_kwargs=env)
    frame = log.to_frame()
    frame["action"] = frame["action"].map({0: "a", 1: "b", 2: "c"})
    return frame.to_csv(index=False)


@pytest.fixture
def beside(run, tmp_path, monkeypatch):
    """Run `dpbandit evaluate log.csv WORDS` beside such a file: exit code, output, complaints."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(logged())
    return partial(run, "evaluate", "log.csv")


LAW = ["p0", "p1", "p2"]
SORTS = np.array([0, 0, 1])
REACHED = {
    "--feature x0=-1:1 --feature x1=-1:1": {"estimators": ("ips", "snips", "dr")},
    "--estimators dros --shrinkage 3": {"shrinkage": 3.0},
    "--estimators ips --intervals betting-cv --w-max 8": {"w_max": 8.0},
    "--estimators ips --intervals empirical-bernstein --w-max 8 --level .9": {
        "w_max": 8.0,
        "level": 0.9,
    },
    "--estimators dm --q p0,p1,p2": {"q": LAW, "q_is_honest": True},
    "--estimators dr --intervals weighted-minvar": {"law": LAW},
    "--estimators mips --sort a=x --sort b=x --sort c=y": {
        "features": SORTS,
        "feature_law": np.eye(2)[SORTS],
    },
}
"""Words and what they are in Python, which names columns of the table here."""


@pytest.mark.parametrize("words", REACHED)
def test_it_says_what_python_says(beside, words):
    """The same log read with the same bounds, and the same table, on screen and in a file."""
    given = words.split()
    law = ["--probabilities", ",".join(LAW)]
    code, said, _ = beside("--policy", "always=b", *COLUMNS, *law, *given, "--out", "answer.csv")
    frame = pd.read_csv("log.csv")
    columns = {name: name for name in ("action", "reward", "propensity")} | {"probabilities": LAW}
    bounds = {"reward_range": (-1.4, 1.4), "lowest": 0.13, "adaptive": True}
    features = {"x0": (-1, 1), "x1": (-1, 1)} if "x0" in words else {}
    log = read_log(frame, **columns, **bounds, context=features)
    told = {k: given[given.index(f"--{k}") + 1] for k in ("estimators", "intervals") if k in words}
    told |= REACHED[words]
    chances = frame[LAW].to_numpy()
    for name, column in (("q", chances), ("law", lambda i, x: np.tile(chances[i], (len(x), 1)))):
        told |= {name: column} if name in told else {}
    if "features" in told:
        told["features"] = SORTS[log.action]
    wanted = evaluate(np.tile([0.0, 1.0, 0.0], (800, 1)), log, **told)
    found = pd.read_csv("answer.csv")
    for what in ("estimate", "low", "high"):
        np.testing.assert_allclose(found[what], wanted[what])
    assert code == 0
    assert f"{wanted['estimate'][0]:.4g}" in said
    assert "own policy earned" in said
    assert ("may lie outside" in said) == wanted["note"].str.contains("may lie outside").any()


def test_unrecorded_and_oddly_named(beside):
    """Without propensities three answers and bounds, on screen and in a file. A row outside of
    its bounds is said. Arms are called as in the table."""
    words = "--unrecorded --feature x0=-1:1 --reward-range=-1.4:1.4 --level .9 --gammas 1,2"
    code, said, _ = beside("--policy", "always=b", *words.split(), "--out", "bounds.csv")
    columns = {"action": "action", "reward": "reward", "context": {"x0": (-1, 1)}}
    log = read_observed("log.csv", **columns, reward_range=(-1.4, 1.4))
    wanted = assess(np.tile([0.0, 1.0, 0.0], (800, 1)), log, gammas=(1, 2), level=0.9)
    assert code == 0
    assert str(wanted) in " ".join(said.split()).replace(". ", ".\n")
    np.testing.assert_allclose(pd.read_csv("bounds.csv"), wanted.bounds)
    frame = pd.read_csv("log.csv")
    frame.loc[0, "x0"] = 7.0
    frame.to_csv("log.csv", index=False)
    beyond = ["--feature", "x0=-1:1", "--arms", "a,b,c"]
    _, _, complained = beside("--policy", "uniform", *COLUMNS, *beyond)
    assert "outside their public ranges" in complained
    assert complained.count("\n") == 1
    frame = pd.read_csv("log.csv")
    frame["action"] = frame["action"].map({"a": "01", "b": "2,3", "c": "x"})
    frame.to_csv("log.csv", index=False)
    words = ["--estimators", "clipped-ips", "--clip", "0.5", *COLUMNS]
    for policy, arm in (("always=01", 0), ("always=2,3", 1)):
        code, _, _ = beside("--policy", policy, *words, "--out", "answer.csv")
        cut = np.where(frame["action"] == ["01", "2,3"][arm], 0.5, 0) @ frame["reward"] / 800
        assert (code, pd.read_csv("answer.csv")["estimate"][0]) == (0, pytest.approx(cut))


SAID = {
    "uniform --clip 3": "in --estimators with --clip=3",
    "uniform --clip much": "--clip=much to be a number", "uniform --out x.txt": "to end in .csv",
    "uniform --estimators ipw": "estimators='ipw'",
    "uniform --intervals exact": "intervals='exact'", "uniform --reward sales": "'sales'",
    "uniform --feature x0": "NAME=LOW:HIGH",
    "uniform --sort a=x": "mips in --estimators with --sort",
    "uniform --shrinkage 2": "dros in --estimators with --shrinkage",
    "uniform --estimators mips --sort a=x --probabilities p0,p1,p2": "--sort ARM=SORT once",
    "uniform --estimators mips": "--sort with mips in --estimators",
    "uniform --estimators switch-dr": "--clip with switch-dr in",
    "uniform --intervals betting-cv": "--w-max, a public bound",
    "uniform --q p0,p1": "--q=p0,p1 to name 3 columns",
    "uniform --estimators ips --q p0,p1,p2": "with --q=p0,p1,p2",
    "uniform --intervals t --w-max 3": "no --w-max=3 with",
    "uniform --intervals weighted": "--probabilities, and no --feature",
    "uniform --gammas 2": "--unrecorded with --gammas=2",
    "uniform --unrecorded": "no --propensity with --unrecorded",
    "always=z": "to name one of a, b, c", "p0,p1": "3 columns", "p0,p1,p9": "'p9'",
}  # fmt: skip
UNRECORDED = {
    "--estimators ips": "divide by recorded propensities",
    "--intervals betting": "no interval is exact",
    "--adaptive": "change by row",
    "--gammas much": "--gammas=much to be numbers",
    "--feature x0=-1:1 --q x0": "models of their own",
}


def test_mistakes_get_one_sentence(beside):
    unrecorded = ["--unrecorded", "--reward-range=-1.4:1.4"]
    told = [(COLUMNS, words, said) for words, said in SAID.items()]
    told += [(unrecorded, f"always=b {words}", said) for words, said in UNRECORDED.items()]
    for columns, words, sentence in told:
        with asserting(words):
            code, _, complained = beside(*columns, "--policy", *words.split())
            assert (code, complained.count("\n")) == (2, 1)
            assert sentence in complained
