"""Users drawn as counts have the law of rounds, by enumeration on a tiny table and by samples."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import inf
from typing import Any

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agents import DPUCB, BestFixed, Uniform
from dpbandit.base import Streams, counted_as
from dpbandit.envs import ApplePricing, Arms, CameraPricing, OJPricing
from dpbandit.envs.contextual.problems import ResampledChoices, UserTable
from dpbandit.privacy import (
    FadingSum,
    Parallel,
    PrefixSum,
    SecondMoments,
    mechanism as mechanisms,
)
from dpbandit.privacy.mechanism import overheard, witnessed
from dpbandit.privacy.prefix_sums import Exact
from dpbandit.privacy.residuals import CentredResiduals, SaleResiduals
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.running import user_counts
from dpbandit.running.episode import BlockError
from dpbandit.running.loop import play
from dpbandit.running.user_counts import UserCounts, switches, switches_of
from dpbandit.specs import ContextualSpec
from tests.broken.blocks import FeedsTwice, PeeksAhead
from tests.each import each

CONTEXT = np.array([[1.0, 0.0], [0.6, 0.8]])
YES = np.array([[0.2, 0.7], [0.5, 0.4]])
MARGINS = np.array([1.0, 0.5])
WEIGHT = np.array([0.7, 0.3])


@dataclass(kw_only=True, eq=False)
class Tiny(ResampledChoices):
    """Two kinds of customers, of unequal weight, and two prices."""

    horizon: int = 400

    def __post_init__(self) -> None:
        self._known, self._chances, self._margins = CONTEXT, YES, MARGINS
        self.spec = ContextualSpec(n_actions=2, dim=2, horizon=self.horizon)

    @property
    def user_table(self) -> UserTable | None:
        return super().user_table._replace(weight=WEIGHT)

    def _rows_from(self, uniforms: Any) -> Any:
        return (uniforms >= WEIGHT[0]).astype(np.int64)


def fading(statistic, R, ends=(3,), noise=0.0):
    return FadingSum(
        statistic, Streams(range(R)), ends=ends, horizon=99, fade=0.5, noise_multiplier=noise
    )


MOMENTS = SecondMoments(n_actions=2, dim=2, reward_low=0.0, reward_high=1.0)


def chi_square(found, wanted, n):
    """Return the statistic's distance from its mean in standard deviations."""
    assert found.keys() <= wanted.keys()
    terms = [(found[key] - n * p) ** 2 / (n * p) for key, p in wanted.items()]
    return (sum(terms) - (len(terms) - 1)) / (2 * (len(terms) - 1)) ** 0.5


def test_exact_sums_have_the_enumerated_law():
    """Oracle: all 4^3 sequences of three users (row and answer) under a fixed policy, with their
    probabilities: released exact sum, regret, reward, switches and last action together, and 4,000
    draws. The chi-square statistic lies within 6 standard deviations (false alarm below 1e-4 at 20
    degrees of freedom or more); weights that are swapped lie beyond 50 (power)."""
    R, policy, best = 4_000, np.array([1, 0]), (MARGINS * YES).max(axis=1)
    wanted: Counter[Any] = Counter()
    for users in product(range(2), (0, 1), repeat=3):
        row, yes = np.array(users[::2]), np.array(users[1::2])
        a = policy[row]
        p = np.prod(WEIGHT[row] * np.where(yes, YES[row, a], 1 - YES[row, a]))
        reward = MARGINS[a] * yes
        sums = MOMENTS.total(CONTEXT[row][:, None], a[:, None], reward[:, None])[0]
        regret = (best[row] - MARGINS[a] * YES[row, a]).sum()
        switches = np.count_nonzero(np.diff(a, prepend=0))
        wanted[key_of(sums, regret, reward.sum(), switches, a[-1])] += p
    problem = Tiny()
    problem.reset(Streams(range(R)))

    def drawn():
        counts = UserCounts(problem, Streams(range(R)))
        counts.begin(np.repeat(policy[:, None], R, axis=1))
        before = np.zeros(R, np.int64)
        parts = [counts.draw(rounds, before) for rounds in (1, 2)]  # a mark within the batch
        regret, reward, switches = (sum(part[i] for part in parts) for i in range(3))
        records = counts.records()
        sums = fading(MOMENTS, R)
        with counted_as(records.counts):
            release = sums.several(records.context, records.action, records.reward)
        rows = zip(release, regret, reward, switches, before, strict=True)
        return Counter(key_of(*row) for row in rows)

    assert abs(chi_square(drawn(), wanted, R)) < 6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.running.test_user_counts.WEIGHT", WEIGHT[::-1])
        assert chi_square(drawn(), wanted, R) > 50


