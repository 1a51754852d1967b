"""Paired differences, Holm's correction and bootstrap bands, each against an oracle."""

from dataclasses import replace
from itertools import combinations
from math import inf, isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import ttest_rel

from dpbandit import Results, compare
from dpbandit.agents import DPUCB, LinUCB
from dpbandit.results.comparisons import bootstrap_band, differences, holm, paired, ratio_band
from tests.each import refused


@pytest.fixture(scope="module")
def results():
    agents = {"LinUCB": LinUCB(), "DP 1": DPUCB(), "DP 4": DPUCB(epsilon=4.0)}
    return compare("GLMBandit", agents, horizon=300, replicas=6, progress=False)


def test_paired_is_students_test_on_the_differences():
    """Oracle: scipy's paired t-test. Equal gaps prove no more than their signs; one gap, or none,
    proves nothing."""
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=(2, 12))
    oracle, found = ttest_rel(one, two), paired(one, two)
    ends = oracle.confidence_interval(0.95)
    assert found[:4] == pytest.approx((np.mean(one - two), ends.low, ends.high, oracle.pvalue))
    assert found.pairs == 12
    same = paired(np.ones(3), np.zeros(3))
    assert (same.mean, same.p, same.pairs) == (1.0, 0.25, 3)
    assert isnan(same.low)
    assert paired(np.array([1.0, 1.0 + 1e-15]), np.zeros(2)).p == 0.5
    assert paired(np.ones(3), np.ones(3)).p == 1.0
    assert isnan(paired(np.ones(1), np.zeros(1)).p)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
@settings(derandomize=True, deadline=None, max_examples=80)
def test_holm_is_the_closure_of_bonferroni(p):
    """Oracle by brute force (Marcus, Peritz and Gabriel 1976): a hypothesis' adjusted p-value is
    the largest Bonferroni p-value of the intersections that contain it."""
    every = range(len(p))
    subsets = [s for size in range(1, len(p) + 1) for s in combinations(every, size)]
    bonferroni = {s: min(1.0, len(s) * min(p[i] for i in s)) for s in subsets}
    oracle = [max(value for s, value in bonferroni.items() if i in s) for i in every]
    np.testing.assert_allclose(holm(p), oracle, rtol=1e-12)
    np.testing.assert_allclose(holm([nan, *p, nan])[1:-1], oracle, rtol=1e-12)


def test_bootstrap_bands_by_hand():
    """Golden: of -1 and 1 a quarter of all samples have mean -1, a quarter 1: percentiles -1 and 1,
    times sqrt(2 / 1) and 12.7062 / 1.95996. Curves are drawn whole: those that differ by a constant
    have bands of one width; so are ratios, of which 1/2 of what varies is 1/2 in every sample."""
    low, high = bootstrap_band(np.array([[4.0, 6.0], [5.0, 5.0]]))
    half = sqrt(2) * 12.706205 / 1.959964
    np.testing.assert_allclose([low, high], [[5 - half, 5], [5 + half, 5]], rtol=1e-6)
    curves = np.arange(5.0)[:, None] + np.random.default_rng(3).normal(size=8)
    low, high = bootstrap_band(curves)
    np.testing.assert_allclose(high - low, (high - low)[0])
    np.testing.assert_allclose(low - np.arange(5.0), low[0])
    over = np.array([[2.0, 9.0, 4.0, 30.0]] * 2)
    found = ratio_band(np.array([0.5, 1.0])[:, None] * over, over)
    assert found == pytest.approx((0.75, 0.75, 0.75))


def test_differences_by_hand(results):
    table = differences(results.runs, "Uniform").set_index("agent")
    assert set(table.index) == {"LinUCB", "DP 1", "DP 4", "BestFixed"}
    final = {run.name: run.regret[-1] for run in results.runs}
    for name, row in table.iterrows():
        oracle = ttest_rel(final[name], final["Uniform"])
        assert row["p"] == pytest.approx(oracle.pvalue)
        assert row["difference"] == pytest.approx((final[name] - final["Uniform"]).mean())
    np.testing.assert_array_equal(table["p_holm"], holm(table["p"].tolist()))
    assert table.loc["LinUCB", "verdict"] == "less"
    against = differences(results.runs, "LinUCB").set_index("agent")
    assert against.loc["Uniform", "verdict"] == "more"
    assert against.loc["Uniform", "difference"] == -table.loc["LinUCB", "difference"]


