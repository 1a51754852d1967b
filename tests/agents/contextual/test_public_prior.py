"""Warm starts: Bayes' rule, wrong priors that are let go, and nothing that privacy would notice."""

from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from dpbandit import InputError, Prior, play
from dpbandit.agents import FADE, LinUCB
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.agents.contextual.fade_prices import falling
from dpbandit.agents.contextual.fading import PublicPrior
from dpbandit.agents.contextual.moments import uniform_moments
from dpbandit.agents.contextual.released_scores import ReleasedScores, Scores
from dpbandit.base.random_streams import Streams
from dpbandit.clients.player import Player
from dpbandit.envs import GLMBandit
from dpbandit.results.runs import describe
from dpbandit.running.settings import agent_config, parse_agent
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.specs.selling import PriceListSpec
from dpbandit.testing.checks import check_joint_dp, check_replicas
from tests.each import each, refused

ARMS = ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0)
SLATES = replace(ARMS, shared=True)
PRICES = PriceListSpec(
    n_actions=3, dim=2, horizon=24, prices=(1.0, 1.5, 2.0), reward_high=2.0, link="other"
)
LINES = replace(PRICES, link="logistic")
SMALL = {"n_actions": 2, "dim": 4}


def spread_out(n, seed=0):
    """A covariance, and a likelihood (b, L) of one replica, all correlated."""
    rng = np.random.default_rng(seed)
    S, L = (rows.T @ rows / n for rows in rng.standard_normal((2, 2 * n, n)))
    return S, 100 * (L @ rng.standard_normal(n))[None], 100 * L[None]


@each("off", [0.0, 3.0, 30.0, 1e4])
def test_the_width_is_that_of_the_largest_evidence(off):
    """Oracle: scipy's normal density of the likelihood's maximum, N(m, tau S + L^-1), tau = 4^k. A
    mean far off asks for a wide prior, one that fits for none, in each replica for itself."""
    S, b, L = spread_out(3)
    seen, spread = np.linalg.solve(L[0], b[0]), np.linalg.inv(L[0])
    prior = PublicPrior(Prior(seen + off, S), 2, 3, meaning="")
    prior.of_replicas(slice(1, 2)).widen(b, L)
    taus = 4.0 ** np.arange(25)
    evidence = [multivariate_normal(seen + off, t * S + spread).logpdf(seen) for t in taus]
    assert prior.tau[1] == taus[np.argmax(evidence)]
    assert (prior.tau[1] == 1) == (off == 0)
    for replica, tau in enumerate((1.0, prior.tau[1])):
        wide = np.linalg.inv(tau * S)
        np.testing.assert_allclose(prior.precision[replica], wide)
        np.testing.assert_allclose(prior.weighted_mean[replica], wide @ (seen + off))
    theta = np.array([[0.3, -0.2, 0.1]] * 2)
    gap = seen + off - theta[0]
    np.testing.assert_allclose(prior.gradient(theta)[1], wide @ gap)
    assert prior.loss(theta)[1] == pytest.approx(gap @ wide @ gap)


def test_demand_is_fitted_by_likelihood_times_prior():
    """Oracle: a release that says nothing leaves the prior times N(0, 16 I), mean and precision."""
    S, mean = 0.05 * spread_out(3)[0] + 0.1 * np.eye(3), np.array([1.0, -0.5, -2.0])
    phi, half = np.full((1, 1, 5, 3), 0.1), np.full((1, 1, 5), 0.5)
    fit = ReleasedScores(
        Scores(phi, half, 2 * half, phi),
        np.zeros((1, 1)),
        np.zeros((1, 1, 3)),
        ridge=np.full(3, 1 / 16),
        admissible=falling,
        prior=PublicPrior(Prior(mean, S), 1, 3, meaning=""),
    )
    theta, precision, *_ = fit.maximise(np.zeros((1, 3)), 8)
    expected = np.linalg.inv(S) + np.eye(3) / 16
    np.testing.assert_allclose(precision[0], expected)
    np.testing.assert_allclose(theta[0], np.linalg.solve(expected, np.linalg.solve(S, mean)))


def played(config, T, seeds, **more):
    """Regrets of `config` and its agent; seeds that share their first number share a parameter."""

    class Same(GLMBandit):
        def _start(self, streams):
            super()._start(streams)
            first = Streams([seed[0] for seed in seeds])
            self._parameter_normals = first.normals("parameters", self.n_actions, self.dim)
            self._theta = self._draw_parameters()

    @dataclass
    class Kept:
        def make(self, spec, streams):
            made.append(config.make(spec, streams))
            return made[0]

    made = []
    problem = Same(horizon=T, noise=0.3, **SMALL, **more)
    return play(problem, Kept(), seeds, marks=np.array([T])).regret[-1], made[0]


