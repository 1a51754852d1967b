"""Replay a random log: an agent plays the rounds whose logged action it would have chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, sqrt
from typing import Any, Literal, overload

import numpy as np

from dpbandit.base import Bools, Floats, InputError, Ints, Streams, abbrev, one_of, whole
from dpbandit.offline.logs import Logged
from dpbandit.privacy.certificate import Certificate, certificate
from dpbandit.privacy.mechanism import LedgerCheck, logged_calls
from dpbandit.specs import (
    Agent,
    AgentConfig,
    ContextualSpec,
    Hindsight,
    Outside,
    acted,
    check_config,
    made_agent,
)

Discarded = Literal["skip", "blank"]

COVERS = {
    "skip": "what users answered, their contexts and logged actions being public; not who was kept",
    "blank": "every logged user, kept or discarded",
}
"""Data that an agent's certificate covers, for each treatment of discarded rounds."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Replay:
    """Result of `replay`: an estimate of an agent's reward, from passes through a log."""

    mean: float
    """mean reward per round, over all rounds kept in all passes"""
    standard_error: float
    """standard error of `mean` due to the sample of users, not to the random orders, computed as if
    the agent did not learn; NaN with one user"""
    retained: Ints
    """number of rounds kept in each pass, (passes,)"""
    rewards: Floats
    """mean reward of each pass, (passes,); passes differ by order and draws, not by users"""
    spec: ContextualSpec
    """spec for which the agent was made; `certify(config, spec)` is the agent's certificate"""
    covers: str
    """data that the certificate covers, see `COVERS`"""
    certificate: Certificate
    """privacy of the agent, for the data in `covers`"""
    outside: Outside
    """numbers of contexts and rewards outside the log's bounds; such contexts were clipped"""
    terms: Floats
    """influence of each user of the log on `mean`, to first order, (n,); NaN with one user"""

    @property
    def interval(self) -> tuple[float, float]:
        """`mean` plus and minus 1.96 standard errors."""
        return self.mean - 1.96 * self.standard_error, self.mean + 1.96 * self.standard_error

    def __repr__(self) -> str:
        return f"Replay({self})"

    def __str__(self) -> str:
        low, high = self.interval
        clipped = f"; in the log {self.outside}" if self.outside else ""
        return (
            f"{self.mean:.4g} {self.spec.reward_unit} a round (95 % interval {low:.4g} to "
            f"{high:.4g}), {self.retained.mean():.0f} rounds kept in each of {len(self.retained)} "
            f"passes{clipped}"
        )


class Replays(dict[str, Replay]):
    """Results of `replay` for several agents on one log, by name; printed as a table."""

    def table(self) -> Any:
        """Return a DataFrame with a row for each agent.

        Columns are mean, low and high (95 %), kept (rounds per pass), the difference to the first
        agent on the same users with its interval, and the certificate: epsilon, delta, notion
        (neighbouring data sets) and covers (protected data).
        """
        import pandas as pd  # not before: slow to import

        first, found = next(iter(self.values())), []
        for name, one in self.items():
            low, high = one.interval
            apart, error = one.mean - first.mean, 1.96 * _length(one.terms - first.terms)
            proof = one.certificate
            found.append(
                {
                    "agent": name,
                    "mean": one.mean,
                    "low": low,
                    "high": high,
                    "kept": float(one.retained.mean()),
                    "difference": apart,
                    "difference_low": apart - error,
                    "difference_high": apart + error,
                    "epsilon": proof.epsilon,
                    "delta": proof.claimed_delta,
                    "notion": str(proof.notion),
                    "covers": one.covers,
                }
            )
        return pd.DataFrame(found)

    def __repr__(self) -> str:
        table = self.table().drop(columns=["notion", "covers"])
        return str(table.to_string(index=False, float_format="{:.4g}".format))


@overload
def replay(
    config: Mapping[str, AgentConfig],
    logged: Logged,
    *,
    passes: int = ...,
    horizon: int | None = ...,
    discarded: Discarded = ...,
    seed: int = ...,
) -> Replays: ...