def key_of(sums, *numbers):
    return (*np.round(sums.ravel(), 6).tolist(), *np.round(numbers, 6).tolist())


@each(
    ("counts", "before"),
    [([2, 1, 2], 0), ([2, 1, 2], 1), ([0, 3, 2], 0), ([4, 0, 0], 1), ([1, 1, 3], 2)],
)
def test_switches_are_those_of_a_random_order(counts, before):
    """Oracle: all orders of the plays, switches and last arm together; 1,500 draws, 6 standard
    deviations of chi-square, with and without an order that is drawn. Power: chances that are a
    fifth too large or too small lie at 13."""
    plays = np.repeat(np.arange(3), counts).tolist()
    orders = list(permutations(plays))
    wanted = Counter(
        (int(np.count_nonzero(np.diff(order, prepend=before))), order[-1]) for order in orders
    )
    wanted = {key: count / len(orders) for key, count in wanted.items()}
    for draw in (switches_of, switches):
        g = np.random.default_rng(3)
        found = Counter(draw(np.array(counts), before, g) for _ in range(1500))
        if len(wanted) == 1:
            assert found.keys() == wanted.keys()
        else:
            assert abs(chi_square(found, wanted, 1500)) < 6


def rounds_of(statistic, rng, n, R):
    """Draw n rounds of a statistic, beyond its bounds too."""
    x, a = 2 * rng.standard_normal((n, R, 3)), rng.integers(0, 2, (n, R))
    r = rng.choice([-1.0, 0.3, 9.0, np.nan], (n, R))
    if isinstance(statistic, SaleResiduals):
        return rng.standard_normal((n, R, 3)), x, r
    if isinstance(statistic, CentredResiduals):
        theta = rng.standard_normal((n, R, 4))
        return theta, np.full((n, R), 0.5), 0 * x, x, a, r
    return x, a, r


@each(
    "statistic",
    [
        SecondMoments(n_actions=2, dim=3, reward_low=0.0, reward_high=1.0),
        SaleResiduals(dim=3, features=2),
        CentredResiduals(n_actions=2, dim=3),
    ],
)
def test_records_are_their_rounds(statistic):
    """A mechanism that gets records with counts, between rounds that come one by one, releases what
    it releases for all rounds, to rounding; data are clipped one by one. Watched, and without sums
    of records of its own, it calls itself for every round. A base class's sums are not inherited by
    a class with another step, and records beyond the budget are refused."""
    rng, R, calls = np.random.default_rng(1), 2, list[int]()
    count = calls.append
    data = rounds_of(statistic, rng, 8, R)
    counts = np.array([[3, 0], [0, 2], [1, 0], [0, 2]])
    parts = [data, tuple(array[:4] for array in data)]
    expanded = [
        np.stack([np.repeat(a[:4, r], counts[:, r], axis=0) for r in range(R)], 1) for a in data
    ]

    def prefix():
        spend = GaussianSpend(inf, "test")
        return PrefixSum(statistic, Exact(), spend, horizon=99, refresh_every=6)

    class Other(FadingSum):
        def query(self, *datum):
            return super().query(*datum)

    def other():
        return Other(
            statistic, Streams(range(R)), ends=(6, 12), horizon=99, fade=0.5, noise_multiplier=0.0
        )

    for make in (prefix, lambda: fading(statistic, R, (6, 12)), other):

        def released(as_records, mechanism, order):
            found = []
            for what in order:
                if what == "one":
                    found.append(mechanism(*(array[0] for array in data)))
                elif what == "two":
                    found.append(mechanism.several(*(array[:2] for array in data)))
                elif as_records:
                    with counted_as(counts):
                        found.append(mechanism.several(*parts[1]))
                else:
                    found.append(mechanism.several(*expanded))
            return [release for release in found if release is not None]

        for order in (["two", "batch", "one", "one", "batch"], ["batch", "two", "batch", "two"]):
            wanted = released(False, make(), order)
            assert len(wanted) == 2
            found = [released(True, make(), order)]
            with witnessed(lambda *call: count(1)):
                found.append(released(True, make(), order))
            with overheard(lambda *call: count(call[2])):
                found.append(released(True, make(), order))
            assert sum(calls) == 24  # twice 12 rounds
            calls.clear()
            for releases in found:
                for release, right in zip(releases, wanted, strict=True):
                    np.testing.assert_allclose(release, right, atol=1e-9)
        with counted_as(10 * counts), pytest.raises(InputError, match="40 calls at once exceed"):
            make().several(*parts[1])
    assert Other._release_counted is None


