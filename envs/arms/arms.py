"""Bandits without contexts, with constant or changing reward distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_ROUNDS,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    flag,
    inside,
    one_of,
    reals,
    rows,
    two_numbers,
    whole,
)
from dpbandit.envs.contextual.problems import ContextualProblem, Users, row_of
from dpbandit.offline.columns import is_wide
from dpbandit.offline.tables import matrix_at
from dpbandit.specs import MOST_OUTSIDE, ArmsSpec, Step, Tally

MEANS = {
    "two": (0.6, 0.4),
    "two-high": (0.9, 0.8),
    "ten": (0.7, *9 * (0.5,)),
    "steps": (0.75, 0.625, 0.5, 0.375, 0.25),
    "close": (0.75, *4 * (0.7,)),
    "hundred": (*np.linspace(0.1, 0.7, 99).tolist(), 0.8),
    "incentives": (0.338, 0.6629, 0.6614, 0.6595, 0.6564, 0.6494, 0.6377, 0.61, 0.566),
}
"""Named mean rewards; `steps` is Figure 2 of Azize and Basu, NeurIPS 2022; `incentives` are the
means in `envs/data/thornton_incentives.json`"""
_CONCENTRATION = 10.0  # sum of the parameters of beta rewards: mean m is Beta(10 m, 10 (1 - m))
_SWITCH_SHARE, _PIECES, _WALK_SD = 0.25, 4, 0.5
"""Share of rounds before a swap of means; pieces of a drift; stddev of a mean's walk at the end"""
_FIRST_PHASE, _PHASE_GROWTH = 100, 1.6
"""Rounds before the constrained adversary's first jump of means; ratio of successive intervals"""


@dataclass(frozen=True, kw_only=True)
class ChangingArmsSpec(ArmsSpec):
    """Arms whose means change; regret is against the best fixed arm in hindsight."""

    in_hindsight: ClassVar[bool] = True


