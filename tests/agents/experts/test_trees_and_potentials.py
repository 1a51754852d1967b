"""Binary tree experts: published regrets, the certified plan, phases that end. Potential experts:
how they fail, as the specification shows, and what they cost; that Algorithm 1 does not fail. What
all who follow experts owe: actions of their own, one sentence on bad input."""

from itertools import product
from math import inf, log

import numpy as np
import pytest
from scipy import stats

from dpbandit import InputError, certify
from dpbandit.agents import (
    EXPERTS,
    AdaptiveSparseVectorExperts,
    BallExperts,
    BinaryTreeExperts,
    NetExperts,
    PotentialExperts,
    SparseVectorExperts,
)
from dpbandit.agents.experts.trees_and_potentials import PotentialDraws, log_potential
from dpbandit.base.random_streams import Streams
from dpbandit.envs.experts.advice import Experts
from dpbandit.privacy.choices import EpochSelection
from dpbandit.privacy.curves import loose_rho, zcdp_epsilon_of
from dpbandit.privacy.noise import Laplace, OneSidedExponential
from dpbandit.privacy.notion import Notion
from dpbandit.specs.convex import ExpertsSpec
from tests.agents.experts.experts_runs import play, told
from tests.each import each, each_wrong, refused

# Binary tree experts


def agrees(config, d, mean, error, R, T=1000):
    """An independent program's mean on one sequence of coins, within 4 combined standard errors."""
    regret, agent = play(Experts(n_actions=d, horizon=T, shared_table=True), config.make, R)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / R**0.5)
    return agent


def small(epsilon):
    """B = 4, tau = 2 sigma sqrt(log2 T), with what CKS certifies of the rho that BS turns into
    (epsilon, 1e-6), as in the tables."""
    same_rho = zcdp_epsilon_of(loose_rho(epsilon, 1e-6), 1e-6)
    return BinaryTreeExperts(epsilon=same_rho, parameters="small")


@pytest.mark.parametrize(
    ("epsilon", "d", "mean", "error"), [(1, 16, 317.3, 12.3), (10, 256, 185.0, 13.8)]
)
def test_published_regret_of_trees(epsilon, d, mean, error):
    """Statistical: the mean of 100 runs of 1,000 rounds. Uniform play loses 466 to 500."""
    agrees(small(epsilon), d, mean, error, 60)


def test_certified_plan():
    """Golden: d = 256, T = 1e4, c = 4, beta = 1e-4. a = -ln(1 - (1 - e^-2) / 2) = 0.5663, N =
    ceil(5.545 / a) + 1 = 11, B = ceil(log2(44e4)) = 19; h = 14, picks = 190; sigma =
    sqrt(B h / rho) = 123.4 and eta = sqrt(4 rho / 190) at rho = 0.017469; err = sigma sqrt(28
    ln(2 T B N / beta)) = 3229; N B (c/eta + 2 err + 1) = 1.39e6. A threshold of 0 is one."""
    spec = ExpertsSpec(n_actions=256, horizon=10_000)
    plan = BinaryTreeExperts(epsilon=small(1).epsilon).plan(spec)
    assert (plan.phases, plan.size, plan.picks) == (11, 19, 190)
    assert plan.scale == pytest.approx(123.4, rel=1e-3)
    assert plan.eta == pytest.approx(0.019177, rel=1e-3)
    assert plan.bound == pytest.approx(1.3936e6, rel=1e-3)
    assert plan.threshold == pytest.approx(4 / plan.eta + 3229, rel=1e-3)
    assert BinaryTreeExperts(threshold=0.0).plan(spec).threshold == 0


def test_what_trees_cost():
    """Picks and trees add up to the target; where one set holds everybody there are no picks."""
    for noise, d in product(("gaussian", "laplace"), (3, 40)):
        proof = certify(
            BinaryTreeExperts(noise=noise, size=4), ExpertsSpec(n_actions=d, horizon=500)
        )
        assert proof.holds
        assert len(proof.ledger.spends) == (1 if d == 3 else 2)
        if d == 40:
            assert proof.mu is None
            name = "zCDP (CKS)" if noise == "gaussian" else "pure"
            assert proof.accountants[name] == pytest.approx(1)
    mixed = BinaryTreeExperts(noise="laplace", delta=1e-5)
    assert certify(mixed, ExpertsSpec(n_actions=40, horizon=500), accountants=False).holds


