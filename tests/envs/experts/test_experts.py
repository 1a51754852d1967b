"""Experts: reference tables, blocks, laws of the losses, delays, refusals."""

import tracemalloc

import numpy as np
import pytest

from dpbandit import play
from dpbandit.agents import FollowTheLeader, Hedge
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Experts
from dpbandit.envs.experts.advice import KINDS
from tests.each import each

ARRAY = np.random.default_rng(7).random((60, 3))


def make(kind, **arguments):
    if kind == "table":
        arguments.setdefault("table", ARRAY)
    return Experts(kind=kind, **arguments)


def met(problem, T, seeds=(1, 2, 3), actions=None):
    """The losses (T, R, d) of an episode, as told, and its steps."""
    problem.reset(Streams(seeds).child("environment"))
    steps = []
    for t in range(T):
        problem.context()
        action = np.zeros(len(seeds), dtype=np.int64) if actions is None else actions[t]
        steps.append(problem.step(action))
    return np.array([step.datum for step in steps]), steps


@pytest.mark.parametrize(
    ("T", "d", "p0", "best", "uniform"),
    [
        (1000, 16, 0.0, 0, 466.4), (1000, 256, 0.0, 0, 498.8), (10_000, 16, 0.0, 0, 4696.1),
        (10_000, 256, 0.001, 9, 4967.5), (10_000, 256, 0.1, 960, 4020.2),
    ],
)  # fmt: skip
def test_reference_tables(T, d, p0, best, uniform):
    """Golden, from the specification's tables: the best expert's loss, and the mean regret of
    uniform play to the digit that is printed. Oracle: the one-line generator, entry by entry."""
    problem = Experts(n_actions=d, horizon=T, best_loss=p0, shared_table=True)
    means = np.full(d, 0.5)
    means[0] = p0
    wanted = np.random.default_rng(0).random((T, d)) < means
    problem.reset(Streams([3, 4]))
    mean = 0.0
    for row in wanted:
        losses = problem.step(np.array([0, 1])).datum
        assert (losses == row).all()
        mean += losses[0].mean()
    np.testing.assert_array_equal(-problem.hindsight(), best)
    np.testing.assert_array_equal(problem.best_fixed(), 0)
    assert mean - best == pytest.approx(uniform, abs=0.051)


