"""Sentences on the cost of privacy in a comparison."""

import warnings
from collections.abc import Iterator, Sequence
from functools import reduce
from math import ceil, inf, isnan, log10, nan
from typing import NamedTuple

import numpy as np

from dpbandit.base import Floats, plain, rounded
from dpbandit.results.comparisons import bootstrap_band, ratio_band
from dpbandit.results.problems import Setup
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, describe, without_epsilon
from dpbandit.results.shortfalls import Losing, losing
from dpbandit.running.recommend import recommend
from dpbandit.running.resolve import resolve_agent, resolve_spec
from dpbandit.specs import Spec

_AT_THE_CLAIM = 0.9
"""Smallest ratio of certified to claimed epsilon at which sentences quote the claimed epsilon."""
_ZERO_REGRET_SHARE = 1e-9
"""Share of the largest mean regret below which a regret counts as 0."""
_NO_COST = 1.1
"""If a cost ratio's interval includes 1 and ends below this number, no cost of privacy is found."""
_SIMILAR_RATIO = 1.5
"""Largest ratio of two regrets that sentences call about as much."""


def cost_of_privacy(results: Results) -> tuple[str, ...]:
    """Describe in sentences what privacy costs at each certified epsilon of a comparison.

    At each epsilon the private agent with the smallest mean regret is compared with the agent
    without privacy that has the smallest one, and with the best fixed action in hindsight, on the
    same users. Intervals are 95 % bootstraps, which draw replicas of both together. If the fixed
    action has significantly less regret, a sentence advises to keep it. Agents with the constants
    of papers are left out if other agents are private. The smallest of several means is biased
    downwards, so repeat the comparison of the chosen agents with another seed.

    Returns:
        Sentences for users, none if no agent is private.

    Raises:
        InputError: runs are on several problems.
    """
    unit = losing(results.reward_unit)
    shared = reduce(np.intersect1d, [run.replicas for run in results.runs])
    runs = [run.only(np.isin(run.replicas, shared)) for run in results.runs if len(shared)]
    costs = _costs(runs)
    if not costs:
        return ()
    spec = _spec_of(runs[0].setup)
    words = _Words(runs[0].setup.horizon, unit, *_nouns(spec))
    public, fixed = _best_public(runs), _fixed(runs)
    worse = [cost for cost in costs if cost.saved_high < 0]  # than the fixed action
    others = [cost for cost in costs if not cost.saved_high < 0]
    sentences = [words.fixed_is_best(worse, public, fixed)] if worse and fixed else []
    sentences += words.costs(others, public, None if worse else fixed)
    last = words.of_a_shop(costs, public, _best_fixed(runs), getattr(spec, "prices", ()))
    return (*sentences, *_missing(runs, costs, public, spec), *last)


class _Cost(NamedTuple):
    """Cost of privacy for the private agent with least mean regret at a certified epsilon."""

    run: AgentRun
    at: str
    """certified epsilon in words, with the restrictions of the privacy"""
    times: tuple[float, float, float]
    """mean regret divided by that of the best agent without privacy, and the ends of its 95 %
    interval; NaN if there is no such agent, or its regret may be zero"""
    saved_low: float
    """lower end of the 95 % interval of the best fixed action's regret minus this agent's"""
    saved_high: float


def _costs(runs: Sequence[AgentRun]) -> list[_Cost]:
    """Return the best private run's cost at each (epsilon, delta, restriction), sorted by these."""
    private = [run for run in runs if 0 < run.certificate.epsilon < inf]
    certified = [run for run in private if run.config.get("calibration") != "paper"]
    groups: dict[tuple[float, float, str], list[AgentRun]] = {}
    for run in certified or private:
        target = _epsilon(run), run.certificate.claimed_delta, run.certificate.ledger.brief
        groups.setdefault(target, []).append(run)
    several = len({delta for _, delta, _ in groups}) > 1
    public, fixed = _best_public(runs), _fixed(runs)
    found = []
    for (epsilon, delta, brief), group in sorted(groups.items()):
        best = min(group, key=_mean)
        at = f"epsilon {rounded(epsilon)}" + (f", delta {rounded(delta, 6)}" if several else "")
        at += f" ({brief})" if brief else ""
        ends = (nan, nan) if fixed is None else _interval(fixed.regret[-1] - best.regret[-1])
        found.append(_Cost(best, at, _times(best, public), *ends))
    return found


def _epsilon(run: AgentRun) -> float:
    """Return the certified epsilon to 3 digits, or the claimed one if it is at most 11 % larger."""
    certified, claimed = run.certificate.epsilon, run.certificate.claimed_epsilon
    near = _AT_THE_CLAIM * claimed <= certified <= claimed
    return claimed if near else float(f"{certified:.2e}")