def test_sets_are_followed_until_nobody_is_left():
    """Golden: without noise, everybody loses 1 each round, tau = 2: sets of 2 of 5 experts last 3
    rounds, their leader alternates; then the last one alone, for ever. Nobody comes back. At N = 1
    the first set stays however much it loses."""
    config = BinaryTreeExperts(epsilon=inf, size=2, threshold=2.0, phases=5, delta=0.0)
    agent = config.make(ExpertsSpec(n_actions=5, horizon=30), Streams(range(20)))
    played = told(np.ones(5), agent, 20, 30)
    assert (played[6:] == played[6]).all()
    for followed in played.T:
        first, second, later = (set(followed[part]) for part in np.split(np.arange(30), (3, 6)))
        assert max(len(first), len(second)) <= 2
        assert not first & (second | later)
        assert not second & later
    config = BinaryTreeExperts(epsilon=inf, size=2, threshold=1.0, phases=1, delta=0.0)
    regret, agent = play(Experts(n_actions=8, horizon=200), config.make, 50)
    assert set(np.round(regret.astype(float), 6) > 50) == {True, False}
    assert (agent.phase == 0).all()


# Potential experts


def test_half_of_all_runs_lose_for_ever():
    """Statistical: d = 2, losses (0, 1), epsilon = 10: whoever holds expert 1 when the tests are
    over loses in every round, against a claimed 2 e^3 ln 2 / eta. 200 runs: between a third and
    two thirds of T on average (false alarm 1e-6; with draws in the first rounds, which know
    something, a sixth), at every T; Algorithm 1 loses less than a thirtieth."""
    for calibration, units in (("certified", "corrected"), ("paper", "literal")):
        config = PotentialExperts(epsilon=10.0, calibration=calibration, threshold_units=units)
        regrets = {}
        for T in (100, 1000):
            problem = Experts(kind="counterexample", horizon=T)
            regrets[T] = play(problem, config.make, 200)[0].mean()
            assert T / (3 if units == "corrected" else 6) < regrets[T] < 2 * T / 3
        assert regrets[1000] > 8 * regrets[100]
    assert play(problem, SparseVectorExperts(epsilon=10.0).make, 200)[0].mean() < 1000 / 30


def test_published_regret_of_potentials():
    """Statistical. As printed no test fires: uniform play. With repaired noise, of mean 4 / eps0,
    K (eps0 + 2 eta) = epsilon; K = 3 and eta = 0.0095 epsilon were fitted to the numbers, which
    shows the failure, not the constants: half of the runs stay with an expert who loses."""
    agrees(PotentialExperts(epsilon=10.0, calibration="paper"), 16, 465.9, 8.7, 100)
    agent = agrees(PotentialExperts(epsilon=10.0, draws=3, eta=0.095), 16, 294.5, 16.6, 200)
    assert 0.4 < (agent.expert != 0).mean() < 0.8


def test_what_potentials_cost():
    """Golden: K (3/2 eps0 + 2 eta) = 3/2 epsilon + 2 K eta as printed, eta = eps0 / (56 ln T);
    epsilon with repaired noise. The query has sensitivity two: with 0/1 losses of 2 experts, eta =
    4, all sums up to 3 before and after t*, replacing a row before t* moves q by 1.822, where 1 was
    claimed."""
    spec = ExpertsSpec(n_actions=16, horizon=1000)
    printed = certify(PotentialExperts(epsilon=0.5, calibration="paper"), spec, accountants=False)
    assert printed.epsilon == pytest.approx(0.5 * (1.5 + 2 / (56 * log(1000))))
    assert not printed.holds
    for settings in ({}, {"draws": 3, "eta": 0.01}, {"threshold_units": "literal"}):
        proof = certify(PotentialExperts(epsilon=0.5, **settings), spec, accountants=False)
        assert proof.holds
        assert proof.epsilon == pytest.approx(0.5)
    moves = []
    for base, later in product(product(range(4), repeat=2), repeat=2):
        q = [fallen(base + row, np.array([later]), 4.0)[0] for row in ROWS]
        moves.append(max(q) - min(q))
    assert max(moves) == pytest.approx(1.822, abs=1e-3)


