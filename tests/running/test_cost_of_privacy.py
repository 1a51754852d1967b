"""Sentences that say what privacy costs: their numbers, and what they refuse to say."""

import re
from dataclasses import replace
from math import inf

import numpy as np

from dpbandit import Results, recommend
from dpbandit.results.runs import describe
from dpbandit.running.cost_of_privacy import cost_of_privacy
from dpbandit.running.resolve import resolve_agent, resolve_spec
from tests.each import each
from tests.experiments.runs import made_up

ALIKE = np.array([0.9, 1.0, 1.1])
"""Replicas of every run, times its mean: ratios of runs are the same in all of them."""
BEST = "priced:logistic-ts, the best agent without privacy in this comparison"


def run(name, mean, *, T=20_000, env="OJPricing", unit="dollars", spread=ALIKE, **how):
    """A run on `env` with this mean regret; private if it claims an epsilon."""
    made = made_up(name, *(mean * np.array(spread)), horizon=T, **how)
    kind = {"Uniform": "uniform", "BestFixed": "best-fixed"}.get(name, name)
    setup = replace(made.setup, environment=env, env_kwargs={"horizon": T}, reward_unit=unit)
    return replace(made, setup=setup, config=describe(resolve_agent(kind)))


def said(*runs):
    return cost_of_privacy(Results(runs))


def test_times_money_and_the_fixed_price():
    """Golden, by hand, with ratios of no variance: 102 / 42 = 2.43 in each of three replicas, 60
    dollars in 20,000 rounds, and 360 of the fixed price. It would catch an unpaired bootstrap, a
    worse agent of an epsilon, an oracle as baseline, and printed constants at their claim."""
    public, fixed = run("priced:logistic-ts", 42.0), run("BestFixed", 360.0)
    fade, half = run("fade", 102.0, claimed=1.0), run("fade", 63.0, claimed=2.0)
    others = [run("linucb", 50.0), run("dp-ucb", 150.0, claimed=1.0, certified=0.99)]
    printed = run("dp-ucb:calibration=paper", 20.0, claimed=1.0, certified=0.0502)
    first = (
        f"At epsilon 1 privacy costs 2.43 (2.43 to 2.43) times the regret of {BEST}: fade loses "
        "5.1 dollars per 1,000 customers, 3 more. One fixed price would lose 18."
    )
    second = (
        "At epsilon 2 privacy costs 1.50 (1.50 to 1.50) times that regret: fade loses 3.15 dollars "
        "per 1,000 customers, 1.05 more."
    )
    hers = (
        "With privacy at epsilon 1 you lose 3 dollars (2.19 to 3.81) per 1,000 customers against "
        "no privacy; one fixed price{} loses 15.9; privacy pays from 20,000 customers on."
    )
    assert said(half, public, fade, fixed, printed, *others) == (first, second, hers.format(""))
    fixed = replace(fixed, measures={"action": np.array([4.0, 4.0, 2.0])})
    prices = resolve_spec("OJPricing").prices
    assert said(public, fade, fixed)[-1] == hers.format(f" of {prices[4]:.4g}")
    marks = {"marks": np.array([1, 2_100, 20_000])}
    bend, line, best = (
        replace(one, regret=np.array([[start] * 3, [middle] * 3, one.regret[-1]]), **marks)
        for one, start, middle in ((fade, 3.0, 30.0), (fixed, 1.0, 40.0), (public, 1.0, 20.0))
    )
    assert said(best, bend, line)[-1].endswith("; privacy pays from 2,100 customers on.")
    cheap = replace(bend, regret=best.regret - 1)
    assert "you lose nothing (-0.05 to -0.05) per 1,000" in said(best, cheap, line)[-1]
    assert said(public, fixed) == ()
    alone = said(printed, public, fixed)[0]
    assert alone.startswith("At epsilon 0.0502 dp-ucb:calibration=paper loses 1 dollars")
    ends = re.search(r"2\.4 \((.*) to (.*)\)", said(replace(fade, regret=NOISY), public)[0])
    low, high = map(float, ends.groups())
    assert 1.3 < low < 2.2
    assert 2.6 < high < 3.5


NOISY = np.array([[0.0, 0.0, 0.0], [80.0, 102.0, 124.0]])