def law(agent, R, seed, *, counts):
    """Play 400 rounds, long batches as counts; return results, (R, numbers), and the log."""
    how = {"marks": np.array([130, 400]), "counts": counts}
    how["advance"] = lambda rounds: None  # with a callback, all replicas play together
    log = play(Tiny(), agent, [(seed, r) for r in range(R)], **how)
    totals = (log.regret, log.reward, log.switches)
    return np.concatenate([part.T for part in totals], axis=1), log


@pytest.fixture
def early(monkeypatch):
    """Draw counts in short runs and batches."""
    monkeypatch.setattr(user_counts, "MIN_COUNTED_HORIZON", 1)


def z_of(one, two):
    """Return the largest z of the means of columns and of their products, centred."""
    centre = np.concatenate([one, two]).mean(axis=0)

    def powers(x):
        x, (i, j) = x - centre, np.triu_indices(x.shape[1])
        return np.concatenate([x, x[:, i] * x[:, j]], axis=1)

    a, b = powers(one), powers(two)
    error = (a.var(axis=0) / len(a) + b.var(axis=0) / len(b)) ** 0.5
    return float((np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.maximum(error, 1e-9)).max())


@each("agent", [DPUCB(refresh_every=50), Uniform(), BestFixed().with_answer(np.ones(600, int))])
def test_counts_have_the_law_of_rounds(agent, early, monkeypatch):
    """Statistical: regret, reward and switches at two marks of 600 runs against 600 in rounds,
    their means and covariances: at most 27 z tests each at 5.5 (false alarm 1e-6). For DP-UCB, 20
    released sums too, means and covariances (z of 230 at 5.5: 1e-5). A lone replica equals itself
    in company. Power: with the counts of records in reverse order, sums lie beyond 20."""
    kept = []
    if isinstance(agent, DPUCB):
        usual = PrefixSum._release_sum
        monkeypatch.setattr(
            PrefixSum, "_release_sum", lambda self: kept.append(usual(self)) or kept[-1]
        )

    def sample(seed, counts):
        kept.clear()
        found, log = law(agent, 600, seed, counts=counts)
        return found, np.array([s[:, 0, :5] + 0 for s in kept[1:5]]), log

    one, sums, log = sample(0, True)
    two, others, _ = sample(1, False)
    assert z_of(one, two) < 5.5
    if kept:
        flat, beside = (s.swapaxes(0, 1).reshape(600, -1) for s in (sums, others))
        assert z_of(flat, beside) < 5.5
        alone = play(Tiny(), agent, [(0, 3)], marks=np.array([130, 400]))
        np.testing.assert_array_equal(alone.regret[:, 0], log.regret[:, 3])
        np.testing.assert_array_equal(alone.switches[:, 0], log.switches[:, 3])
        right = UserCounts.records
        monkeypatch.setattr(
            UserCounts, "records", lambda self: (c := right(self))._replace(counts=c.counts[::-1])
        )
        _, wrong, _ = sample(2, True)
        assert z_of(wrong.swapaxes(0, 1).reshape(600, -1), beside) > 20


def test_what_is_not_allowed_in_rounds_is_not_allowed_with_counts(early):
    """A random row of the table is played alone, and budgets count a record's rounds. Faults:
    customers who get each other's actions, and sums that are fed twice."""
    how = {"marks": np.array([400])}
    with pytest.raises(BlockError, match=r"PeeksAhead .* in a block of 2 rounds, and alone"):
        play(Tiny(), PeeksAhead(refresh_every=50, epsilon=inf), range(9), **how)
    with pytest.raises(InputError, match=r"exceed rounds_to_release=.*, or uses=400"):
        play(Tiny(), FeedsTwice(refresh_every=50), [0], **how)


class HearsTwice(DPUCB):
    """Feeds users 71 to 140 to two sums that should hear different ones, those before to none."""

    def start(self):
        super().start()
        self.other = DPUCB(refresh_every=70).make(self.spec, self.streams.child("other")).sums
        self.ledger = replace(self.ledger, spends=(Parallel((self.sums.spend, self.other.spend)),))

    def learn(self, context, action, feedback):
        if 70 < self.round <= 140:
            self.other.take_rounds(action.shape, context, action, feedback)
        if self.round > 70:
            super().learn(context, action, feedback)


