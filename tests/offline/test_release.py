"""One private number of a log: sensitivity, noise, intervals, clips; and what may not be asked."""

from itertools import combinations
from math import inf

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import LinUCB
from dpbandit.base.random_streams import Streams
from dpbandit.offline import Logged, LoggedPrices, release
from dpbandit.offline.private_values import TriangleSums
from dpbandit.privacy.mechanism import witnessed
from dpbandit.specs.protocols import ContextualSpec, PriceSpec
from tests.each import each

N = 400


def log_of(seed=0, n=N, **changed):
    """Two arms, the second drawn with probability .1; rewards in [2, 4]; the policy is arm 1."""
    rng = np.random.default_rng(seed)
    p = np.tile([0.9, 0.1], (n, 1))
    action = 1 * (rng.random(n) < 0.1)
    reward = 2 + 2.0 * (rng.random(n) < np.where(action, 0.6, 0.3))
    rows = {
        "spec": ContextualSpec(n_actions=2, dim=1, horizon=n, reward_low=2.0, reward_high=4.0),
        "context": np.ones((n, 1)),
        "action": action,
        "reward": reward,
        "propensity": p[np.arange(n), action],
        "lowest": 0.1,
    }
    return Logged(**rows | changed)


POLICY = [0.0, 1.0]
EVEN = np.arange(N) % 2
FAIR = {"propensity": 0.5, "lowest": 0.5, "action": EVEN}
LAW = {"propensity": 0.5, "probabilities": np.full((N, 2), 0.5), "lowest": None}


def test_a_row_is_a_point_of_a_triangle():
    """Its corners, NaNs and rows far outside: in l_1 no two are further apart than M / n, and some
    are. A factor forgotten in a sum, or a clip, shows."""
    sums = TriangleSums(5, 3.0, 1.0, Streams([0]))
    rows = [(0, 0), (3, 0), (3, 1), (1e9, 7), (np.nan, 1), (2, np.inf), (-4, 1), (1.5, 0.5)]
    found = [sums.query(np.array([[w]]), np.array([[r]])) for w, r in rows]
    apart = [np.abs(a - b).sum() for a, b in combinations(found, 2)]
    assert max(apart) == pytest.approx(sums.sensitivity) == 3 / 5
    assert sums.scale == sums.sensitivity / 1.0


def test_sums_are_as_noisy_as_they_pay_for():
    """Statistical: mean size of 8,000 Laplace variables, standard error 1.1 % of it; false alarm
    6e-7, a fifth less is 17 errors (asserted)."""
    sums = TriangleSums(10, 3.0, 0.5, Streams(range(4000)))
    nothing = np.zeros((4000, 10))
    sizes = np.abs(sums(nothing, nothing)) / (sums.sensitivity / sums.spend.pure)
    error = sizes.std() / 8000**0.5
    assert abs(sizes.mean() - 1) < 5 * error < 0.1


@pytest.mark.parametrize("clip", [None, 4.0, "private"])
def test_what_is_certified(clip):
    """Pure epsilon, in all; the noise is as large as it says (its spend is computed from it)."""
    found = release(POLICY, log_of(), epsilon=2.0, clip=clip, seed=1)
    assert found.certificate.epsilon == pytest.approx(2.0)
    assert "replace one row of the log" in found.certificate.notion
    share = 0.8 if clip == "private" else 1.0
    assert found.scale == pytest.approx(found.clip / (N * 2.0 * share))
    assert found.clip == 10.0 if clip is None else found.clip in (4.0, 8.0, 16.0, 32.0)
    exact = release(POLICY, log_of(), epsilon=inf, clip=clip)
    assert (exact.scale, exact.clip) == (0, {None: 10.0, 4.0: 4.0, "private": 16.0}[clip])


def test_values_and_intervals_are_right():
    """Statistical, 300 logs at epsilon 1: the value is unbiased within 4 standard errors (.005 of
    the range; a factor 1.05 on rewards shows), the interval holds in 95 % or more (3 errors)."""
    truth = 2 + 2 * 0.6
    found = [release(POLICY, log_of(i), epsilon=1.0, seed=i) for i in range(300)]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / 300**0.5 < 0.07
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert held > 0.95 - 3 * (0.05 * 0.95 / 300) ** 0.5
    noise = [release(POLICY, log_of(), epsilon=1.0, seed=i).low for i in range(40)]
    assert len(set(noise)) == 40
    exact = release(POLICY, log_of(), epsilon=inf, clip=5.0)
    assert exact.value == release(POLICY, log_of(), epsilon=inf, clip=5.0, seed=9).value


