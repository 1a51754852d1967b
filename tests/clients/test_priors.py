"""Priors of old logs: what is made of them, and what they cost wherever they are used."""

import json
from dataclasses import replace
from math import inf

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError, Prior, certify
from dpbandit.agents import FADE, PerPerson
from dpbandit.base import Streams
from dpbandit.clients import Player, prior_from, record
from dpbandit.clients.priors import _rounds
from dpbandit.privacy.certificate import certificate_from_dict
from dpbandit.specs import ContextualSpec
from dpbandit.testing.checks import check_joint_dp
from dpbandit.testing.tapes import recording

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

    H = np.array([(slope(start - h) - slope(start + h)) / 2e-5 for h in 1e-5 * np.eye(len(start))])
    step = np.linalg.solve(H + np.eye(len(start)), slope(start))
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
    """By hand: mu of who is in both is the root of the sum of squares, and within the target; of
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
        assert ("CONDITIONAL: nobody of the prior's log" in proof.notion) == prior.disjoint
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


def test_what_was_learned_from_a_prior_still_says_what_that_cost():
    """Catches a cost that vanishes where one study hands its prior on to the next; whoever starts
    from one is private."""
    prior = prior_from(logged(), protect=True, epsilon=0.5)
    env = gym.make("dpbandit/GLMBandit-v0", **WORLD, horizon=99)
    player = Player(FADE(prior=prior), env, horizon=99, context_bound=1.0, reward_range=(-1.4, 1.4))
    assert player.learned.mu == prior.mu
    with pytest.raises(InputError, match="than the prior cost"):
        certify(FADE(epsilon=0.1, prior=player.learned), "GLMBandit", env_kwargs=WORLD)
    spec = ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0)
    prior = Prior(np.ones(4), 0.1, mu=0.1, source="a log of 9 rounds")
    assert check_joint_dp(FADE(prior=prior, first_batch=3), spec, swapped=[1, 9], replicas=4)


def test_mistakes(tmp_path):
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
        with pytest.raises(InputError, match=said):
            wrong()
