"""Warnings about runs that learned little; words for regret in the unit of rewards."""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import plain, rounded
from dpbandit.results.runs import AgentRun

MIN_WARNED_ROUNDS = 1000
"""Smallest horizon of a run that may get a warning."""
NO_LEARNING = 0.9
"""Ratio of regret to that of random play above which an agent has learned almost nothing."""
WORSE_THAN_FIXED, NEGLIGIBLE = 1.5, 0.2
"""Ratios of regret to that of the best fixed action and to that of random play; a run above both
gets a warning."""
MAX_SMALLER_RATIO = 0.9
"""Largest ratio of two regrets at which the first one counts as smaller than the second."""
BASELINES = ("Uniform", "BestFixed", "Centre")  # names of agents that get no warning


class Losing(NamedTuple):
    """Unit and verbs for regret in sentences, since dollars are lost but mistakes are made."""

    noun: str
    """unit of regret in sentences, such as dollars; empty if rewards have no unit"""
    scale: float = 1.0
    """number of units of `noun` in a reward of 1"""
    loses: str = "loses"
    lost: str = "lost"
    lose: str = "lose"

    def number(self, regret: float) -> str:
        """Format a regret, given in rewards, as a number in the unit `noun`, without the unit."""
        return rounded(self.scale * regret)

    def amount(self, regret: float) -> str:
        """Format a regret with its unit, or without a unit if rewards have none.

        >>> losing("hundreds of dollars").amount(11.724), losing("reward").amount(3)
        ('1,170 dollars', '3')
        """
        return f"{self.number(regret)} {self.noun}".rstrip()


_WORDS_OF_UNIT = {  # unit of rewards -> words for regret
    "reward": Losing(""),
    "loss": Losing(""),
    "right answers": Losing("mistakes", 1.0, "makes", "made", "make"),
    "hundreds of dollars": Losing("dollars", 100.0),
}


def losing(reward_unit: str) -> Losing:
    """Return the words for regret if rewards have this unit."""
    return _WORDS_OF_UNIT.get(reward_unit, Losing(reward_unit))


def shortfalls(runs: Sequence[AgentRun]) -> tuple[str, ...]:
    """Return a warning for each run that learned little by the middle or end of its horizon.

    Runs are compared with random play on the same users, and with the best fixed action if it was
    run. The advice depends on the same agent without noise (epsilon infinity), if it was run, and
    on whether regret per round falls. A warning says that the model may not fit only if regret per
    round does not fall, and the agent has no noise or loses as much without noise.
    """
    several = len({run.setup.problem for run in runs}) > 1
    return tuple(sentence for run in runs if (sentence := _warning(run, runs, several)) is not None)


def _warning(run: AgentRun, runs: Sequence[AgentRun], several: bool) -> str | None:
    beside = {other.config["agent"]: other for other in runs if other.setup == run.setup}
    T = run.setup.horizon
    if T < MIN_WARNED_ROUNDS or "Uniform" not in beside or run.config["agent"] in BASELINES:
        return None
    for share in (0.5, 1.0):
        mark = int(np.searchsorted(run.marks, T * share))
        here, uniform = _lost(run, mark), _lost(beside["Uniform"], mark)
        fixed = _lost(beside["BestFixed"], mark) if "BestFixed" in beside else None
        nothing = here > NO_LEARNING * uniform > 0
        worse = fixed is not None and here > WORSE_THAN_FIXED * fixed
        if not nothing and not (worse and here > NEGLIGIBLE * uniform > 0):
            continue
        words = losing(run.setup.reward_unit)
        rounds = f"{run.marks[mark]:,} of {T:,}" if run.marks[mark] < T else f"{T:,}"
        seen = f"After {rounds} rounds {run.name}{f' on {run.setup.problem}' * several} had "
        seen += f"{words.lost} {words.amount(here)}, random play {words.number(uniform)}"
        seen += ": it has learned almost nothing." if nothing else _beside(words.number, fixed)
        return " ".join(filter(None, [seen, _advice(run, runs, mark)]))
    return None


def _beside(number: Any, fixed: float | None) -> str:
    lost = "nothing" if not fixed or abs(fixed) < 1e-9 else number(fixed)
    return f" and the best fixed action {lost}."


def _advice(run: AgentRun, runs: Sequence[AgentRun], mark: int) -> str:
    private = 0 < run.certificate.epsilon < inf
    exact = next((_lost(other, mark) for other in runs if _is_exact(other, run)), None)
    falls, here = _falls(run, mark), _lost(run, mark)
    if private and exact is not None and exact <= MAX_SMALLER_RATIO * here:
        words = losing(run.setup.reward_unit)
        lost = f"{words.lost} {words.amount(exact)}"
        return f"Without noise it {lost}: more users or a larger epsilon would help."
    if falls:
        larger = " or a larger epsilon" if private and exact is None else ""
        return f"Its regret per round falls: more users{larger} would help."
    if private and exact is None:
        return "The same agent with epsilon=inf would tell if its noise or its model is to blame."
    if falls is None:
        return ""
    less = "Without noise it lost no less, and its" if private else "Its"
    return f"{less} regret per round does not fall: its model or a setting may not fit."


def _is_exact(other: AgentRun, run: AgentRun) -> bool:
    """Return True if `other` is the agent of `run` without noise, on the same users."""
    alike = other.setup == run.setup and other.certificate.epsilon == inf
    return alike and _without_target(other) == _without_target(run)


def _without_target(run: AgentRun) -> Any:
    return plain({key: v for key, v in run.config.items() if key not in ("epsilon", "delta")})


def _falls(run: AgentRun, mark: int) -> bool | None:
    """Return True if regret per round fell in the second half of rounds so far, None if unknown."""
    half = int(np.searchsorted(run.marks, run.marks[mark] / 2))
    if half == mark:
        return None
    earlier, later = _lost(run, half), _lost(run, mark) - _lost(run, half)
    rounds, more = run.marks[half], run.marks[mark] - run.marks[half]
    return bool(later / more < MAX_SMALLER_RATIO * earlier / rounds)


def _lost(run: AgentRun, mark: int) -> float:
    return float(run.regret[mark].mean())
