"""What sums made for single rounds cost a person, against all pairs of patterns by brute force."""

from copy import deepcopy
from dataclasses import replace
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import CONTEXTUAL, DPUCB, FADE, JDPGLMUCB, LISTS, Guard, PerPerson
from dpbandit.base.random_streams import Streams
from dpbandit.envs import ReturningUsers
from dpbandit.losses.click_models import PositionBased
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.certificate import ledger_as_dict, ledger_from_dict
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.factors import Independent
from dpbandit.privacy.fading import FadingSum
from dpbandit.privacy.ledger import Ledger, Visits
from dpbandit.privacy.mechanism import Books, enrolled, witnessed
from dpbandit.privacy.moments import ClippedVectors
from dpbandit.privacy.people import for_a_person
from dpbandit.privacy.prefix_sums import BLT, Banded, SquareRoot, Tree, coefficients
from dpbandit.privacy.residuals import SignedDirections
from dpbandit.privacy.spends import GaussianSpend, Repeated
from dpbandit.specs.lists import ReturningSpec
from tests.harness import PEOPLE, PRICES, READERS, variants
from tests.privacy.accounting.test_person_norms import fading, patterns, toeplitz, tree

T = 9
SELLERS = {"fade": FADE, "jdp-glm-ucb": JDPGLMUCB}
_HEARD = 4
"""People, one after the other, that agents are told of."""
PLACES = PositionBased((0.9, 0.5))
ANY, CENTRED = ClippedVectors(1), SignedDirections(n_actions=1, dim=1)
"""Null rounds are at the end of what a round may add, or in the middle."""


def dense(process, leaves):
    """Columns of leaves, whitened."""
    if process == Tree():
        return tree(leaves)
    if process == Independent():
        return np.eye(leaves)
    width = getattr(process, "width", leaves)
    c = BLT().column(leaves) if process == BLT() else coefficients(leaves)
    return toeplitz(np.where(np.arange(leaves) < width, c, 0.0))


def prefix(process, every, statistic):
    """A sum of T rounds, and its columns of slots, 0 where nothing is released."""
    leaves = (T - 1) // every
    made = noisy_prefix_sum(
        process,
        statistic,
        Streams([0]),
        horizon=T,
        refresh_every=every,
        noise_multiplier=2.0,
    )
    C = np.repeat(dense(process, leaves), every, axis=1)
    return made, np.pad(C, ((0, 0), (0, T - C.shape[1])))


def faded(ends, fade, statistic=ANY):
    sums = FadingSum(statistic, Streams([0]), ends=ends, horizon=T, fade=fade, noise_multiplier=2.0)
    return sums, np.pad(fading(ends, fade), ((0, 0), (0, T - ends[-1])))


def spends(statistic):
    for process, every in product(
        (BLT(), SquareRoot(), Banded(2), Tree(), Independent()), (1, 2, 3)
    ):
        yield prefix(process, every, statistic)
    for ends, fade in (((2, 5, 8), 0.7), ((1, 5), 0.0), ((3, 4, 6), 0.0)):
        yield faded(ends, fade, statistic)


@pytest.mark.parametrize("visits", [(1, 1), (2, 1), (2, 3), (3, 2), (4, 2)])
def test_no_pair_of_patterns_moves_a_sum_further(visits):
    """Every pattern against every other, each of its slots by 1, of one sign: what is paid is never
    less, and at most 45 % more for a public pattern; a leaf of several slots, a slot that both
    patterns have, or the sensitivity of one round taken twice, would show. Vectors of norm 1, null
    in their centre, move by 1/2 where a slot is left or taken, and by 1 where it stays."""
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
    """Of customers: of all lengths, opposite, 0, and of numbers that are none."""
    usual = np.random.default_rng(0).standard_normal((4, dim))
    odd = [np.zeros(dim), np.full(dim, 1e9), np.full(dim, np.nan), np.full(dim, 1e-9)]
    return np.stack([*usual, *np.eye(dim), *-np.eye(dim), *odd])