ROWS = np.array(list(product((0.0, 1.0), repeat=2)))


def fallen(base, later, eta):
    """q_t after each of the rows `later`, t* the round in which sums were `base`."""
    sums = np.cumsum(np.concatenate([base[None], later]), axis=0)
    potential = log_potential(sums, eta)
    return (potential[0] - potential[1:]) / eta


GRID = np.linspace(-60, 60, 3_001)
LAWS = (Laplace, OneSidedExponential)


def firing(q, threshold, scales, law):
    """P(fires at 1, 2, .., never), by quadrature over rho."""
    density, above = np.exp(-np.abs(GRID) / scales[0]), stats.laplace(scale=scales[1]).sf
    if law is OneSidedExponential:
        density, above = np.where(GRID >= 0, density, 0.0), stats.expon(scale=scales[1]).sf
    alive, found = density / density.sum(), []
    for value in q:
        fires = above(threshold + GRID - value)
        found.append((alive * fires).sum())
        alive = alive * (1 - fires)
    return np.array([*found, alive.sum()])


@pytest.mark.parametrize("law", LAWS)
def test_a_phase_of_tests_costs_what_is_claimed(law):
    """Exact: firing laws of all 0/1 losses of two experts, two tests after t*, one row before t*
    replaced: log ratios stay below 3/2 eps0 (Laplace), eps0 (exponential), eps0 = 1."""
    scales = (2.0 if law is Laplace else 4.0, 4.0)
    claimed, worst = 2 / scales[0] + 2 / 4.0, 0.0
    for base, first, second in product(((0, 0), (2, 0), (1, 2)), range(4), range(4)):
        later = ROWS[[first, second]]
        laws = [firing(fallen(base + row, later, 4.0), -2.0, scales, law) for row in ROWS]
        ratios = [np.abs(np.log(a / b)).max() for a in laws for b in laws]
        worst = max(worst, *ratios)
    assert 0.3 < worst <= claimed


@pytest.mark.parametrize("law", LAWS)
def test_tests_and_draws_have_their_laws(law):
    """Statistical: when 4,000 replicas fire first and whom they draw, chi-square against quadrature
    and exp(-eta S); false alarm 1e-6, noise of twice the scale and e^(-eta S / 2) are caught
    (asserted)."""
    R, eta, threshold, scales = 4000, 0.8, 1.0, (0.7, 1.4)
    losses = np.array([[0.0, 1.0, 0.4], [0.3, 1.0, 0.5], [0.0, 0.9, 1.0]])
    draws = PotentialDraws(
        3, Streams(range(R)), draws=1, eta=eta, threshold=threshold, scales=scales, law=law, uses=3
    )
    found = np.array([draws(np.tile(row, (R, 1))) for row in losses])
    fired = found >= 0
    assert (fired.sum(axis=0) <= 1).all()
    counts = [*fired.sum(axis=1), R - fired.any(axis=0).sum()]
    q = fallen(np.zeros(3), losses, eta)
    for factor, fits in ((1, True), (2, False)):
        chance = firing(q, threshold, np.multiply(factor, scales), law)
        p = stats.chisquare(counts, R * chance / chance.sum()).pvalue
        assert (p > 1e-6) == fits
    chosen = np.bincount(found[2][fired[2]], minlength=3)
    for power, fits in ((1.0, True), (0.3, False)):
        weight = np.exp(-power * eta * losses.sum(axis=0))
        p = stats.chisquare(chosen, chosen.sum() * weight / weight.sum()).pvalue
        assert (p > 1e-6) == fits