def _times(run: AgentRun, public: AgentRun | None) -> tuple[float, float, float]:
    if public is None or _mean(public) <= 0 or _interval(public.regret[-1])[0] <= 0:
        return nan, nan, nan
    if len(run.replicas) < 2:
        return _mean(run) / _mean(public), nan, nan
    return ratio_band(run.regret[-1:], public.regret[-1:])


def _interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean; NaN for a single replica."""
    if len(values) < 2:
        return nan, nan
    low, high = bootstrap_band(values)
    return float(low), float(high)


def _best_public(runs: Sequence[AgentRun]) -> AgentRun | None:
    """Return the run with the smallest regret that claims no privacy, other than BestFixed."""
    return min(
        (
            run
            for run in runs
            if run.certificate.epsilon == run.certificate.claimed_epsilon == inf
            and run.config["agent"] != "BestFixed"
        ),
        key=_mean,
        default=None,
    )


def _best_fixed(runs: Sequence[AgentRun]) -> AgentRun | None:
    return next((run for run in runs if run.config["agent"] == "BestFixed"), None)


def _fixed(runs: Sequence[AgentRun]) -> AgentRun | None:
    """Return BestFixed's run; None if its regret is 0, as where regret is measured against it."""
    found = _best_fixed(runs)
    least = _ZERO_REGRET_SHARE * max(map(_mean, runs), default=0.0)
    return found if found is not None and _mean(found) > least else None


def _mean(run: AgentRun) -> float:
    return float(run.regret[-1].mean())


class _Words(NamedTuple):
    """Builder of the sentences about the cost of privacy on one problem."""

    horizon: int
    unit: Losing
    who: str
    action: str

    def fixed_is_best(
        self, costs: Sequence[_Cost], public: AgentRun | None, fixed: AgentRun
    ) -> str:
        """Return the sentence about private agents with more regret than the best fixed action."""
        losers = " and ".join(
            f"{without_epsilon(cost.run.name)} {self._number(cost.run)} at {cost.at}"
            for cost in costs
        )
        sentence = (
            f"With {self.horizon:,} {self.who} one fixed {self.action} {self._loses(fixed)}, "
        )
        sentence += f"{losers}: keep the fixed {self.action}, if you know it."
        if public is not None:
            sentence += f" Without privacy {public.name} {self.unit.loses} {self._number(public)}."
        return sentence

    def costs(
        self, costs: Sequence[_Cost], public: AgentRun | None, fixed: AgentRun | None
    ) -> Iterator[str]:
        """Yield a sentence for each epsilon; the first also quotes the fixed action's regret."""
        known = False
        for cost in costs:
            if public is None:
                sentence = f"At {cost.at} {self._of(cost)}."
            elif isnan(cost.times[0]):
                sentence = f"At {cost.at} {self._of(cost)}, {public.name} without privacy "
                sentence += self._number(public)
                sentence += "; more replicas would tell its cost." if _mean(public) > 0 else "."
            elif cost.times[1] > 1:
                more = self._per_thousand(_mean(cost.run) - _mean(public))
                regret = "that regret" if known else f"the regret of {_best(public)}"
                sentence = f"At {cost.at} privacy costs {_ratio(cost.times)} times {regret}: "
                sentence += f"{self._of(cost)}, {more} more."
                known = True
            else:
                sentence = f"At {cost.at} {self._of(cost)}, {_ratio(cost.times)} times as much as "
                sentence += f"{_best(public)}" + _verdict(cost.times)
            if fixed is not None and cost is costs[0]:
                alike = ""
                if cost.saved_low <= 0 <= cost.saved_high:
                    near = 1 / _SIMILAR_RATIO < _mean(fixed) / _mean(cost.run) < _SIMILAR_RATIO
                    alike = ", about as much" if near else "; more replicas would tell them apart"
                sentence += f" One fixed {self.action} would {self.unit.lose} {self._number(fixed)}"
                sentence += f"{alike}."
            yield sentence

    def of_a_shop(
        self,
        costs: Sequence[_Cost],
        public: AgentRun | None,
        fixed: AgentRun | None,
        prices: Sequence[float],
    ) -> Iterator[str]:
        """Yield a sentence for a shop: what is lost at the epsilon nearest to 1, and by one price.

        All losses are those against the best agent without privacy. Privacy pays from the number of
        users on from which the private agent always has less regret than the best fixed price.
        """
        if public is None or fixed is None or self.action != "price" or not len(prices):
            return
        cost = min(costs, key=lambda one: abs(log10(_epsilon(one.run))))
        more, beyond = (run.regret[-1] - public.regret[-1] for run in (cost.run, fixed))
        unit = f" {self.unit.noun}" if self.unit.noun else ""
        amount = f"{self._per_thousand(more.mean())}{unit}" if more.mean() > 0 else "nothing"
        low, high = _interval(more)
        if not isnan(low):
            amount += f" ({self._per_thousand(low)} to {self._per_thousand(high)})"
        one = "one fixed price"
        if "action" in fixed.measures:
            kinds, counts = np.unique(fixed.measures["action"], return_counts=True)
            one += f" of {rounded(prices[int(kinds[counts.argmax()])], 4)}"
        one += f" {'loses' if beyond.mean() >= 0 else 'saves'} "
        behind = cost.run.regret.mean(axis=1) >= fixed.regret.mean(axis=1)
        when = f"does not pay within {self.horizon:,} {self.who}"
        if not behind[-1]:
            first = cost.run.marks[np.flatnonzero(behind)[-1] + 1 if behind.any() else 0]
            when = f"pays from {rounded(first, 2)} {self.who} on"
        yield (
            f"With privacy at {cost.at} you lose {amount} per 1,000 {self.who} against no privacy; "
            f"{one}{self._per_thousand(abs(beyond.mean()))}; privacy {when}."
        )

    def _of(self, cost: _Cost) -> str:
        return f"{without_epsilon(cost.run.name)} {self._loses(cost.run)}"

    def _loses(self, run: AgentRun) -> str:
        unit = f" {self.unit.noun}" if self.unit.noun else ""
        return f"{self.unit.loses} {self._number(run)}{unit} per 1,000 {self.who}"

    def _number(self, run: AgentRun) -> str:
        return self._per_thousand(_mean(run))

    def _per_thousand(self, regret: float) -> str:
        return self.unit.number(1000 * regret / self.horizon)


