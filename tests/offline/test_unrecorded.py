"""Logs without propensities: bounds against a linear programme and by hand, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import linprog

from dpbandit import InputError
from dpbandit.clients import record
from dpbandit.offline import Observed, assess
from dpbandit.offline.unrecorded import Propensities, Resamples, cells_of
from dpbandit.specs import ContextualSpec
from tests.each import each


def log_of(n, K=2, seed=0, **changed):
    """Rows whose arms and rewards in [0, 1] lean on the context, (n, 2)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.7, 0.7, (n, 2))
    arm = (x[:, [0]] + rng.gumbel(size=(n, K)) * [1, *[0.8] * (K - 1)]).argmax(axis=1)
    reward = (0.3 + 0.2 * x[:, 1] + 0.1 * arm + rng.uniform(-0.1, 0.1, n)).clip(0, 1)
    spec = ContextualSpec(n_actions=K, dim=2, horizon=1, reward_low=0.0)
    return Observed(**{"spec": spec, "context": x, "action": arm, "reward": reward} | changed)


def resamples(log, pi, q, counts, whole=None):
    return Resamples(log, cells_of(log, pi, q), Propensities(log), pi, counts, whole)


def programme(log, pi, q, gamma, sign):
    """The least of `sign` times the value, solved as a linear programme for every cell."""
    e, found = Propensities(log).of_logged(), 0.0
    for rows, share in cells_of(log, pi, q):
        p, r = pi[rows, log.action[rows]], log.reward[rows]
        c = p * (1 / e[rows] - 1)
        box = [(1 / gamma, gamma)] * len(rows)
        best = linprog(sign * c * r, A_eq=c[None], b_eq=[c.sum()], bounds=box)
        found += share.mean() * (best.fun + sign * (p @ r)) / (p / e[rows]).sum()
    return found


def test_bounds_are_those_of_a_linear_programme():
    """Oracle: HiGHS, over each row's weight, for a policy with coins, three arms, several cells."""
    log = log_of(1500, K=3)
    pi = np.random.default_rng(1).dirichlet(np.ones(3), 1500)
    q = np.column_stack([log.context[:, 1]] * 3)
    assert len(cells_of(log, pi, q)) > 3
    whole = resamples(log, pi, q, np.ones((1, 1500)))
    for gamma in (1.0, 1.3, 4.0):
        least, most = whole.ends(np.array([gamma]))
        assert least[0] == pytest.approx(programme(log, pi, q, gamma, 1), abs=1e-7)
        assert most[0] == pytest.approx(-programme(log, pi, q, gamma, -1), abs=1e-7)


def test_a_resample_is_bounded_by_duality():
    """Property: with R changing where it does for all rows nobody's best lies outside."""
    log = log_of(900)
    pi = np.tile([0.0, 1.0], (900, 1))
    rng = np.random.default_rng(2)
    counts = np.array([np.bincount(rng.integers(0, 900, 900), minlength=900) for _ in range(20)])
    whole = resamples(log, pi, 0 * pi, np.ones((1, 900)))
    bounded = resamples(log, pi, 0 * pi, counts, whole).ends(np.full(20, 2.0))
    for i in range(20):
        own = resamples(log, pi, 0 * pi, counts[[i]]).ends(np.full(1, 2.0))
        assert bounded[0][i] <= own[0][0] + 1e-12
        assert bounded[1][i] >= own[1][0] - 1e-12


def test_bounds_of_sales_by_hand():
    """Golden: a share e of rows shows the arm, which earns 1 in a share m of them. Of the others
    at most min(G m, 1 - (1 - m) / G) earn it, and at least max(m / G, 1 - G (1 - m)): R has mean 1
    and is G or 1/G. Here e = 1/2, and the logit's penalty moves it by less than 1e-4."""
    one = (np.arange(400) < 120) * 1.0  # m = .3
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, reward_low=0.0)
    rows = {"action": np.repeat([1, 0], 400), "reward": np.append(one, np.zeros(400))}
    log = Observed(spec=spec, context=np.ones((800, 1)), **rows)
    found = assess(np.tile([0.0, 1.0], (800, 1)), log, gammas=(1, 2, 5)).bounds
    assert found["most"].tolist() == pytest.approx([0.3, 0.45, (0.3 + 1 - 0.7 / 5) / 2], abs=1e-4)
    assert found["least"].tolist() == pytest.approx([0.3, (0.3 + 0.15) / 2, 0.18], abs=1e-4)


