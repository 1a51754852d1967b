"""Priors from old logs, with or without privacy for the people in the log."""

from math import inf, sqrt
from secrets import randbits
from typing import Any

import numpy as np

from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.base import Floats, InputError, Ints, Streams, flag, gaussian_target, whole
from dpbandit.offline.logs import Logged
from dpbandit.privacy import SecondMoments, certified_fading_sum
from dpbandit.privacy.residuals import unit
from dpbandit.specs import Prior

_MAX_MEAN_REWARD = 0.96
"""Largest absolute mean reward, on a scale from -1 to 1, so that its log odds stay finite."""


def prior_from(
    log: Logged,
    *,
    protect: bool,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    disjoint: bool = False,
    seed: int | None = None,
) -> Prior:
    """Make the prior of an agent, such as `FADE(prior=...)`, from the rounds of a log.

    1. Sum x x' and r x over the log, for each arm if arms have separate parameters. x is then the
       context at norm 1, otherwise (1, row) of slates or `demand_rows` of prices; r is the reward,
       or sale, on a scale from -1 to 1. With `protect`, add Gaussian noise once.
    2. If arms have separate parameters, fit a ridge regression. Otherwise do one Newton step of a
       logistic model, from the mean reward for slates, from 1/2 for prices.
    3. The covariance allows for rewards of the largest possible variance, and for the noise.

    An agent widens the prior if its own users contradict the prior (`PublicPrior`).

    Guarantee:
        With `protect` the prior is (epsilon, delta)-DP for replacing a row of the log, mu-GDP with
        the corresponding mu: one release of `SecondMoments`. A person with several rows pays for
        each. The ledger of an agent with this prior names the release: its cost is added to that of
        the agent's own users, and paid out of the agent's target, because people in the log may
        come again; or, if `disjoint` says that none does, the cost counts in parallel, and
        `disjoint` is a condition of the certificate. Without `protect` the log counts as public: it
        costs nothing, and gives no guarantee to the people in it, which the certificate says, too.

    Args:
        log: log of arms, slates or a list of prices, from `read_log` or `record`.
        protect: True to protect the people in the log.
        epsilon, delta: privacy cost of the release for the people in the log, with `protect`.
        disjoint: True if nobody of the log is among the agent's users; False if that is not known.
        seed: seed of the noise, with `protect`, for repeatable tests. Nobody who sees the prior may
            know the seed, and no two logs may share one, because their noise would cancel. None:
            drawn by the operating system.

    Raises:
        InputError: no log of arms; a target out of range.

    >>> from dpbandit.clients import record
    >>> log = record("GLMBandit", horizon=400, env_kwargs={"n_actions": 2, "dim": 3})
    >>> prior_from(log, protect=True, epsilon=0.5)
    Prior(of 6 numbers, from a log of 400 rounds, released at epsilon 0.5, delta 1e-05)
    """
    if not isinstance(log, Logged):
        raise InputError(f"Expected a log of arms, a Logged, got a {type(log).__name__}.")
    flag("protect", protect)
    flag("disjoint", disjoint)
    seed = randbits(63) if seed is None else seed
    whole("seed", seed, 0)
    gaussian_target(epsilon, delta)
    if protect and epsilon == inf:
        raise InputError("Expected epsilon=inf to be finite with protect=True, or protect=False.")
    cost = epsilon if protect else inf
    x, action, r = _rounds(log)
    n, shared = len(r), x.ndim == 3
    statistic = SecondMoments(
        n_actions=log.spec.n_actions,
        dim=x.shape[-1],
        layout="shared" if shared else "disjoint",
        context_bound=sqrt(2) if shared and not log.spec.priced else 1.0,
        reward_low=-1.0,
        reward_high=1.0,
        moment_weight=sqrt(2),  # Gram matrices do not add to the sensitivity
    )
    sums = certified_fading_sum(
        statistic,
        Streams([seed]).child(f"prior at {epsilon!r}, {delta!r}"),  # fresh noise for each target
        ends=[n],
        horizon=n + 1,
        fade=0.0,
        epsilon=cost,
        delta=delta,
    )
    release: Any = None
    for row in range(n):
        one = slice(row, row + 1)
        release = sums(x[one], action[one], r[one])
    gram, moment = (part[0] for part in statistic.unpack(release))  # (G, D, D), (G, D)
    in_gram = sums.stddev * statistic.context_bound**2 / sqrt(2)
    in_moment = sums.stddev * statistic.moment_bound / statistic.moment_weight
    source = f"a log of {n} rounds, " + (
        f"released at epsilon {epsilon:g}, delta {delta:g}" if protect else "which count as public"
    )
    provenance: dict[str, Any] = {
        "mu": sums.spend.mu if protect else 0.0,
        "source": source,
        "disjoint": disjoint,
    }
    if shared:
        has_constant = not log.spec.priced
        return Prior(
            *_logistic(gram[0], moment[0], n, in_gram, in_moment, has_constant), **provenance
        )
    half = log.spec.half_range
    parts = [_linear(G, m, in_gram, in_moment) for G, m in zip(gram, moment, strict=True)]
    D = x.shape[-1]
    covariance = np.zeros((len(parts) * D, len(parts) * D))
    for k, (_, block) in enumerate(parts):
        covariance[k * D : (k + 1) * D, k * D : (k + 1) * D] = half**2 * block
    return Prior(half * np.concatenate([mean for mean, _ in parts]), covariance, **provenance)


