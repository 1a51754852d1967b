"""The privacy of PrivateBandit: certificates, couplings of two users, costs of epochs."""

import dataclasses
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import PrivateBandit
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import (
    Simplex,
)
from tests.agents.convex.test_private_bandit import (
    PRINTED,
    adaptive,
    episode,
    linear,
)
from tests.each import each


@each("noise", ["gaussian", "laplace", "k-norm", "local"])
@each("T", [1, 6, 7, 1024])
def test_certificate_is_the_claim(noise, T):
    """And 0 where no data is used: T < 7 has no batch that influences a point."""
    config = PrivateBandit(noise=noise, epsilon=0.7)
    certificate = certify(config, linear(T), accountants=False)
    assert certificate.holds
    target = 1e-6 if noise == "gaussian" else 0.0
    epsilon = certificate.ledger.epsilon(target)
    assert epsilon == pytest.approx(0.7 if T >= 7 else 0.0, rel=1e-6)


def test_first_leaves_appear_at_7_and_13():
    """Golden, by hand: b = ceil(sqrt T), K = ceil(T / b), m = K - 2."""
    found = {T: PrivateBandit().plan(linear(T)).leaves for T in range(1, 14)}
    assert found == {**dict.fromkeys(range(1, 7), 0), **dict.fromkeys(range(7, 13), 1), 13: 2}


def test_printed_scales_cost_what_the_accountant_says():
    """Golden: the printed Laplace scale 4605.2 is 13.2 times the certified one at W = L D, so
    epsilon is 7/92.1 .. = 0.0760; where the cap r / 2 binds it exceeds the claim."""
    spec = linear(10_000)
    epsilon = certify(PrivateBandit(**PRINTED), spec, accountants=False).ledger.pure
    assert epsilon == pytest.approx(350.0 / 4605.2, rel=1e-4)
    assert certify(PrivateBandit(calibration="paper"), spec, accountants=False).holds
    broken = certify(PrivateBandit(**PRINTED), linear(64, Simplex(8)), accountants=False)
    assert not broken.holds
    assert broken.ledger.pure > 2


# Epochs


def test_epochs_are_runs_of_their_own():
    """Oracle: epoch j is a fresh agent with horizon T0 2^j, streams of its own and no memory."""
    T, config = 7 + 14 + 28 + 20, PrivateBandit(noise="k-norm", anytime=True, first_epoch=7)
    values = adaptive(linear(T))
    points, _ = episode(config.make(linear(T), Streams([5])), values, T)
    again, done = adaptive(linear(T)), 0
    alone = dataclasses.replace(config, anytime=False)
    family = Streams([5])
    for j, length in enumerate((7, 14, 28, 20)):
        streams = family.child(f"epoch {j}")
        agent = alone.make(linear(7 << j), streams)
        part, _ = episode(agent, lambda t, x, start=done: again(start + t, x), length)
        np.testing.assert_array_equal(part, points[done : done + length])
        done += length


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "k-norm", "local"])
def test_epochs_cost_what_the_dearest_costs(noise):
    """Parallel composition: no factor log T, and epochs after the horizon cost no more."""
    config = PrivateBandit(noise=noise, anytime=True, first_epoch=8, epsilon=0.5)
    agent = config.make(linear(100), Streams([0]))
    (spend,) = agent.ledger.spends
    assert spend.delta(0.5) <= (1e-6 if noise == "gaussian" else 0.0) * (1 + 1e-9)
    assert spend.pure == inf if noise == "gaussian" else spend.pure == pytest.approx(0.5)
    points, _ = episode(agent, lambda t, x: x[:, 0], 300)
    assert np.linalg.norm(points[:, 0], axis=-1).max() <= 1


def test_the_last_user_of_a_horizon_is_served_and_a_dearer_epoch_is_refused():
    """4 rounds are 2 batches and cost nothing, the 8 rounds after them would cost epsilon."""
    agent = PrivateBandit(noise="k-norm", anytime=True, first_epoch=4).make(linear(4), Streams([0]))
    assert agent.ledger.pure == 0
    episode(agent, lambda t, x: x[:, 0], 4)
    with pytest.raises(InputError, match="longer horizon"):
        episode(agent, lambda t, x: x[:, 0], 1)


def test_an_epoch_of_a_larger_pure_epsilon_is_refused():
    """Both deltas are 1 up to rounding at every epsilon <= 10: only the pure costs tell."""
    cheap, dear = (
        PrivateBandit(noise="laplace", anytime=True, first_epoch=8, epsilon=epsilon)
        for epsilon in (100.0, 200.0)
    )
    agent = dear.make(linear(8), Streams([0]))
    agent.run._promised = cheap.make(linear(8), Streams([0])).run._promised
    with pytest.raises(InputError, match="longer horizon"):
        episode(agent, lambda t, x: x[:, 0], 1)
