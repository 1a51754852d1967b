"""Private selection: exact laws, brute-force neighbours, OpenDP as an oracle, the price."""

from dataclasses import replace
from itertools import permutations
from math import comb, exp, inf

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from scipy.stats import chi2, kstest, laplace

from dpbandit.base import InputError, Streams
from dpbandit.privacy import BoundedRangeSpend, BudgetExceededError, Ledger, OneShotTopK, PureSpend
from dpbandit.privacy.choices import (
    CumulativeLosses,
    EpochSelection,
    ExponentialMechanism,
    GivenScores,
    NoisyTotal,
    RemainingTopK,
    ReportNoisyMax,
)
from dpbandit.privacy.loss_distributions import Composition
from tests.each import each, refused

SCORES = np.array([0.0, 0.5, 1.5, 3.0])
N, EPS, S = len(SCORES), 2.0, 1.5
R, USES = 200, 500


def make(kind, *, seeds=range(R), source=None, epsilon=EPS, uses=USES, **kwargs):
    source = source or GivenScores(N, sensitivity=S)
    return kind(source, Streams(seeds), "pick", epsilon=epsilon, uses=uses, **kwargs)


def p_value(counts, law):
    expected = counts.sum() * law
    return chi2.sf(np.sum((counts - expected) ** 2 / expected), len(law) - 1)


