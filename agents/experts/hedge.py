"""Hedge: exponential weights of exact losses, without privacy."""

from dataclasses import dataclass

from dpbandit.agents.experts.weighted_majority import WeightedMajority, hedge_rate
from dpbandit.base.inputs import positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import no_privacy
from dpbandit.privacy.statistics.moments import ClippedEntries
from dpbandit.privacy.sums.calibrated import exact_prefix_sum
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import Spec, fits


@dataclass(frozen=True, kw_only=True)
class Hedge:
    """Follow a random expert, exponentially more often a better one.

    Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application
    to boosting", JCSS 1997, with the losses' range and the horizon known::

        S = 0; for t = 1..T:
          1. follow expert i with probability proportional to exp(-eta S_i)
          2. S <- S + l_t, clipped to [0, 1]

    Code:
        Step 1 is `WeightedMajority.act` (weighted_majority.py), which draws by `drawn` (draws.py);
        step 2 is `WeightedMajority.update`.

    Guarantee:
        None: exact losses reach later actions.

    **Regret**, in the mean: at most ln(d) / eta + eta T / 8 for every oblivious adversary, which is
    sqrt(T ln(d) / 2) at the default eta; and total loss at most (eta L* + ln d) / (1 - e^-eta), so
    that eta = 1 costs 1.6 ln d where an expert never errs.

    >>> from dpbandit import compare
    >>> agents = {"careful": Hedge(), "bold": Hedge(rate=1.0)}
    >>> results = compare("dpbandit/Experts-v0", agents, horizon=400, replicas=20, progress=False)
    >>> mean = results.summary().set_index("agent")["mean"]
    >>> bool(mean["bold"] < mean["careful"] < mean["Uniform"])
    True
    """

    rate: float | None = None
    """eta; if None, sqrt(8 ln d / T)"""

    def __post_init__(self) -> None:
        if self.rate is not None:
            positive("rate", self.rate)

    def make(self, spec: Spec, streams: Streams) -> WeightedMajority:
        """A running agent; raises `InputError` for anything but experts."""
        spec = fits(self, spec, ExpertsSpec)
        d, T = spec.n_actions, spec.horizon
        return WeightedMajority(
            spec,
            streams,
            sums=exact_prefix_sum(ClippedEntries(d), horizon=T, refresh_every=1),
            rate=hedge_rate(d, T) if self.rate is None else self.rate,
            ledger=no_privacy("exact sums of losses"),
        )
