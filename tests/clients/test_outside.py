"""Data beyond their public bounds: counted, said, and refused if much, at every way in."""

import warnings

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import FADE, LinUCB, Uniform
from dpbandit.base import Streams
from dpbandit.clients import FromGymnasium, Player, read_log, river_history
from dpbandit.offline import Logged, replay
from dpbandit.specs import ContextualSpec
from tests.clients.worlds import Coins, means
from tests.each import each, refused

N = 200
"""Users: two may lie outside, the third is refused."""


def ages(n, seed=0):
    """A log of two arms; the older half clicks on "b" with probability 0.8, the younger on "a"."""
    rng = np.random.default_rng(seed)
    age, arm = rng.uniform(20, 60, n), rng.integers(2, size=n)
    good = np.where((age > 40) == (arm == 1), 0.8, 0.2)
    return {"age": age, "shown": np.array(["a", "b"])[arm], "click": 1.0 * (rng.random(n) < good)}


AGES = {"action": "shown", "reward": "click", "reward_range": (0, 1)}


def test_ages_from_20_to_60_are_not_clipped_to_one_without_a_word():
    """A bound of 1 is refused, and random play if insisted on (0.5, errors of 0.009: beyond 0.535
    with probability 1e-4); with a public range FADE learns (0.62 to 0.74 with 15 of 16 seeds)."""
    table = ages(6000)
    refused(r"'age': \(low, high\).* context_bound=None", read_log, table, context=["age"], **AGES)
    says = r"at most 1 % of 6000 contexts beyond context_bound=1 .* 6000 of 6000 .* such as 60: "
    with pytest.raises(InputError, match=says + "scale features by public ranges"):
        read_log(table, context=["age"], context_bound=1.0, **AGES)
    with pytest.warns(UserWarning, match=r"6000 of 6000 contexts \(100 %\) lie beyond"):
        blunt = read_log(table, context=["age"], context_bound=1.0, most_outside=1, **AGES)
    np.testing.assert_allclose(blunt.context, 1)
    found = replay(FADE(), blunt, passes=1)
    assert found.mean < 0.535
    for said in (str(found), str(blunt)):
        assert "6000 of 6000 contexts (100 %) and 0 rewards (0 %) outside their bounds" in said
    sharp = read_log(table, context={"age": (18, 90)}, **AGES)
    assert not sharp.outside
    found = [replay(FADE(), sharp, passes=1, seed=seed) for seed in range(5)]
    assert np.median([one.mean for one in found]) > 0.6
    assert "outside" not in str(found[0])


BOUNDS = {"reward_range": (0, 3), "context_bound": 2.0}


def by_log(context, reward, **more):
    spec = ContextualSpec(n_actions=2, dim=2, horizon=N, context_bound=2.0, reward_high=3.0, **more)
    rows = {"context": context, "action": np.arange(N) % 2, "reward": reward}
    return Logged(spec=spec, **rows, propensity=0.5)


def by_table(context, reward, features=("x", "y"), bounds=BOUNDS, **more):
    table = {"x": context[:, 0], "y": context[:, 1], "a": np.arange(N) % 2, "r": reward}
    return read_log(table, context=features, action="a", reward="r", **bounds, **more)


def by_ranges(context, reward, **more):
    ranges = {"x": (-2, 2), "y": (-2, 2)}
    return by_table(context, reward, ranges, {"reward_range": (0, 3)}, **more)


def by_player(context, reward, **more):
    player = Player(LinUCB(), Coins(seen="vector"), horizon=N, **BOUNDS, **more)
    for x, r in zip(context, reward, strict=True):
        player.act(x)  # looks twice, counts once
        player.update(x, 5, r)
    return player


class Scripted(Coins):
    """Shows the contexts, and pays the rewards, of a script."""

    def __init__(self, context, reward):
        super().__init__(seen="vector")
        self.script, self.t = (context, reward), -1

    def _next(self):
        self.t += 1
        self.kind = 0
        return self.script[0][min(self.t, N - 1)]

    def step(self, action):
        self.paid = self.script[1][self.t]
        return super().step(action)


def scripted(context, reward, **more):
    return FromGymnasium(lambda: Scripted(context, reward), oracle=means, **BOUNDS, **more)


def by_gymnasium(context, reward, replicas=1, **more):
    problem = scripted(context, reward, **more)(horizon=N)
    problem.reset(Streams(list(range(replicas))))
    for t in range(N):
        for _ in range(t % 3):  # looked at never, once or twice: counted once
            problem.context()
        problem.step(np.zeros(replicas, dtype=np.int64))
    return problem


WAYS_IN = [by_log, by_table, by_ranges, by_player, by_gymnasium]