def test_the_ledger_is_checked_though_marks_lie_inside_of_batches(early):
    """Batches end at multiples of 70, and no mark does. Without counts it is found, too."""
    for counts in (True, False):
        with pytest.raises(InputError, match="hear no user twice"):
            play(Tiny(), HearsTwice(refresh_every=70), [0], marks=np.array([400]), counts=counts)


class WithChances(DPUCB):
    """Agent with a property `chances`, by which it does not play."""

    @property
    def chances(self):
        return np.full((self.R, 2), 0.5)


def test_an_agent_that_names_chances_plays_what_it_decides(early):
    """Chances are taken from agents that learn nothing alone; else this one would stop learning."""
    how = {"marks": np.array([130, 400])}
    mine, plain = (play(Tiny(), c(refresh_every=50), [0, 1], **how) for c in (WithChances, DPUCB))
    np.testing.assert_array_equal(mine.regret, plain.regret)


@each("least", [2, 100])
def test_a_late_release_gives_one_warning(least, early, monkeypatch):
    """A batch across half of the run hides nothing: the warning comes when it has been learned, and
    at half where the batch is too short for counts."""
    monkeypatch.setattr(user_counts, "MIN_ROUNDS_PER_RECORD", least)
    match = "released nothing in the first half of 400 rounds"
    with pytest.warns(UserWarning, match=match) as found:
        play(Tiny(), DPUCB(refresh_every=300), [0], marks=np.array([400]))
    assert len(found) == 1


def test_an_agent_counts_users_and_not_records(early, monkeypatch):
    """After 400 rounds, all batches but the first as counts, its own number of rounds is 400."""
    made, make = [], DPUCB.make
    monkeypatch.setattr(DPUCB, "make", lambda *how: made.append(make(*how)) or made[-1])
    play(Tiny(), DPUCB(refresh_every=50), [0, 1], marks=np.array([400]))
    assert made[-1].round == 400


def test_where_counts_are_drawn(monkeypatch):
    """In more than 20,000 rounds, of tables without tides, masks, delays and returning people,
    whose data lie within the bounds, where logged rounds lie apart; `counts=False` plays rounds."""
    drawn, draw = [], UserCounts.draw
    monkeypatch.setattr(UserCounts, "draw", lambda *how: drawn.append(how[1]) or draw(*how))

    def rounds(problem, counts=True, marks=()):
        drawn.clear()
        play(problem, Uniform(), [0], marks=np.array([*marks, problem.spec.horizon]), counts=counts)
        return sum(drawn)

    assert rounds(Tiny(horizon=20_000)) == 0
    assert rounds(Tiny(horizon=20_001)) == 20_001 - 10
    assert rounds(Tiny(horizon=20_001), counts=False) == 0
    assert rounds(Tiny(horizon=20_001), marks=range(1, 101)) == 20_001 - 100
    for problem in (OJPricing, CameraPricing, ApplePricing):
        table = problem().user_table
        np.testing.assert_allclose(table.chance.sum(axis=-1), 1)
        assert table.chance.min() >= 0
        assert table.weight.sum() == pytest.approx(1)
    assert OJPricing(season=(0.5, 100)).user_table is None

    class Younger(OJPricing):
        def _rows_from(self, uniforms):
            return super()._rows_from(uniforms**2)

    assert Younger().user_table is None
    arms = Arms(law="table", table=np.eye(2), resample=True, horizon=20_001)
    assert user_counts.user_counts(arms, Streams([0])) is None  # that `table` is not of users
    monkeypatch.setattr(user_counts, "MAX_TABLE_VALUES", 7)
    assert rounds(Tiny(horizon=20_001)) == 0


def test_memory_of_records_is_bounded(monkeypatch):
    """Statistics of records in chunks add up to the same sum."""
    rng, counts = np.random.default_rng(5), np.array([[1, 2], [3, 0], [0, 2]])
    data = rounds_of(MOMENTS, rng, 3, 2)[1:]
    data = (rng.standard_normal((3, 2, 2)), *data)
    whole = mechanisms.counted_total(MOMENTS, counts, data)
    monkeypatch.setattr(mechanisms, "_CHUNK_ENTRIES", 1)
    np.testing.assert_allclose(mechanisms.counted_total(MOMENTS, counts, data), whole)
    monkeypatch.setattr(mechanisms, "_CHUNK_ROUNDS", 3)
    assert [len(part[0]) for part in mechanisms.each_round(counts, data)] == [3, 1]
