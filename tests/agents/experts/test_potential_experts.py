"""Potential experts fail, as the specification shows; what they cost; that Algorithm 1 does not."""

from itertools import product
from math import log

import numpy as np
import pytest
from scipy import stats

from dpbandit import certify
from dpbandit.agents import PotentialExperts, SparseVectorExperts
from dpbandit.agents.experts.potential_experts import PotentialDraws, PotentialPlan, log_potential
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs.experts.advice import Experts
from dpbandit.specs.experts import ExpertsSpec
from tests.agents.experts.test_sparse_vector_experts import play


@pytest.mark.parametrize("calibration", ["certified", "paper"])
@pytest.mark.parametrize("units", ["corrected", "literal"])
def test_half_of_all_runs_lose_for_ever(calibration, units):
    """Statistical: d = 2, losses (0, 1), epsilon = 10: whoever holds expert 1 when the tests are
    over loses in every round, against a claimed 2 e^3 ln 2 / eta. 200 runs: between a third and
    two thirds of T on average (false alarm 1e-6; with draws in the first rounds, which know
    something, a sixth), at every T; Algorithm 1 loses a hundredth."""
    config = PotentialExperts(epsilon=10.0, calibration=calibration, threshold_units=units)
    regrets = {}
    for T in (300, 3000):
        problem = Experts(kind="counterexample", horizon=T)
        regrets[T] = play(problem, config.make, 200)[0].mean()
        assert T / (3 if units == "corrected" else 6) < regrets[T] < 2 * T / 3
    repaired, _ = play(problem, SparseVectorExperts(epsilon=10.0).make, 200)
    assert repaired.mean() < 3000 / 100
    assert regrets[3000] > 8 * regrets[300]


@pytest.mark.parametrize(
    ("d", "epsilon", "mean", "error"),
    [
        (16, 1, 461.6, 9.0),
        (16, 10, 465.9, 8.7),
        (256, 10, 494.6, 3.7),
        pytest.param(4096, 10, 499.7, 1.0, marks=pytest.mark.slow),
    ],
)
def test_published_regret_as_printed(d, epsilon, mean, error):
    """Statistical: an independent program's 200 runs of 1,000 rounds of coins, printed constants,
    within 4 combined standard errors. No test fires: uniform play."""
    config = PotentialExperts(epsilon=epsilon, calibration="paper")
    regret, _ = play(Experts(n_actions=d, horizon=1000, shared_table=True), config.make, 200)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / 200**0.5)


@pytest.mark.parametrize(("epsilon", "mean", "error"), [(1, 368.8, 10.3), (10, 294.5, 16.6)])
def test_published_regret_with_repaired_noise(epsilon, mean, error):
    """Statistical: the same, d = 16, exponential noise of mean 4 / eps0, K (eps0 + 2 eta) =
    epsilon. K = 3 and eta = 0.0095 epsilon are not printed: they were fitted to these two rows,
    which shows the failure, not the constants: half of the runs stay with an expert who loses."""
    config = PotentialExperts(epsilon=epsilon, draws=3, eta=0.0095 * epsilon)
    regret, agent = play(Experts(n_actions=16, horizon=1000, shared_table=True), config.make, 200)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / 200**0.5)
    assert 0.4 < (agent.expert != 0).mean() < 0.8


def test_what_it_costs():
    """Golden: K (3/2 eps0 + 2 eta) = 3/2 epsilon + 2 K eta as printed, eta = eps0 / (56 ln T);
    epsilon with repaired noise."""
    spec = ExpertsSpec(n_actions=16, horizon=1000)
    printed = certify(PotentialExperts(epsilon=0.5, calibration="paper"), spec)
    assert printed.epsilon == pytest.approx(0.5 * (1.5 + 2 / (56 * log(1000))))
    assert not printed.holds
    for settings in ({}, {"draws": 3, "eta": 0.01}, {"threshold_units": "literal"}):
        proof = certify(PotentialExperts(epsilon=0.5, **settings), spec)
        assert proof.holds
        assert proof.epsilon == pytest.approx(0.5)


ROWS = np.array(list(product((0.0, 1.0), repeat=2)))


def fallen(base, later, eta):
    """q_t after each of the rows `later`, t* the round in which sums were `base`."""
    sums = np.cumsum(np.concatenate([base[None], later]), axis=0)
    potential = log_potential(sums, eta)
    return (potential[0] - potential[1:]) / eta


def test_the_query_has_sensitivity_two():
    """Golden: 0/1 losses of 2 experts, eta = 4, all sums up to 3 before and after t*: replacing a
    row before t* moves q by 1.822, where 1 was claimed."""
    moves = []
    for base, later in product(product(range(4), repeat=2), repeat=2):
        q = [fallen(base + row, np.array([later]), 4.0)[0] for row in ROWS]
        moves.append(max(q) - min(q))
    assert max(moves) == pytest.approx(1.822, abs=1e-3)