def test_a_good_prior_saves_most_and_a_wrong_one_is_let_go(monkeypatch):
    """Statistical: one study of 1,000 users, then 8 of 600 others: with what it released regret is
    at most half of that without (measured: a fifth); with its negative, taken for a hundred times
    as sure, at most half of what it is where that is believed throughout (measured: 83 of 275)."""
    _, study = played(FADE(epsilon=2.0), 1000, [(3, 999)])
    good = study.learned()
    wrong = Prior(-np.array(good.mean), good.matrix / 100)
    users = [(3, r) for r in range(8)]
    without, used, misled = (
        played(FADE(epsilon=2.0, prior=prior), 600, users)[0] for prior in (None, good, wrong)
    )
    monkeypatch.setattr(PublicPrior, "widen", lambda *likelihood: None)
    right, _ = played(FADE(epsilon=2.0, prior=wrong), 600, users)
    assert used.mean() < 0.5 * without.mean()
    assert misled.mean() < 0.5 * right.mean()


def test_a_study_goes_on_where_another_ended():
    """Oracle: the next one begins with the precision and weighted mean that the first ended with,
    but for the prior that `learned` states; it plays, and imagines who is played, accordingly."""
    _, first = played(FADE(epsilon=2.0), 500, [(3, 0)])
    second = FADE(prior=first.learned()).make(first.spec, Streams([0, 1]))
    b, precision = first._likelihood()
    weak = np.eye(8) / first.spec.half_range**2
    np.testing.assert_allclose(second.known.precision[1], precision[0] + weak, rtol=1e-6)
    np.testing.assert_allclose(second.known.weighted_mean[1], b[0], rtol=1e-6, atol=1e-6)
    assert (second._moments[0] != uniform_moments(2, 4)).any()  # but of imagined users
    x = np.random.default_rng(0).standard_normal((50, 2, 4))
    for one in x:  # nobody is played at random before the first release
        np.testing.assert_array_equal(second.act(one), second.scores(one).argmax(axis=1))
    third = FADE(prior=second.learned(1)).make(first.spec, Streams([0]))
    np.testing.assert_allclose(third.known.precision[0], precision[0] + 2 * weak, rtol=1e-6)


