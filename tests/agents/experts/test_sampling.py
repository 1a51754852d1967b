"""Draws from a ball: every exact sampler against quadrature, and the mechanism they stand
behind."""

import numpy as np
import pytest
from scipy import stats

from dpbandit.agents.experts import sampling
from dpbandit.agents.experts.ball import BallDraws
from dpbandit.agents.experts.calibration import draws_needed
from dpbandit.agents.experts.sampling import (
    AlongASlope,
    InCells,
    OnALine,
    UnitLosses,
    Wandering,
    exact_sampler,
    log_concave,
)
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Absolute, Kink, Linear, Logistic, Quadratic, Ramp
from dpbandit.privacy.mechanism import BudgetExceededError

FALSE_ALARM = 1e-6


def users(loss, t, seed=0):
    """Admissible data (t, 1, *datum_shape), with a common drift."""
    rng = np.random.default_rng(seed)
    return loss.admissible(rng.normal(0.3, 0.7, (t, 1, *loss.datum_shape)))


def fed(kind, loss, data):
    sampler = kind(loss, 1)
    for round in data:
        sampler.add(round)
    return sampler


def p_value(draws, grid, log_density):
    """Kolmogorov and Smirnov's, against a density on a fine grid."""
    height = np.exp(log_density - log_density.max())
    below = np.concatenate([[0.0], np.cumsum((height[1:] + height[:-1]) / 2)])
    return stats.kstest(np.interp(draws, grid, below / below[-1]), "uniform").pvalue


def test_adaptive_rejection_has_the_law():
    """Statistical: (1 - u^2)^3 exp(-20 max(u, -0.8)), 800 draws against quadrature; false alarm
    1e-6, an exponent of 40 is caught (asserted). And 1e7 steep, from 3 tangents."""

    def bell(u, k=20.0):
        return 3 * np.log1p(-u * u) - k * np.maximum(u, -0.8), -6 * u / (1 - u * u) - k * (u > -0.8)

    rng, grid = np.random.default_rng(1), np.linspace(-1, 1, 200_001)[1:-1]
    draws = [log_concave(bell, -1.0, 1.0, rng) for _ in range(800)]
    assert p_value(draws, grid, bell(grid)[0]) > FALSE_ALARM
    assert p_value(draws, grid, bell(grid, 40.0)[0]) < FALSE_ALARM
    narrow = [
        log_concave(lambda x: (-1e7 * abs(x - 0.3), -1e7 * np.sign(x - 0.3)), -1, 1, rng) - 0.3
        for _ in range(200)
    ]
    assert stats.kstest(1e7 * np.array(narrow), "laplace").pvalue > FALSE_ALARM


@pytest.mark.parametrize("family", [Ramp, Absolute])
def test_on_a_line_the_density_is_piecewise_exponential(family):
    """Oracle: the polygon is the sum of losses. Statistical: 1,000 draws against quadrature, false
    alarm 1e-6; twice the rate is caught, and so is no floor (asserted)."""
    loss = family(Ball(1, 1.5))
    data = users(loss, 30)
    sampler, rng, losses = fed(OnALine, loss, data), np.random.default_rng(2), UnitLosses(loss)
    x, S = sampler.polygon(0)
    grid = np.linspace(-1.5, 1.5, 20_001)
    total = losses.total(grid[:, None], data[:, 0])
    np.testing.assert_allclose(np.interp(grid, x, S), total, atol=1e-10)
    rate, floor = 6 / np.ptp(total), total.min() + 0.2 * np.ptp(total)
    draws = [sampler.draw(0, rate, floor, rng)[0] for _ in range(1000)]
    density = -rate * np.maximum(total, floor)
    assert p_value(draws, grid, density) > FALSE_ALARM
    assert p_value(draws, grid, 2 * density) < FALSE_ALARM
    assert p_value(draws, grid, -rate * total) < FALSE_ALARM


