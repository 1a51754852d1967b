"""Arms: laws, changes, tables, and what is refused."""

import json
from importlib import resources

import numpy as np
import pytest

from dpbandit import play
from dpbandit.agents import Uniform
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Arms
from dpbandit.envs.arms.arms import MEANS
from dpbandit.testing.checks import check_problem
from tests.each import each

CHANGES = [
    {},
    {"law": "beta"},
    {"drift": "piecewise"},
    {"drift": "walk", "law": "beta"},
    {"adversary": "switching", "delay": 3},
    {"adversary": "stochastically-constrained"},
    {
        "law": "table",
        "table": [[0.2, 0.9, 0.4], [0.7, 0.3, 0.6], [0.1, 0.8, 1.0]],
        "resample": True,
    },
]


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
    """Golden: after a quarter of the rounds .75 and .25 change places; levels of the constrained
    adversary keep all gaps, start low and reach 1; a drift's quarters are orders of the means."""
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
    _, found = means_of_rounds(R=40, means=[0.05, 0.95], horizon=200, drift="walk")
    assert 0 <= found.min() < found.max() <= 1
    assert 0.02 < (found[1:] - found[:-1]).std() * 200**0.5 / 0.5 < 1.1


def test_hindsight_is_the_best_fixed_arm():
    """Oracle: of a table in order the largest column; fixed play of any arm has regret best - its
    own; where nothing changes regret is by means."""
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


def test_beta_has_its_variance():
    """Statistical: m (1 - m) / 11 at concentration 10, of 40,000 rewards of each arm; 5 %."""
    problem = Arms(means=[0.3, 0.5, 0.0, 1.0], law="beta", horizon=10)
    problem.reset(Streams(range(10)))
    reward = problem._users(4000).reward.reshape(-1, 4)
    np.testing.assert_allclose(reward.mean(axis=0), [0.3, 0.5, 0, 1], atol=0.005)
    np.testing.assert_allclose(reward[:, :2].var(axis=0), [0.21 / 11, 0.25 / 11], rtol=0.05)


def test_tables_come_from_files_and_are_clipped(tmp_path):
    """CSV with names or without and parquet are one; what is outside or missing is clipped, and
    the share of such rounds is reported. An index is no arm."""
    pandas = pytest.importorskip("pandas")
    table = np.array([[0.5, 2.0], [np.nan, 1.0], [0.25, 0.75], [0.0, 1.0]])
    frame = pandas.DataFrame(table, columns=["a", "b"])
    files = [tmp_path / name for name in ("named.csv", "plain.csv", "x.parquet")]
    frame.to_csv(files[0], index=False)
    frame.to_csv(files[1], index=False, header=False)
    frame.to_parquet(files[2])
    for given in (table, *files):
        problem = Arms(law="table", table=given, horizon=4)
        np.testing.assert_array_equal(problem._rewards, [[0.5, 1], [0, 1], [0.25, 0.75], [0, 1]])
        log = play(problem, Uniform(), [0, 1])
        np.testing.assert_array_equal(log.clipped, [0.5, 0.5])
    frame.to_csv(files[0])
    with pytest.raises(InputError, match="first column has no name"):
        Arms(law="table", table=files[0], horizon=4)


def test_instances():
    assert {name: len(means) for name, means in MEANS.items()} == {
        **{"two": 2, "two-high": 2, "ten": 10, "steps": 5, "close": 5, "hundred": 100},
        "incentives": 9,
    }
    frozen = resources.files("dpbandit.envs") / "data" / "thornton_incentives.json"
    assert [*MEANS["incentives"]] == json.loads(frozen.read_text())["means"]
