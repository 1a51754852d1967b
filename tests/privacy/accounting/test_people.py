"""Costs of sums for people who return: all pairs of patterns by brute force, golden tables."""

from copy import deepcopy
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import CONTEXTUAL, DPUCB, FADE, LISTS, Guard, PerPerson
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningUsers
from dpbandit.losses.click_models import PositionBased
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.certificate import ledger_as_dict, ledger_from_dict
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.factors import Independent
from dpbandit.privacy.fading import FadingSum, growing_batches
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import LedgerCheck, logged_calls, witnessed
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.notion import Visits
from dpbandit.privacy.people import fading_norm, toeplitz_norm, tree_norm
from dpbandit.privacy.person_sums import for_a_person, once_a_batch_norm
from dpbandit.privacy.prefix_sums import BLT, Banded, SquareRoot, Tree, coefficients
from dpbandit.privacy.residuals import SignedDirections
from dpbandit.privacy.spends import GaussianSpend, Repeated
from dpbandit.specs.people import ReturningSpec
from tests.each import each
from tests.harness import PEOPLE, PRICES, READERS, variants


def patterns(T, k, b):
    """All of at most k slots, b apart."""
    for n in range(k + 1):
        for found in combinations(range(T), n):
            if all(y - x >= b for x, y in pairwise(found)):
                yield list(found)


def brute(G, k, b):
    """sqrt of the largest sum of |G_st| over a pattern."""
    return sqrt(max(np.abs(G[np.ix_(p, p)]).sum() for p in patterns(len(G), k, b)))


def gram(C):
    return C.T @ C


def toeplitz(c):
    m = len(c)
    return np.array([[c[i - j] if i >= j else 0.0 for j in range(m)] for i in range(m)])


def fading(ends, fade):
    """Columns of slots, whitened: batch b moves release k >= b by fade^(k - b)."""
    batch = np.searchsorted(ends, np.arange(1, ends[-1] + 1))
    k = np.arange(len(ends))[:, None]
    return np.where(k >= batch, fade ** np.maximum(k - batch, 0.0), 0.0)