def noisy_max_law(scores, scale):
    """P(i wins) = int f(x - u_i) prod_j F(x - u_j) dx, Laplace; pieces end at every kink."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    pieces = np.arange(min(scores) - 40 * scale, max(scores) + 40 * scale, 0.5)
    x = (pieces[:, None] + (nodes + 1) / 4).ravel()
    z = x - np.array(scores)[:, None]
    density, below = laplace.pdf(z, scale=scale), laplace.cdf(z, scale=scale)
    others = [np.delete(below, i, axis=0).prod(axis=0) for i in range(len(z))]
    return (density * others) @ np.tile(weights / 4, len(pieces))


def top_two_law(scores):
    """Peeling: the best of all, then the best of the rest; pairs in the order of permutations."""
    p = softmax(scores)
    return np.array([p[i] * p[j] / (1 - p[i]) for i, j in permutations(range(N), 2)])


LAWS = {
    ExponentialMechanism: lambda epsilon: softmax(epsilon * SCORES / (2 * S)),
    OneShotTopK: lambda epsilon: top_two_law(epsilon * SCORES / (2 * S)),
    ReportNoisyMax: lambda epsilon: noisy_max_law(SCORES, 2 * S / epsilon),
}


@pytest.mark.parametrize("kind", LAWS)
def test_law(kind):
    """Statistical: 100,000 selections; false alarm 1e-6; an epsilon 5 % off is caught
    (asserted)."""
    two = kind is OneShotTopK
    mechanism = make(kind, **({"k": 2} if two else {}))
    chosen = np.array([mechanism(np.tile(SCORES, (R, 1))) for _ in range(USES)])
    if two:
        outcome = np.full((N, N), -1)
        for code, pair in enumerate(permutations(range(N), 2)):
            outcome[pair] = code
        chosen = outcome[chosen[..., 0], chosen[..., 1]]
    counts = np.bincount(chosen.ravel(), minlength=N)
    for factor in (1, 1.05, 1 / 1.05):
        assert (p_value(counts, LAWS[kind](EPS * factor)) > 1e-6) == (factor == 1)


def test_without_noise_and_without_overflow():
    """At epsilon = inf the argmax, ties to the lowest index; -inf is never chosen, whatever the
    noise."""
    scores = np.tile([1.0, 3.0, 2.0, 3.0, 0.0], (R, 1))
    large = np.tile([1e6, -1e6, 1e6 - 1, -inf], (R, 1))
    for kind in (ExponentialMechanism, ReportNoisyMax):
        best = make(kind, source=GivenScores(5), epsilon=inf, uses=1)
        assert (best(scores) == 1).all()
        assert best.spend.pure == best.spend.rho == Ledger((best.spend,)).epsilon(1e-3) == inf
        for epsilon, seen in ((1e-9, {0, 1, 2}), (1e3, {0}), (inf, {0})):
            mechanism = make(kind, source=GivenScores(4), epsilon=epsilon, uses=50)
            assert set(np.unique([mechanism(large) for _ in range(50)])) == seen
    top = make(OneShotTopK, source=GivenScores(5), epsilon=inf, uses=1, k=4)
    assert (top(scores) == [1, 3, 2, 0]).all()


def test_cumulative_losses():
    """The score is minus the exact sum of clipped losses, level below the floor."""
    source = CumulativeLosses(3, floor=2.0)
    best = make(ExponentialMechanism, source=source, epsilon=inf, uses=30)
    losses = np.random.default_rng(0).choice([0.2, 0.9, 5.0, -5.0, np.nan, inf], size=(30, R, 3))
    total = np.zeros((R, 3))
    for loss in losses:
        total += np.where(np.isfinite(loss), loss, 0.0).clip(0, 1)
        np.testing.assert_array_equal(best(loss), np.maximum(total, 2).argmin(axis=1))
    assert np.ptp(best.query(losses[0])) <= best.sensitivity == 1.0
    assert CumulativeLosses(3, low=-1.0, high=2.0).sensitivity == 3.0


def test_draws_are_numbered_whoever_is_due():
    """The j-th selection of a replica is the same whenever it is due and beside whomever."""
    plain = make(OneShotTopK, seeds=range(5), k=2, uses=6)
    scores = np.random.default_rng(1).random((6, 5, N))
    expected = np.array([plain(x) for x in scores])
    late = make(OneShotTopK, seeds=range(5), k=2, uses=60, draws=6)
    drawn, rng = np.zeros(5, dtype=int), np.random.default_rng(2)
    for _ in range(60):
        drawing = (rng.random(5) < 0.3) & (drawn < 6)
        j = np.minimum(drawn, 5)
        chosen = late(scores[j, np.arange(5)], drawing)
        assert (chosen[~drawing] == -1).all()
        np.testing.assert_array_equal(chosen[drawing], expected[j, np.arange(5)][drawing])
        drawn += drawing
    assert (drawn == 6).all()
    assert len(late._noises) == 0
    for part in ([0, 1], [2], [4, 3]):
        alone = make(OneShotTopK, seeds=part, k=2, uses=6)
        np.testing.assert_array_equal([alone(x[part]) for x in scores], expected[:, part])


def test_budgets():
    """Calls beyond `uses`, selections beyond `draws`, raise; selection j uses epsilon_j."""
    one = make(ExponentialMechanism, uses=1)
    one(np.zeros((R, N)))
    refused("call 2 exceeds uses=1", one, np.zeros((R, N)))
    few = make(ExponentialMechanism, seeds=[0, 1], uses=9, draws=1)
    assert few.spend.pure == EPS
    few(np.zeros((2, N)), np.array([True, False]))
    few(np.zeros((2, N)), np.array([False, True]))
    with pytest.raises(BudgetExceededError, match="selection 2 of a replica exceeds draws=1"):
        few(np.zeros((2, N)), np.array([False, True]))
    assert make(ReportNoisyMax, uses=1).spend.pure == EPS
    assert make(OneShotTopK, k=3, uses=2).spend.groups == ((EPS, 6),)
    schedule = make(ExponentialMechanism, epsilon=[1.0, 2.0, 1.0], uses=3).spend
    assert schedule.groups == ((1.0, 2), (2.0, 1))
    assert (schedule.pure, schedule.rho, schedule.mu) == (4.0, 6 / 8, None)
    mechanism = make(ExponentialMechanism, epsilon=[1e-9, inf], uses=2)
    scores = np.tile(SCORES, (R, 1))
    assert len(np.unique(mechanism(scores))) == N
    assert (mechanism(scores) == N - 1).all()


@each(
    ("kind", "arguments", "message"),
    [
        (ExponentialMechanism, {"epsilon": 0.0}, "epsilon=0.0"),
        (ExponentialMechanism, {"epsilon": [1.0, -1.0], "uses": 2}, "epsilon=-1.0"),
        (ExponentialMechanism, {"epsilon": [1.0, 1.0], "uses": 3}, "Expected 2 epsilons to be one"),
        (ExponentialMechanism, {"source": GivenScores(3, sensitivity=0.0)}, "sensitivity=0.0"),
        (ExponentialMechanism, {"source": CumulativeLosses(3, low=1.0)}, "sensitivity=0.0"),
        (ExponentialMechanism, {"uses": -1}, "uses=-1"),
        (OneShotTopK, {"k": 5}, "k=5"),
    ],
)
def test_bad_input(kind, arguments, message):
    refused(message, make, kind, **arguments)
    refused(r"shape \(1, 4\) to be \(200, 4\)", make(ExponentialMechanism), SCORES[None])


def masses(p, k):
    """Return the law of the count of the first of two outcomes in k draws."""
    return np.array([comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(k + 1)])


def randomised_response(epsilon, k, x):
    """delta(x) of k times randomised response, exactly: i times +epsilon."""
    losses = (2 * np.arange(k + 1) - k) * epsilon
    return masses(1 / (1 + exp(-epsilon)), k) @ np.maximum(0.0, -np.expm1(x - losses))


def two_points(epsilon, t, k, x):
    """delta(x) of k times the pair with losses t and t - epsilon, exactly."""
    losses = np.arange(k + 1) * epsilon + k * (t - epsilon)
    p = (exp(epsilon) - exp(t)) / (exp(epsilon) - 1)
    return masses(p, k) @ np.maximum(0.0, -np.expm1(x - losses))


def test_composition():
    """Oracle: randomised response in closed form; of bounded range, any pair on two points, the
    largest of them at k = 1."""
    for k in (1, 2, 10, 100):
        spend = PureSpend.of("k questions", [0.3] * k)
        for x in (0.0, 0.2, 0.7, 1.9, 0.3 * k):
            exact = randomised_response(0.3, k, x)
            assert exact - 1e-16 <= spend.delta(x) <= exact * 1.001 + 1e-13
            assert exact - 1e-16 <= Composition(spend.losses(0.07)).delta(x)
    epsilon = 0.4
    for k in (1, 3, 30):
        spend = BoundedRangeSpend.of("k selections", [epsilon] * k)
        for x in (0.0, 0.1, 0.3, 1.0):
            largest = max(two_points(epsilon, t, k, x) for t in np.linspace(0, epsilon, 401))
            assert largest - 1e-13 <= spend.delta(x) <= (largest * 1.001 if k == 1 else 1) + 1e-13
            assert spend.delta(x) <= PureSpend.of("", [epsilon] * k).delta(x)
        assert spend.delta(0.4 * k) == 0


def test_many_different_epsilons():
    """Golden: basic 19.85, zCDP 1.110, PLD 0.983 to 0.5 %; bounded range costs half."""
    epsilons = 0.1 / np.sqrt(np.arange(1, 10_001))
    spend, selections = PureSpend.of("", epsilons), BoundedRangeSpend.of("", epsilons)
    assert spend.pure == pytest.approx(19.85, abs=0.005)
    assert spend.rho == pytest.approx(4 * selections.rho) == pytest.approx(0.04894, rel=1e-3)
    assert len(spend.groups) <= 512
    assert sum(count for _, count in spend.groups) == 10_000
    assert 0.978 < Ledger((spend,)).epsilon(1e-4) < 0.983 * 1.005
    every = Ledger((selections,)).accountants(1e-4)
    assert 0.52 < every["PLD"] < 0.54
    assert Ledger((selections,)).epsilon(1e-4) == pytest.approx(every["zCDP (CKS)"], rel=1e-4)
    assert every["zCDP (CKS)"] < every["PLD"]  # the worst loss of each cannot be had every time


@pytest.mark.parametrize("kind", [PureSpend, BoundedRangeSpend])
def test_extreme_prices(kind):
    """Nothing, infinity, overflow; grouping of many rounds up by a cell; what was added up wrongly
    is refused."""
    nothing, everything = kind.of("", []), kind.of("", [1.0, inf])
    assert (nothing.pure, nothing.rho, nothing.mu, nothing.delta(0.0)) == (0, 0, 0, 0)
    assert (everything.pure, everything.delta(5.0), everything.delta(inf)) == (inf, 1, 0)
    assert nothing.losses(0.1) == ()
    assert Composition(everything.losses(0.1)).delta(9.0) == 1
    assert kind.of("", [1e3] * 3).delta(10.0) == pytest.approx(1)
    assert 0 < kind.of("", [1e-4] * 1000).delta(0.001) < 0.002
    epsilons = np.random.default_rng(0).uniform(0.01, 1.0, 3000)
    groups = kind.of("", epsilons).groups
    rounded = np.repeat([e for e, _ in groups], [count for _, count in groups])
    ratio = rounded / np.sort(epsilons)
    assert 1 <= ratio.min() <= ratio.max() < 100 ** (1 / 500)
    assert rounded.max() == epsilons.max()
    refused("step=0", kind.of("", [1.0]).losses, 0)
    for wrong in ([-1.0], [np.nan, 0.5]):
        refused("Expected an epsilon of", kind.of, "two", wrong)
    spend = kind.of("two", [0.25, 0.5])
    for doctored in ({"pure": 0.7}, {"rho": 0.0}, {"groups": ((0.25, 1),)}):
        refused("to be that of its groups", replace, spend, **doctored)
    with pytest.raises(InputError, match="to be that of its groups"):
        PureSpend("so coarse", 0.26, 0.04, ((1e-300, 512), (1.0, 1)))
    wide = PureSpend.of("over 200 decades", np.geomspace(1e-100, 1e100, 600))
    assert replace(wide) == wide
    assert wide.pure >= 1.9e100


THREE = 3
YES, NO, ZERO = np.ones(R, dtype=bool), np.zeros(R, dtype=bool), np.zeros(R)
LOSS = np.broadcast_to([1.0, 0.5, 0.0], (R, THREE))


def selection(*, epsilon=1.5, draws=1, uses=2000):
    return EpochSelection(THREE, Streams(range(R)), "pick", epsilon=epsilon, draws=draws, uses=uses)


def test_law_of_an_epoch():
    """Statistical: false alarm 1e-6; a floor or an epsilon 10 % off is caught (asserted)."""
    pick, counts = selection(), np.zeros(THREE)
    for _ in range(200):
        for t in range(4):
            last = YES if t == 3 else NO
            chosen = pick(LOSS, last, np.full(R, 3.0), last)
        counts += np.bincount(chosen, minlength=THREE)
    for epsilon, floor in ((1.5, 3.0), (1.65, 3.0), (1.5, 2.7)):
        law = softmax(-epsilon / 2 * np.maximum([4, 2, 0], floor))
        statistic = np.sum((counts - counts.sum() * law) ** 2 / (counts.sum() * law))
        assert (chi2.sf(statistic, THREE - 1) > 1e-6) == ((epsilon, floor) == (1.5, 3.0))


def test_an_epoch_leaves_no_trace():
    """Two pasts, then the end of an epoch: the same draws from there on, to the last bit."""
    found = []
    for past in (0.1, 0.7):
        pick = selection(epsilon=1e5, draws=9)  # so little noise that rounding could be seen
        for t in range(1000):
            pick(np.full((R, THREE), past), NO, ZERO, YES if t == 999 else NO)
        rng = np.random.default_rng(0)
        found.append([pick(rng.random((R, THREE)) * 1e-4, YES, ZERO, NO) for _ in range(9)])
    np.testing.assert_array_equal(*found)


def test_budget_of_epochs_and_play_among_the_best():
    """`draws` in each epoch, at the price of one; uniform (5 errors) among the best at epsilon =
    inf."""
    pick = selection(draws=2)
    assert pick.spend.pure == 3.0
    assert isinstance(pick.spend, BoundedRangeSpend)
    for _ in range(5):
        pick(LOSS, YES, ZERO, NO)
        pick(LOSS, YES, ZERO, YES)
    pick(LOSS, YES, ZERO, NO)
    pick(LOSS, YES, ZERO, NO)
    refused("selection 3 of a replica exceeds draws=2", pick, LOSS, YES, ZERO, NO)
    pick = selection(epsilon=inf, draws=100)
    loss = np.broadcast_to([7.0, np.nan, -inf], (R, THREE))
    counts = sum(np.bincount(pick(loss, YES, ZERO, NO), minlength=THREE) for _ in range(100))
    assert counts[0] == 0
    assert abs(counts[1] - counts[2]) < 5 * (100 * R) ** 0.5
    np.testing.assert_array_equal(pick.query(loss)[0], [1, 0, 0])
    assert pick.query(loss).strides[0] == 0


def test_noisy_total():
    """S(x) plus Laplace noise (Kolmogorov-Smirnov, false alarm 1e-6), -inf where not due."""
    total = NoisyTotal(THREE, Streams(range(R)), "total", scale=2.0, draws=60, uses=60)
    x, found = np.arange(R) % THREE, []
    for t in range(1, 61):
        drawing = np.arange(R) % 2 == t % 2
        answer = total(LOSS, x, drawing)
        assert (answer[~drawing] == -inf).all()
        found.append((answer - t * LOSS[0, x])[drawing])
    assert kstest(np.concatenate(found), laplace(scale=2).cdf, method="asymp").pvalue > 1e-6
    assert kstest(np.concatenate(found), laplace(scale=2.15).cdf, method="asymp").pvalue < 1e-2
    assert total.spend.pure == pytest.approx(30)
    exact = NoisyTotal(THREE, Streams([0]), "total", scale=0.0, draws=1, uses=1)
    assert exact.spend.pure == inf
    with pytest.raises(InputError, match=r"shape \(1, 2\) to be \(1, 3\)"):
        exact(np.zeros((1, 2)), np.zeros(1, dtype=int), YES[:1])
    for yes in (True, 1, -1):  # two of each replica, in their own time
        total = NoisyTotal(THREE, Streams([0, 1]), "total", scale=2.0, draws=2, uses=9)
        loss, x = LOSS[:2], np.zeros(2, dtype=int)
        for drawing in ([True, False], [True, False], [False, True]):
            assert ((total(loss, x, yes * np.array(drawing)) > -inf) == drawing).all()
        total(loss, x, yes * np.array([False, True]))
        with pytest.raises(BudgetExceededError, match="total 3 of a replica exceeds draws=2"):
            total(loss, x, yes * np.array([True, False]))


def test_an_instalment_is_peeling_among_those_who_are_left():
    """Statistical: Plackett-Luce multiplied out, false alarm 1e-6; twice the epsilon is caught
    (asserted)."""
    R, eta, losses = 4000, 1.2, np.array([0.0, 1.0, 3.0, 2.0, 2.5])
    top = RemainingTopK(5, Streams(range(R)), "t", k=2, epsilon=eta, draws=1, uses=4, floor=0.5)
    taken = np.zeros((R, 5), dtype=bool)
    taken[:, 1] = True
    no, everyone = np.zeros(R, dtype=bool), np.ones(R, dtype=bool)
    for _ in range(3):
        assert (top(np.tile(losses / 3, (R, 1)), no, taken) == -1).all()
    picks = top(np.zeros((R, 5)), everyone, taken)
    pairs = list(permutations((0, 2, 3, 4), 2))
    counts = [np.sum((picks == pair).all(axis=1)) for pair in pairs]
    assert sum(counts) == R
    for power, fits in ((0.5, True), (1.0, False)):
        weight = np.exp(-power * eta * np.maximum(losses, 0.5)) * (np.arange(5) != 1)
        total = weight.sum()
        chance = [weight[i] / total * weight[j] / (total - weight[i]) for i, j in pairs]
        assert (stats.chisquare(counts, R * np.array(chance)).pvalue > 1e-6) == fits


def test_everybody_once_then_nobody():
    """Edges: 5 in instalments of 2; as many picks as are paid for, also of those nobody takes
    away."""

    def top(candidates, seeds, draws, uses, **most):
        settings = {"k": 2, "epsilon": 0.3, "draws": draws, "uses": uses, **most}
        return RemainingTopK(candidates, Streams(seeds), "t", **settings)

    pick = top(5, [3], 3, 3, most=4)
    assert pick.spend.pure == pytest.approx(4 * 0.3)
    taken, drawing, rounds = np.eye(5, dtype=bool)[:1].copy(), np.array([True]), []
    for _ in range(3):
        picks = pick(np.full((1, 5), np.nan), drawing, taken)[0]
        taken[0, picks[picks >= 0]] = True
        rounds.append(picks)
    assert sorted(np.concatenate(rounds).tolist()) == [-1, -1, 1, 2, 3, 4]
    last = top(3, [3], 1, 1)(np.zeros((1, 3)), drawing, np.array([[True, True, False]]))
    np.testing.assert_array_equal(last, [[2, -1]])
    pick, nobody = top(5, [0, 1], 2, 3, most=3), np.zeros((2, 5), dtype=bool)
    assert (pick(np.zeros((2, 5)), np.array([True, True]), nobody) >= 0).all()
    one_left = nobody.copy()
    one_left[0, 1:] = True
    picks = pick(np.zeros((2, 5)), np.array([True, False]), one_left)
    np.testing.assert_array_equal(picks, [[0, -1], [-1, -1]])
    with pytest.raises(BudgetExceededError, match="pick 4 of a replica exceeds most=3"):
        pick(np.zeros((2, 5)), np.array([False, True]), nobody)
    refused("most=6", top, 5, [0], 2, 3, most=6)
