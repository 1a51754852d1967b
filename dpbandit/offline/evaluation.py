"""Estimate what a frozen policy would have earned on the users of a log, with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError, abbrev, by_index, one_of
from dpbandit.offline.cases import (
    Case,
    Intervals,
    Settings,
    case_of_arms,
    case_of_lists,
    case_of_prices,
    scaled,
)
from dpbandit.offline.estimators import ArmRows, Terms
from dpbandit.offline.intervals import (
    BY_STAKES,
    Gain,
    Law,
    TypeLaw,
    bootstrap,
    by_stakes,
    gain_between,
    paired_gain,
    stable,
    standard_error,
    student,
    weighted,
)
from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices, in_order_of

if TYPE_CHECKING:
    import pandas as pd


_MIN_EFFECTIVE, _AUTO_EFFECTIVE, _MIN_MATCHES = 30, 100, 10
"""Smallest effective sample sizes for t, and for t by "auto"; smallest number of weights > 0."""
_AUTO_UNEQUAL = 20
"""Smallest number of matching rows with a reward other than the most frequent one, for "auto" t."""
_ROWS_PER_WEIGHT = 30
"""Smallest number of rows / `w_max`, the bound on weights, at which control variates help."""
_IPS_INTERVAL_NOTE = "interval of ips: the estimate may lie outside"  # note on an interval
# note on an interval whose lower end lies above its upper end
_EMPTY_NOTE = "empty, which is rare where users are of one law and the log's probabilities true"
_KERNEL_NOTE = "a kernel's weights have no mean of 1 to bet on"  # reason for no betting interval


class Interval(NamedTuple):
    """An interval: its ends, its method, the refused method with the reason (or ""), and notes."""

    low: float
    high: float
    name: str
    refused: str
    notes: tuple[str, ...]


def interval_of(estimator: str, terms: Terms, case: Case, settings: Settings) -> Interval:
    """Return an estimator's interval by the chosen method, or by betting if it is not valid."""
    wrong, few = _violated(terms, case), too_few(terms)
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
        nothing = "; ".join(filter(None, (refused, f"betting: {_KERNEL_NOTE}")))
        return Interval(float("nan"), float("nan"), "none", nothing, tuple(notes))
    if estimator not in case.stakes:
        notes.append(_IPS_INTERVAL_NOTE)
    if name == "empirical-bernstein" and case.adaptive:
        notes.append("the log is adaptive: this interval may be too short")
    stakes, w_max = case.stakes.get(estimator, case.stakes["ips"])(), settings.w_max or 1.0
    if settings.w_max is not None:
        _refuse_weights(stakes.up + stakes.down, w_max)
    ends = by_stakes(name, stakes, settings.alpha, w_max, case.bounds)
    if isnan(ends[0]):
        notes.append(_EMPTY_NOTE)
    return Interval(*ends, name, refused, tuple(notes))


def _refuse_weights(weight: Floats, w_max: float) -> None:
    if weight.max() > w_max * (1 + 1e-9):
        raise InputError(
            f"Expected w_max={w_max:g} to be at least every weight, got {weight.max():.4g} in row "
            f"{int(weight.argmax())}."
        )


def _automatic(terms: Terms, case: Case, settings: Settings, doubt: str) -> str:
    least = _AUTO_EFFECTIVE if case.stakes else _MIN_EFFECTIVE
    enough = not case.adaptive and not doubt and terms.effective >= least
    if enough and case.stakes:  # t errs if nearly all matching rewards are equal, as clicks are
        counts = np.unique(case.reward[terms.weight > 0], return_counts=True)[1]
        enough = counts.sum() - counts.max() >= _AUTO_UNEQUAL
    if enough:
        return "t"
    n, w_max = len(terms.base), settings.w_max
    if w_max is not None and w_max <= n / _ROWS_PER_WEIGHT and not _violated(terms, case):
        return "betting-cv"
    return "betting"


def too_few(terms: Terms) -> str:
    """Return in words why rows are too few for asymptotic intervals, "" if they are enough."""
    if terms.effective < _MIN_EFFECTIVE:
        return f"effective sample size {terms.effective:.3g} < {_MIN_EFFECTIVE}"
    few = terms.matches < _MIN_MATCHES
    return f"{terms.matches} matching rows < {_MIN_MATCHES}" if few else ""


def _violated(terms: Terms, case: Case) -> str:
    """Return in words the violated assumption of all intervals but betting, "" if none."""
    if case.dropped:
        return (
            f"{100 * case.dropped:.3g} % of the policy's choices could not be logged: ips leaves "
            "them out, dr has only its model"
        )
    if case.stakes and not case.adaptive and terms.weights_are_off:
        return f"propensities or support wrong: mean weight {terms.weight.mean():.4g}"
    return ""


_DEFAULT_ESTIMATORS = ("ips", "snips", "dr", "interaction-ips")  # if the kind of log has them