def test_the_conclusion_breaks_where_the_gain_reaches_nothing():
    """And intervals at one strength lie within those at a larger one."""
    log = log_of(1200, seed=3)
    pi = np.tile([0.0, 1.0], (1200, 1))
    breaks = assess(pi, log).breaks
    assert 1 < breaks < 20
    beside = assess(pi, log, gammas=(breaks * 0.999, breaks * 1.001)).bounds
    assert beside["gain_low"][0] > 0 > beside["gain_low"][1]
    assert beside["low"][1] < beside["low"][0] < beside["high"][0] < beside["high"][1]
    assert np.isnan(assess(pi[:, ::-1], log).breaks)


def test_logits_of_resamples_are_nearly_those_of_a_fit():
    """Oracle: a fit to the resampled rows, three arms. A step misses a tenth of what they moved."""
    log = log_of(1500, K=3, seed=4)
    drawn = np.random.default_rng(5).integers(0, 1500, 1500)
    model, again = Propensities(log), Propensities(log, drawn)
    step = model.resampled(np.bincount(drawn, minlength=1500)[None])[0]
    moved = abs(again.theta - model.theta).max()
    assert abs(again.theta - step).max() < 0.1 * moved
    assert abs(model.resampled(np.ones((1, 1500))) - model.theta).max() < 1e-4


FAR = np.where(np.linspace(-1, 1, 1000) > 0.5, 0, np.arange(1000) % 2)
"""Arm 1 is never played above .5."""


@each(
    ("changed", "settings", "sentence"),
    [
        ({"action": np.zeros(1000)}, {}, r"at least 30 rows .* arm 1, got 0"),
        ({"action": FAR}, {}, "in 200 rows, the first of them row 800, .* 100 nearest rows"),
        ({}, {"gammas": (0.9,)}, r"gammas=0.9 to be a number in \[1, 100\]"),
        ({}, {"gammas": ()}, "at least one strength"),
        ({}, {"level": 95}, "level=95"),
        ({}, {"folds": 1}, "folds=1"),
        ({"action": np.full(1000, 2)}, {}, "whole numbers below n_actions"),
    ],
)
def test_what_cannot_be_said_is_refused(changed, settings, sentence):
    x = np.linspace(-1, 1, 1000)[:, None]
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, reward_low=0.0)
    rows = {"action": np.arange(1000) % 2, "reward": np.full(1000, 0.5)} | changed
    with pytest.raises(InputError, match=sentence):
        assess(np.tile([0.0, 1.0], (1000, 1)), Observed(spec=spec, context=x, **rows), **settings)


def test_what_else_is_no_log_of_arms():
    """Lists, and contexts of each arm, to which no probability can be fitted."""
    with pytest.raises(InputError, match="to be Observed, rows of arms"):
        assess([[1.0]], record("ListRecommendation", horizon=3))
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, shared=True)
    log = Observed(spec=spec, context=np.ones((9, 2, 1)), action=[0] * 9, reward=[0] * 9)
    with pytest.raises(InputError, match="not one for each arm"):
        assess(np.tile([1.0, 0.0], (9, 1)), log)


def test_fitted_propensities_that_leave_features_off_balance_are_noted():
    """No logit on the cube follows an arm that is played in the middle."""
    x = np.random.default_rng(6).normal(size=(2000, 1)) / 4
    arm = (np.random.default_rng(7).random(2000) < np.exp(-9 * (x[:, 0] - 0.2) ** 2)).astype(int)
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, context_bound=9.0)
    log = Observed(spec=spec, context=np.abs(x) ** 3 * 9, action=arm, reward=0.5 * arm)
    said = assess(np.tile([0.0, 1.0], (2000, 1)), log)
    assert "off balance" in str(said)