@overload
def replay(
    config: AgentConfig,
    logged: Logged,
    *,
    passes: int = ...,
    horizon: int | None = ...,
    discarded: Discarded = ...,
    seed: int = ...,
) -> Replay: ...


def replay(
    config: AgentConfig | Mapping[str, AgentConfig],
    logged: Logged,
    *,
    passes: int = 20,
    horizon: int | None = None,
    discarded: Discarded = "skip",
    seed: int = 0,
) -> Replay | Replays:
    """Run an agent on a random log, keeping the rounds in which it chooses the logged action.

    Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news article
    recommendation algorithms", WSDM 2011, for finite logs::

        for each logged round, context x, arm a, reward r, propensity p, in random order:
          1. with probability 1 - lowest / p discard it, so that accepted arms are uniform (no
             round is discarded here if all arms were equally likely)
          2. b = the agent's choice at x
          3. if b = a, keep the round: the agent learns from (x, a, r), r counts
             else discard the round: "skip", the agent learns nothing;
                                     "blank", it learns from a round of context 0 and reward 0
          4. stop at `horizon` rounds kept

    **Unbiased**, if users are independent and have one law: for every agent, past and x, a round is
    kept with probability `lowest`, independently of x and r. So with "skip" the rounds kept are
    distributed exactly as if the agent had been played, and their number is independent of them.
    With "blank" the agent learns from a share `lowest` of its rounds only. Passes through a finite
    log have the same users: more passes remove the randomness of the order, never that of the
    sample of users.

    `standard_error` treats the rounds kept as a sample of users, each with the number of times that
    she was kept as her weight. This is right for a fixed policy, and too small for an agent that
    learns, which would have learned otherwise from other users.

    Guarantee:
        With "skip" the certificate covers less than it seems. A user's context and logged action
        decide whether she is kept, and one round more or less moves all later users to other rounds
        of the agent, so replacing her can change every later input of a mechanism. The certificate,
        which is for one round replaced, covers users' answers if contexts and logged actions are
        public, but not who was kept. With "blank" every logged user takes one round, whose input is
        a function of her row and of earlier releases if `lowest` is public; the certificate is then
        for all n rounds of the log and covers them all. Agents that count rounds count a blank as a
        user. In both cases no certificate covers the printed mean, an exact statistic of the log,
        nor the share outside bounds; several passes are several runs on the same users.

    Args:
        config: the agent, or several by name, whose `Replays` are a table with certificates and
            differences on the same users. Agents that need hindsight are refused.
        logged: the rounds and their propensities.
        passes: number of random orders, >= 1. Pass i depends on (seed, i) only.
        horizon: number of rounds to keep, for which the agent is made; None: the largest number
            that 999 of 1,000 passes reach. With "blank" always all n rounds.
        discarded: `"skip"` or `"blank"`.
        seed: random seed, a whole number >= 0.

    Raises:
        InputError: an argument out of range, an agent that does not fit, or no round kept; "blank"
            where `lowest` was read off the log, or where arms are prices: a model of demand has
            features of its own, which a context of 0 does not silence; an agent that plays no
            valid arm, or calls a mechanism that its ledger does not name.

    >>> from dpbandit.agents import Uniform
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=1)
    >>> action = np.arange(1000) % 2
    >>> log = Logged(spec=spec, context=np.ones((1000, 1)), action=action, reward=1.0 * action,
    ...              propensity=0.5)
    >>> print(replay(Uniform(), log))
    0.4922 reward a round (95 % interval 0.4603 to 0.5242), 450 rounds kept in each of 20 passes
    """
    if isinstance(config, Mapping):
        if not config:
            raise InputError("Expected at least one agent to replay, got none.")
        settings: dict[str, Any] = {"passes": passes, "horizon": horizon, "seed": seed}
        settings["discarded"] = discarded
        return Replays({name: replay(one, logged, **settings) for name, one in config.items()})
    whole("passes", passes, 1)
    whole("seed", seed, 0)
    one_of("discarded", discarded, COVERS)
    check_config(config)
    if isinstance(config, Hindsight):
        raise InputError(f"Expected an agent to replay, got {config}: hindsight needs all rewards.")
    if not isinstance(logged, Logged):
        raise InputError(f"Expected logged={abbrev(logged)} to be Logged, rows of arms.")
    n = len(logged.action)
    if discarded == "blank":
        if horizon is not None:
            raise InputError(f"Expected horizon={horizon} only with discarded='skip'.")
        if not logged.lowest_is_public:
            raise InputError(
                "Expected lowest= to be given with the log for discarded='blank': the least "
                "propensity, read off the log, is somebody's data and thins everybody's rounds."
            )
        if logged.spec.priced:
            raise InputError(
                "Expected arms that are not prices for discarded='blank': to a model of demand a "
                "context of 0 is a user like any other."
            )
        horizon = n
    elif horizon is None:
        horizon = _reached(n, logged.uniform_share)
    whole("horizon", horizon, 1, n)
    spec = replace(logged.spec, horizon=horizon, delay=0)
    rows = [_one_pass(config, spec, logged, Streams([(seed, i)]), discarded) for i in range(passes)]
    weight = np.bincount(np.concatenate(rows), minlength=n)  # how often each user was kept
    if not weight.any():
        raise InputError(f"Expected more than n={n} logged rounds: the agent agreed with none.")
    mean = float(weight @ logged.reward / weight.sum())
    terms = weight * (logged.reward - mean) / weight.sum()
    if np.count_nonzero(weight) < 2:
        terms = np.full(n, np.nan)  # one user alone does not say how users differ
    return Replay(
        mean=mean,
        standard_error=_length(terms),
        retained=np.array([len(row) for row in rows]),
        rewards=np.array([logged.reward[row].mean() if len(row) else np.nan for row in rows]),
        spec=spec,
        covers=COVERS[discarded],
        certificate=_certificate(config, spec),
        outside=logged.outside,
        terms=terms,
    )