def evaluate(
    policy: Any,
    log: Logged | LoggedPrices | LoggedLists,
    estimators: str | Sequence[str] | None = None,
    *,
    intervals: Intervals = "auto",
    level: float = 0.95,
    q: Any = None,
    q_is_honest: bool = False,
    folds: int = 5,
    clip: float | None = None,
    shrinkage: float | None = None,
    features: Any = None,
    feature_law: Any = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    support: str = "refuse",
    w_max: float | None = None,
    law: Law | None = None,
    seed: int = 0,
) -> "pd.DataFrame":
    """Estimate a policy's mean reward from the log of another policy.

    Args:
        policy: a policy that does not learn and was made without these rows. Either an object with
            `probabilities(contexts)`, `prices(contexts)` or `lists(contexts)`, such as a snapshot
            of an agent, or what these methods return: probabilities (n, K), prices (n,) or draws of
            prices (draws, n), lists (n, m) or (draws, n, m), or a `ListLaw`. Draws have to be fresh
            for every row. Rows of Series and DataFrames are found by the log's `index`, columns by
            the names of its `arms`; other labels are refused, here and in all later arguments.
        log: n rows with known propensities of K arms, densities of prices, or probabilities of
            lists of m of N items.
        estimators: names from `ARMS`, `PRICES` or `LISTS`; by default ips, snips and dr, and for
            lists ips and interaction-ips.
        intervals: "t", "bootstrap" (1,000 resamples), "empirical-bernstein", "betting",
            "betting-cv", "sequence" (holds at every n at once), "weighted" or "weighted-minvar"
            (adaptive logs, for dr, whose estimate is then the weighted one). "auto": t if the log
            is not adaptive, the mean weight is within 4 standard errors of 1, the effective
            sample size is at least 100, and at least 20 matching rows have another reward than the
            most frequent one; else betting, with a control variate if `w_max` is at most n / 30.
        level: confidence level of the intervals.
        q: a model of the reward: a function of contexts or an array, (n, K) for arms; a function of
            contexts and prices; (n, m, N) for lists. By default ridge regressions, cross-fitted, or
            fitted on earlier rows if the log is adaptive.
        q_is_honest: True confirms that `q` was not fitted to these rows; required with `q`.
        folds: number of folds of cross-fitting.
        clip: the largest weight, for clipped-ips, clipped-dr and switch-dr.
        shrinkage: shrinkage of dros.
        features, feature_law: for mips, the feature (n,) of each logged arm, a whole number below
            E, and the probabilities P(feature | arm), (K, E).
        bandwidth, kernel: for prices, the kernel's width in dollars, and "gaussian" or
            "epanechnikov".
        support: "refuse" or "drop" choices that were impossible by the log's `probabilities`.
        w_max: a public bound on weights, not computed from the log.
        law: for "weighted", a function of a row i and s earlier contexts (s, d) that returns the
            probabilities (s, K) of row i's logging policy, or a `TypeLaw`.
        seed: random seed of folds and resamples.

    Returns:
        One row for each estimator: estimator, estimate, low, high, interval (its method), se (to
        first order, for independent rows), ess (effective sample size), max_weight, mean_weight,
        refused (the chosen method if it is not valid, with the reason) and note. Then logged (mean
        reward of the log's own policy), gain (estimate - logged) with ends gain_low and gain_high,
        and percent, the gain in percent of logged, with its ends; ends are NaN if the log is
        adaptive or the intervals are weighted, percent also if logged may be 0.

    Raises:
        InputError: a learning policy, arrays of other shapes, probabilities that do not sum to 1,
            rewards outside the spec's bounds, a missing argument that an estimator or interval
            needs, or choices that were impossible.

    >>> import numpy as np
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=1, reward_low=0.0)
    >>> action = np.arange(1000) % 2
    >>> log = Logged(spec=spec, context=np.ones((1000, 1)), action=action, reward=1.0 * action,
    ...              propensity=0.5)
    >>> answer = evaluate(np.tile([0.2, 0.8], (1000, 1)), log)
    >>> answer[["estimator", "estimate", "low", "high", "interval"]].round(2).values.tolist()
    [['ips', 0.8, 0.75, 0.85, 't'], ['snips', 0.8, 0.78, 0.82, 't'], ['dr', 0.8, 0.8, 0.8, 't']]
    """
    import pandas as pd  # not before: slow to import

    settings = Settings(
        intervals=intervals,
        level=level,
        q=q,
        q_is_honest=q_is_honest,
        folds=folds,
        clip=clip,
        shrinkage=shrinkage,
        features=features,
        feature_law=feature_law,
        bandwidth=bandwidth,
        kernel=kernel,
        support=support,
        w_max=w_max,
        law=law,
        seed=seed,
    )
    rows: ArmRows | None = None
    if isinstance(log, Logged):
        case, rows = case_of_arms(policy, log, settings)
    elif isinstance(log, LoggedPrices):
        case = case_of_prices(policy, log, settings)
    elif isinstance(log, LoggedLists):
        case = case_of_lists(policy, log, settings)
    else:
        raise InputError(f"Expected log={abbrev(log)} to be Logged, LoggedPrices or LoggedLists.")
    names = _estimator_names(estimators, case)
    if intervals.startswith("weighted"):
        if rows is None or names != ["dr"]:
            raise InputError(
                f"Expected estimators=['dr'] of a log of arms for intervals={intervals!r}."
            )
        return pd.DataFrame([_weighted_answer(case, rows, log, settings)])
    return pd.DataFrame([_answer(name, case, settings) for name in names])