@pytest.mark.parametrize("N", [5])
def test_linear_losses_in_any_dimension(N):
    """Statistical: u = <x, g> / R |g| against (1 - u^2)^((N-1)/2) e^(-rate max(S, floor)), and the
    rest, (|x|^2 / R^2 - u^2) / (1 - u^2) to the power (N-1)/2, uniform; 1,500 draws, false alarm
    1e-6, the exponent of one dimension less is caught (asserted)."""
    loss, R = Linear(Ball(N, 1.5)), 1.5
    data = users(loss, 25)
    sampler, rng = fed(AlongASlope, loss, data), np.random.default_rng(3)
    slope = data.sum(axis=(0, 1))
    length = np.linalg.norm(slope)
    rate, floor = 0.8, 25 / 2 - length / 3
    draws = np.array([sampler.draw(0, rate, floor, rng) for _ in range(1500)])
    assert loss.domain.contains(draws).all()
    u, grid = draws @ slope / (R * length), np.linspace(-1, 1, 100_001)[1:-1]
    tilt = -rate * np.maximum((25 + length * grid) / 2, floor)
    for power, fits in (((N - 1) / 2, True), ((N - 2) / 2 - 0.5, False)):
        density = power * np.log1p(-grid * grid) + tilt
        assert (p_value(u, grid, density) > FALSE_ALARM) == fits
    across = ((np.square(draws / R).sum(axis=1) - u**2) / (1 - u**2)) ** ((N - 1) / 2)
    assert stats.kstest(across, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("family", [Logistic])
def test_rejection_in_cells(family):
    """Statistical: the first coordinate on a disc, 1,000 draws against quadrature over the second;
    false alarm 1e-6, twice the rate is caught (asserted)."""
    loss = family(Ball(2))
    data = users(loss, 20)
    sampler, rng = fed(InCells, loss, data), np.random.default_rng(4)
    side = np.linspace(-1, 1, 401)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    total = UnitLosses(loss).total(points.reshape(-1, 2), data[:, 0]).reshape(401, 401)
    inside, rate, floor = (points**2).sum(axis=-1) <= 1, 1.5, total.min() + 0.2
    draws = [sampler.draw(0, rate, floor, rng)[0] for _ in range(1000)]
    for factor, fits in ((1, True), (2, False)):
        weight = inside * np.exp(-factor * rate * (np.maximum(total, floor) - floor))
        density = np.log(np.maximum(weight.sum(axis=1), 1e-300))
        assert (p_value(draws, side, density) > FALSE_ALARM) == fits


def test_cells_find_a_narrow_peak():
    """Statistical: linear losses of 100 users, a peak at the edge of a disc, in cells and along the
    slope, 120 draws each; false alarm 1e-6."""
    loss = Linear(Ball(2))
    data, rng = users(loss, 100), np.random.default_rng(8)
    cells, slope = fed(InCells, loss, data), fed(AlongASlope, loss, data)
    one, two = (np.array([s.draw(0, 1.0, 0.0, rng) for _ in range(120)]) for s in (cells, slope))
    assert one.std(axis=0).max() < 0.3
    for part in range(2):
        assert stats.ks_2samp(one[:, part], two[:, part]).pvalue > FALSE_ALARM
    total = UnitLosses(loss).total
    assert stats.ks_2samp(total(one, data[:, 0]), total(two, data[:, 0])).pvalue > FALSE_ALARM


def test_the_walk_comes_close(monkeypatch):
    """Statistical: 150 walks of 25 steps against 1,000 exact draws, S of a linear loss on a disc;
    false alarm 1e-6; walks of one step are caught (asserted)."""
    loss = Linear(Ball(2))
    data = users(loss, 12)
    walk, exact = fed(Wandering, loss, data), fed(AlongASlope, loss, data)
    rng, total = np.random.default_rng(5), UnitLosses(loss).total
    right = total(np.array([exact.draw(0, 3.0, 0.0, rng) for _ in range(1000)]), data[:, 0])
    for steps, fits in ((25, True), (1, False)):
        monkeypatch.setattr(sampling, "_STEPS", steps)
        points = np.array([walk.draw(0, 3.0, 0.0, rng) for _ in range(150)])
        assert loss.domain.contains(points).all()
        assert (stats.ks_2samp(total(points, data[:, 0]), right).pvalue > FALSE_ALARM) == fits


def test_who_has_an_exact_sampler():
    for loss, kind in (
        (Ramp(Ball(1)), OnALine),
        (Linear(Ball(1)), OnALine),
        (Linear(Ball(7)), AlongASlope),
        (Logistic(Ball(1)), InCells),
        (Quadratic(Ball(3)), InCells),
        (Kink(Ball(4)), None),
    ):
        assert exact_sampler(loss) is kind


def mechanism(seeds, eta=0.5, floor=0.2, uses=4):
    loss = Ramp(Ball(1))
    sampler, streams = OnALine(loss, len(seeds)), Streams(seeds)
    return BallDraws(loss, sampler, streams, "d", eta=eta, floor=floor, uses=uses, draws=1)


def test_points_have_the_law_they_are_paid_for():
    """Statistical: first draws of 1,200 replicas after twelve users, against exp(-eta max(S, floor)
    / 2) by quadrature with the eta that is in the spend; false alarm 1e-6. Twice that and no floor
    are caught (asserted)."""
    R, floor, loss = 1200, 3.0, Ramp(Ball(1))
    mechanisms = mechanism(range(R), 3.0, floor, uses=12)
    data = np.array([[1.0, -0.7]] * 10 + [[-1.0, -0.5]] * 2)
    for t, z in enumerate(data, 1):
        points = mechanisms(np.tile(z, (R, 1)), np.full(R, t == 12))
    grid = np.linspace(-1, 1, 20_001)
    total = UnitLosses(loss).total(grid[:, None], loss.admissible(data))
    assert total.min() < floor < total.max()
    for eta, level, fits in (
        (mechanisms.spend.pure, floor, True),
        (2 * mechanisms.spend.pure, floor, False),
        (mechanisms.spend.pure, 0.0, False),
    ):
        density = -eta / 2 * np.maximum(total, level)
        assert (p_value(points[:, 0], grid, density) > FALSE_ALARM) == fits


def test_points_are_drawn_for_those_who_are_due():
    """Replicas do not know each other, nobody has more than K points, what is paid is K eta."""
    rng = np.random.default_rng(6)
    data = rng.normal(size=(4, 3, 2))
    due = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]]) > 0
    together, alone = mechanism(range(3)), mechanism([2])
    for z, now in zip(data, due, strict=True):
        points = together(z, now)
        np.testing.assert_array_equal(np.isnan(points[:, 0]), ~now)
        np.testing.assert_array_equal(points[2:], alone(z[2:], now[2:]))
    assert together.spend.pure == 0.5
    greedy, yes = mechanism(range(3)), np.ones(3, dtype=bool)
    greedy(data[0], yes)
    with pytest.raises(BudgetExceededError):
        greedy(data[0], yes)


def test_extreme_users_move_the_losses_by_one_at_most():
    made = mechanism([0])
    slopes, answers = (np.nan, -9.0, 0.0, 1.0), (np.inf, -1.0, 1.0, 1e300)
    extreme = [np.array([[a, b]]) for a in slopes for b in answers]
    seen = [made.query(z) for z in extreme]
    moves = [np.abs(one - two).max() for one in seen for two in seen]
    assert 0.7 < max(moves) <= 1


def test_draws_are_counted_for_as_many_experts_as_a_ball_has():
    """Edge: 10^60 of them; the numbers of draws end, and grow like log."""
    few, many = (draws_needed(10**n, 4.0, 1e-5) for n in (30, 60))
    assert 1.5 < many / few < 2