def _best(public: AgentRun) -> str:
    return f"{public.name}, the best agent without privacy in this comparison"


def _verdict(times: tuple[float, float, float]) -> str:
    if isnan(times[1]):
        return "; a single run is no evidence."
    if times[2] < 1:
        return ", which therefore lacks a good one."
    return (
        ": no cost of privacy is found." if times[2] < _NO_COST else "; more replicas would tell."
    )


def _ratio(times: tuple[float, float, float]) -> str:
    """Format a ratio with its interval, to the digits that the width of the interval justifies.

    >>> _ratio((2.41, 2.03, 2.81)), _ratio((1.656, 1.63, 1.69)), _ratio((12.3, 9.3, 15.3))
    ('2.4 (2.0 to 2.8)', '1.66 (1.63 to 1.69)', '12 (9 to 15)')
    """
    value, low, high = times
    if isnan(low):
        return rounded(value)
    places = max(int(value < 10), 2 if high - low < 0.01 else ceil(-log10(high - low)))
    return f"{value:,.{places}f} ({max(low, 0.0):,.{places}f} to {high:,.{places}f})"


def _missing(
    runs: Sequence[AgentRun], costs: Sequence[_Cost], public: AgentRun | None, spec: Spec | None
) -> Iterator[str]:
    """Yield a sentence about an agent without privacy that the comparison should include."""
    setup = runs[0].setup
    # By its name, not by its spec: on a problem of the suite another agent may have been chosen.
    known = (
        "uniform"
        if spec is None
        else recommend(setup.environment, inf, horizon=setup.horizon, env_kwargs=setup.arguments)
    )
    config = plain(describe(resolve_agent(known)))
    there = known == "uniform" or any(
        known == run.name or plain(run.config) == config for run in runs
    )  # by either: a comparison's delta is in the configs of agents that have one
    add = "add one" if there else f"add the recommended one (--agents ...,{known})"
    if public is None:
        yield f"To see what privacy costs, an agent without it is needed: {add}."
    elif any(cost.times[2] < 1 for cost in costs):
        yield f"What privacy costs is unknown: {add}, or private agents with epsilon=inf."
    elif not there:
        yield f"Recommended without privacy, and not in this comparison: {known}."


def _spec_of(setup: Setup) -> Spec | None:
    """Make the problem of a setup again, and return its spec; None if that fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were printed when the comparison ran
            return resolve_spec(
                setup.environment, horizon=setup.horizon, env_kwargs=setup.arguments
            )
    except Exception:  # its file or class may be gone; only nouns in sentences depend on it
        return None


def _nouns(spec: Spec | None) -> tuple[str, str]:
    """Return nouns for a problem's users and actions, "rounds" and "action" without a spec."""
    if spec is None:
        return "rounds", "action"
    who, action = getattr(spec, "visit", spec).nouns
    return "rounds" if spec.returning else who, action