class Says:
    """A policy of one's own."""

    def __init__(self, probabilities):
        self.probabilities = probabilities


def test_rows_are_never_named():
    """A policy that is none, and contexts of nobody: still a number, and no sentence of a row."""
    wild = Says(lambda x: np.where(x > 0, [np.nan, 40.0], [0.0, 1.0]))
    log = log_of(context=np.arange(N)[:, None] == 7)
    assert 2 <= release(wild, log, epsilon=1.0, seed=0).value <= 4


def standardised(x):
    """What looks at all rows that it is shown, and so may change with any of them."""
    z = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-4)
    return np.column_stack([np.exp(-np.exp(z)), 1 - np.exp(-np.exp(z))])


def test_a_row_moves_its_own_weight_alone():
    """Another context in one row: both sums move by what is paid, the clip over n, at most, where
    such a policy, shown the whole log, moves them six times as far; what remembers is refused."""
    x = np.tile(np.random.default_rng(0).normal(size=(N, 1)) / 1e4, (2, 1, 1))
    x[1, 0] = 1.0
    sums, found = TriangleSums(N, 2.0, 1.0, Streams([0])), []
    whole = [sums.query(2 * standardised(one)[None, :, 1], np.ones((1, N))) for one in x]
    with witnessed(lambda mechanism, datum, _: found.append(mechanism.query(*datum))):
        for one in x:
            log = log_of(context=one, reward=np.full(N, 4.0), **FAIR)
            release(Says(standardised), log, epsilon=1.0, clip=2.0, seed=0)
    moved, too_far = (np.abs(a - b).sum() / sums.sensitivity for a, b in (found, whole))
    assert moved <= 1 < 6 < too_far
    seen = []

    def remembers(context):
        seen.append(context)
        return standardised(np.concatenate(seen))[-1:]

    def latches(context):
        seen.extend([1] if context[0, 0] == x[1, 7, 0] else [])
        return np.array([[0.5, 0.5], [0.0, 1.0]])[[min(1, len(seen))]]

    for policy in (remembers, latches):
        seen.clear()
        with pytest.raises(InputError, match="to remember nothing"):
            release(Says(policy), log, epsilon=1.0)

    def peeks(context):  # a row may be part of a table, which must not be in sight
        assert context.base is None or context.base.size == context.size
        return np.full((1, 2), 0.5)

    release(Says(peeks), log, epsilon=1.0)


@each(
    ("asked", "words"),
    [
        (lambda: release(POLICY, log_of(), epsilon=0.0), "epsilon=0"),
        (lambda: release(POLICY, log_of(), epsilon=1.0, clip="auto"), "clip='auto'"),
        (lambda: release(POLICY, log_of(), epsilon=1.0, clip=-1), "clip=-1"),
        (lambda: release(POLICY, log_of(lowest=None), epsilon=1.0), "somebody's data"),
        (lambda: release(POLICY, log_of(**LAW, action=EVEN), epsilon=1.0), "somebody's data"),
        (lambda: release(LinUCB(), log_of(), epsilon=1.0), "learner"),
        (lambda: release(POLICY[:1], log_of(), epsilon=1.0), "2 probabilities"),
        (lambda: release(np.tile(POLICY, (N, 1)), log_of(), epsilon=1.0), "made of others"),
        (lambda: release(Says(lambda x: [[1.0]]), log_of(), epsilon=1.0), "shape"),
        (lambda: release(POLICY, log_of(), epsilon=1.0, seed=-1), "seed=-1"),
        (
            lambda: release(
                POLICY,
                LoggedPrices(
                    spec=PriceSpec(dim=1, low=1, high=2, horizon=1),
                    context=np.ones((1, 1)),
                    price=[1.5],
                    reward=[0.5],
                    density=[1.0],
                ),
                epsilon=1.0,
            ),
            "rows of arms",
        ),
    ],
)
def test_mistakes_get_one_sentence(asked, words):
    with pytest.raises(InputError, match=words):
        asked()
