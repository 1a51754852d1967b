"""Experts and arms: reference tables, laws, changes, blocks and delays."""

import json
import tracemalloc
from importlib import resources
from itertools import product

import numpy as np
import pytest

from dpbandit import play
from dpbandit.agents import FollowTheLeader, Hedge, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Arms, Experts
from dpbandit.envs.arms.arms import MEANS
from dpbandit.envs.experts.advice import LOSS_KINDS, Policies, TableStreams
from dpbandit.testing.checks import check_problem
from tests.each import each, refused

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


@each("shared", [False, True])
@each("kind", LOSS_KINDS)
def test_blocks_change_no_value(kind, shared, monkeypatch):
    """Property: read row by row, in blocks of 40 numbers, or at once: the same losses."""
    whole, _ = met(make(kind, horizon=60, shared_table=shared), 60)
    for values in (1, 40 * len(whole[0][0])):
        with monkeypatch.context() as patch:
            patch.setattr("dpbandit.envs.experts.advice._VALUES_AHEAD", values)
            again, _ = met(make(kind, horizon=60, shared_table=shared), 60)
        np.testing.assert_array_equal(again, whole)


@each("kind", LOSS_KINDS)
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


def test_laws_of_losses_and_rewards():
    """Statistical, 5 standard errors each of 25,600 coins or fractions a mean; beta rewards of arms
    have m (1 - m) / 11 at concentration 10, of 40,000 of each arm; 5 %."""
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
    problem = Arms(means=[0.3, 0.5, 0.0, 1.0], law="beta", horizon=10)
    problem.reset(Streams(range(10)))
    reward = problem._users(4000).reward.reshape(-1, 4)
    np.testing.assert_allclose(reward.mean(axis=0), [0.3, 0.5, 0, 1], atol=0.005)
    np.testing.assert_allclose(reward[:, :2].var(axis=0), [0.21 / 11, 0.25 / 11], rtol=0.05)