def data(contexts=0, rewards=0, far=50.0):
    """N users, of whom some lie outside, the last ones first."""
    context, reward = np.full((N, 2), 0.5), np.full(N, 2.0)
    context[N - contexts :] = [far, 1]
    reward[: rewards // 2] = -0.01
    reward[rewards // 2 : rewards] = 3.01
    return context, reward


@each("way_in", WAYS_IN)
@each("kind", ["contexts", "rewards"])
def test_one_in_a_hundred_is_said_and_more_is_refused(way_in, kind):
    quiet = way_in(*data())  # warnings are errors here
    assert (quiet.outside.contexts, quiet.outside.rewards, quiet.outside.users) == (0, 0, N)
    with pytest.warns(UserWarning, match=r"lie (beyond|outside)") as caught:
        some = way_in(*data(**{kind: 2}))
    assert len(caught) == 1
    assert getattr(some.outside, kind) == 2
    assert some.outside.contexts + some.outside.rewards == 2
    with warnings.catch_warnings(action="ignore"):
        for most, count, more in ((1, 3, {}), (0, 1, {"most_outside": 0})):
            says = rf"at most {most} % of 200 .* got {count} of .* most_outside="
            refused(says, way_in, *data(**{kind: count}), **more)
        assert getattr(way_in(*data(**{kind: N}), most_outside=1).outside, kind) == N
    refused(r"most_outside=1.5 to be a number in \[0, 1\]", way_in, *data(), most_outside=1.5)


@pytest.mark.filterwarnings("ignore:.* private agents clip them")
@each(
    ("outside", "most", "share"),
    [
        ({"contexts": 2}, 0.01, 0.01),
        ({"contexts": 1, "rewards": 1}, 0.01, 0.01),  # the last user and the first
        ({"contexts": N}, 1, 1.0),
        ({"contexts": N, "rewards": N}, 1, 1.0),
        ({"rewards": 100}, 0.5, 0.5),
    ],
)
def test_results_tell_what_was_clipped_on_the_way_in(outside, most, share):
    """Contexts are within the bound when the loop sees them, and yet they were clipped. What was
    asked for is not refused by the loop either."""
    make = scripted(*data(**outside), most_outside=most)
    results = compare(make, {"Uniform": Uniform()}, horizon=N, replicas=2, progress=False)
    assert [run.clipped.tolist() for run in results.runs] == [[share] * 2] * 2


@each("way_in", WAYS_IN)
def test_a_bound_reached_but_for_rounding_is_kept_and_what_is_not_finite_is_not(way_in):
    """Unit vectors in float32 are longer than 1 by 6e-8."""
    context, reward = data()
    context[:], reward[:] = np.array([2.0000001, 0]), 3.0000001
    assert not way_in(context, reward).outside
    for far in (np.nan, np.inf) if way_in in (by_player, by_gymnasium) else ():
        with pytest.warns(UserWarning, match=f"such as {far}"):
            assert way_in(*data(contexts=1, far=far)).outside.contexts == 1


def test_contexts_are_clipped_in_a_log_and_rounds_named_elsewhere():
    """A caller's array stays as it is, as do rewards; river gets what the log has. Of 60 users one
    is more than 1 %."""
    context, reward = data(contexts=1, rewards=2)
    with pytest.warns(UserWarning, match="private agents clip them"):
        logged = by_log(context, reward)
    np.testing.assert_allclose(np.linalg.norm(logged.context[-1]), 2)
    np.testing.assert_array_equal(logged.context[:-1], context[:-1])
    np.testing.assert_array_equal(logged.reward, reward)
    assert context[-1, 0] == 50
    assert river_history(logged)[0][3] == -0.01
    with pytest.warns(UserWarning, match="private agents clip them"):
        each = by_ranges(context, reward)
    np.testing.assert_allclose(each.context[-1] * 3**0.5, [1, 1, 0.5])  # column by column
    settings = {"horizon": 60, "reward_range": (0, 1), "context_bound": 0.5}
    player = Player(LinUCB(), Coins(seen="vector"), **settings)
    player.act(np.zeros(2, np.float32))
    player.update(np.array([0.5, 0], np.float32), 5, 1.0)
    player.act(np.zeros(2, np.float32))
    with pytest.raises(InputError, match="In round 2: Expected at most 1 % of 60 contexts"):
        player.update(np.array([0.6, 0], np.float32), 5, 1.0)
    make = FromGymnasium(Coins, oracle=lambda env: means(env) / 2, reward_range=(0, 0.5))
    says = r"In round \d+: Expected at most 1 % of 60 rewards outside"
    refused(says, compare, make, {"Uniform": Uniform()}, horizon=60, replicas=2, progress=False)


def test_replicas_columns_and_arms():
    """Three replicas with two users outside each are as fine as one; and as bad with three. The
    worst column is named, and a user is outside if one of her arms is: her other rows are kept."""
    with pytest.warns(UserWarning, match="private agents clip them"):
        three = by_gymnasium(*data(rewards=2), replicas=3)
    assert (three.outside.rewards, three.outside.users) == (6, 3 * N)
    says = r"got 3 of 3 .* such as 3\.01"
    with warnings.catch_warnings(action="ignore"), pytest.raises(InputError, match=says):
        by_gymnasium(*data(rewards=3), replicas=3)
    context, reward = data(contexts=3)
    context[-1] = [50, -70]
    says = (
        r"above all column 'x' outside \[-2, 2\], got 3 of 200 \(1.5 %\), the first is number 198, "
    )
    says += "such as 50: say wider"
    refused(says, by_ranges, context, reward)
    spec = ContextualSpec(n_actions=2, dim=2, horizon=9, shared=True)
    context = np.full((N, 2, 2), 0.5)
    context[3, 1] = [3, 4]
    rows = {"action": np.arange(N) % 2, "reward": np.zeros(N), "propensity": 0.5}
    with pytest.warns(UserWarning, match=r"1 of 200 contexts .* such as 5: "):
        logged = Logged(spec=spec, context=context, **rows)
    np.testing.assert_allclose(logged.context[3], [[0.5, 0.5], [0.6, 0.8]])