def test_where_a_fixed_price_is_better_that_is_the_sentence():
    """Golden: 585, 675 and 405 dollars of 5,000 customers; hundreds of dollars are dollars, too."""
    for unit, scale in (("dollars", 1.0), ("hundreds of dollars", 0.01)):
        how = {"T": 5_000, "unit": unit}
        fade = run("fade", 675 * scale, claimed=1.0, **how)
        worse = run("fade:epsilon=0.1", 1e3 * scale, claimed=0.1, **how)
        fixed, public = (
            run(name, lost * scale, **how)
            for name, lost in (("BestFixed", 585.0), ("priced:logistic-ts", 405.0))
        )
        assert said(fade, worse, fixed, public) == (
            "With 5,000 customers one fixed price loses 117 dollars per 1,000 customers, fade 200 "
            "at epsilon 0.1 and fade 135 at epsilon 1: keep the fixed price, if you know it. "
            "Without privacy priced:logistic-ts loses 81.",
            "With privacy at epsilon 1 you lose 54 dollars (39.5 to 68.5) per 1,000 customers "
            "against no privacy; one fixed price loses 36; privacy does not pay within 5,000 "
            "customers.",
        )
    fixed = run("BestFixed", 101.0, spread=[1.2, 1.0, 0.8])
    alike = said(run("fade", 102.0, claimed=1.0), fixed, run("priced:logistic-ts", 42.0))[0]
    assert alike.endswith("One fixed price would lose 5.05, about as much.")
    same, public = run("BestFixed", 0.0), run("priced:logistic-ts", 40.0)  # best for everybody
    *_, last = said(run("fade", 100.0, claimed=1.0), same, public)
    assert last.endswith("one fixed price saves 2; privacy does not pay within 20,000 customers.")


def test_what_the_comparison_lacks_is_named():
    """No cost is told where the private agent loses less, nor without an agent to compare with; a
    recommended agent that is missing is named in every case. It would catch another one than
    `compare` plays by itself, and one that is there with another delta."""
    fade = run("fade", 100.0, claimed=1.0)
    loses = "At epsilon 1 fade loses 5 dollars per 1,000 customers"
    add = "add the recommended one (--agents ...,priced:logistic-ts)"
    assert said(fade) == (
        f"{loses}.",
        f"To see what privacy costs, an agent without it is needed: {add}.",
    )
    less, advice = said(fade, run("linucb", 200.0))
    assert less.startswith(f"{loses}, 0.50 (0.50 to 0.50) times as much as linucb, the best")
    assert less.endswith(", which therefore lacks a good one.")
    assert advice.startswith(f"What privacy costs is unknown: {add}, or private")
    *_, missing = said(fade, run("linucb", 50.0))
    assert missing == "Recommended without privacy, and not in this comparison: priced:logistic-ts."
    for env, there in (("GLMBandit", "linucb"), ("OnlineConvex", "pftal:epsilon=inf")):
        public = run(there, 50.0, env=env)
        public = replace(public, config={**public.config, "delta": 0.5})
        assert recommend(env, inf) == there
        assert len(said(run("noisy-sgd", 100.0, claimed=1.0, env=env), public)) == 1
    *_, zero = said(fade, run("priced:logistic-ts", 0.0))
    assert zero == f"{loses}, priced:logistic-ts without privacy 0."
    once = [run(n, lost, spread=[1.0], claimed=e) for n, lost, e in ONCE]
    assert said(*once)[0].endswith("2 times as much as " + BEST + "; a single run is no evidence.")
    wide = run("priced:logistic-ts", 90.0, spread=[0.8, 1.0, 1.2])
    assert said(fade, wide)[0].endswith("; more replicas would tell.")
    wider = run("priced:logistic-ts", 90.0, spread=[0.1, 0.9, 2.0])
    assert said(fade, wider)[0].endswith("without privacy 4.5; more replicas would tell its cost.")
    near = run("priced:logistic-ts", 99.0, spread=[0.92, 1.0, 1.08])
    assert said(fade, near)[0].endswith(": no cost of privacy is found.")


ONCE = [("fade", 100.0, 1.0), ("priced:logistic-ts", 50.0, inf)]


@each(
    ("env", "unit", "loses"),
    [
        ("ClassificationBandit", "right answers", "makes 5 mistakes per 1,000 users"),
        ("Experts", "loss", "loses 5 per 1,000 rounds"),
        ("AssortmentBandit", "reward", "loses 5 per 1,000 customers"),
        ("ReturningPricing", "cents", "loses 5 cents per 1,000 rounds"),
        ("gone.toml", "dollars", "loses 5 dollars per 1,000 rounds"),
    ],
)
def test_words_of_each_problem(env, unit, loses):
    """A best fixed action that loses nothing is not told, and a file that is gone costs words
    alone."""
    how = {"env": env, "unit": unit}
    runs = [run("fade", 100.0, claimed=1.0, **how), run("BestFixed", 0.0, **how)]
    first, *_ = said(*runs)
    assert first == f"At epsilon 1 fade {loses}."
    public = "greedy" if env == "gone.toml" else recommend(env, inf)
    assert public in said(*runs, run(public, 50.0, **how))[0]


def test_no_number_has_an_exponent():
    """From less than a cent to millions of dollars per 1,000 customers."""
    for mean in (1.0, 1e3, 1e5):
        for worse in (0.5, 1.1, 300.0):
            runs = [run("fade", mean * worse, claimed=1.0), run("priced:logistic-ts", mean)]
            for fixed in (mean / 2, 9e7):
                text = " ".join(said(*runs, run("BestFixed", fixed)))
                assert not re.search(r"\de[+-]?\d", text), text
