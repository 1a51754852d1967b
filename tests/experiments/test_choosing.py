"""Generated problems: what a seed decides, and that every problem is what its arguments say."""

import numpy as np

from dpbandit.base import Streams
from dpbandit.experiments.choosing.problems import HORIZONS, KINDS, problems
from dpbandit.experiments.choosing.worlds import Numbers
from dpbandit.running.environments import problem_maker
from dpbandit.testing import check_problem
from tests.each import asserting


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


def test_every_problem_keeps_the_contract_and_has_something_to_learn():
    """Uniform play loses more than 1/1,000 of the range of rewards; the table of users, from which
    counts are drawn, has the means that rounds expect (an oracle by another sum)."""
    for drawn in problems(7, 2 * len(KINDS)):
        with asserting(drawn.name):
            setup = drawn.setup(0, 50)
            problem = problem_maker(setup.environment)(**setup.env_kwargs)
            check_problem(problem)
            problem.reset(Streams([1, 2]))
            mean, spec = problem._users(1000).mean, problem.spec
            lost = (mean.max(axis=2) - mean.mean(axis=2)).mean()
            assert lost > 0.001 * (spec.reward_high - spec.reward_low)
            if isinstance(problem, Numbers) and (table := problem.user_table):
                expected = (table.chance * table.reward).sum(axis=2)
                np.testing.assert_allclose(expected, problem._means, atol=1e-9)
