"""PersonalFADE: the population is released, the person is exact."""

from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import Literal

import numpy as np

from dpbandit.agents.people.personal_player import PersonalPlayer
from dpbandit.agents.people.population import Population, expected_counts
from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import at_least, flag, gaussian_target, inside, one_of, positive, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import check_honest, ledger_of
from dpbandit.privacy.mechanism import ADDED_UP
from dpbandit.privacy.sums.fading import growing_batches
from dpbandit.privacy.sums.person_sums import COUNTED, Counted, PersonSum
from dpbandit.specs.protocols import fits
from dpbandit.specs.returning import ReturningSpec


@dataclass(frozen=True, kw_only=True)
class PersonalFADE:
    """Noisy sums over people say where the population is; her own exact memory says where she is.

    A design of this project. Batches of a public clock, of n, 2 n, 4 n, ... slots::

        in a slot    who has come plays argmax_a X_a . (her posterior mean), ties at random
                     her first visit ever (or of the batch) enters the sum of sign(r) X_a / |X_a|,
                     r measured from the middle of its range
                     all her visits enter her own memory: sums of xx' and r x, exact, r measured
                     from what a row of zeros earns (clicks from 1/2)
        at its end   the sum is released with N(0, (2 S / mu)^2 I), once
                     theta_0 ~ N(m_0, W) from all releases; her prior is N(m_0, W + tastes^2 I/d)

    No Gram matrix is released: its noise says more than it does where there are few people.

    Code:
        `PersonSum` of dpbandit.privacy.sums is what is released, `Population` (population.py) makes
        m_0 and W of it, `PersonalPlayer` (personal_player.py) plays and remembers.

    Guarantee:
        (epsilon, delta)-joint DP for a PERSON under continual observation, in everything that she
        shows, says and does at all her visits, and in when she comes; exactly mu-GDP. The releases
        are mu-GDP for a person (`PersonSum`: she is paid for once, or S = sqrt(min(k, releases))
        times with counted="batch", whatever k and b). All else that she leaves behind lies in her
        own memory, which reaches no action but hers (`PersonalMemory`). Weights and counts use
        public slots, never how many came. The last batch is never released.
        With trust="aggregated" the same is said of all that the server sees: her device chooses,
        remembers her, and sends one vector a slot into sums that hide it (`PersonSum`); so do the
        devices of those who stay away, else the noise is too small and their number is told: a
        slot in which nobody sends counts as one whose device is not honest. Who sends is seen, so
        this promise is for slots that do not move.

    **Limits.** Rows of features should be roughly uniform on a sphere, rewards informative in sign
    about the middle of their range; `tastes` and `noise` are what is publicly believed of people.
    She is in m_0 and in her memory, hence counted twice, with a weight of 1/N.

    >>> from dpbandit import certify
    >>> proof = certify(PersonalFADE(epsilon=1.0), "ReturningUsers", accountants=False)
    >>> round(proof.mu, 5), proof.ledger.brief
    (0.26805, 'person, 20 rounds')
    """

    epsilon: float = 1.0
    """target, for a person, > 0; inf plays without noise"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    counted: Counted = "first"
    """visits of hers that are released; "visits" is group privacy on all of them"""
    trust: Literal["central", "aggregated"] = "central"
    """who sees what; with "aggregated" the server sees sums of batches"""
    honest: float = 1.0
    """the fraction of slots, empty ones included, in which a device adds its noise and stays, in
    (0, 1]; "aggregated" """
    memory: bool = True
    """whether anything is remembered of a person for herself; False plays the population alone"""
    first_batch: int | None = None
    """slots of uniform play; if None, 8 sqrt(d) / mu, from 100 to a tenth of the horizon"""
    growth: float = 1.0
    """each batch is 1 + growth times as long as the one before"""
    tastes: float = 0.5
    """how far a person is believed to be from the population, N(0, tastes^2 I/d)"""
    noise: float = 0.5
    """standard deviation that rewards are believed to have, > 0"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("counted", self.counted, COUNTED)
        one_of("trust", self.trust, ADDED_UP)
        check_honest(self.honest, self.trust)
        flag("memory", self.memory)
        if self.first_batch is not None:
            whole("first_batch", self.first_batch, 1)
        inside("growth", self.growth, 0, 100, ends=True)
        at_least("tastes", self.tastes, 0)
        positive("noise", self.noise)

    def make(self, spec: ReturningSpec, streams: Streams) -> "PersonalFADEPlayer":
        """A running agent; raises `InputError` for anything but people who return to rows."""
        return PersonalFADEPlayer(self, fits(self, spec, ReturningSpec), streams)


class PersonalFADEPlayer:
    """The releases, the model made of them, and the player."""

    def __init__(self, config: PersonalFADE, spec: ReturningSpec, streams: Streams) -> None:
        T, d = spec.horizon, spec.arms.dim
        mu = inf if config.epsilon == inf else mu_of(config.epsilon, config.delta)
        usual = int(np.clip(8 * sqrt(d) / mu, 100, max(100, T / 10)))
        first = max(1, min(config.first_batch or usual, T // 10))
        ends = growing_batches(T, first=first, growth=config.growth)
        self._sums = PersonSum(
            d,
            streams,
            people=spec.people,
            visits=spec.visits,
            counted=config.counted,
            centre=(spec.reward_low + spec.reward_high) / 2,
            ends=ends,
            horizon=T,
            epsilon=config.epsilon,
            delta=config.delta,
            honest=config.honest,
        )
        self._population = Population(
            len(streams),
            d,
            spec.arms.n_actions,
            counts=expected_counts(
                ends,
                counted=config.counted,
                people=spec.people,
                horizon=T,
                robin=spec.visits.separation == spec.people,
            ),
            stddev=self._sums.stddev,
            spread=hypot(config.noise, config.tastes / sqrt(d)),
        )
        self._player = PersonalPlayer(
            spec, streams, tastes=config.tastes, noise=config.noise, remembers=config.memory
        )
        self.ledger = ledger_of(
            config.epsilon,
            self._sums.spend,
            visits=spec.visits,
            trust=config.trust,
            honest=config.honest,
        )

    def act(self, context: Floats) -> Ints:
        """Arms (R,) for whoever has come."""
        return self._player.play(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Her visit enters the sum, if it counts, and her memory."""
        release = self._sums(*self._player.remember(context, action, feedback))
        if release is not None:
            self._population.learn(release[:, 0])
            self._player.believe(self._population.mean, self._population.covariance)
