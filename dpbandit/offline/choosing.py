"""Which interval holds for a row of the answer, and what it is."""

from typing import NamedTuple

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.offline.betting import Stakes, betting
from dpbandit.offline.cases import Case
from dpbandit.offline.intervals import bootstrap, empirical_bernstein, student
from dpbandit.offline.settings import Settings
from dpbandit.offline.terms import Terms

_ENOUGH, _MANY, _MATCHES = 30, 100, 10
"""Effective rows for t at all and for "auto" to choose it, and rows with any weight."""
_ROWS_FOR_A_WEIGHT = 30
"""A control variate is narrower up to w_max = n / 30 and useless beyond."""
_OF_IPS = "interval of ips: the estimate may lie outside"
_EMPTY = "empty, which is rare where users are of one law and the log's probabilities true"
_NO_BOUND = "a kernel's weights have no mean of 1 to bet on"


class Interval(NamedTuple):
    """Its ends, what it is, and what was not to be had."""

    low: float
    high: float
    name: str
    refused: str
    notes: tuple[str, ...]


def interval_of(estimator: str, terms: Terms, case: Case, settings: Settings) -> Interval:
    """As asked for, or where that does not hold by betting, which does."""
    wrong, few = _wrong(terms, case), too_few(terms)
    wanted = settings.intervals
    name = _automatic(terms, case, settings, wrong or few) if wanted == "auto" else wanted
    notes = [wrong] if wrong else []
    refused = ""
    if name in ("t", "bootstrap", "betting-cv", "empirical-bernstein") and wrong:
        name, refused = "betting", f"{name}: {wrong}"
    elif name in ("t", "bootstrap") and few:
        name, refused = "betting", f"{name}: {few}"
    if name in ("t", "bootstrap"):
        if case.adaptive:
            notes.append("the log is adaptive: this interval is too short")
        t = name == "t"
        ends = (
            student(terms, settings.alpha) if t else bootstrap(terms, settings.alpha, settings.seed)
        )
        return Interval(*ends, name, refused, tuple(notes))
    if not case.stakes:
        nothing = "; ".join(filter(None, (refused, f"betting: {_NO_BOUND}")))
        return Interval(float("nan"), float("nan"), "none", nothing, tuple(notes))
    if estimator not in case.stakes:
        notes.append(_OF_IPS)
    if name == "empirical-bernstein" and case.adaptive:
        notes.append("the log is adaptive: this interval may be too short")
    low, high = _by_stakes(name, case.stakes.get(estimator, case.stakes["ips"])(), settings)
    if low > high:
        low = high = float("nan")
        notes.append(_EMPTY)
    start, end = case.bounds
    ends = start + (end - start) * low, start + (end - start) * high
    return Interval(*ends, name, refused, tuple(notes))


def _by_stakes(name: str, stakes: Stakes, settings: Settings) -> tuple[float, float]:
    w_max = settings.w_max or 1.0
    if settings.w_max is not None:
        _refuse_weights(stakes.up + stakes.down, w_max)
    if name == "empirical-bernstein":
        return empirical_bernstein(stakes, settings.alpha, w_max)
    return betting(stakes, settings.alpha, name, w_max)  # type: ignore[arg-type]  # one of three


def _refuse_weights(weight: Floats, w_max: float) -> None:
    if weight.max() > w_max * (1 + 1e-9):
        raise InputError(
            f"Expected w_max={w_max:g} to be at least every weight, got {weight.max():.4g} in row "
            f"{int(weight.argmax())}."
        )


def _automatic(terms: Terms, case: Case, settings: Settings, doubt: str) -> str:
    enough = _MANY if case.stakes else _ENOUGH
    if not case.adaptive and not doubt and terms.effective >= enough:
        return "t"
    n, w_max = len(terms.base), settings.w_max
    if w_max is not None and w_max <= n / _ROWS_FOR_A_WEIGHT and not _wrong(terms, case):
        return "betting-cv"
    return "betting"


def too_few(terms: Terms) -> str:
    """Why no interval holds that is true as rows grow in number; nothing if it does."""
    if terms.effective < _ENOUGH:
        return f"effective sample size {terms.effective:.3g} < {_ENOUGH}"
    return f"{terms.matches} matching rows < {_MATCHES}" if terms.matches < _MATCHES else ""


def _wrong(terms: Terms, case: Case) -> str:
    """What all but betting rest on and what does not hold."""
    if case.dropped:
        return (
            f"{100 * case.dropped:.3g} % of the policy's choices could not be logged: ips leaves "
            "them out, dr has only its model"
        )
    if case.stakes and not case.adaptive and terms.weights_are_off:
        return f"propensities or support wrong: mean weight {terms.weight.mean():.4g}"
    return ""
