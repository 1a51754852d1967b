"""What `check_problem` says of broken problems; that all environments pass, tests/envs shows."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpbandit import compare
from dpbandit.agents import LinUCB
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing import check_problem
from tests.each import each


@dataclass(kw_only=True, eq=False)
class Coins(ContextualProblem):
    """Two arms that pay 1 with chances of 0.3 and 0.6."""

    delay: int = 0
    spec = ContextualSpec(n_actions=2, dim=1, horizon=50)

    def _start(self, streams):
        self._luck = streams.uniforms("luck")

    def _users(self, count):
        mean = np.broadcast_to([0.3, 0.6], (count, *(u := self._luck.take(count)).shape[1:], 2))
        return Users(np.ones((*mean.shape[:2], 1)), mean, 1.0 * (u[..., None] < mean))


def broken(name, **methods):
    """Coins with other methods."""
    return type(name, (Coins,), {**methods, "__module__": __name__})


def changed(name, change):
    """Coins whose users are changed."""
    return broken(name, _users=lambda coins, count: change(Coins._users(coins, count)))


WrongMeans = changed("WrongMeans", lambda u: u._replace(mean=np.full_like(u.mean, 0.6)))
FlatContexts = broken("FlatContexts", context=lambda coins: Coins.context(coins)[:, 0])
NegativeHindsight = broken("NegativeHindsight", hindsight=lambda coins: -5.0)
NeverBest = broken("NeverBest", best_fixed=lambda coins: np.zeros(len(coins._offset), int))
FarContexts = changed("FarContexts", lambda u: u._replace(context=3.0 * u.context))
FlatUsers = changed("FlatUsers", lambda u: u._replace(mean=u.mean[..., 0]))
MoreArms = changed("MoreArms", lambda u: u._replace(reward=np.repeat(u.reward, 2, axis=-1)))
Percent = changed("Percent", lambda u: u._replace(mean=100 * u.mean))


class SharedLuck(Coins):
    def _start(self, streams):
        super()._start(Streams(streams._seeds[:1] * len(streams), path=streams._path))


class NoSeed(Coins):
    def _start(self, streams):
        super()._start(Streams([(1, r) for r in range(len(streams))]))


class AnyAction(Coins):
    def step(self, action):
        try:
            return super().step(action)
        except InputError:
            return super().step(np.zeros(len(self._offset), dtype=np.int64))


class WorseOracle(Coins):
    def step(self, action):
        step = super().step(action)
        return step._replace(oracle=step.oracle - 0.2, regret=step.oracle - 0.2 - step.expected)


class LaterColumns(Coins):
    steps = 0

    def step(self, action):
        step, self.steps = super().step(action), self.steps + 1
        return step._replace(reward=step.reward[:, None]) if self.steps > 12 else step


class Forgets(Coins):
    def __deepcopy__(self, memo):
        return type(self)()

    def context(self):
        if not hasattr(self, "_offset"):
            self.reset(Streams(range(6)))
        return super().context()


@each(
    ("problem", "sentence"),
    [
        (WrongMeans, "on average what is expected, got -0.1"),
        (SharedLuck, "replicas not to know each other: 1 to 2 of six"),
        (FarContexts, "contexts of l_2 norm at most context_bound=1, got 100.00% outside"),
        (FlatContexts, r"contexts in round 1 of shape \(6, 1\), got \(6,\)"),
        (LaterColumns, r"reward of shape \(6,\), got \(6, 1\)"),
        (NoSeed, "other seeds to bring other users"),
        (AnyAction, "to be refused"),
        (WorseOracle, r"oracle=\[.*\] to be at least expected="),
        (NegativeHindsight, "hindsight=-5.0 to be 0: a ContextualSpec measures regret round by"),
        (NeverBest, "best_fixed.* the best of all fixed actions, one earns 7.2 more"),
        (Forgets, "its deep copy in mid-episode to go on"),
    ],
)
def test_broken_problems_are_caught(problem, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_problem(problem())


def test_rewards_may_all_come_later_than_is_played():
    """Then none is held against its bounds, and nothing is divided by their number."""
    assert len(check_problem(Coins())) == 9  # nothing is broken
    assert "bounds: are kept" in check_problem(GLMBandit(horizon=60, delay=50))


@each(
    ("problem", "sentence"),
    [
        (FlatUsers, r"mean of Users of FlatUsers of shape \(\d+, 2, 2\), got \(\d+, 2\)"),
        (MoreArms, r"reward of Users of MoreArms of shape \(\d+, 2, 2\), got \(\d+, 2, 4\)"),
        (Percent, r"mean rewards in \[0, 1\], as rewards are, got 30"),
        (LaterColumns, r"In round 13: Expected reward of shape \(2,\), got \(2, 1\)"),
        (NegativeHindsight, "hindsight=-5.0 to be 0"),
    ],
)
def test_comparisons_tell_an_author_what_is_wrong(problem, sentence):
    """Without, they end in a traceback, or with a regret of thousands."""
    how = {"horizon": 50, "replicas": 2, "progress": False}
    with pytest.raises(InputError, match=sentence):
        compare(lambda horizon: problem(), {"LinUCB": LinUCB()}, **how)