def _estimator_names(estimators: str | Sequence[str] | None, case: Case) -> list[str]:
    if estimators is None:
        return [name for name in _DEFAULT_ESTIMATORS if name in case.estimators]
    names = [estimators] if isinstance(estimators, str) else estimators
    if not isinstance(names, Iterable) or not (names := list(names)):
        raise InputError(
            f"Expected estimators={abbrev(estimators)} to name some of "
            f"{', '.join(case.estimators)}."
        )
    for name in names:
        one_of("estimators", name, case.estimators)
    return names


def _answer(name: str, case: Case, settings: Settings) -> dict[str, Any]:
    terms = case.estimators[name]()
    found = interval_of(name, terms, case, settings)
    note = case.notes.get(name, "")
    sentence = note(terms) if callable(note) else note
    row = _row(name, terms, terms.estimate, standard_error(terms.errors), found, sentence)
    return row | _gain(row, terms, case, settings)


def _gain(row: Mapping[str, Any], terms: Terms, case: Case, settings: Settings) -> dict[str, float]:
    """Return the log's mean reward, and the policy's gain on it, in rewards and in percent."""
    logged, nan = float(case.reward.mean()), float("nan")
    gain, estimate, kind = Gain((nan, nan), (nan, nan)), row["estimate"], row["interval"]
    if kind in ("t", "bootstrap") and not case.adaptive:
        gain = paired_gain(terms, case.reward, settings.alpha)
    elif kind in BY_STAKES and not case.adaptive and not isnan(row["low"]):
        half = replace(settings, level=1 - settings.alpha / 2, intervals=kind)  # two, by a union
        stakes = scaled(case.reward, np.ones(1), case.bounds)  # weights are 1
        how = "sequence" if kind == "sequence" else "betting"
        gain = gain_between(
            interval_of(row["estimator"], terms, case, half)[:2],
            by_stakes(how, stakes, half.alpha, 1.0, case.bounds),
        )
    return {
        "logged": logged,
        "gain": estimate - logged,
        "gain_low": gain.ends[0],
        "gain_high": gain.ends[1],
        "percent": nan if isnan(gain.percent[0]) else 100 * (estimate / logged - 1),
        "percent_low": gain.percent[0],
        "percent_high": gain.percent[1],
    }


def _law_of(log: Logged, law: Any) -> Any:
    """Return a logging policy whose DataFrames are in the order of the log's arms and rows."""
    if isinstance(law, TypeLaw):
        types: Any = in_order_of(log, "types", law.types)  # whole numbers only in `stable`
        return law._replace(types=types, policy=log.by_arm("the types' policy", law.policy))
    if not callable(law):
        return law

    def at(i: int, context: Floats) -> Any:
        chances = log.by_arm("law", law(i, context))
        return by_index("law", chances, range(len(context)), "the contexts it was asked at")

    return at


def _weighted_answer(case: Case, rows: ArmRows, log: Any, settings: Settings) -> dict[str, Any]:
    terms = case.estimators["dr"]()
    h = stable(_law_of(log, settings.law), log.context, rows.policy)
    h = h**2 if settings.intervals == "weighted-minvar" else h
    v = weighted(terms.values, h, settings.alpha)
    found = Interval(v.low, v.high, settings.intervals, "", ())
    if few := too_few(terms):
        found = interval_of("dr", terms, case, replace(settings, intervals="betting"))
        found = found._replace(refused=f"{settings.intervals}: {few}")
    row = _row("dr", terms, v.estimate, v.se, found, "the weighted mean of dr's terms")
    return row | _gain(row, terms, case, settings)


def _row(
    name: str, terms: Terms, estimate: float, se: float, found: Interval, sentence: str
) -> dict[str, Any]:
    return {
        "estimator": name,
        "estimate": estimate,
        "low": found.low,
        "high": found.high,
        "interval": found.name,
        "se": se,
        "ess": terms.effective,
        "max_weight": float(terms.weight.max()),
        "mean_weight": float(terms.weight.mean()),
        "refused": found.refused,
        "note": "; ".join(
            filter(None, (*found.notes, sentence, _number_note(estimate, se, found)))
        ),
    }


def _number_note(estimate: float, se: float, found: Interval) -> str:
    """Return a note on an estimate that is NaN or outside its interval, "" for any other."""
    if isnan(estimate):
        return "no row agrees with the policy"
    if found.low <= found.high and not found.low <= estimate <= found.high:
        return "this estimate lies outside its interval"
    return "one row has no standard error" if isnan(se) else ""