def test_imagined_slates_are_chosen_from_by_the_prior(monkeypatch):
    """Oracle: the argmax of a prior's parameter in each slate, of which a random policy takes every
    row alike often. At epsilon 0.01 releases are noise: theta stays within 0.01 of a prior that is
    sure to 0.001, and no imagined slate is played at random."""
    agent = FADE(prior=Prior([0.0, 3.0, -1.0], 0.1)).make(SLATES, Streams([0]))
    slates, one, met = agent._slates, slice(0, 1), np.zeros((1, agent._slates.count // 2), np.int64)
    theta = agent._theta[:, None, 1:]
    row, mean = slates.chosen(one, theta, met, random=False)
    assert (np.vecdot(row - mean, theta[0]) >= 0).all()
    row, mean = slates.chosen(one, theta, met)
    assert 0.4 < (np.vecdot(row - mean, theta[0]) >= 0).mean() < 0.6
    mean, random, rng = np.array([0.0, 3.0, -1.0]), [], np.random.default_rng(0)
    agent = FADE(epsilon=0.01, prior=Prior(mean, 1e-6), first_batch=3).make(SLATES, Streams([0]))
    chosen = agent._slates.chosen

    def spied(*args, **how):
        random.append(how["random"])
        return chosen(*args, **how)

    monkeypatch.setattr(agent._slates, "chosen", spied)
    for _ in range(23):
        x = rng.standard_normal((1, 2, 2))
        agent.update(x, agent.act(x), rng.random(1))
    np.testing.assert_allclose(agent._theta[0], mean, atol=0.01)
    assert random
    assert not any(random)


SHRUNK = Prior([0.0, 1.0, 0.0, 0.5, -0.5, -2.0], 0.5)
"""Prior of the six parameters that a run learns by default"""


@each("prior", [None, Prior([0.0, 1.0, -2.0], 0.5), SHRUNK])
def test_imagined_customers_see_the_prices_that_were_asked(prior):
    """Oracle: what each batch asked, by the parameters that were in force while it ran; the first
    batch without a prior asked at random."""
    agent = FADE(prior=prior, first_batch=5).make(LINES, Streams([0]))
    rng, in_force = np.random.default_rng(0), []
    for _ in range(23):
        in_force.append(agent._played.copy())
        x = rng.uniform(-0.5, 0.5, (1, 2))
        action = agent.act(x)
        if prior or len(agent._ends):
            assert action == agent.scores(x).argmax()
        agent.update(x, action, rng.integers(0, 2, 1) * PRICES.margins[action])
    customers = rng.uniform(-0.5, 0.5, (1, 40, 2))
    shown = agent._offered_rows(customers)[0]
    line = prior is not None and prior is not SHRUNK
    every = demand_rows(PRICES, customers[0], "additive" if line else "shrunk")
    assert len(agent.learned().mean) == every.shape[-1]  # the next study's prior
    starts = [0, *agent._ends[:-1]]
    for j, start in enumerate(starts):
        profit = PRICES.margins * expit(every @ in_force[start][0])
        asked = every[np.arange(40), profit.argmax(axis=1)]
        assert (shown[j] == asked).all() == bool(j or prior)
    assert len(starts) == 3


def test_what_a_curve_learned_is_a_prior_of_shrunk_effects():
    """Golden: its line predicts the same from rows of either kind, and so does the next study."""
    agent = FADE(first_batch=5).make(replace(PRICES, horizon=60), Streams([0]))
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = agent.act(x := rng.uniform(-0.5, 0.5, (1, 2)))
        agent.update(x, action, rng.integers(0, 2, 1) * PRICES.margins[action])
    prior = agent.learned()
    length = len(prior.mean)
    curve, shrunk = (demand_rows(PRICES, x, kind) for kind in ("curve", "shrunk"))
    utility = curve[..., :length] @ agent._thetas[0, 0, :length]
    np.testing.assert_allclose(shrunk @ prior.mean, utility, rtol=1e-9)
    assert np.abs(utility).max() > 0.01
    assert FADE(prior=prior).make(PRICES, Streams([0])).features == "shrunk"


@each("spec, n", [(ARMS, 4), (SLATES, 1 + SLATES.dim), (PRICES, 3), (PRICES, 6)])
def test_no_prior_breaks_privacy_or_diverges(spec, n):
    """Sensitivity, billboard and replicas with a prior that is as far off, and as sure of it, as is
    allowed: a user's influence on what is released is what it is without."""
    ball = ARMS.half_range if spec is ARMS else 40
    config = FADE(prior=Prior(np.full(n, -1e9), 1e-9), first_batch=3)
    largest, _ = check_joint_dp(config, spec, swapped=[1, 9], replicas=4)
    assert largest > 0.5
    check_replicas(config, spec)
    agent = config.make(spec, Streams([0]))
    rng = np.random.default_rng(0)
    for _ in range(23):
        x = rng.standard_normal((1, *spec.context_shape))
        action = agent.act(x)
        assert agent.scores(x)[0, action[0]] == agent.scores(x).max()
        agent.update(x, action, rng.random(1))
    assert np.isfinite(agent._theta).all()
    assert np.linalg.norm(agent._theta, axis=-1).max() <= ball * (1 + 1e-12)
    assert np.isfinite(agent.learned().matrix).all()


def test_ways_to_give_one(tmp_path):
    """A prior, its file on a command line, its fields in a dictionary: one and the same config; and
    a player hands out what it learned."""
    prior, path = Prior([[0.1, 0.2], [0.3, -0.4]], np.diag([1.0, 2, 3, 4])), tmp_path / "study.json"
    prior.save(path)
    given = {"mean": [0.1, 0.2, 0.3, -0.4], "covariance": prior.covariance}
    one = FADE(prior=prior)
    two, three = parse_agent(f"fade:prior={path}"), agent_config("fade", {"prior": given})
    assert one == two == three
    assert describe(two)["prior"]["mean"] == (0.1, 0.2, 0.3, -0.4)
    assert hash(one) == hash(two)
    assert (Prior([1, 2], [3, 4]).matrix == np.diag([3, 4])).all()
    env = gym.make("dpbandit/GLMBandit-v0", **SMALL)
    bounds = {"horizon": 9, "reward_range": (-2.0, 2.0), "context_bound": 1.0}
    assert len(Player(FADE(model="arms"), env, **bounds).learned.mean) == 8
    for agent in (LinUCB(), FADE(model="answers")):
        with pytest.raises(InputError, match=r"such as FADE.model='arms'., got (LinUCB|FADE)"):
            _ = Player(agent, env, **bounds).learned


@each(
    ("given", "sentence"),
    [
        (lambda: Prior([], 1), r"Expected mean=\[\] of a prior to be numbers"),
        (lambda: Prior(["a"], 1), "Expected mean="),
        (lambda: Prior([1e10], 1), "at most 1e.09 in size"),
        (lambda: Prior([1, 2], 0.0), "covariance=0.0 of a prior to be a variance, 2 of"),
        (lambda: Prior([1, 2], [1, 2, 3]), "or a symmetric positive definite 2 x 2 matrix"),
        (lambda: Prior([1, 2], [[1, 2], [2, 1]]), "with eigenvalues from 1e-09 to 1e.09"),
        (lambda: Prior([1, 2], [[1, 0], [0.1, 1]]), "symmetric"),
        (lambda: FADE(prior=3), "Expected prior=3 to be a Prior, or the path of a JSON file"),
        (lambda: FADE(prior="none.json"), "Cannot read .*none.json: No such file"),
        (lambda: FADE(prior="bad.json"), "Cannot take a prior from .*bad.json: It"),
        (lambda: FADE(prior="half.json"), "from .*half.json: Expected prior="),
        (lambda: FADE(prior=Prior([1, 2], 1)).make(ARMS, Streams([0])), "to be of 4 numbers"),
        (lambda: FADE(prior=Prior([1, 2], 1)).make(PRICES, Streams([0])), "to be of 3 numbers"),
        (
            lambda: FADE(prior=Prior([1], 1), coding="rewards").make(ARMS, Streams([0])),
            "Expected prior=Prior.of 1 numbers. only with model=arms or slates or prices",
        ),
    ],
)
def test_one_sentence_for_what_is_no_prior(given, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "half.json").write_text('{"mean": [1]}')
    refused(sentence, given)