def test_kinds_by_hand(tmp_path):
    """Best experts switch as often as stated; a lower bound keeps its news for the end; a table
    comes from a file, its name, or numbers; and halving has stages of 250 rounds."""
    losses, _ = met(Experts(kind="switching", switches=4, horizon=500, n_actions=5), 500)
    lost = losses.reshape(5, 100, 3, 5).sum(axis=1)
    assert (lost.min(axis=2) == 0).all()
    assert (np.diff(lost.argmin(axis=2), axis=0) != 0).all()
    problem = Experts(kind="lower-bound", n_actions=16, epsilon=0.5, horizon=40)
    losses, _ = met(problem, 40)  # floor(ln 16 / 0.5) + 1 = 6
    assert losses[:34].sum() == 0
    assert (losses[34:].sum(axis=2) == 15).all()
    assert (losses[34:] == losses[34]).all()
    file = tmp_path / "losses.csv"
    np.savetxt(file, ARRAY, delimiter=",", fmt="%.17g")
    for table in (file, str(file), ARRAY, ARRAY.tolist()):
        losses, _ = met(Experts(kind="table", table=table, horizon=60), 60)
        assert (losses == ARRAY[:, None]).all()
    order = np.random.default_rng(0).permutation(16)
    losses, _ = met(Experts(kind="halving", shared_table=True, horizon=1000), 1000, seeds=(0, 1))
    for t in range(1000):
        spared = order[: 16 >> (t // 250 + 1)]
        expected = np.ones(16)
        expected[spared] = 0.0
        assert (losses[t] == expected).all()


def test_policies_differ_in_quality_and_one_is_right():
    """A single policy errs by whims alone, the others do by their ignorance, none worse than
    guessing (4/5). 40 episodes of 300 users: the best loses 0.08 within 5 errors of 0.0025."""
    sure, _ = met(Experts(kind="policies", horizon=300), 300, seeds=range(40))
    ranked = np.sort(sure.mean(axis=0), axis=1).mean(axis=0)
    assert ranked[0] == 0
    assert 0.05 < ranked[1] < 0.2
    assert 0.5 < ranked[-1] < 0.85
    whims, _ = met(Experts(kind="policies", horizon=300, best_loss=0.1), 300, seeds=range(40))
    assert abs(whims.mean(axis=0).min(axis=1).mean() - 0.08) < 0.0125


def test_policies_rank_slates_by_the_stated_features():
    """Oracle: each user's slate, favourite, whim and what every policy shows first, in loops."""
    table = Policies(TableStreams(Streams([4, 5])), 6, whims=0.4)
    losses, again = table(0, 50), Streams([4, 5])
    tastes, slates = (again.normals("tastes", 4), again.uniforms("slates", 200))
    tastes, slates, moods = (s.take(50) for s in (tastes, slates, again.uniforms("whims", 2)))
    free, wrong = 0, np.zeros(6)
    for t, r in product(range(50), range(2)):
        u, slate = tastes[t, r], slates[t, r].argpartition(4)[:5]
        v = table._items[r, slate]
        phi = np.hstack([v, 2 * u / np.linalg.norm(u) * v])
        click = (phi @ table._theta[r, 0]).argmax()
        whim, wish = moods[t, r]
        free += whim < 0.4
        click = int(5 * wish) if whim < 0.4 else click
        wrong = (phi @ table._rankers[r]).argmax(axis=0) != click
        np.testing.assert_array_equal(losses[t, r], wrong)
    assert 20 < free < 60
    away = np.linalg.norm(np.swapaxes(table._rankers, 1, 2) - table._theta, axis=2)
    steps = [0, *np.geomspace(0.2, 3.0, 6)[:5]]
    np.testing.assert_allclose(np.sort(away, axis=1), [steps] * 2, atol=1e-12)


@each("kind", ["bernoulli", "halving", "lower-bound", "switching", "policies"])
def test_one_expert_and_one_round_can_be_played(kind):
    for agent in (Hedge(), FollowTheLeader()):
        assert (play(Experts(kind=kind, n_actions=1, horizon=1), agent, [0, 1]).regret == 0).all()


CHANGES = [
    {}, {"law": "beta"}, {"drift": "piecewise"}, {"drift": "walk", "law": "beta"},
    {"adversary": "switching", "delay": 3}, {"adversary": "stochastically-constrained"},
    {
        "law": "table", "table": [[0.2, 0.9, 0.4], [0.7, 0.3, 0.6], [0.1, 0.8, 1.0]],
        "resample": True,
    },
]  # fmt: skip


@each("arguments", CHANGES, ids=str)
def test_the_contract(arguments):
    """Shapes, seeds, replicas, copies, regret and means, see `check_problem`."""
    assert len(check_problem(Arms(**{"horizon": 60, **arguments}), rounds=60)) >= 8


def means_of_rounds(R=2, **arguments):
    problem = Arms(**arguments)
    problem.reset(Streams(range(R)))
    found = []
    for _ in range(problem.horizon):
        problem.context()
        found.append(problem._table.mean[problem._next].copy())
        problem.step(np.zeros(R, dtype=np.int64))
    return problem, np.array(found)


def test_changes_by_hand():
    """Golden: .75 and .25 change places; levels of the constrained adversary keep all gaps; a
    drift's quarters are orders of the means, a walk is turned round; means of instances are those
    that are shipped."""
    _, found = means_of_rounds(means="steps", horizon=40, adversary="switching")
    np.testing.assert_array_equal(found[:10], np.tile(MEANS["steps"], (10, 2, 1)))
    np.testing.assert_array_equal(found[10:, 0, [0, 4]], np.tile([0.25, 0.75], (30, 1)))
    arguments = {"means": "steps", "adversary": "stochastically-constrained"}
    _, found = means_of_rounds(horizon=400, **arguments)
    np.testing.assert_allclose(found[..., 0] - found[..., 4], 0.5)
    assert set(found[..., 0].ravel()) == {0.5, 1.0}
    assert (found[:100, 0, 0] == 0.5).all()
    _, found = means_of_rounds(means="steps", horizon=40, drift="piecewise")
    np.testing.assert_array_equal(
        np.sort(found, axis=2)[..., ::-1], np.tile(MEANS["steps"], (40, 2, 1))
    )
    changed = (found[1:] != found[:-1]).any(axis=(1, 2))
    assert (np.flatnonzero(changed) + 1).tolist() == [10, 20, 30]
    _, found = means_of_rounds(R=40, means=[0.05, 0.95], horizon=200, drift="walk")
    assert 0 <= found.min() < found.max() <= 1
    steps = Streams(range(40)).normals("walk", 2).take(199) * 0.5 / 200**0.5
    walk = np.concatenate([found[:1], steps]).cumsum(axis=0)
    while (beyond := np.abs(walk - 0.5) > 0.5).any():  # turned round at 0 and 1
        walk[beyond] = np.where(walk < 0, -walk, 2 - walk)[beyond]
    np.testing.assert_allclose(found, walk, atol=1e-12)
    assert {name: len(means) for name, means in MEANS.items()} == {
        **{"two": 2, "two-high": 2, "ten": 10, "steps": 5, "close": 5, "hundred": 100},
        "incentives": 9,
    }
    frozen = resources.files("dpbandit.envs") / "data" / "thornton_incentives.json"
    assert [*MEANS["incentives"]] == json.loads(frozen.read_text())["means"]


def test_several_rounds_at_once_are_rounds():
    """Regret by hand, of so many plays of each arm; totals are counts of 10,000 coins, within 5
    standard errors; the best fixed arm is that of the means, however often it was played."""
    problem = Arms(means=[0.4, 0.6, 0.5])
    problem.reset(Streams([0, 1]))
    totals, regret = problem.several(1, np.array([10_000, 1, 10_000]))
    assert regret == pytest.approx(2000 + 1000)
    assert abs(totals - [4000, 0.6, 5000]).max() < 5 * 50
    assert problem.best_fixed().tolist() == [0, 1]


def test_tables_come_from_files_and_are_clipped(tmp_path):
    """CSV with names or without and parquet are one; what is outside or missing is clipped if that
    was asked for, and the share of such rounds reported; an index is no arm, a line that may be
    names or numbers is refused; in hindsight the largest column is best; money is money."""
    pandas = pytest.importorskip("pandas")
    table = np.array([[0.5, 2.0], [np.nan, 1.0], [0.25, 0.75], [0.0, 1.0]])
    frame = pandas.DataFrame(table, columns=["a", "b"])
    files = [tmp_path / name for name in ("named.csv", "plain.csv", "x.parquet")]
    frame.to_csv(files[0], index=False)
    frame.to_csv(files[1], index=False, header=False)
    frame.to_parquet(files[2])
    for given in (table, *files):
        refused(r"2 of 8 \(25 %\).* by reward_range=", Arms, law="table", table=given, horizon=4)
        with pytest.warns(UserWarning, match=r"2 of 8 rewards .* outside reward_range=\(0, 1\)"):
            problem = Arms(law="table", table=given, horizon=4, most_outside=0.25)
        np.testing.assert_array_equal(problem._rewards, [[0.5, 1], [0, 1], [0.25, 0.75], [0, 1]])
        log = play(problem, Uniform(), [0, 1])
        np.testing.assert_array_equal(log.clipped, [0.5, 0.5])
    frame.to_csv(files[0])
    refused("got one without a name", Arms, law="table", table=files[0], horizon=4)
    for line, says in (("0,1", "got '0,1', which"), ("0.5,O.5", "which may be"), ("a,1", "which")):
        files[1].write_text(f"{line}\n0.5,0.5\n")
        refused(says, Arms, law="table", table=files[1], horizon=1)
    files[1].write_text("a,b\n0.5,half\n")
    refused("numbers, got 'half' in column 'b'", Arms, law="table", table=files[1], horizon=1)
    money = Arms(law="table", table=5 + 10 * np.eye(2), reward_range=(5, 15), horizon=2)
    assert (money.spec.reward_low, money.spec.reward_high) == (5, 15)
    np.testing.assert_array_equal(play(money, Uniform(), range(40)).regret[-1] % 10, 0)
    assert (play(money, Uniform(), range(40)).regret[-1] > 0).any()
    table = np.array([[0.2, 1.0], [0.9, 0.5], [0.9, 0.1]])
    problem = Arms(law="table", table=table, horizon=3)
    problem.reset(Streams([0]))
    lost = 0.0
    for _ in range(3):
        problem.context()
        lost = lost + problem.step(np.array([1])).regret
    lost = lost + problem.hindsight()
    np.testing.assert_allclose(lost, 2.0 - 1.6)
    assert problem.best_fixed() == [0]
    log = play(Arms(means="ten", horizon=50), Uniform(), [1, 2])
    assert set(np.round(np.diff(log.regret[:, 0], prepend=0), 9)) <= {0.0, 0.2}