def _one_pass(
    config: AgentConfig,
    spec: ContextualSpec,
    logged: Logged,
    streams: Streams,
    discarded: Discarded,
    *,
    shuffled: bool = True,
) -> Ints:
    """Return the numbers of the rows kept in one pass, in the order of play."""
    n = len(logged.action)
    order = streams.uniforms("order", n)()[0].argsort(kind="stable") if shuffled else np.arange(n)
    accepted = streams.uniforms("acceptance", n)()[0] * logged.propensity < logged.uniform_share
    nothing = np.zeros((1, *spec.context_shape))
    retained: list[int] = []
    with logged_calls() as call_log:
        agent = made_agent(config, spec, streams.child("agent"))
        for row in order.tolist():
            context, action = logged.context[row][None], logged.action[row : row + 1]
            there = None if logged.mask is None else logged.mask[row : row + 1]
            if accepted[row] and _plays(agent, context, spec, there) == action[0]:
                agent.update(context, action, logged.reward[row : row + 1])
                call_log.count_users(1)
                retained.append(row)
                if len(retained) == spec.horizon:
                    break
            elif discarded == "blank":
                agent.update(nothing, action, np.zeros(1))
                call_log.count_users(1)
    updates = len(retained) if discarded == "skip" else n
    LedgerCheck(type(config).__name__, agent.ledger, call_log).check(users=updates)
    return np.array(retained, dtype=np.int64)


def _length(terms: Floats) -> float:
    return sqrt(float(terms @ terms))


def _certificate(config: AgentConfig, spec: ContextualSpec) -> Certificate:
    epsilon = getattr(config, "epsilon", None)
    claim = None if epsilon is None else (epsilon, getattr(config, "delta", 0.0))
    ledger = made_agent(config, spec, Streams([0])).ledger
    return certificate(ledger, claim=claim, accountants=False)


def _plays(agent: Agent, context: Floats, spec: ContextualSpec, mask: Bools | None) -> int:
    return int(spec.validate(acted(agent, context, mask), 1)[0])


def _reached(n: int, share: float) -> int:
    """Return the number of kept rounds that a pass reaches with probability about 0.999, >= 1."""
    return max(1, floor(n * share - 3.1 * sqrt(n * share * (1 - share))))
