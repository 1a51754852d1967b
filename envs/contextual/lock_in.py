"""Small problems on which greedy play can lock in: an arm that is not tried is not learned."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpbandit.base import Floats, Ints, Streams, inside, rows
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.specs.protocols import ContextualSpec

_FIRST, _SECOND = (0.7, 0.5), (0.9, 0.6)
"""Mean rewards of the better and of the other arm, of users of the first and the second kind."""
_HIGH = 0.8
"""That of the better of two arms."""


@dataclass(kw_only=True, eq=False)
class _Kinds(ContextualProblem):
    """Two arms, a few kinds of users: kind j has context e_j and a better arm of its own.

    Subclasses say how good the arms are (`_means`), and who comes when (`_kinds`).
    """

    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        self.spec = ContextualSpec(
            n_actions=2,
            dim=len(self._means()),
            horizon=self.horizon,
            link="other",  # clicks, whose means are linear and whose medians are not
            delay=self.delay,
        )

    @abstractmethod
    def _means(self) -> tuple[tuple[float, float], ...]:
        """Of each kind, the mean rewards of the better and of the other arm."""

    @abstractmethod
    def _kinds(self, count: int) -> Ints:
        """Those of the next users, (n, R)."""

    def _start(self, streams: Streams) -> None:
        means = np.array(self._means())
        swapped = streams.world.uniforms("which arm is better", len(means))() < 0.5  # (R, kinds)
        self._of_kinds: Floats = np.where(swapped[..., None], means[:, ::-1], means)
        self._luck = streams.uniforms("rewards")

    def _users(self, count: int) -> Users:
        kinds = self._kinds(count)
        mean = self._of_kinds[rows(kinds.shape[1]), kinds]  # (n, R, 2)
        luck = self._luck.take(count)[..., None]  # one draw a round, whatever the arm
        return Users(np.eye(self.spec.dim)[kinds], mean, 1.0 * (luck < mean))


@dataclass(kw_only=True, eq=False)
class TwoPhase(_Kinds):
    """Another kind of user comes when all exploration is over.

    Description:
        Until round `change` T every user has context e1 and rewards an arm with probability 0.7 and
        the other with 0.5; from then on every user has context e2, and the means are 0.9 and 0.6.
        Which arm is better is a fair coin for each kind and episode. An oblivious adversary: an
        agent that has stopped exploring tries one arm on e2, finds it better than nothing, and
        keeps it; the regret of greedy play is linear.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (2,): the context e1 or e2.

    Rewards:
        1 or 0.

    Starting state:
        Two new coins, and the first user.

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `horizon`: rounds. `change`: the share of them after which the second kind comes.
        * `delay`: rounds until a reward is seen; 0 is handed out before.

    Version history:
        * v0: first release.
    """

    change: float = 0.25

    def __post_init__(self) -> None:
        inside("change", self.change, 0, 1, ends=True)
        super().__post_init__()

    def _means(self) -> tuple[tuple[float, float], ...]:
        return _FIRST, _SECOND

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._round, self._replicas = 0, len(streams)

    def _kinds(self, count: int) -> Ints:
        late = self._round + np.arange(count) >= self.change * self.horizon
        self._round += count
        return np.tile(late.astype(np.int64)[:, None], (1, self._replicas))


@dataclass(kw_only=True, eq=False)
class Minority(_Kinds):
    """A few users want something else than the rest.

    Description:
        Users are independent. Most have context e1 and reward an arm with probability 0.7 and the
        other with 0.5; a `share` of them has context e2 and rewards the arms with 0.9 and 0.6.
        Which arm is better is a fair coin for each kind and episode. What a minority wants is
        learned only from her own few.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (2,): the context e1 or e2.

    Rewards:
        1 or 0.

    Starting state:
        Two new coins, and the first user.

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `horizon`: rounds. `share`: the probability of context e2.
        * `delay`: rounds until a reward is seen; 0 is handed out before.

    Version history:
        * v0: first release.
    """

    share: float = 0.02

    def __post_init__(self) -> None:
        inside("share", self.share, 0, 1, ends=True)
        super().__post_init__()

    def _means(self) -> tuple[tuple[float, float], ...]:
        return _FIRST, _SECOND

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._who = streams.uniforms("kinds")

    def _kinds(self, count: int) -> Ints:
        return (self._who.take(count) < self.share).astype(np.int64)


@dataclass(kw_only=True, eq=False)
class TwoArms(_Kinds):
    """Two arms, and nothing to tell users apart.

    Description:
        Every user has the context 1; one arm is rewarded with probability 0.8, the other with 0.8 -
        `gap`. Which is better is a fair coin for each episode. The first batch of an agent that
        plays greedily decides: with a constant probability it locks in to the worse arm, and loses
        `gap` in every round.

    Action space:
        `Discrete(2)`: the arm.

    Observation space:
        `Box`, shape (1,): 1.

    Rewards:
        1 or 0.

    Starting state:
        A new coin.

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `horizon`: rounds. `gap`: what the worse arm loses in a round.
        * `delay`: rounds until a reward is seen; 0 is handed out before.

    Version history:
        * v0: first release.
    """

    gap: float = 0.2

    def __post_init__(self) -> None:
        inside("gap", self.gap, 0, _HIGH, ends=True)
        super().__post_init__()

    def _means(self) -> tuple[tuple[float, float], ...]:
        return ((_HIGH, _HIGH - self.gap),)

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._replicas = len(streams)

    def _kinds(self, count: int) -> Ints:
        return np.zeros((count, self._replicas), np.int64)