def test_a_baseline_meets_its_like(results):
    """Renamed alike, two targets of DP-UCB are one baseline: LinUCB has no target to meet. Only
    replicas and horizons that are shared are paired."""
    one = tuple(replace(run, name=run.name.split()[0]) for run in results.runs)
    both = Results(one).where(agent="DP").runs
    other = tuple(replace(run, name="twin") for run in both)
    table = differences(both + other, "DP")
    assert table["difference"].tolist() == [0.0, 0.0]
    assert table["epsilon"].tolist() == [1.0, 4.0]
    assert set(differences(one, "DP")["verdict"]) == {"not tested"}
    refused("did you mean Uniform", differences, results.runs, "uniform")
    run = results.where(agent="LinUCB").runs[0]
    some = replace(run, name="some", replicas=run.replicas[2:], regret=run.regret[:, 2:])
    none = replace(some, replicas=some.replicas + 100)
    longer = replace(run, name="longer", setup=replace(run.setup, horizon=301))
    some, none, longer = (differences((run, two), "LinUCB").iloc[0] for two in (some, none, longer))
    assert (some["pairs"], some["difference"]) == (4, 0.0)
    assert (none["pairs"], none["verdict"], none["epsilon"]) == (0, "not tested", inf)
    assert longer["verdict"] == "not tested"


def test_verdicts_are_those_after_the_correction(results):
    """Eleven agents whose p-values are all below .05: none is sure after Holm."""
    base = results["Uniform"].runs[0]
    noise = np.random.default_rng(5).normal(size=6)
    gaps = [1.2 + noise - noise.mean() + 0.01 * i for i in range(11)]
    runs = [replace(base, name=f"{i}", regret=base.regret + gap) for i, gap in enumerate(gaps)]
    table = differences((base, *runs), base.name)
    assert (table["p"] < 0.05).all()
    assert (table["p_holm"] > 0.05).all()
    assert set(table["verdict"]) == {"no difference found"}


def test_epsilon_for_a_regret(results):
    """Oracle: means 30, 20, 4 at epsilons 1, 4, 16. 25 is half way from 1 to 4 in the logarithm;
    40 is reached by the first, 1 by none; replicas that are alike leave no interval."""
    run, proof = results["DP 1"].runs[0], results["DP 1"].runs[0].certificate

    def mine(e, mean):
        regret, certified = np.full_like(run.regret, mean), replace(proof, epsilon=e)
        return replace(run, name=f"mine:epsilon={e}", regret=regret, certificate=certified)

    runs = [mine(16.0, 4.0), mine(1.0, 30.0), mine(4.0, 20.0)]
    found = Results((*runs, *results["Uniform"].runs))
    assert found.epsilon_for(25.0) == pytest.approx((2.0, 2.0, 2.0, 4.0))
    assert found.epsilon_for(40.0)[0] == 1.0
    assert found.epsilon_for(1.0, agent="mine")[0] == inf
    spread = [replace(one, regret=one.regret + np.arange(6)) for one in runs]
    between = Results(tuple(spread)).epsilon_for(26.0)
    assert 1.0 < between.low < between.epsilon < between.high < 4.0
    for right, call in (
        ("regret=0 to be a finite number > 0", lambda: found.epsilon_for(0)),
        ("one of DP 1, DP 4", lambda: results.epsilon_for(9.0)),
        ("one of mine", lambda: found.epsilon_for(9.0, agent="his")),
        ("some are private, got none", lambda: results["Uniform"].epsilon_for(9.0)),
    ):
        refused(right, call)
