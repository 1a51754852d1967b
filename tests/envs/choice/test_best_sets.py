"""The exact oracles of assortments, against enumeration and closed forms."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import lambertw

from dpbandit.specs.best_sets import best_levels, best_prices


def margin_of(v, r):
    return (v * r).sum() / (1 + v.sum())


def enumerated(weight, margins, at_most):
    """The best of all sets at all levels, one by one."""
    N, P = weight.shape
    best = 0.0
    for size in range(1, at_most + 1):
        for members in combinations(range(N), size):
            for levels in product(range(P), repeat=size):
                at = (list(members), list(levels))
                best = max(best, margin_of(weight[at], margins[at]))
    return best


@pytest.mark.parametrize(("N", "P", "S"), [(8, 1, 3), (8, 1, 8), (4, 3, 2)])
def test_sets_equal_enumeration(N, P, S):
    """Oracle: 300 random instances altogether, to 1e-12, and the set returned is worth what is
    said."""
    rng = np.random.default_rng(0)
    weight = np.exp(rng.normal(-1, 1.5, (100, N, P)))
    margins = rng.uniform(0.05, 1, (100, N, P))
    best, worth = best_levels(weight, margins, S)
    for i in range(100):
        assert worth[i] == pytest.approx(enumerated(weight[i], margins[i], S), abs=1e-12)
        j = np.flatnonzero(best[i])
        assert 1 <= len(j) <= S
        at = (j, best[i, j] - 1)
        assert margin_of(weight[i][at], margins[i][at]) == pytest.approx(worth[i], abs=1e-12)


def test_many_products_need_many_steps():
    """Property: at N = 200 the best set of any size is {j: r_j > R*}, ordered by revenue."""
    rng = np.random.default_rng(1)
    weight, margins = np.exp(rng.normal(0, 3, (50, 200, 1))), rng.uniform(0, 1, (50, 200, 1))
    best, worth = best_levels(weight, margins, 200)
    np.testing.assert_array_equal(best > 0, margins[..., 0] > worth[:, None])


def test_free_prices_have_a_common_markup():
    """Golden: unbounded, all products, equal slopes: R* = W(sum exp(a - b c - 1)) / b, and every
    price is cost + 1 / b + R* (set the derivative of R(p) to 0)."""
    rng = np.random.default_rng(2)
    a, c, b = rng.normal(1, 1, (20, 5)), rng.uniform(0, 1, 5), 2.0
    prices, worth = best_prices(a, np.array(b), c, 1e-9, 1e9, 5)
    wanted = lambertw(np.exp(a - b * c - 1).sum(axis=1)).real / b
    np.testing.assert_allclose(worth, wanted, rtol=1e-12)
    np.testing.assert_allclose(prices, c + 1 / b + worth[:, None], rtol=1e-6)  # flat at the top


def test_free_prices_of_one_product_are_found_by_search():
    """Oracle: within a range, S = 1, against a search over the price of each product alone."""
    rng = np.random.default_rng(3)
    p = np.linspace(0.6, 1.5, 100_001)[:, None]
    for _ in range(20):
        a, b, c = rng.normal(1, 1, 3), rng.uniform(0.5, 3, 3), rng.uniform(0, 0.5, 3)
        prices, worth = best_prices(a, b, c, 0.6, 1.5, 1)
        alone = ((p - c) / (1 + np.exp(b * p - a))).max(axis=0)
        assert alone.max() <= worth + 1e-12 <= alone.max() + 1e-8
        assert np.flatnonzero(prices) == [np.argmax(alone)]
