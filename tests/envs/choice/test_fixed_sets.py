"""The best fixed set: by enumeration, and by exchange where sets are many."""

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.envs import AssortmentBandit
from dpbandit.envs.choice.fixed_sets import Enumerated, Exchanged, count_sets, every_set
from dpbandit.testing import check_problem


def test_every_set_is_there_once():
    sets = every_set(5, 3, 2)
    assert len(sets) == count_sets(5, 3, 2) == len(np.unique(sets, axis=0)) == 10 + 40 + 80
    assert set((sets > 0).sum(axis=1)) == {1, 2, 3}


def test_exchanges_find_the_best_set():
    """Oracle: of 50 mixtures of 40 users, 7 products at 2 prices: exchanges end where enumeration
    does; adding one product after the other does in 96 %."""
    rng, R = np.random.default_rng(0), 50
    v, margins = np.exp(rng.normal(-1, 2, (40, R, 7, 2))), rng.uniform(0.1, 1, (7, 2))
    sets = every_set(7, 3, 2)

    def worth(users):
        chosen = (sets[:, :, None] == [1, 2])[None, None]
        w = users[:, :, None] * chosen
        return ((w * margins).sum(axis=(3, 4)) / (1 + w.sum(axis=(3, 4)))).sum(axis=0)

    exact, climbed = Enumerated(sets, worth, R), Exchanged(lambda users: users, margins, 3, R)
    for contest in (exact, climbed):
        for part in np.split(v, 4):
            contest.add(part)
    totals = exact._totals
    earned = np.array(
        [totals[r][(sets == found).all(axis=1)][0] for r, found in enumerate(climbed.best())]
    )
    np.testing.assert_array_equal(earned, totals.max(axis=1))


def test_many_products_have_a_best_fixed_set():
    """60 products, 487,635 sets of at most 4."""
    problem = AssortmentBandit(n_products=60, horizon=30)
    assert len(check_problem(problem)) == 9
    problem.reset(Streams([0]))
    assert problem.best_fixed().sum() == 1  # before anybody came
