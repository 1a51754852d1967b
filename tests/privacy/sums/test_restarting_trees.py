"""Trees that start again: against one tree for each segment, node by node, and what they cost."""

from math import inf

import numpy as np
import pytest

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.batches import RestartingTrees
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.prefix_sums import Tree


def trees(R=1, B=1, T=40, law="gaussian", scale=1.0):
    return RestartingTrees(Streams(range(R)), "trees", width=B, law=law, scale=scale, horizon=T)


def test_each_segment_is_a_tree_of_its_own():
    """Oracle: replicas that restart at random times get, segment by segment, the noise of a new
    `Tree` fed with the same draws, and exact sums of the losses of those chosen."""
    R, B, d, T = 6, 3, 5, 40
    rng, made = np.random.default_rng(0), trees(R, B, T)
    draws = Gaussian(1.0).sampler(Streams(range(R)), "trees", (B,)).take(T)
    losses, restart = rng.random((T, R, d)), rng.random((T, R)) < 0.15
    chosen = np.array([rng.permutation(d)[:B] for _ in range(T * R)]).reshape(T, R, B)
    for t in range(1, T):
        chosen[t][~restart[t]] = chosen[t - 1][~restart[t]]
    found = [made(*round) for round in zip(losses, chosen, restart, strict=True)]
    assert found[-1] is None
    for r in range(R):
        for t in range(T - 1):
            if t == 0 or restart[t, r]:
                fed = iter(draws[t:, r])
                tree, total = Tree().of(lambda fed=fed: next(fed), stddev=1.0), np.zeros(B)
            total = total + losses[t, r, chosen[t, r]]
            np.testing.assert_allclose(found[t][r], total + tree(), atol=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_has_the_promised_size(law):
    """Statistical: in the 7th round of a segment that began in round 4 the noise is that of three
    nodes (7 = 111b), in a replica that never restarted, in round 10, of two. Mean square of
    20,000 noises, 6 standard errors: false alarm below 1e-6; 10 % of variance is caught
    (asserted)."""
    R, B, scale = 400, 50, 1.7
    made, restarts = trees(2 * R, B, 12, law, scale), np.arange(2 * R) < R
    losses, chosen = np.zeros((2 * R, 1)), np.zeros((2 * R, B), dtype=np.int64)
    for t in range(1, 11):
        release = made(losses, chosen, restarts & (t == 4))
    one = scale**2 * (1 if law == "gaussian" else 2)
    for noise, nodes in ((release[:R], 3), (release[R:], 2)):
        ratio = (noise**2).ravel() / (nodes * one)
        error = 6 * ratio.std() / (R * B) ** 0.5
        assert abs(ratio.mean() - 1) < error < 0.1


def test_what_a_round_costs():
    """Oracle: mu^2 = D' C^+ D over all releases of a segment, D the shift of all sums from the
    challenge round on by 1 in each of B counters and C the covariance of the tree, is at most
    B h / sigma^2, and the first round of the longest segment attains it."""
    for T in (2, 8, 9, 33):
        m = T - 1
        nodes = np.zeros((m, m))  # which noises a prefix is made of
        for t in range(1, m + 1):
            s = t
            while s:
                nodes[t - 1, s - 1] = 1
                s &= s - 1
        precision = np.linalg.inv(nodes @ nodes.T)
        costs = [(D := 1.0 * (np.arange(m) >= j)) @ precision @ D for j in range(m)]
        claimed = trees(B=3, T=T, scale=2.0).spend.mu
        assert max(costs) * 3 / 4 == pytest.approx(claimed**2)
        assert np.argmax(costs) == 0
    assert trees(B=3, T=33, law="laplace", scale=2.0).spend.pure == pytest.approx(3 * 6 / 2)
    assert trees(T=1).spend.mu == 0
    assert trees(scale=0.0).spend.mu == inf


def test_users_at_the_mechanism():
    """Two users as extreme as can be move the input by sqrt(B) at most, whatever they send; nobody
    is -1 and loses nothing."""
    made, chosen = trees(1, 4), np.array([[3, 0, 2, 1]])
    extreme = [np.full((1, 4), v) for v in (np.nan, -np.inf, -7.0, 0.0, 1.0, 1e300)]
    queries = [made.query(losses, chosen) for losses in extreme]
    moves = [np.linalg.norm(a - b) for a in queries for b in queries]
    assert max(moves) == made.sensitivity == 2.0
    few = made.query(np.ones((1, 4)), np.array([[3, -1, 2, -1]]))
    np.testing.assert_array_equal(few, [[1.0, 0.0, 1.0, 0.0]])
    once, no = trees(T=1), np.array([False])
    assert once(np.ones((1, 1)), np.zeros((1, 1), dtype=int), no) is None
    with pytest.raises(BudgetExceededError):
        once(np.ones((1, 1)), np.zeros((1, 1), dtype=int), no)
