"""Generated problems, and what is said of defaults that play them."""

from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbandit.base import Streams
from dpbandit.experiments import choosing
from dpbandit.experiments.choosing import __main__ as choice, monotone
from dpbandit.experiments.choosing.monotone import Case, Line, largest_rise, rises
from dpbandit.experiments.choosing.problems import HORIZONS, KINDS, Drawn, part_of, problems
from dpbandit.experiments.choosing.worlds import Numbers
from dpbandit.running.environments import problem_maker
from dpbandit.testing import check_problem
from tests.each import asserting, by_rota, in_turn, refused
from tests.experiments.runs import run_command

PARTS = 9
"""Number of parts of the monotone study, of which a commit runs one"""


def test_a_seed_decides():
    """The same problems for the same seed and for a smaller number, every kind, both sizes of a
    kind drawn twice, and other numbers for another seed, everywhere."""
    some = problems(5)
    assert some == problems(5)
    assert some[:4] == problems(5, 4)
    assert {one.kind for one in some} == set(KINDS)
    assert len(some) == len({(one.kind, one.size) for one in some}) == 30
    assert all(HORIZONS[one.size][0] <= one.horizon <= HORIZONS[one.size][1] for one in some)
    assert 10 <= sum(one.size == "long" for one in some) <= 20
    others = problems(6, 2 * len(KINDS))
    assert len(others) == 2 * len(KINDS)
    by_kind = {(one.kind, str(one.arguments)) for one in some}
    assert not by_kind & {(one.kind, str(one.arguments)) for one in others}


@pytest.mark.parametrize("part", by_rota(range(3), 3, slow=False))
def test_every_problem_keeps_the_contract_and_has_something_to_learn(part):
    """Uniform play loses more than 1/1,000 of the range of rewards, and the table of users, from
    which counts are drawn, has the means that rounds expect (an oracle by another sum). A commit
    plays a third of the problems."""
    for drawn in problems(7, 2 * len(KINDS))[part::3]:
        with asserting(drawn.name):
            setup = drawn._replace(horizon=50).setup(0)
            problem = problem_maker(setup.environment)(**setup.env_kwargs)
            check_problem(problem)
            problem.reset(Streams([1, 2]))
            mean, spec = problem._users(1000).mean, problem.spec
            lost = (mean.max(axis=2) - mean.mean(axis=2)).mean()
            assert lost > 0.001 * (spec.reward_high - spec.reward_low)
            if isinstance(problem, Numbers) and (table := problem.user_table):
                expected = (table.chance * table.reward).sum(axis=2)
                np.testing.assert_allclose(expected, problem._means, atol=1e-9)


def test_rises_are_paired_and_the_largest_is_told():
    """Golden, by hand: 1, 3 rises by 2 +- 1 from 0, 0; from 5, 6 to 5.1, 6.3 by .2 +- .1, which is
    as many errors; a constant is none; rounds are compared by 1,000."""
    line = Line(Case("p", "Arms", {}), "fade", "epsilon", [1.0, 10.0, inf], [])
    rise = largest_rise(line, [np.array([5.0, 6.0]), np.array([0.0, 0.0]), np.array([1.0, 3.0])])
    assert (rise.low, rise.high, rise.rise, rise.rise_se) == pytest.approx((10, inf, 2, 1))
    assert rise.errors == pytest.approx(2)
    assert largest_rise(line, [np.ones(2)] * 3).errors == 0
    by_round = line._replace(axis="rounds", places=[1000, 4000])
    rise = largest_rise(by_round, [np.array([5.0, 6.0]), 4 * np.array([5.1, 6.3])])
    assert (rise.at_low, rise.at_high) == pytest.approx((5.5, 5.7))
    assert rise.errors == pytest.approx(2)
    assert not rise.holds


def test_what_rises_is_played_again_by_others(tmp_path, monkeypatch):
    """Broken on purpose: the default is the best arm at epsilon 1 and random play at 3. The line
    along epsilon says so for both sets of users, and none of the three other lines does."""
    sizes = {**monotone.QUICK_SIZES, "epsilons": (1.0, 3.0), "horizons": (30, 40)}
    sizes |= {"replicas": 4, "agents": 2}
    words = {1.0: "best-fixed", 3.0: "broken"}
    parse = monotone.parse_agent
    broken = {"broken": parse("epsilon-greedy:exploration=1")}
    monkeypatch.setattr(monotone, "parse_agent", lambda one: broken.get(one) or parse(one))
    monkeypatch.setattr(monotone, "recommend", lambda env, epsilon, **_: words[epsilon])
    found = rises(Case("two arms", "Arms", {}), sizes, tmp_path)
    (bad,) = (one for one in found if one.holds)
    assert (bad.agent, bad.axis, bad.low, bad.high) == ("recommend", "epsilon", 1.0, 3.0)
    assert {(one.agent, one.axis) for one in found} == {
        *(("fade", axis) for axis in ("epsilon", "rounds")),
        *(("recommend", axis) for axis in ("epsilon", "rounds")),
    }


@pytest.mark.filterwarnings("ignore:Prices were not randomised")  # of the example log
@pytest.mark.parametrize("part", by_rota(range(PARTS), PARTS))
def test_more_is_never_worse(part, tmp_path):
    """Lines that rise are those of the page, whose store says by how much. A false alarm needs 3
    errors by each of two sets of users: about 1 in 500 for each part."""
    known = pd.read_csv(Path(choosing.__file__).with_name("monotone.csv"), comment="#")
    known = known.query("run == 'quick' and holds")
    known = {*zip(known["problem"], known["agent"], known["axis"], strict=True)}
    for case in part_of(monotone.cases(seed=1), f"{part}/{PARTS}"):
        found = rises(case, monotone.QUICK_SIZES, tmp_path / case.name.replace(" ", "-"))
        assert not {one[:3]: one for one in found if one.holds and one[:3] not in known}


@in_turn(0)
def test_the_command_of_choices(tmp_path, monkeypatch):
    """The best private agent of a first set of users is compared on others; above 1.2 times its
    regret a choice is a miss, and the title counts the misses that were warned of."""
    drawn = Drawn("arms", "short", "Arms", {"means": [0.9, 0.1]}, 1000)
    monkeypatch.setattr(choice, "problems", lambda *_: [drawn])
    monkeypatch.setattr(choice, "OF_FADE", ())
    monkeypatch.setattr(choice, "recommend", lambda *_, **__: "dp-ucb:epsilon=1")
    sizes = {**choice.QUICK_SIZES, "replicas": 4, "horizon": 1000}
    monkeypatch.setattr(choice, "QUICK_SIZES", sizes)
    done = run_command(choice.main, "--quick", "--out", tmp_path, "--epsilon", 1)
    assert done.exit_code == 0, done.output
    (row,) = pd.read_csv(tmp_path / "choosing.csv").to_dict("records")
    assert row["ratio"] == pytest.approx(row["mean"] / row["best_mean"])
    assert row["ratio"] > 1.2
    assert not row["good"]
    assert f"{int(row['warned'])} of 1 misses warned of" in done.output
    refused("part='6/6' to be I/N", part_of, [1], "6/6")