# All who follow experts


LEARNERS = [name for name in EXPERTS if name not in ("uniform", "best-fixed")]
STAY = ("shrinking-dartboard", "exponential-mechanism", "follow-the-leader")


@each("name", LEARNERS)
def test_losses_and_actions_are_what_they_are(name):
    """Losses of another shape are refused, not broadcast: at R = d = 4 a number a replica looks
    like a vector of losses. Who stays with an expert is charged for her whatever is written on the
    action."""
    agent = EXPERTS[name]().make(ExpertsSpec(n_actions=4, horizon=9), Streams(range(4)))
    action = agent.act(np.zeros((4, 4)))
    for shape in ((4,), (4, 1), (1, 4), (1,), (4, 5)):
        refused("losses of shape", agent.update, np.zeros((4, 4)), action, np.ones(shape))
    if name in STAY:
        kept = action.copy()
        action += 1
        np.testing.assert_array_equal(agent.act(np.zeros((4, 4))), kept)


def test_edges():
    """One expert, few or many; one round; all lose nothing, everything, no numbers. The literal
    threshold is below the noise: K draws in the first rounds, then none."""
    for config in (
        *(BinaryTreeExperts(parameters=parameters) for parameters in ("certified", "small")),
        *(
            PotentialExperts(calibration=calibration, threshold_units=units)
            for calibration in ("certified", "paper")
            for units in ("corrected", "literal")
        ),
    ):
        for d, T, loss in product((1, 2, 70), (1, 2, 12), (0.0, 1.0, np.nan)):
            agent = config.make(ExpertsSpec(n_actions=d, horizon=T), Streams(range(4)))
            followed = told(np.full(d, loss), agent, 4, T)
            assert ((followed >= 0) & (followed < d)).all()
    config = PotentialExperts(calibration="paper", threshold_units="literal")
    agent = config.make(ExpertsSpec(n_actions=16, horizon=300), Streams(range(100)))
    played = told(np.ones(16), agent, 100, 300)
    changes = (np.diff(played, axis=0) != 0).sum(axis=0)
    assert changes.max() <= 6
    assert (np.diff(played[200:], axis=0) == 0).mean() > 0.99
    assert changes.mean() > 3


BAD = [
    (SparseVectorExperts, {}, {"epsilon": [0.0], "delta": [1.0], "beta": [1.0], "lag": [1]}),
    (SparseVectorExperts, {}, {"best_loss": [-1.0], "calibration": ["papers"]}),
    (AdaptiveSparseVectorExperts, {}, {"first_loss": [0]}),
    (AdaptiveSparseVectorExperts, {"calibration": "paper"}, {"delta": [1e-6]}),
    (BinaryTreeExperts, {}, {"size": [0], "phases": [0], "threshold": [-1.0], "c": [0.0]}),
    (BinaryTreeExperts, {}, {"beta": [1.0], "delta": [0.0]}),
    (PotentialExperts, {}, {"epsilon": [inf], "alpha": [0.0], "draws": [0], "eta": [0.0]}),
    (NetExperts, {}, {"epsilon": [0.0], "spacing": [0.0], "best_loss": [-1.0]}),
    (NetExperts, {}, {"net_loss": [-1.0], "beta": [1.0]}),
    (BallExperts, {}, {"epsilon": [inf], "reach": [0.0], "calibration": ["paper"]}),
]


@each_wrong(BAD)
def test_bad_settings(kind, settings, name):
    """One sentence that names the setting."""
    refused(f"{name}=", kind, **settings)


def test_what_is_found_to_be_wrong_later():
    with pytest.raises(InputError, match="epsilon / 2 K"):
        PotentialExperts(eta=0.5).make(ExpertsSpec(n_actions=4, horizon=9), Streams([0]))
    refused("uses", EpochSelection, 2, Streams([0]), "p", epsilon=1.0, draws=1, uses=2**21 + 1)
    for window in (-3, 0, 2.5, True):
        refused("window", Notion, window=window)
