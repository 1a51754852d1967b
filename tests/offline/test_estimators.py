"""Every estimator on one log without random numbers, against values of an independent program."""

import numpy as np
import pytest

from dpbandit.offline import ListLaw, Logged, LoggedLists, LoggedPrices, evaluate
from dpbandit.specs.protocols import ContextualSpec, PriceSpec

N = 60
I = np.arange(N)[:, None]  # noqa: E741  # rows
K, J, A = np.arange(5), np.arange(3), np.arange(4)  # arms, positions, items
EXACT = {"abs": 1e-12, "rel": 0}
Q = ((I + 3 * K) % 11) / 11


def law(table):
    return table / table.sum(axis=-1, keepdims=True)


def arms(order=slice(None)):
    """A log of arms, and the policy."""
    i = I[:, 0]
    pb, pe = law(1.0 + (I + 2 * K) % 5), law(1.0 + (3 * I + K) % 7)
    action = (i**2 + i // 3) % 5
    log = Logged(
        spec=ContextualSpec(n_actions=5, dim=1, horizon=N, reward_low=0.0),
        context=np.ones((N, 1)),
        action=action[order],
        reward=((7 * i % 10) / 10)[order],
        propensity=pb[i, action][order],
        probabilities=pb[order],
    )
    return log, pe[order]


ARMS = {
    "ips": 0.548918617676,
    "clipped-ips": 0.438208046491,
    "snips": 0.427493402361,
    "dm": 0.448767607036,
    "dr": 0.506248362250,
    "clipped-dr": 0.505478849244,
    "sndr": 0.493533156655,
    "switch-dr": 0.464872788638,
    "dros": 0.475585988451,
    "mips": 0.464422459806,
}


def of_arms(order=slice(None)):
    log, policy = arms(order)
    like = np.column_stack([(K + 1) / 6, (5 - K) / 6])
    more = {"clip": 2.0, "shrinkage": 2.0, "features": (I[:, 0] % 2)[order], "feature_law": like}
    return evaluate(policy, log, ARMS, q=Q[order], q_is_honest=True, **more)


def test_arms_and_the_order_of_independent_rows_does_not_matter():
    """Golden: ten values to 1e-12, also with the rows in another order and q moved along."""
    for order in (slice(None), (7 * I[:, 0]) % N):
        assert dict(of_arms(order)[["estimator", "estimate"]].values) == pytest.approx(
            ARMS, **EXACT
        )


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("gaussian", [0.740152989096, 0.424572273620, 0.450764985088, 0.468815535668]),
        ("epanechnikov", [0.764468105277, 0.380669448111, 0.385862105001, 0.403912655580]),
    ],
)
def test_prices(kernel, expected):
    """Golden: four values of each kernel, the last of a model that knows only the logged prices;
    draws that are all one price change nothing."""
    i = I[:, 0]
    log = LoggedPrices(
        spec=PriceSpec(dim=1, low=0.5, high=1.5, horizon=N, reward_low=0.0),
        context=i[:, None] / 60,
        price=1 + 0.5 * np.sin(i),
        reward=(7 * i % 10) / 10,
        density=0.5 + 0.25 * np.cos(i),
    )
    policy = 1 + 0.4 * log.context[:, 0]
    more = {"bandwidth": 0.3, "kernel": kernel, "q_is_honest": True}
    for prices in (policy, np.tile(policy, (2, 1))):
        found = evaluate(prices, log, q=lambda x, b: 0.5 - 0.1 * b, **more)
        assert found["estimate"].tolist() == pytest.approx(expected[:3], **EXACT)
        assert found["note"].str.contains("at bandwidth 0.15").all()
    one = evaluate(policy, log, "dr", q=lambda x, b: 0.5 - 0.1 * log.price, **more)
    assert one["estimate"].item() == pytest.approx(expected[3], **EXACT)


def test_lists():
    """Golden: four values; positions are items' own, so that lists are of different items."""
    logging = 0.2 + 0.1 * ((I + J) % 5)
    target = 0.1 + 0.15 * ((2 * I + J) % 5)
    log = LoggedLists(
        n_items=4,
        items=(I + J) % 4,
        clicks=(3 * I + J) % 4 == 0,
        prefix=logging.cumprod(axis=1),
        marginal=logging,
    )
    conditional = law(1.0 + (I[..., None] + 2 * J[:, None] + A) % 3)
    policy = ListLaw(target.cumprod(axis=1), target, conditional)
    q = ((I[..., None] + J[:, None] + 2 * A) % 5) / 5
    names = ["ips", "independent-ips", "interaction-ips", "cascade-dr"]
    found = evaluate(policy, log, names, q=q, q_is_honest=True)
    expected = [0.767291666667, 0.873750000000, 0.812847222222, 0.772427689594]
    assert found["estimate"].tolist() == pytest.approx(expected, **EXACT)


def test_a_fixed_list_has_the_law_of_its_draws():
    """By hand: the logged list agrees in its first item only, of two draws once."""
    log = LoggedLists(n_items=3, items=[[2, 0]], clicks=[[1, 1]], prefix=[[0.5, 0.25]])
    for policy, expected in (([[2, 1]], 2.0), ([[[2, 1]], [[2, 0]]], 4.0), ([[1, 0]], 0.0)):
        assert evaluate(policy, log, "interaction-ips")["estimate"].item() == expected