@dataclass(kw_only=True, eq=False)
class Arms(ContextualProblem):
    """A K-armed bandit without contexts, as in textbooks.

    Description:
        Every user has a reward for each arm, in [0, 1], or in `reward_range` with a table. The
        agent has no context; it plays an arm and observes the arm's reward.

        ===========  ===============================================================================
        name         means of the arms
        ===========  ===============================================================================
        two          .6 .4
        two-high     .9 .8
        ten          .7, and nine of .5
        steps        .75 .625 .5 .375 .25 (Azize and Basu, NeurIPS 2022, Figure 2)
        close        .75, and four of .7
        hundred      99 from .1 to .7 in equal steps, and .8
        incentives   .338, and eight from .663 to .566 (Thornton, American Economic Review, 2008)
        ===========  ===============================================================================

        "incentives": an arm is a payment of 0 to 2.59 dollars for fetching a test result that is
        worth 8 dollars; means are P(fetched) - payment / 8, by a logit fitted once to payments that
        were randomised.

        Regret is the difference of means to the best arm (pseudo-regret). If means change, or a
        table is played in order, it is measured against the best fixed arm in hindsight.

    Action space:
        `Discrete(K)`: the arm.

    Observation space:
        `Box`, shape (1,): 1, always.

    Rewards:
        In [0, 1], or in `reward_range`; 1 or 0 if `law` is bernoulli.

    Arguments:
        * `means`: mean rewards in [0, 1] of two arms or more, or a name of the table above.
        * `law`: distribution of rewards: bernoulli, beta (Beta(10 m, 10 (1 - m)) at mean m), table.
        * `table`: with law="table", rewards (T, K) as an array, or the path of a CSV or parquet
          file. Rows are played in order, or with `resample` drawn with replacement.
        * `reward_range`: (low, high), public bounds on a table's rewards, [0, 1] by default.
          Rewards outside are clipped, NaN becomes low, and their rounds are counted; if the share
          of such rewards exceeds `most_outside`, `InputError` is raised.
        * `drift`: piecewise (in each quarter of the rounds the means are permuted anew) or walk
          (each mean is a random walk within [0, 1]).
        * `adversary`: switching (after a quarter of the rounds the best and the worst arm swap
          means) or stochastically-constrained (gaps between means are constant, all jump from low
          to high or back in phases of growing length; Zimmert and Seldin, JMLR 2021, section 5).
        * `horizon`: rounds. `delay`: rounds until a reward is seen; the reward is 0 until then.
        * `blocks`: True if rounds of one policy may be drawn at once (if the law is bernoulli and
          means are constant); the distribution of results does not depend on it.
    """

    means: str | Sequence[float] = "two"
    law: str = "bernoulli"
    table: Any = None
    reward_range: Sequence[float] = (0.0, 1.0)
    most_outside: float = MOST_OUTSIDE
    resample: bool = False
    drift: str | None = None
    adversary: str | None = None
    horizon: int = 10_000
    delay: int = 0
    blocks: bool = True

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, 1, MOST_ROUNDS)
        one_of("law", self.law, ("bernoulli", "beta", "table"))
        flag("resample", self.resample)
        flag("blocks", self.blocks)
        if self.drift is not None:
            one_of("drift", self.drift, ("piecewise", "walk"))
        if self.adversary is not None:
            one_of("adversary", self.adversary, ("switching", "stochastically-constrained"))
        if (self.table is not None) != (self.law == "table"):
            raise InputError("Expected law='table' and a table=, the rewards, both or neither.")
        if self.resample and self.table is None:
            raise InputError("Expected resample=True with a table=, whose rows are drawn.")
        inside("most_outside", self.most_outside, 0, 1, ends=True)
        low, high = range_of(self.reward_range)
        if self.table is None and (low, high) != (0, 1):
            raise InputError(
                f"Expected reward_range={abbrev(self.reward_range)} with a table= alone: all other "
                "rewards are in [0, 1]."
            )
        changes = [word for word in (self.drift, self.adversary) if word is not None]
        if len(changes) + (self.table is not None) > 1:
            raise InputError(
                f"Expected one of a table, drift={self.drift!r} and adversary={self.adversary!r}."
            )
        if self.table is None:
            self._means = means_of(self.means)
        else:
            self._rewards, self._beyond = rewards_of(self.table, low, high, self.most_outside)
            self._means = self._rewards.mean(axis=0)
            if not self.resample and self.horizon > len(self._rewards):
                raise InputError(
                    f"Expected horizon={self.horizon} <= {len(self._rewards)}, the table's rows: "
                    "choose fewer rounds, or resample=True."
                )
        in_order = self.table is not None and not self.resample
        kind = ChangingArmsSpec if changes or in_order else ArmsSpec
        self.spec = kind(
            n_actions=len(self._means),
            dim=1,
            horizon=self.horizon,
            reward_low=low,
            reward_high=high,
            link="other",  # means of rewards are not their medians
            delay=self.delay,
        )

    def _start(self, streams: Streams) -> None:
        self._replicas, self._round = len(streams), 0
        self._outside, self._served = np.zeros(self._replicas), 0
        self._zero = np.zeros(self._replicas)
        self._path: Floats = np.tile(self._means, (self._replicas, 1))
        self._uniforms, self._generators = streams.uniforms("rewards"), streams.generators("totals")
        if self.law == "beta":
            self._betas = streams.generators("beta rewards")
        if self.drift == "piecewise":
            K = len(self._means)
            orders = streams.world.uniforms("orders", _PIECES, K)().argsort(axis=2)
            self._pieces = self._means[orders]  # (R, pieces, K)
        elif self.drift == "walk":
            self._steps = streams.world.normals("walk", len(self._means))

    def _users(self, count: int) -> Users:
        shape, first = (count, self._replicas, self.spec.n_actions), self._round
        self._round += count
        context = np.ones((count, self._replicas, 1))
        if self.table is not None:
            return Users(context, *self._from_table(first, shape))
        mean = np.broadcast_to(self._mean(first + rows(count)), shape)
        if self.law == "bernoulli":  # one draw a round, whatever the arm
            return Users(context, mean, 1.0 * (self._uniforms.take(count)[..., None] < mean))
        reward = np.empty(shape)
        for r, g in enumerate(self._betas):
            a = np.maximum(_CONCENTRATION * mean[:, r], 1e-9)
            reward[:, r] = g.beta(a, np.maximum(_CONCENTRATION - a, 1e-9))
        return Users(context, mean, reward)

    def _from_table(self, first: int, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return means and rewards of the next rounds, from the table, both of `shape`."""
        if self.resample:
            row = row_of(self._uniforms.take(shape[0]), len(self._rewards))  # (n, R)
        else:
            row = np.minimum(first + rows(shape[0]), len(self._rewards) - 1)[:, None]
        self._row_outside, reward = self._beyond[row], np.broadcast_to(self._rewards[row], shape)
        return (np.broadcast_to(self._means, shape) if self.resample else reward), reward

    def _mean(self, t: Ints) -> Floats:
        """Return means in the next n rounds t (n,), in a shape that broadcasts to (n, R, K)."""
        means, T = self._means, self.horizon
        if self.adversary == "switching":
            swapped = means.copy()
            best, worst = means.argmax(), means.argmin()
            swapped[[best, worst]] = means[[worst, best]]
            return np.where((t >= _SWITCH_SHARE * T)[:, None], swapped, means)[:, None]
        if self.adversary is not None:
            phase = np.floor(
                np.log1p(t * (_PHASE_GROWTH - 1) / _FIRST_PHASE) / np.log(_PHASE_GROWTH)
            )
            high = (phase % 2 == 1)[:, None]
            return np.where(high, means + (1 - means.max()), means - means.min())[:, None]
        if self.drift == "piecewise":
            piece = np.minimum(t * _PIECES // T, _PIECES - 1)
            return self._pieces[:, piece].swapaxes(0, 1)
        if self.drift == "walk":
            steps = _WALK_SD / T**0.5 * self._steps.take(len(t))
            path = np.add.accumulate(np.concatenate([self._path[None], steps]))
            self._path = path[-1]
            return 1 - np.abs(path[:-1] % 2 - 1)  # reflected at 0 and 1
        return means

    def step(self, action: npt.NDArray[Any]) -> Step:
        if self.table is not None:
            self._served += 1
            self._outside += self._row_outside[self._next]
        step = super().step(action)
        if not self.spec.in_hindsight:
            return step
        return Step(step.reward, step.expected, self._zero, -step.expected)

    def clipped(self) -> Floats:
        return self._outside / max(1, self._served)

    def hindsight(self) -> float | Floats:
        return self._totals.max(axis=1) if self.spec.in_hindsight else 0.0

    @property
    def stationary(self) -> bool:
        """True if many rounds of one policy can be drawn at once, by the method `several`."""
        return self.blocks and self.law == "bernoulli" and not self.delay + self.spec.in_hindsight

    def several(self, replica: int, counts: Ints) -> tuple[Floats, float]:
        """Draw total rewards (K,) and regret of `counts` (K,) plays of the arms in one replica."""
        self._totals[replica] += counts.sum() * self._means
        totals = self._generators[replica].binomial(counts, self._means).astype(np.float64)
        return totals, float(counts @ (self._means.max() - self._means))


def means_of(means: Any) -> Floats:
    """Return mean rewards, given or by name; raise `InputError` unless all are in [0, 1]."""
    if isinstance(means, str) and not any(map(str.isdigit, means)):
        one_of("means", means, MEANS)
        means = MEANS[means]
    try:
        found = reals(means)
    except ValueError:
        found = np.empty(0)
    fits = found.ndim == 1 and 2 <= len(found) <= MOST_ACTIONS
    if not fits or not ((found >= 0) & (found <= 1)).all():
        raise InputError(
            f"Expected means={abbrev(means)} to be numbers in [0, 1] of at least 2 arms, such "
            f"as [0.6, 0.4], or one of {', '.join(MEANS)}."
        )
    return found


def range_of(ends: Any) -> tuple[float, float]:
    """Check and return public bounds on rewards, (low, high)."""
    low, high = two_numbers("reward_range", ends)
    if not is_wide(low, high):
        raise InputError(f"Expected reward_range={abbrev(ends)} to be (low, high), low < high.")
    return low, high


def rewards_of(
    table: Any, low: float, high: float, most_outside: float
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Read rewards (T, K), clip them, NaN to low; return them and a mask (T,) of changed rows."""
    named = f"table={str(table)!r}" if isinstance(table, str | PathLike) else "table"
    try:
        found = matrix_at(table) if isinstance(table, str | PathLike) else reals(table)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"Expected {named} to be rows of numbers: {error}.") from None
    if found.ndim != 2 or len(found) == 0 or found.shape[1] < 2:
        raise InputError(
            f"Expected {named} of shape {found.shape} to be (T, K), T >= 1 rounds and K >= 2 arms."
        )
    beyond = ~((found >= low) & (found <= high))  # NaN is neither
    tally = Tally(
        "rewards",
        f"outside reward_range=({low:g}, {high:g})",
        "set public bounds by reward_range=",
        users=found.size,
        most_outside=most_outside,
    )
    tally.add(beyond.reshape(-1, 1), found.reshape(-1, 1))
    return np.clip(np.where(np.isnan(found), low, found), low, high), np.asarray(beyond.any(axis=1))