def visitors(visit):
    """What customers show, and say to whatever they are served."""
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
    """Of each mechanism what a null round adds, and what visitors add beyond it, whatever they are
    served, at reference points of a few rounds that noise has moved anywhere."""
    n = len(shown) // _HEARD
    spec = ReturningSpec(visit=visit, people=visit.horizon, visits=Visits(1, 1), horizon=24)
    agent, found = PerPerson(config).make(spec, Streams(range(n))), {}
    uniform = visit.uniform(Streams(range(n)))
    for person in range(_HEARD if 0 < agent.ledger.mu < inf else 0):
        every = slice(person, n * _HEARD, _HEARD)
        x, answer, action, added = shown[every], said[every], uniform(), []
        agent.act(spec.context(np.full(n, -1), np.zeros_like(x)))
        for one, who in ((deepcopy(agent), -1), (agent, person)):
            calls = []
            with witnessed(lambda *call, calls=calls: calls.append(call)):
                one.update(spec.context(np.full(n, who), x), action, answer)
            added.append([(m, m.query(*datum).reshape(n, -1)) for m, datum, _ in calls])
        for place, ((_, nobody), (mechanism, hers)) in enumerate(zip(*added, strict=True)):
            call = place, id(mechanism)  # later persons may be told to another one
            found.setdefault(call, []).append((mechanism, nobody, hers - nobody))
    joined = [tuple(zip(*calls, strict=True)) for calls in found.values()]
    return [(named[0], np.concatenate(null), np.concatenate(v)) for named, null, v in joined]


@pytest.mark.parametrize(
    ("agents", "visit", "heard", "close"),
    [
        (CONTEXTUAL, PEOPLE.visit, visitors, {"fade", "dp-ucb", "dp-moments", "broadcast"}),
        (CONTEXTUAL, replace(PEOPLE.visit, shared=False), visitors, {"fade", "dp-ucb"}),
        (SELLERS, PRICES, visitors, {"fade"}),
        (LISTS, READERS.visit, readers, {"list-fade", "private-cascade"}),
        (LISTS, replace(READERS.visit, clicks=PLACES), readers, {"list-fade"}),
    ],
    ids=["slates", "arms", "prices", "cascade", "positions"],
)
def test_moving_is_paid_for_as_statistics_move(agents, visit, heard, close):
    """Of every sum of every agent that is told of persons: no visitor, loud or of numbers that are
    none, is further from a null round than from another visitor; no two of them, at any reference
    points, add more to theirs than is paid for who moves, and some nearly so much. A null round
    adds 0, but to lists: a price without a customer, or a list that nobody saw, would show."""
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


def test_one_public_round_is_paid_as_ever():
    """k = 1 is the promise to single rounds; what says nothing pays by groups; over JSON too."""
    sums, _ = faded((2, 5, 8), 0.7)
    assert for_a_person(sums.spend, Visits(1, 1, "public")).mu == sums.spend.mu
    silent = GaussianSpend(0.1, "a sum")
    assert for_a_person(silent, Visits(3, 9)) == Repeated(silent, 6)
    ledger = Ledger((for_a_person(sums.spend, Visits(3, 3)), Repeated(silent, 6)))
    back = ledger_from_dict(ledger_as_dict(ledger))
    assert back == ledger
    assert back.mu == ledger.mu < 6 * sqrt(sums.spend.mu**2 + 0.1**2)


def test_visits_that_are_apart_cost_less():
    """By turns: the claim is met, and with more of it than by groups; what stands around another
    agent tells it some rounds only, and pays by groups."""
    spec = ReturningUsers(people=500, visits=20, arrivals="robin").spec
    for config in (
        FADE(),
        DPUCB(),
        DPUCB(prefix_sums="tree"),
        FADE(centring="private"),
    ):
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


def test_what_hears_some_rounds_only_is_seen():
    """Two visits 3 slots apart would be neighbours in its calls."""
    sums, _ = faded((2, 5, 8), 0.7)
    ledger = Ledger((for_a_person(sums.spend, Visits(3, 3)),))
    with enrolled() as roll:
        for _ in range(2):
            sums(np.ones((1, 1)))
    books = Books("Mine", ledger, roll)
    books.check(users=2)
    with pytest.raises(InputError, match="hear every round once, got 2 calls for 5 users"):
        books.check(users=5)


def test_mistakes_get_one_sentence():
    with pytest.raises(InputError, match="factor=7"):
        Repeated(GaussianSpend(0.1, "a sum"), 6, 7.0)