GRID = np.linspace(-60, 60, 12_001)


def firing(q, threshold, plan):
    """P(fires at 1, 2, .., never), by quadrature over rho."""
    if plan.noise == "laplace":
        density = np.exp(-np.abs(GRID) / plan.threshold_scale)
        above = stats.laplace(scale=plan.test_scale).sf
    else:
        density = np.where(GRID >= 0, np.exp(-np.abs(GRID) / plan.threshold_scale), 0.0)
        above = stats.expon(scale=plan.test_scale).sf
    alive, found = density / density.sum(), []
    for value in q:
        fires = above(threshold + GRID - value)
        found.append((alive * fires).sum())
        alive = alive * (1 - fires)
    return np.array([*found, alive.sum()])


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_a_phase_of_tests_costs_what_is_claimed(noise):
    """Exact: firing laws of all 0/1 losses of two experts, two tests after t*, one row before t*
    replaced: log ratios stay below 3/2 eps0 (Laplace), eps0 (exponential), eps0 = 1."""
    scale = 2.0 if noise == "laplace" else 4.0
    plan = PotentialPlan(1, 4.0, -2.0, scale, 4.0, noise)
    claimed, worst = 2 / scale + 2 / 4.0, 0.0
    for base, first, second in product(((0, 0), (2, 0), (1, 2)), range(4), range(4)):
        laws = [firing(fallen(base + row, ROWS[[first, second]], 4.0), -2.0, plan) for row in ROWS]
        ratios = [np.abs(np.log(a / b)).max() for a in laws for b in laws]
        worst = max(worst, *ratios)
    assert 0.3 < worst <= claimed


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_tests_and_draws_have_their_laws(noise):
    """Statistical: when 4,000 replicas fire first and whom they draw, chi-square against quadrature
    and exp(-eta S); false alarm 1e-6, noise of twice the scale and e^(-eta S / 2) are caught
    (asserted)."""
    R, eta, threshold = 4000, 0.8, 1.0
    losses = np.array([[0.0, 1.0, 0.4], [0.3, 1.0, 0.5], [0.0, 0.9, 1.0]])
    plan = PotentialPlan(1, eta, threshold, 0.7, 1.4, noise)
    draws = PotentialDraws(3, Streams(range(R)), plan, uses=3)
    found = np.array([draws(np.tile(row, (R, 1))) for row in losses])
    fired = found >= 0
    assert (fired.sum(axis=0) <= 1).all()
    counts = [*fired.sum(axis=1), R - fired.any(axis=0).sum()]
    q = fallen(np.zeros(3), losses, eta)
    for factor, fits in ((1, True), (2, False)):
        extreme = PotentialPlan(1, eta, threshold, 0.7 * factor, 1.4 * factor, noise)
        chance = firing(q, threshold, extreme)
        p = stats.chisquare(counts, R * chance / chance.sum()).pvalue
        assert (p > 1e-6) == fits
    chosen = np.bincount(found[2][fired[2]], minlength=3)
    for power, fits in ((1.0, True), (0.3, False)):
        weight = np.exp(-power * eta * losses.sum(axis=0))
        p = stats.chisquare(chosen, chosen.sum() * weight / weight.sum()).pvalue
        assert (p > 1e-6) == fits


def test_no_more_than_k_draws():
    """Edge: the literal threshold is below the noise: K draws in the first rounds, then none."""
    config = PotentialExperts(calibration="paper", threshold_units="literal")
    agent = config.make(ExpertsSpec(n_actions=16, horizon=300), Streams(range(100)))
    played = []
    for _ in range(300):
        played.append(agent.act(None))
        agent.update(None, played[-1], np.ones((100, 16)))
    changes = (np.diff(played, axis=0) != 0).sum(axis=0)
    assert changes.max() <= 6
    assert (np.diff(played[200:], axis=0) == 0).mean() > 0.99
    assert changes.mean() > 3


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize("T", [1, 20])
@pytest.mark.parametrize("units", ["corrected", "literal"])
def test_edges(d, T, units):
    """One expert; one round; all lose nothing, everything, no numbers."""
    for calibration, loss in product(("certified", "paper"), (0.0, 1.0, np.nan)):
        config = PotentialExperts(calibration=calibration, threshold_units=units)
        agent = config.make(ExpertsSpec(n_actions=d, horizon=T), Streams(range(4)))
        for _ in range(T):
            action = agent.act(None)
            assert ((action >= 0) & (action < d)).all()
            agent.update(None, action, np.full((4, d), loss))


def test_bad_settings():
    for settings in ({"epsilon": np.inf}, {"alpha": 0.0}, {"draws": 0}, {"eta": 0.0}):
        with pytest.raises(InputError, match=next(iter(settings))):
            PotentialExperts(**settings)
    with pytest.raises(InputError, match="epsilon / 2 K"):
        PotentialExperts(eta=0.5).make(ExpertsSpec(n_actions=4, horizon=9), Streams([0]))
