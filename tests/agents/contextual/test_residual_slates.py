"""Slates by residuals: imagined slates, the law they are given, and a parameter recovered."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.special import expit

from dpbandit.agents import FADE
from dpbandit.agents.contextual.released_scores import BALL
from dpbandit.agents.contextual.residual_slates import ImaginedSlates
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec

SPEC = ContextualSpec(n_actions=4, dim=3, horizon=200, shared=True, link="logistic")
ONE = slice(0, 1)


def learned(truth, noise, replicas):
    """The released law of slates: three releases of a known law with noise, of matrices."""
    users, rng = np.array([50.0, 95.0, 136.5]), np.random.default_rng(0)
    slates = ImaginedSlates(Streams(range(replicas)), 4, 3)
    half = noise * rng.standard_normal((replicas, 3, 3, 3)) / 2
    released = users[:, None, None] * truth + half + half.swapaxes(-1, -2)
    slates.learn(released, users, noise**2 * np.eye(3))
    return slates


def test_imagined_rows_have_the_released_law():
    """Oracle: exact releases; M^1/2 scaled to trace d, whatever the size of M, which clips shrink.
    In noise as large as what deviates from the identity, it is the identity that is imagined."""
    truth = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.05]])
    root = learned(truth, 1e-6, 2)._root
    np.testing.assert_allclose(root @ root, [truth * 3 / np.trace(truth)] * 2, atol=1e-5)
    lost = learned(truth, 500.0, 400)._root
    assert np.median(np.linalg.norm(lost - np.eye(3), axis=(1, 2))) == 0


def test_rows_are_those_the_policies_choose():
    """Oracle: slates one by one, each stretched and played by the policy that met it, of which the
    first plays at random; images mirrored where rows are white have the same score, and what goes
    across the direction played sums to 0."""
    slates = learned(np.diag([0.4, 0.2, 0.1]), 1e-6, 2)
    policies = np.random.default_rng(1).standard_normal((2, 3, 3))
    met = np.array([[0] * 128, [0, 1] * 64, [1, 2] * 64])
    root = slates._root[0]
    row, mean = slates.chosen(ONE, policies[ONE], met)
    assert row.shape == mean.shape == (1, 3, slates.count, 3)
    for b in range(3):
        for i in range(128):
            shown = slates._slates[0, i] @ root
            np.testing.assert_allclose(mean[0, b, i], shown.mean(axis=0), atol=1e-12)
            if met[b, i]:
                best = shown[(shown @ policies[0, met[b, i]]).argmax()]
                np.testing.assert_allclose(row[0, b, i], best, atol=1e-12)
    for vectors in (row, mean):
        white = vectors[0] @ np.linalg.inv(root)
        np.testing.assert_allclose(white[0].sum(axis=0), 0, atol=1e-9)
        axis = root @ policies[0, 2]
        pairs = (white[2, :128] + white[2, 128:])[met[2] == 2] / np.linalg.norm(axis)
        np.testing.assert_allclose(np.cross(pairs, axis), 0, atol=1e-9)
    arms = [(slates._slates[0, i] @ root == row[0, 0, i]).all(axis=1).argmax() for i in range(128)]
    assert set(np.bincount(arms)) <= {31, 32, 33}


@pytest.mark.parametrize("size", [1e3, 1e9, 1e150])
def test_nothing_diverges(size, monkeypatch):
    """Whatever is released: finite, in the ball, and arms can be chosen."""
    agent = FADE(first_batch=5).make(SPEC, Streams([0, 1]))
    rng = np.random.default_rng(0)

    def noisy(self):
        return size * rng.standard_normal((2, *agent._statistic.shape))

    monkeypatch.setattr(agent._sums, "_normals", lambda: noisy(agent))
    for _ in range(60):
        x = rng.standard_normal((2, 4, 3)) / 3
        agent.update(x, agent.act(x), np.ones(2))
        assert (np.linalg.norm(agent._theta, axis=1) <= BALL * (1 + 1e-12)).all()
        assert np.isfinite(agent.scores(x)).all()
    assert len(agent._ends) > 5


@pytest.mark.parametrize("delay", [0, 60])
def test_parameters_are_recovered_without_privacy(delay):
    """Oracle: clicks of a logistic model on slates that are neither elliptical nor of mean zero;
    one feature is constant, one the rows of a slate share. At epsilon = inf the regret of the rows
    chosen is below a tenth of random play's, although choices were greedy; also with answers 60
    rounds late."""
    spec = replace(SPEC, dim=4, horizon=4000, delay=delay)
    agent = FADE(epsilon=inf).make(spec, Streams([0, 1, 2, 3]))
    rng, truth = np.random.default_rng(7), np.array([1.0, 3.0, -4.0, 1.0])
    waiting, lost, random = [], [], []
    for t in range(3999):
        x = np.abs(rng.standard_normal((4, 4, 4)))
        x[..., 0], x[..., 3] = 1.0, x[:, :1, 3]
        x /= 4
        p = expit(x @ truth - 1)
        action = agent.act(x)
        waiting.append((x, action, 1.0 * (rng.random(4) < p[np.arange(4), action])))
        if t >= delay:
            agent.update(*waiting.pop(0))
        if t >= 2000:
            lost.append(p.max(axis=1) - p[np.arange(4), action])
            random.append(p.max(axis=1) - p.mean(axis=1))
    assert np.mean(lost) < 0.1 * np.mean(random)