def tree(m):
    """Nodes (i 2^h, (i + 1) 2^h], i even, that are complete or begun by slot m."""
    nodes = []
    for h in range(m.bit_length()):
        for i in range(0, m // 2**h + 1, 2):
            row = np.zeros(m)
            row[i * 2**h : (i + 1) * 2**h] = 1
            nodes.append(row)
    return np.array(nodes)


CASES = [(k, b) for k in (1, 2, 3, 4) for b in (1, 2, 4)]


@each(("k", "b"), CASES)
def test_no_pattern_does_more(k, b):
    """Oracle: all patterns of 10 slots; a shift by one, or a level left out, shows."""
    c = coefficients(10)
    assert toeplitz_norm(c, k, b) == pytest.approx(brute(gram(toeplitz(c)), k, b), rel=1e-12)
    exact = brute(gram(tree(10)), k, b)
    assert exact <= tree_norm(10, k, b) * (1 + 1e-12)
    if b == 1:
        assert tree_norm(10, k, b) <= exact * 1.05
    for ends, fade in (((2, 5, 10), 0.7), ((1, 5, 10), 0.0), ((3, 6, 9), 0.5)):
        exact = brute(gram(fading(ends, fade)), k, b)
        rows = fading_norm(ends, fade, k, b)
        assert exact <= rows * (1 + 1e-9)
        assert rows <= 1.1 * exact


# k, b: tree (exact or a bound), square root, BLT, fading .7, fading 0
GOLDEN = {
    (1, 1): (3.7417, 1.9995, 1.9874, 1.4003, 1),
    (2, 1): (7.2801, 3.8365, 3.8067, 2.8006, 2),
    (2, 5000): (5.4772, 2.9829, 2.9551, 2.0076, 1.4142),
    (5, 1): (17.2916, 9.1501, 9.1010, 7.0014, 5),
    (5, 2000): (10.2470, 5.5303, 5.4696, 3.7635, 2.2361),
    (20, 1): (63.3561, 34.0444, 33.7397, 28.0056, 20),
    (20, 500): (30.0000, 17.4871, 17.2875, 13.4861, 5.6569),
    (100, 1): (278.7221, 154.3719, 153.3840, 140.0280, 100),
    (100, 100): (131.5295, 81.0886, 80.0367, 65.1348, 24.6374),
}


def test_the_table_of_an_independent_program():
    """T = 10,000, to all printed digits."""
    T = 10_000
    ends = growing_batches(T, first=100, growth=0.1)
    for (k, b), wanted in GOLDEN.items():
        toeplitz = [toeplitz_norm(c, k, b) for c in (coefficients(T), BLT().column(T))]
        found = [tree_norm(T, k, b), *toeplitz, *(fading_norm(ends, f, k, b) for f in (0.7, 0.0))]
        np.testing.assert_allclose(found, wanted, atol=6e-5, rtol=0, err_msg=f"{k}, {b}")
    for k, seven, none in ((2, 2.5820, 1.4142), (5, 5.4937, 2.2361), (20, 13.8363, 4.4721)):
        assert once_a_batch_norm(len(ends), 0.7, k) == pytest.approx(seven, abs=6e-5)
        assert once_a_batch_norm(len(ends), 0.0, k) == pytest.approx(none, abs=6e-5)
    assert once_a_batch_norm(len(ends), 0.7, len(ends)) == pytest.approx(15.3821, abs=6e-5)


@each(
    ("asked", "words"),
    [
        (lambda: toeplitz_norm(np.ones(3), 0, 1), "cap=0"),
        (lambda: toeplitz_norm(np.array([1.0, 2.0]), 1, 1), "falls"),
        (lambda: tree_norm(4, 1, 0), "separation=0"),
        (lambda: fading_norm((1, 2), inf, 1, 1), "fade=inf"),
        (lambda: Repeated(GaussianSpend(0.1, "a sum"), 6, 7.0), "factor=7"),
        (lambda: Repeated(GaussianSpend(0.1, "a sum"), 6, 0.0), "factor=0"),
    ],
)
def test_mistakes_get_one_sentence(asked, words):
    with pytest.raises(InputError, match=words):
        asked()


T = 9
ROUNDS_PER_PERSON = 4
"""People, one after the other, that agents are told of."""
PLACES = PositionBased((0.9, 0.5))
ANY, CENTRED = ClippedVectors(1), SignedDirections(n_actions=1, dim=1)
"""Null rounds are at the end of what a round may add, or in the middle."""


DENSE = {
    Tree(): tree,
    Independent(): np.eye,
    BLT(): lambda m: toeplitz(BLT().column(m)),
    SquareRoot(): lambda m: toeplitz(coefficients(m)),
    Banded(2): lambda m: toeplitz(np.where(np.arange(m) < 2, coefficients(m), 0.0)),
}
"""Columns of leaves, whitened."""


def faded(ends, fade, statistic=ANY):
    sums = FadingSum(statistic, Streams([0]), ends=ends, horizon=T, fade=fade, noise_multiplier=2.0)
    return sums, np.pad(fading(ends, fade), ((0, 0), (0, T - ends[-1])))


def spends(statistic):
    """Sums of T rounds, and their columns of slots, 0 where nothing is released."""
    shape = {"horizon": T, "noise_multiplier": 2.0}
    for process, every in product(DENSE, (1, 2, 3)):
        made = noisy_prefix_sum(process, statistic, Streams([0]), refresh_every=every, **shape)
        C = np.repeat(DENSE[process]((T - 1) // every), every, axis=1)
        yield made, np.pad(C, ((0, 0), (0, T - C.shape[1])))
    for ends, fade in (((2, 5, 8), 0.7), ((1, 5), 0.0), ((3, 4, 6), 0.0)):
        yield faded(ends, fade, statistic)


@pytest.mark.parametrize("visits", [(1, 1), (2, 1), (2, 3), (3, 2), (4, 2)])
def test_no_pair_of_patterns_moves_a_sum_further(visits):
    """Oracle: every pattern against every other; what is paid is never less, at most 45 % more if
    public. Vectors of norm 1, null in their centre, move by 1/2 where a slot is left or taken."""
    found = list(patterns(T, *visits))
    masks = np.array([[t in p for t in range(T)] for p in found])
    unions = np.unique((masks[:, None] | masks).reshape(-1, T), axis=0)
    halves = np.unique((masks[:, None] * 0.5 + masks * 0.5).reshape(-1, T), axis=0)
    for sums, C, unions in (
        *((*made, unions) for made in spends(ANY)),
        *((*made, halves) for made in spends(CENTRED)),
    ):
        one = np.linalg.norm(C, axis=0).max()
        assert sums.spend.mu == pytest.approx(one / 2)
        for pattern, moved in (("public", masks), ("private", unions)):
            paid = for_a_person(sums.spend, Visits(*visits, pattern)).mu
            worst = np.linalg.norm(moved @ C.T, axis=1).max() / 2
            assert worst <= paid * (1 + 1e-12), (sums.spend.note, pattern)
            if pattern == "public":
                assert paid <= 1.45 * worst, (sums.spend.note, worst, paid)


def rows(dim):
    """Return contexts of customers: usual ones, opposite, 0, tiny, huge and NaN."""
    usual = np.random.default_rng(0).standard_normal((4, dim))
    odd = [np.zeros(dim), np.full(dim, 1e9), np.full(dim, np.nan), np.full(dim, 1e-9)]
    return np.stack([*usual, *np.eye(dim), *-np.eye(dim), *odd])


def visitors(visit):
    """Return contexts of customers, and their answers to each action."""
    x, K = rows(visit.dim), visit.n_actions
    alike = np.repeat(x[:, None], K, axis=1)
    slates = np.concatenate([alike, alike + np.eye(K, visit.dim), alike - alike[::-1]])
    shown = np.repeat(slates if visit.shared else slates[:, 0], 3, axis=0)
    return shown, np.tile([-1e9, 0.25, 1e9], len(shown) // 3)


def readers(visit):
    """The same of lists."""
    shown = np.repeat(rows(2), 12, axis=0)
    return shown, 1.0 * (np.random.default_rng(1).random((len(shown), 2)) < 0.5)


def beyond_nobody(config, visit, shown, said):
    """Return, by mechanism, what a null round adds and what visitors add beyond it, for every
    action and reference point."""
    n = len(shown) // ROUNDS_PER_PERSON
    spec = ReturningSpec(visit=visit, people=visit.horizon, visits=Visits(1, 1), horizon=24)
    agent, found = PerPerson(config).make(spec, Streams(range(n))), {}
    uniform = visit.uniform(Streams(range(n)))
    for person in range(ROUNDS_PER_PERSON if 0 < agent.ledger.mu < inf else 0):
        every = slice(person, n * ROUNDS_PER_PERSON, ROUNDS_PER_PERSON)
        x, answer, action, added = shown[every], said[every], uniform(), []
        agent.act(spec.context(np.full(n, -1), np.zeros_like(x)))
        for one, who in ((deepcopy(agent), -1), (agent, person)):
            calls = []
            with witnessed(lambda *call, calls=calls: calls.append(call)):
                one.update(spec.context(np.full(n, who), x), action, answer)
            added.append([(m, m.query(*datum).reshape(n, -1)) for m, datum, _ in calls])
        for place, ((_, nobody), (mechanism, of_user)) in enumerate(zip(*added, strict=True)):
            call = place, id(mechanism)  # later persons may be told to another one
            found.setdefault(call, []).append((mechanism, nobody, of_user - nobody))
    joined = [tuple(zip(*calls, strict=True)) for calls in found.values()]
    return [(named[0], np.concatenate(null), np.concatenate(v)) for named, null, v in joined]


@pytest.mark.parametrize(
    ("agents", "visit", "heard", "close"),
    [
        (CONTEXTUAL, PEOPLE.visit, visitors, {"fade", "dp-ucb", "dp-moments", "broadcast"}),
        (CONTEXTUAL, replace(PEOPLE.visit, shared=False), visitors, {"fade", "dp-ucb"}),
        ({"fade": FADE}, PRICES, visitors, {"fade"}),
        (LISTS, READERS.visit, readers, {"list-fade", "private-cascade"}),
        (LISTS, replace(READERS.visit, clicks=PLACES), readers, {"list-fade"}),
    ],
    ids=["slates", "arms", "prices", "cascade", "positions"],
)
def test_moving_is_paid_for_as_statistics_move(agents, visit, heard, close):
    """In every sum of every agent that is told of persons, no two visitors add more to what a null
    round adds than is paid for who moves, and some nearly so much. A price without a customer, or a
    list that nobody saw, would show."""
    found, other = set(), visit is not PEOPLE.visit
    for name, kind in agents.items():
        first, *more = variants(kind)
        for config in (first, *more[other::2]):  # the others' rest is on slates, and on arms
            try:
                told = beyond_nobody(config, visit, *heard(visit))
            except InputError:
                continue
            for mechanism, nobody, v in told:
                products = v @ v.T
                longest = np.diag(products).max()
                assert sqrt(longest) <= mechanism.sensitivity * (1 + 1e-9), (config, mechanism)
                slots = getattr(mechanism.spend, "slots", None)
                moving = 2.0 if slots is None else slots.moving
                far = sqrt(2 * longest - 2 * min(products.min(), 0))
                share = far / (moving * mechanism.sensitivity)
                assert moving == 2 or share <= 1 + 1e-9, (config, mechanism, share)
                assert moving == 2 or agents is LISTS or not nobody.any(), (config, mechanism)
                if share > 0.9 and moving < 2:
                    found.add(name)
    assert found >= close


def test_one_public_round_is_paid_as_ever_and_what_hears_some_rounds_only_is_seen():
    """k = 1 is the promise to single rounds; what says nothing pays by groups; over JSON too. Two
    visits 3 slots apart would be neighbours in the calls of what hears some."""
    sums, _ = faded((2, 5, 8), 0.7)
    assert for_a_person(sums.spend, Visits(1, 1, "public")).mu == sums.spend.mu
    silent, for_person = GaussianSpend(0.1, "a sum"), for_a_person(sums.spend, Visits(3, 3))
    assert for_a_person(silent, Visits(3, 9)) == Repeated(silent, 6)
    ledger = Ledger((for_person, Repeated(silent, 6)))
    back = ledger_from_dict(ledger_as_dict(ledger))
    assert back == ledger
    assert back.mu == ledger.mu < 6 * sqrt(sums.spend.mu**2 + 0.1**2)
    with logged_calls() as call_log:
        for _ in range(2):
            sums(np.ones((1, 1)))
    ledger_check = LedgerCheck("Mine", Ledger((for_person,)), call_log)
    ledger_check.check(users=2)
    with pytest.raises(InputError, match="hear every round once, got 2 calls for 5 users"):
        ledger_check.check(users=5)


def test_visits_that_are_apart_cost_less():
    """The claim is met with more than by groups; what stands around another agent pays by
    groups."""
    spec = ReturningUsers(people=500, visits=20, arrivals="robin").spec
    for config in (FADE(), DPUCB(), DPUCB(prefix_sums="tree"), FADE(centring="private")):
        proof = certify(PerPerson(config), spec, accountants=False)
        assert proof.holds
        assert round(proof.epsilon, 6) == 1
        assert all(0 < spend.factor < 30 for spend in proof.ledger.spends)
        assert "count as" in str(proof)
    alone = ReturningUsers(people=1, visits=1, horizon=1).spec
    assert certify(PerPerson(FADE()), alone, accountants=False).epsilon == 0
    (guarded,) = certify(PerPerson(Guard(FADE())), spec, accountants=False).ledger.spends
    assert guarded.factor is None
    assert guarded.part.mu == pytest.approx(mu_of(1.0, 1e-5) / 40)
    seldom = PerPerson(Guard(FADE()), told=3)  # whoever comes more often is not heard
    (guarded,) = certify(seldom, spec, accountants=False).ledger.spends
    assert guarded.part.mu == pytest.approx(mu_of(1.0, 1e-5) / 6)
