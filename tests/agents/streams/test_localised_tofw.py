"""DP-TOFW on blocks of users, each in a smaller set."""

from math import inf

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import DPTOFW, LocalisedTOFW
from dpbandit.agents.streams.localised_tofw import local_clip
from dpbandit.base.random_streams import Streams
from dpbandit.domains import LpBall
from dpbandit.losses import LinearRegression, LogisticRegression
from dpbandit.specs.streams import StreamSpec

BALL = LpBall(5, 1.5, 2.0)


def spec(horizon, loss=None):
    return StreamSpec(loss=loss or LinearRegression(BALL, 1.25), horizon=horizon)


def points(config, problem, seed=0, replicas=2):
    """What it plays against independent users, (T + 1, R, N)."""
    rng, agent = np.random.default_rng(seed), config.make(problem, Streams(range(replicas)))
    context, played = np.zeros((replicas, *problem.context_shape)), []
    for _ in range(problem.horizon):
        played.append(agent.act(context))
        x = rng.standard_normal((replicas, 5))
        x /= np.linalg.norm(x, ord=3, axis=1)[:, None]
        y = x.mean(axis=1) + 0.05 * rng.standard_normal(replicas)
        agent.update(context, played[-1], np.concatenate([x, y[:, None]], axis=1))
    return np.array([*played, agent.act(context)])


def test_one_block_of_single_users_without_noise_is_online_frank_wolfe():
    """Oracle: the unlocalised agent, bit for bit up to the point that it still plays."""
    local = LocalisedTOFW(epsilon=inf, shares=(1.0,), batches=40, clip=1e9)
    ours, theirs = points(local, spec(40)), points(DPTOFW(epsilon=inf, step=0.4), spec(40))
    np.testing.assert_array_equal(ours[:40], theirs[:40])


def test_a_block_walks_in_its_own_set_and_moves_once_a_batch():
    played = points(LocalisedTOFW(shares=(0.5, 0.5), batches=4, delta=1e-3), spec(40))
    moved = np.flatnonzero((np.diff(played, axis=0) != 0).any(axis=(1, 2))) + 1
    assert moved.tolist() == [5, 10, 15, 20, 25, 30, 35, 40]
    start = played[20]
    vertices = (played[21:] - 0.75 * start) / 0.25  # theta = (1 - s) start + s x, x in C
    assert BALL.contains(vertices.reshape(-1, 5), 1e-6).all()


@pytest.mark.parametrize("horizon", [1, 2, 3, 7])
def test_short_horizons(horizon):
    """Blocks without a round are left out; what is left meets the claim."""
    played = points(LocalisedTOFW(delta=1e-3), spec(horizon))
    assert np.isfinite(played).all()
    assert certify(LocalisedTOFW(delta=1e-3), spec(horizon)).holds


def test_blocks_cost_as_much_as_one():
    """Parallel composition: every block has the noise of the whole target."""
    agent = LocalisedTOFW(shares=(0.5, 0.3, 0.2), delta=1e-4).make(spec(1000), Streams([0]))
    (spend,) = agent.ledger.spends
    assert len(spend.parts) >= 1
    for part in spend.parts:
        assert part.delta(1.0) == pytest.approx(1e-4, rel=1e-6)


def test_clip_of_squares_shrinks_with_the_set_and_that_of_labels_does_not():
    squares, labels = LinearRegression(BALL, 1.25), LogisticRegression(BALL)
    whole, small = (local_clip(squares, step=0.4, share=s) for s in (1.0, 0.25))
    assert small == pytest.approx(whole / 4)
    assert local_clip(labels, step=0.4, share=0.25) == local_clip(labels, step=0.4, share=1.0)


def test_clip_rule_is_a_typical_gradient():
    """Monte Carlo oracle with 20,000 users: the root mean square over normal directions v of
    2 |x|_2 |<x, c v>| is within 15 % of the rule, which replaces sums by their means, for p >= 1.5;
    close to p = 1 a few coordinates are all that counts, and the rule is too long by half."""
    rng = np.random.default_rng(0)
    for p, error in ((1.2, 0.6), (1.5, 0.15), (3.0, 0.15), (inf, 0.15)):
        ball = LpBall(20, p, 2.0)
        loss = LinearRegression(ball, 1.25)
        x = rng.standard_normal((20_000, 20))
        x /= np.linalg.norm(x, ord=loss.order, axis=1)[:, None]
        v = ball.lowest(rng.standard_normal((20_000, 20)))
        g = 2 * np.linalg.norm(x, axis=1) * 0.4 * np.vecdot(x, v)
        rule = local_clip(loss, step=0.4, share=1.0)
        assert np.sqrt((g**2).mean()) == pytest.approx(rule, rel=error)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"shares": (0.5, 0.4)}, "sum 1"),
        ({"shares": ()}, "sum 1"),
        ({"shares": (1.5, -0.5)}, "shares"),
        ({"shrink": 0.0}, "shrink"),
        ({"step": 2.0}, "step"),
        ({"batches": 0}, "batches"),
        ({"prefix_sums": "honaker"}, "prefix_sums"),
        ({"clip": -1.0}, "clip"),
    ],
)
def test_bad_input_is_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        LocalisedTOFW(**fields)
