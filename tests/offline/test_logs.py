"""Logs of arms, lists and prices: what is refused, and in which row; bounds where nobody recorded
propensities."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from dpbandit import InputError
from dpbandit.agents import Uniform
from dpbandit.clients import record
from dpbandit.offline import Logged, LoggedLists, LoggedPrices, Observed, assess, replay
from dpbandit.offline.estimators import folds_of
from dpbandit.offline.unrecorded import Propensities, Resamples, _cross_fitted, cells_of
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.each import each, refused
from tests.slopes import comparing

SPEC = ContextualSpec(n_actions=3, dim=1, horizon=4)
PRICES = PriceSpec(dim=1, low=1.0, high=3.0, horizon=2, reward_high=3.0, reward_low=0.0)


def arms(**changed):
    """Arm 2 cannot be drawn in the first row."""
    law = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    rows = {"action": [0, 1, 2, 2], "reward": [0, 1, 1, 0], "propensity": [0.5, 0.3, 0.5, 0.5]}
    return Logged(
        **{"spec": SPEC, "context": np.ones((4, 1)), "probabilities": law} | rows | changed
    )


def lists(**changed):
    rows = {"items": [[2, 0], [1, 2]], "clicks": [[0, 1], [0, 0]], "prefix": [[0.5, 0.25]] * 2}
    return LoggedLists(**{"n_items": 3} | rows | changed)


def prices(**changed):
    rows = {"price": [1.5, 2.0], "reward": [1.5, 0.0], "density": [0.5, 0.5]}
    return LoggedPrices(**{"spec": PRICES, "context": np.ones((2, 1))} | rows | changed)


def test_an_arm_that_could_not_be_drawn_is_no_false_propensity_but_replay_needs_all():
    """1,000 rows whose law knows two of three arms: refused without the law, kept with it. Golden:
    by Bernstein an arm of two, each 1/2, counts within 189.7 + 12 of 1,000 twice."""
    n = 1000
    rows = {"action": np.arange(n) % 2, "reward": np.ones(n), "context": np.ones((n, 1))}
    refused("arm 0 was logged", arms, **rows, propensity=0.25, probabilities=None)
    with pytest.raises(InputError, match="arm 2 was logged as in 0 of n=1000"):
        arms(**rows, propensity=0.5, probabilities=None, lowest=0.1)
    log = arms(**rows, propensity=0.5, probabilities=np.tile([0.5, 0.5, 0.0], (n, 1)))
    refused("every arm could be drawn", replay, Uniform(), log)
    for count in (600, 601):
        two = {**rows, "action": np.arange(n) >= count, "propensity": 0.5, "lowest": None}
        make = partial(arms, **two, spec=TWO_ARMS, probabilities=None)
        assert make() if count == 600 else refused("arm 0 was logged as in 1202 of n=1000", make)


@each(
    ("make", "changed", "sentence"),
    [
        (arms, {"probabilities": np.full((4, 3), 0.5)}, "sum to 1, got another in row 0"),
        (arms, {"propensity": [0.5, 0.3, 0.5, 0.4]}, "entry of `probabilities`, .* in row 3"),
        (arms, {"propensity": [0.5, 0.3, 0.0, 0.4]}, r"propensities in \(0, 1\], .* in row 2"),
        (arms, {"propensity": np.ones(4), "probabilities": None}, "drawn at random"),
        (arms, {"propensity": [0.9] * 4, "probabilities": None}, "so say the least probability"),
        (arms, {"propensity": [1e-300] * 4, "probabilities": None}, "propensities in"),
        (arms, {"adaptive": "yes"}, "adaptive='yes'"),
        (arms, {"spec": PRICES}, r"spec=PriceSpec\(.* to be a ContextualSpec"),
        (prices, {"spec": None}, "spec=None to be a PriceSpec"),
        (lists, {"items": [[2, 0], [1, 1]]}, "different items in a list, .* in row 1"),
        (lists, {"items": [[2, 0], [1, 3]]}, "below n_items=3, .* in row 1"),
        (lists, {"items": [2, 0]}, r"shape \(n, m\)"),
        (lists, {"clicks": [[0, 1], [0, 2]]}, "0 or 1, .* in row 1"),
        (lists, {"prefix": [[0.5, 0.25], [0.5, 0.6]]}, "do not rise along a list, .* in row 1"),
        (lists, {"marginal": [[0.5, 0.25], [0.5, 0.0]]}, r"marginal .* \(0, 1\], .* in row 1"),
        (lists, {"marginal": [[0.5, 0.25], [0.4, 0.5]]}, "those of the prefix, .* in row 1"),
        (lists, {"context": [[1.0]]}, r"shape \(2, d\)"),
        (prices, {"density": [0.5, 0.0]}, r"densities > 0, up to 1e\+50, got another in row 1"),
        (prices, {"density": [0.5, 1e60]}, r"densities > 0, up to 1e\+50, got another in row 1"),
        (
            prices,
            {"spec": replace(PRICES, reward_high=1e300)},
            "high=1e\\+300, both at most 1e\\+50",
        ),
        (prices, {"price": [1.5, 4.0]}, "prices from 1 to 3, got another in row 1"),
        (prices, {"reward": [np.nan, 0]}, "finite rewards, got another in row 0"),
        (prices, {"reward": np.ma.masked_array([1, 0], [0, 1])}, "rewards to be an array of"),
        (prices, {"price": ["a", "b"]}, "prices to be an array of numbers"),
        (prices, {"price": [], "reward": []}, "at least one logged round"),
    ],
)
def test_mistakes(make, changed, sentence):
    assert make() is not None
    refused(sentence, make, **changed)


@each(("order", "kept"), [(1, [0.5, 0.5]), (2, [0.5**0.5] * 2), (np.inf, [1, 1])])
def test_contexts_are_clipped_by_the_norm_of_the_spec(order, kept):
    """A log keeps what lies within its bound, and scales down what does not, in that norm."""
    spec = {"dim": 2, "horizon": 2, "context_order": order, "most_outside": 1.0}
    told = {"context": [[1.0, 1], [3, 0]], "reward": [0, 0]}
    with pytest.warns(UserWarning, match="context_bound=1"):
        log = Observed(spec=ContextualSpec(n_actions=2, **spec), action=[0, 1], **told)
    np.testing.assert_allclose(log.context, [kept, [1, 0]])


@pytest.mark.parametrize("make", [arms, lists, prices])
def test_a_part_of_a_log_is_a_log_in_its_order(make):
    log = make(adaptive=True)
    part = log[1:2]
    assert (part.adaptive, part.reward.tolist()) == (True, log.reward[1:2].tolist())
    for wrong in (slice(None, None, -1), slice("a"), slice(0, 2, 0), 0, [True, False]):
        with pytest.raises(InputError, match="as a slice, such as"):
            log[wrong]
    if make is not arms:
        refused("to be Logged, rows of arms", replay, Uniform(), log)


PLAYED, CONSTANT = np.tile([0.0, 1.0], (1000, 1)), np.ones((800, 1))


TWO_ARMS = ContextualSpec(n_actions=2, dim=1, horizon=1, reward_low=0.0)


def observed_of(n, K=2, seed=0, **changed):
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
    """Oracle: HiGHS, over each row's weight, for a policy with coins, three arms, several cells.
    Resamples are bounded by duality: with R changing where it does for all nobody's best is
    outside."""
    log = observed_of(1500, K=3)
    pi = np.random.default_rng(1).dirichlet(np.ones(3), 1500)
    q = np.column_stack([log.context[:, 1]] * 3)
    assert len(cells_of(log, pi, q)) > 3
    whole = resamples(log, pi, q, np.ones((1, 1500)))
    for gamma in (1.0, 1.3, 4.0):
        least, most = whole.ends(np.array([gamma]))
        assert least[0] == pytest.approx(programme(log, pi, q, gamma, 1), abs=1e-7)
        assert most[0] == pytest.approx(-programme(log, pi, q, gamma, -1), abs=1e-7)
    log = observed_of(900)
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
    """Golden: a share 1/2 of rows shows the arm, which earns 1 in a share m; of the others at most
    min(G m, 1 - (1 - m) / G) earn it, at least max(m / G, 1 - G (1 - m)). The conclusion breaks
    where the gain reaches nothing; intervals of one strength lie within those of a larger."""
    one = (np.arange(400) < 120) * 1.0  # m = .3
    rows = {"action": np.repeat([1, 0], 400), "reward": np.append(one, np.zeros(400))}
    log = Observed(spec=TWO_ARMS, context=CONSTANT, **rows)
    found = assess(PLAYED[:800], log, gammas=(1, 2, 5)).bounds
    assert found["most"].tolist() == pytest.approx([0.3, 0.45, (0.3 + 1 - 0.7 / 5) / 2], abs=1e-4)
    assert found["least"].tolist() == pytest.approx([0.3, (0.3 + 0.15) / 2, 0.18], abs=1e-4)
    log = observed_of(1200, seed=3)
    pi = np.tile([0.0, 1.0], (1200, 1))
    breaks = assess(pi, log).breaks
    assert 1 < breaks < 20
    beside = assess(pi, log, gammas=(breaks * 0.999, breaks * 1.001)).bounds
    assert beside["gain_low"][0] > 0 > beside["gain_low"][1]
    for table, own in ((found, one.sum() / 800), (beside, log.reward.mean())):
        ordered = table[["low", "least", "most", "high"]].to_numpy()
        gains = table[["gain_low", "gain_high"]].to_numpy() + own
        assert (np.diff(ordered) >= 0).all()
        assert (gains[:, 0] < ordered[:, 1]).all()
        assert (gains[:, 1] > ordered[:, 2]).all()
    assert beside["low"][1] < beside["low"][0] < beside["high"][0] < beside["high"][1]
    assert np.isnan(assess(pi[:, ::-1], log).breaks)
    log = observed_of(300, seed=3)
    e = _cross_fitted(log, folds_of(300, 5, 0))
    for arm in (0, 1):
        overlap = assess(np.eye(2)[np.full(300, arm)], log, gammas=[1.0]).overlap
        weight = (log.action == arm) / e
        assert overlap["least"] == pytest.approx(e[log.action == arm].min())
        assert overlap["largest"] == pytest.approx(weight.max())
        assert overlap["ess"] == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    for few, noted in ((4, True), (6, False)):  # twice as many rows beside the commonest reward
        answers = np.repeat([1.0, 0.0, 0.5], [few, few, 400 - 2 * few])
        log = Observed(spec=TWO_ARMS, **rows | {"reward": np.tile(answers, 2)}, context=CONSTANT)
        assert any("Fewer than 10" in note for note in assess(PLAYED[:800], log).notes) == noted


def test_logits_of_resamples_and_what_fits_none(monkeypatch):
    """Oracle: a fit to the resampled rows, handed a slope that is that of central differences. A
    step misses a tenth of what they moved. Of two arms chances sum to 1 whichever a row shows,
    which its own fold has not seen. Lists and contexts of each arm have none; an arm that is
    played in the middle is off balance, and noted."""
    log, parts = observed_of(300), folds_of(300, 5, 0)
    own = _cross_fitted(log, parts)
    for row in range(0, 300, 100):
        action = np.where(np.arange(300) == row, 1 - log.action, log.action)
        other = _cross_fitted(replace(log, action=action), parts)
        assert own[row] + other[row] == pytest.approx(1)
        assert np.abs(other - own)[parts.part != parts.part[row]].min() > 0
    log, points = observed_of(1500, K=3, seed=4), []
    drawn = np.random.default_rng(5).integers(0, 1500, 1500)
    with monkeypatch.context() as during:
        during.setattr("dpbandit.offline.unrecorded.minimize", comparing(minimize, points))
        model, again = Propensities(log), Propensities(log, drawn)
    assert len(points) == 2
    step = model.resampled(np.bincount(drawn, minlength=1500)[None])[0]
    moved = abs(again.theta - model.theta).max()
    assert abs(again.theta - step).max() < 0.1 * moved
    assert abs(model.resampled(np.ones((1, 1500))) - model.theta).max() < 1e-4
    with pytest.raises(InputError, match="to be Observed, rows of arms"):
        assess([[1.0]], record("ListRecommendation", horizon=3))
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, shared=True)
    log = Observed(spec=spec, context=np.ones((9, 2, 1)), action=[0] * 9, reward=[0] * 9)
    refused("not one for each arm", assess, np.tile([1.0, 0.0], (9, 1)), log)
    x = np.random.default_rng(6).normal(size=(2000, 1)) / 4
    arm = (np.random.default_rng(7).random(2000) < np.exp(-9 * (x[:, 0] - 0.2) ** 2)).astype(int)
    spec = ContextualSpec(n_actions=2, dim=1, horizon=1, context_bound=9.0)
    log = Observed(spec=spec, context=np.abs(x) ** 3 * 9, action=arm, reward=0.5 * arm)
    said = assess(np.tile([0.0, 1.0], (2000, 1)), log)
    assert "off balance" in str(said)


FAR = np.where(np.linspace(-1, 1, 1000) > 0.5, 0, np.arange(1000) % 2)
"""Arm 1 is never played above .5."""


@each(
    ("changed", "settings", "sentence"),
    [
        ({"action": np.zeros(1000)}, {}, r"at least 30 rows .* arm 1, got 0"),
        ({"action": np.arange(1000) % 2}, {"policy": np.eye(2)[np.arange(1000) % 2 ^ 1]}, "got 0"),
        ({"action": FAR}, {}, "in 200 rows, the first of them row 800, .* 100 nearest rows"),
        ({}, {"gammas": (0.9,)}, r"gammas=0.9 to be a number in \[1, 100\]"),
        ({}, {"gammas": ()}, r"gammas=\(\) to be numbers"),
        ({}, {"gammas": [1.0, ["a"]]}, r"gammas=\[1.0, \['a'\]\] to be numbers"),
        ({}, {"level": 95}, "level=95"),
        ({}, {"folds": 1}, "folds=1"),
        ({"action": np.full(1000, 2)}, {}, "whole numbers below n_actions"),
    ],
)
def test_what_cannot_be_said_is_refused(changed, settings, sentence):
    x = np.linspace(-1, 1, 1000)[:, None]
    rows = {"action": np.arange(1000) % 2, "reward": np.full(1000, 0.5)} | changed
    with pytest.raises(InputError, match=sentence):
        assess(**{"policy": PLAYED, "log": Observed(spec=TWO_ARMS, context=x, **rows)} | settings)
