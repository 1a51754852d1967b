"""POCP and PQFTL: what contracts and what does not, exact leaders without noise, numbers."""

from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import POCP, PQFTL
from dpbandit.agents.convex.descent import VERIFIED, NoisyDescent
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Simplex
from dpbandit.losses import Linear, Quadratic, Ridge, Squared
from dpbandit.testing.checks import check_joint_dp
from tests.agents.convex.convex_runs import BALL, play, sphere, targets, told
from tests.losses.families import FAMILIES


def answers(T, R, d=3, seed=0):
    """Unit features, answers 0.7 a_1 and some noise: (T, R, d + 1)."""
    rng = np.random.default_rng(seed)
    a = sphere(rng, T, R, d)
    return np.concatenate([a, 0.7 * a[..., :1] + 0.2 * rng.uniform(-1, 1, (T, R, 1))], axis=-1)


# POCP


@pytest.mark.parametrize("loss", [Quadratic(BALL), Linear(BALL), Ridge(Ball(4))], ids=str)
def test_a_datum_moves_later_points_by_less_and_less(loss):
    """Property: without noise, points of two streams that differ in round 10 are at most 2 L / (mu
    (t + t0)) apart after round t, which opposite extreme data come near."""
    T, R, N = 60, 3, loss.domain.dim
    width = loss.datum_shape[0]
    data = loss.admissible(0.2 * np.random.default_rng(1).standard_normal((T, R, width)))
    other = data.copy()
    data[9], other[9] = (loss.admissible(s * 9 * np.ones((R, width))) for s in (1.0, -1.0))
    if width > N:
        other[9] = data[9] * ([1.0] * N + [-1.0])
    config = POCP(epsilon=inf)
    one, two = (play(config, loss, d).actions for d in (data, other))
    descent = config.make(told(loss, T), Streams([0])).descent
    apart = np.linalg.norm(one - two, axis=2)
    t = np.arange(1, T)[:, None]
    bound = 2 * loss.lipschitz / (descent._mu * (t + descent._t0))
    assert (apart[:10] == 0).all()
    assert (apart[1:] <= bound + 1e-12).all()
    assert (apart[10:12] > 0.2 * bound[9:11]).all()


def test_every_verified_family_is_tried():
    """What they declare, curvature, smoothness and length of gradients, is in tests/losses; hence a
    step 1 / (mu (t + t0)) contracts by (t + t0 - 1) / (t + t0)."""
    assert set(VERIFIED) <= {type(loss) for loss in FAMILIES}


def test_its_noise():
    """Golden: release t has stddev noise_multiplier 2 L / (H (t + t0)) around the point;
    statistical, 15,000 numbers, 6 errors (false alarm below 1e-6), 10 % off is caught. More rounds
    than it is calibrated for are refused."""
    descent = NoisyDescent(
        Quadratic(BALL), Streams(range(3000)), regulariser=0.0, noise_multiplier=0.01, horizon=9
    )
    for t in range(1, 6):
        stddev = 0.01 * 4 / (t + 1)
        ratio = np.square(descent(np.zeros((3000, 5))) / stddev).mean()
        assert abs(ratio - 1) < 6 * sqrt(2 / 15_000) < abs(1.1**2 * ratio - 1)
    assert descent.spend.mu == pytest.approx(sqrt(8) / 0.01)
    assert [descent(z) is None for z in targets(4, 3000)] == [False, False, False, True]
    with pytest.raises(InputError, match="exceeds uses=9"):
        descent(targets(1, 3000)[0])


def test_its_label():
    proof = certify(POCP(epsilon=1.0), told(Quadratic(BALL), 20), accountants=False)
    assert proof.ledger.brief == "conditional"
    assert "CONDITIONAL: every loss is as curved and as smooth as its family says" in proof.notion
    assert "(conditional)" in str(proof)


# PQFTL


def test_without_noise_it_is_ridge_regression():
    """Oracle: Proj(c0 + (t H I + sum a a')^-1 sum b a) in NumPy; H of `Ridge`, or chosen."""
    data = answers(60, 2)
    for loss, config, H in (
        (Ridge(Ball(3), curvature=0.3), PQFTL(epsilon=inf), 0.3),
        (Squared(Ball(3)), PQFTL(epsilon=inf, curvature=0.02), 0.02),
        (Ridge(Box(3, 0.3)), PQFTL(epsilon=inf), 1.0),
    ):
        found = play(config, loss, data).actions
        for t in range(1, 60):
            a, b = data[:t, :, :-1], data[:t, :, -1]
            form = np.einsum("tri,trj->rij", a, a) + t * H * np.eye(3)
            y = np.linalg.solve(form, np.einsum("tr,tri->ri", b, a)[..., None])[..., 0]
            np.testing.assert_allclose(found[t], loss.domain.project(y), rtol=0, atol=1e-12)


def test_on_a_simplex_it_is_ridge_regression_in_its_plane():
    """Features are seen in coordinates of the plane: what points along (1, .., 1) says nothing, and
    private it is there as well as on a ball, with extreme users, NaN among them."""
    loss = Ridge(Simplex(4), curvature=0.5)
    data = answers(30, 2, d=4)
    moved = data.copy()
    moved[..., :-1] += 0.01
    one, two = (play(PQFTL(epsilon=inf), loss, d).actions for d in (data, moved))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)
    assert loss.domain.contains(one.reshape(-1, 4)).all()
    for config in (PQFTL(), POCP()):
        _, first = check_joint_dp(config, told(Ridge(Simplex(3), bound=3.0), 24), replicas=30)
        assert np.isfinite(first.actions).all()


def test_scales_and_chosen_curvatures():
    """Golden: sensitivity sqrt(4.5) in units of a a' and b a / B, h = 10 nodes at T = 1000; the
    promise rests on clips alone, so nothing is conditional."""
    spec = told(Ridge(Ball(3), bound=2.0), 1000)
    for epsilon in (0.1, 1.0, 10.0):
        config = PQFTL(epsilon=epsilon)
        proof = certify(config, spec, accountants=False)
        assert proof.ledger.brief == ""
        sums = config.make(spec, Streams([0])).sums
        sums(np.zeros((1, 1, 3)), np.zeros(1, dtype=int), np.zeros(1))
        assert sums.stddev == pytest.approx(sqrt(4.5 * 10) / proof.mu)
    assert PQFTL(curvature=0.7).make(told(Squared(BALL), 9), Streams([0])).H == 0.7
    assert POCP(curvature=0.5).make(told(Linear(BALL), 9), Streams([0])).descent._H == 0.5
