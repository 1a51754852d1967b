"""How a safety net counts, and the regret it allows: public numbers, fixed before round 1."""

from dataclasses import dataclass
from math import log, sqrt

from dpbandit.agents.contextual.public_coins import PublicCoins
from dpbandit.base import Floats, positive
from dpbandit.privacy import BLT
from dpbandit.specs import ContextualSpec

_RELEASES = 50
"""At least, as long as there are more explorers than that."""


@dataclass(frozen=True)
class NetPlan:
    """What follows from T, c, mu and the sizes of a problem; letters are those of `Guard`.

    In scaled units: contexts are no longer than 1 and rewards lie in [-1, 1].

    >>> spec = ContextualSpec(n_actions=2, dim=2, horizon=20_000)
    >>> plan = NetPlan(spec, PublicCoins(20_000, 1.0), mu=0.268)
    >>> plan.every, plan.releases, round(plan.regret_bound(largest_gap=0.3))
    (11, 60, 702162)
    """

    spec: ContextualSpec
    coins: PublicCoins
    mu: float
    """of the net"""

    def __post_init__(self) -> None:
        positive("mu", self.mu)

    @property
    def failure(self) -> float:
        """alpha = T^(-1/3), the probability with which widths may fail."""
        return float(self.spec.horizon ** (-1 / 3))

    @property
    def blocks(self) -> int:
        """How many parameters there are, of `spec.dim` coordinates each."""
        return 1 if self.spec.shared else self.spec.n_actions

    @property
    def parameter_norm(self) -> float:
        """S, the length of the longest parameter that the public bounds allow."""
        return self.spec.context_norm * self.spec.parameter_norm / self.spec.reward_bound

    @property
    def rows(self) -> int:
        """The most that are told to the net; all who came before the first were heard, too."""
        return self.coins.most + self.spec.delay

    @property
    def every(self) -> int:
        """b, net explorers from one release to the next, so few that b <= Gamma costs nothing."""
        one_release = 4 * sqrt(self.spec.dim) / self.mu  # less noise than any plan has
        return max(1, int(min(self.coins.expected / _RELEASES, one_release)))

    @property
    def releases(self) -> int:
        """M."""
        return self.rows // self.every

    @property
    def quantile(self) -> float:
        """z = sqrt(2 ln(8 K T / alpha))."""
        return sqrt(2 * log(8 * self.spec.n_actions * self.spec.horizon / self.failure))

    def gamma(self, stddev: float) -> float:
        """Gamma >= the norm of Gram noise with that stddev off the diagonal, and >= b."""
        tail = sqrt(log(4 * max(1, self.releases) * self.blocks / self.failure))
        norm = stddev * (2 * sqrt(self.spec.dim) + 2 * tail)
        return max(norm, self.every + self.spec.delay)

    def factors(self, stddev: float, shift: Floats) -> tuple[float, Floats]:
        """What `|x|_{A^-1}` and `|A^-1 x|` count in a width."""
        bias = (self.gamma(stddev) + shift) * self.parameter_norm
        return self.quantile * sqrt(1.5), self.quantile * stddev + bias

    def regret_bound(self, largest_gap: float) -> float:
        """The theorem of `Guard`, in units of the reward, as `largest_gap` = Delta is.

        Noise grows from release to release: the last has the largest s and Gamma.
        """
        T, c, K = self.spec.horizon, self.coins.rate, self.spec.n_actions
        first = 2 / self.mu * BLT().column_norm(max(1, self.releases))
        last = first * BLT().row_norm(max(1, self.releases))
        low, high = self.gamma(first), self.gamma(last)
        D, S, z = self.spec.dim * self.blocks, self.parameter_norm, self.quantile
        L = log(1 + self.coins.most / (D * low))
        B = z * (sqrt(1.5) + last / sqrt(2 * low)) + 4 * high * S / sqrt(2 * high)
        explored = 1.5 * c * T ** (2 / 3) + self.failure * T + 1
        learned = 4 * B * sqrt(12 * D * K * L / c) * T ** (2 / 3)
        return float(largest_gap * explored + self.spec.half_range * learned)