def _rounds(log: Logged) -> tuple[Floats, Ints, Floats]:
    """Return features (n, d), or (n, K, d) with a shared parameter; arms (n,); scaled rewards."""
    spec: Any = log.spec
    if spec.priced:
        sold = spec.share_sold(log.context, log.action, log.reward)
        return demand_rows(spec, log.context), log.action, 2 * sold - 1
    middle = (spec.reward_low + spec.reward_high) / 2
    r = (log.reward - middle) / spec.half_range
    if not spec.shared:
        return unit(log.context), log.action, r
    rows = log.context / spec.context_norm
    return np.concatenate([np.ones((*rows.shape[:2], 1)), rows], axis=2), log.action, r


def _inverse(matrix: Floats, noise: float) -> Floats:
    """Invert a Gram matrix plus a ridge that covers noise, of stddev `noise` off the diagonal."""
    D = len(matrix)
    spread = 2 * sqrt(D) * noise  # spectral norm of the noise
    eigenvalues, U = np.linalg.eigh(matrix)
    inverse: Floats = (U / (np.maximum(eigenvalues, 0.0) + 1.0 + spread)) @ U.T
    return inverse


def _linear(gram: Floats, moment: Floats, in_gram: float, in_moment: float) -> tuple[Any, Any]:
    """Return mean and covariance of a linear model's parameter, for rewards from -1 to 1."""
    inverse = _inverse(gram, in_gram)
    theta = inverse @ moment
    noise = in_moment**2 + in_gram**2 * float(theta @ theta)
    return theta, inverse + noise * inverse @ inverse


def _logistic(
    gram: Floats, moment: Floats, n: int, in_gram: float, in_moment: float, constant: bool
) -> tuple[Any, Any]:
    """Return mean and covariance of a logistic model's parameter; `constant` if feature 0 is 1."""
    r = float(np.clip(moment[0] / n, -_MAX_MEAN_REWARD, _MAX_MEAN_REWARD)) if constant else 0.0
    slope = (1 - r**2) / 4
    start = np.zeros(len(moment))
    start[0] = 2 * np.arctanh(r)
    inverse = _inverse(slope * gram, slope * in_gram)
    step = inverse @ (moment - r * gram[:, 0]) / 2
    noise = (in_moment**2 + (r * in_gram) ** 2) / 4 + (slope * in_gram) ** 2 * float(step @ step)
    return start + step, inverse + noise * inverse @ inverse
