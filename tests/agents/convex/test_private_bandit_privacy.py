"""The privacy of PrivateBandit: certificates, couplings of two users, costs of epochs."""

import dataclasses
from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import GarberKretzu, PrivateBandit
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import (
    Ball,
    Hypersimplex,
    Simplex,
)
from dpbandit.privacy.mechanism import Mechanism, witnessed
from dpbandit.privacy.prefix_sums import Tree
from tests.agents.convex.test_private_bandit import (
    PRINTED,
    adaptive,
    episode,
    linear,
)
from tests.each import each
from tests.privacy.sums.prefix_checks import script


@each("noise", ["gaussian", "laplace", "k-norm", "local"])
@each("T", [1, 6, 7, 13, 100, 1024])
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


class Coupling:
    """Two worlds that differ in one loss; the second sees the first one's releases."""

    def __init__(self, config, spec, values, changed, R=4):
        self.releases = []
        with witnessed(lambda mechanism, datum, release: self.releases.append(release)):
            agent = config.make(spec, Streams(range(R)))
            self.points, self.u = episode(agent, values, spec.horizon, R)
        replay, original = iter(self.releases), Mechanism.__call__
        Mechanism.__call__ = lambda self, *datum: (original(self, *datum), next(replay))[1]
        try:
            second = config.make(spec, Streams(range(R)))
            self.other_points, _ = episode(second, changed, spec.horizon, R)
        finally:
            Mechanism.__call__ = original


@pytest.mark.parametrize(
    ("config", "domain"),
    [
        (PrivateBandit(), Ball(3)),
        (PrivateBandit(noise="k-norm", projection="frank-wolfe"), Hypersimplex(5, 2)),
        (PrivateBandit(noise="laplace", stale=False), Simplex(4)),
        (PrivateBandit(noise="local"), Ball(3)),
        (PrivateBandit(anytime=True, first_epoch=7), Ball(3)),
        (PrivateBandit(noise="local", anytime=True, first_epoch=7), Ball(3)),
    ],
    ids=["gaussian", "frank-wolfe", "not stale", "local", "epochs", "local epochs"],
)
def test_points_depend_on_a_user_through_releases_alone(config, domain):
    """Shift coupling by replay: with the releases held fixed all points are EQUAL, against losses
    that adapt to every point, whichever round is changed."""
    spec = linear(60, domain)
    for changed in (0, 8, 9, 31, 59):
        coupled = Coupling(config, spec, adaptive(spec), adaptive(spec, changed))
        np.testing.assert_array_equal(coupled.points, coupled.other_points)


def test_the_coupling_has_power():
    """Without privacy and without replay a changed loss moves later points, unless its round is in
    the last two batches (T = 60: b = 8, m = 6, rounds 48 to 59)."""
    spec = linear(60)
    for changed, same in ((0, False), (47, False), (48, True), (59, True)):
        agents = [GarberKretzu().make(spec, Streams(range(4))) for _ in range(2)]
        first, _ = episode(agents[0], adaptive(spec), 60, 4)
        second, _ = episode(agents[1], adaptive(spec, changed), 60, 4)
        assert np.array_equal(first, second) == same


def touched(R, m):
    """The nodes 1..m of the tree that hold leaf R; node s holds (s - lowbit(s), s]."""
    return [s for s in range(1, m + 1) if s - (s & -s) < R <= s]


@pytest.mark.parametrize("noise", ["laplace", "k-norm"])
def test_loss_of_shifted_noise_is_at_most_epsilon(noise):
    """Oracle for the ledger. Change one loss, take the movement of its estimate off every node
    that holds it: all points stay the same, and the densities of the two noises differ by a factor
    of at most e^epsilon. Noise that is opposite to the movement attains it, at leaf 1."""
    T, changed = 130, 5  # b = 12, K = 11, m = 9, h = 4
    config = PrivateBandit(noise=noise, epsilon=0.8)
    spec = linear(T, Ball(3))
    plan = config.plan(spec)
    m, order = plan.leaves, 1 if noise == "laplace" else 2
    scale = plan.noise.multiplier(plan.estimates, m) * plan.estimates.sensitivity
    scale *= sqrt(3) if noise == "laplace" else 1
    assert (plan.batch, m) == (12, 9)

    def extreme(t, x, sign=1):
        return (1.0 if t == changed else np.sin(t)) * sign * np.ones(len(x))

    def play(nodes, sign):
        agent = config.make(spec, Streams([8]))
        agent.run._sums._noise = Tree().of(script(nodes), stddev=1.0)
        return episode(agent, lambda t, x: extreme(t, x, sign if t == changed else 1), T)

    rng = np.random.default_rng(9)
    losses = []
    for aligned in (False, False, False, True):
        nodes = 3 * scale * rng.standard_normal((m, 1, 3))
        u = play(nodes, 1)[1][changed, 0]
        movement = 3 / plan.zeta * -2.0 * u  # of the estimate, from value 1 to -1
        held = [s - 1 for s in touched(1, m)]
        if aligned:
            nodes[held] = -movement
        shifted = nodes.copy()
        shifted[held] -= movement
        one, two = play(nodes, 1)[0], play(shifted, -1)[0]
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)
        before, after = (np.linalg.norm(z, ord=order, axis=-1).sum() for z in (nodes, shifted))
        losses.append((after - before) / scale)
    assert max(np.abs(losses)) <= 0.8 + 1e-12
    whole = len(held) * np.linalg.norm(movement, ord=order) / scale
    assert losses[-1] == pytest.approx(whole, abs=1e-12)
    if noise == "k-norm":  # in l_1 only a movement along a diagonal is as long as can be
        assert whole == pytest.approx(0.8, abs=1e-11)


def test_smaller_noises_pass_the_bound():
    """Negative controls, by hand for m = 98: half the range (L for 2 L) costs 2 epsilon, natural
    logarithms for levels 7 / ln 98; K leaves for K - 2 are only wasteful once they add a level."""
    levels = len(touched(1, 98))
    assert levels == (98).bit_length() == max(len(touched(R, 98)) for R in range(1, 99))
    plan = PrivateBandit(noise="k-norm").plan(linear(10_000))
    W_k_zeta = 2 * 5 / plan.zeta
    c = plan.noise.multiplier(plan.estimates, 98) * plan.estimates.sensitivity
    assert levels * W_k_zeta / c == pytest.approx(1, abs=1e-11)
    assert levels * W_k_zeta / (c / 2) == pytest.approx(2)
    assert levels * W_k_zeta / (c * log(98) / 7) > 1.5
    wasteful = plan.noise.multiplier(plan.estimates, 129)
    assert wasteful > plan.noise.multiplier(plan.estimates, 127)


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