def test_reference_halving():
    """Oracle: the specification's sentence, written out for T = 1000 and d = 16: stages of 250."""
    order = np.random.default_rng(0).permutation(16)
    losses, _ = met(Experts(kind="halving", shared_table=True, horizon=1000), 1000, seeds=(0, 1))
    for t in range(1000):
        spared = order[: 16 >> (t // 250 + 1)]
        expected = np.ones(16)
        expected[spared] = 0.0
        assert (losses[t] == expected).all()


@each("shared", [False, True])
@each("kind", KINDS)
def test_blocks_change_no_value(kind, shared, monkeypatch):
    """Property: read row by row, in blocks of 40 numbers, or at once: the same losses."""
    whole, _ = met(make(kind, horizon=60, shared_table=shared), 60)
    for values in (1, 40 * len(whole[0][0])):
        with monkeypatch.context() as patch:
            patch.setattr("dpbandit.envs.experts.advice._VALUES_AHEAD", values)
            again, _ = met(make(kind, horizon=60, shared_table=shared), 60)
        np.testing.assert_array_equal(again, whole)


@each("kind", KINDS)
def test_regret_is_what_a_table_says(kind):
    """Oracle: sums over the whole table; nobody can write on what she is shown, and a replica alone
    is shown the same."""
    problem = make(kind, horizon=60, best_loss=0.1)
    rng = np.random.default_rng(5)
    actions = rng.integers(problem.spec.n_actions, size=(60, 3))
    losses, steps = met(problem, 60, actions=actions)
    assert ((losses >= 0) & (losses <= 1)).all()
    alone, _ = met(make(kind, horizon=60, best_loss=0.1), 60, seeds=(2,))
    np.testing.assert_array_equal(losses[:, 1], alone[:, 0])
    assert kind in ("counterexample", "table") or (losses[:, 0] != losses[:, 1]).any()
    suffered = np.take_along_axis(losses, actions[..., None], axis=2)[..., 0]
    np.testing.assert_array_equal(np.array([s.regret for s in steps]), suffered)
    np.testing.assert_array_equal(np.array([s.reward for s in steps]), -suffered)
    totals = losses.sum(axis=0)
    np.testing.assert_allclose(-problem.hindsight(), totals.min(axis=1), atol=1e-12)
    best = totals[np.arange(3), problem.best_fixed()]
    np.testing.assert_allclose(best, totals.min(axis=1), atol=1e-12)
    assert not steps[0].datum.flags.writeable
    np.testing.assert_array_equal(problem.context(), losses[-1])


def test_large_tables_take_no_memory():
    """4,096 experts: below a third of the 65 MB of the table, and replicas share its rows."""
    problem = Experts(n_actions=4096, horizon=2000, shared_table=True)
    problem.reset(Streams(range(50)))
    action = np.zeros(50, dtype=np.int64)
    tracemalloc.start()
    for _ in range(2000):
        step = problem.step(action)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    assert step.datum.shape == (50, 4096)
    assert step.datum.strides[0] == 0


def test_laws_of_the_losses():
    """Statistical, 5 standard errors each (false alarm below 1e-5 in all; a mean off by 0.02
    is 12 of them): 25,600 coins or fractions a mean."""
    many = range(64)
    for kind in ("bernoulli", "small-loss"):
        losses, _ = met(Experts(kind=kind, horizon=400, best_loss=0.1, n_actions=4), 400, many)
        means = np.sort(losses.mean(axis=0), axis=1)
        error = 5 * 0.5 / 25_600**0.5
        assert abs(means[:, 0].mean() - 0.1) < error
        assert abs(means[:, 1:].mean() - 0.5) < error
        assert (len(np.unique(losses)) == 2) == (kind == "bernoulli")
    best = losses.mean(axis=0).argmin(axis=1)
    assert set(best) == {0, 1, 2, 3}  # each missing with probability 0.75^64 = 1e-8


def test_who_is_best_switches_as_often_as_it_should():
    losses, _ = met(Experts(kind="switching", switches=4, horizon=500, n_actions=5), 500)
    lost = losses.reshape(5, 100, 3, 5).sum(axis=1)
    assert (lost.min(axis=2) == 0).all()
    assert (np.diff(lost.argmin(axis=2), axis=0) != 0).all()


def test_the_lower_bounds_instance_keeps_its_news_for_the_end():
    problem = Experts(kind="lower-bound", n_actions=16, epsilon=0.5, horizon=40)
    losses, _ = met(problem, 40)  # floor(ln 16 / 0.5) + 1 = 6
    assert losses[:34].sum() == 0
    assert (losses[34:].sum(axis=2) == 15).all()
    assert (losses[34:] == losses[34]).all()


def test_policies_differ_in_quality_and_one_is_right():
    """One policy never errs but for whims, of 1/10 of the users, 4/5 of which it misses; the others
    do by their ignorance, none worse than guessing (4/5). 40 episodes of 300 users: the best
    loses 0.08 within 5 errors of 0.0025."""
    sure, _ = met(Experts(kind="policies", horizon=300), 300, seeds=range(40))
    ranked = np.sort(sure.mean(axis=0), axis=1).mean(axis=0)
    assert ranked[0] == 0
    assert 0.05 < ranked[1] < 0.2
    assert 0.5 < ranked[-1] < 0.85
    whims, _ = met(Experts(kind="policies", horizon=300, best_loss=0.1), 300, seeds=range(40))
    assert abs(whims.mean(axis=0).min(axis=1).mean() - 0.08) < 0.0125


def test_late_losses_are_those_of_the_round_they_belong_to():
    prompt, _ = met(Experts(horizon=20), 20)
    problem = Experts(horizon=20, delay=3)
    late, steps = met(problem, 20)
    np.testing.assert_array_equal(late[3:], prompt[:-3])
    assert (late[:3] == 0).all()
    np.testing.assert_array_equal(np.array([s.reward for s in steps])[3:], -prompt[:-3, :, 0])
    np.testing.assert_array_equal(np.array([s.regret for s in steps]), prompt[..., 0])
    np.testing.assert_array_equal(problem.context(), prompt[-4])


def test_files_are_tables(tmp_path):
    file = tmp_path / "losses.csv"
    np.savetxt(file, ARRAY, delimiter=",", fmt="%.17g")
    for table in (file, str(file), ARRAY, ARRAY.tolist()):
        losses, _ = met(Experts(kind="table", table=table, horizon=60), 60)
        assert (losses == ARRAY[:, None]).all()


@each("kind", ["bernoulli", "halving", "lower-bound", "switching", "policies"])
def test_one_expert_and_one_round_can_be_played(kind):
    for agent in (Hedge(), FollowTheLeader()):
        assert (play(Experts(kind=kind, n_actions=1, horizon=1), agent, [0, 1]).regret == 0).all()
