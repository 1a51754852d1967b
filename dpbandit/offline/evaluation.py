"""What a frozen policy would have earned on the users of a log, with intervals that hold."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any

from dpbandit.base.inputs import InputError, one_of, shown
from dpbandit.offline.adaptive_weights import Law, stable, weighted
from dpbandit.offline.arm_estimators import ArmRows
from dpbandit.offline.case_of_arms import case_of_arms
from dpbandit.offline.case_of_lists import case_of_lists
from dpbandit.offline.case_of_prices import case_of_prices
from dpbandit.offline.cases import Case
from dpbandit.offline.choosing import Interval, interval_of, too_few
from dpbandit.offline.intervals import standard_error
from dpbandit.offline.logged_lists import LoggedLists
from dpbandit.offline.logged_prices import LoggedPrices
from dpbandit.offline.logs import Logged
from dpbandit.offline.settings import Intervals, Settings
from dpbandit.offline.terms import Terms

if TYPE_CHECKING:
    import pandas as pd


_USUAL = ("ips", "snips", "dr", "interaction-ips")


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
    """Estimates of a policy's mean reward from what another policy logged.

    Args:
        policy: frozen, made without these rows: an object with `probabilities(contexts)`,
            `prices(contexts)` or `lists(contexts)`, such as a snapshot of an agent, or what these
            return. Probabilities are (n, K), prices (n,) or draws of them (draws, n), lists (n, m)
            or (draws, n, m), or a `ListLaw`. Draws have to be fresh for every row.
        log: rows with known propensities, densities or probabilities of lists.
        estimators: of `ARMS`, `PRICES` or `LISTS`. None: ips, snips and dr, for lists ips and
            interaction-ips.
        intervals: "t", "bootstrap" (1,000 resamples), "empirical-bernstein", "betting",
            "betting-cv", "sequence" (holds at every n at once), "weighted" or "weighted-minvar"
            (adaptive logs, for dr, whose estimate is then the weighted one). "auto": t if the log
            is not adaptive, the mean weight is within 4 standard errors of 1 and the effective
            sample size is at least 100; else betting, with a control variate where `w_max` is at
            most n / 30.
        level: of the intervals.
        q: a model of the reward, with `q_is_honest`, that it has not seen these rows: a function
            of contexts or an array, (n, K) for arms; a function of contexts and prices; (n, m, N)
            for lists. None: ridge regressions, cross-fitted, or fitted on earlier rows where the
            log is adaptive.
        q_is_honest: see `q`.
        folds: of cross-fitting.
        clip: the largest weight, of clipped-ips, clipped-dr and switch-dr.
        shrinkage: of dros.
        features, feature_law: for mips, the feature (n,) of each logged arm, a whole number, and
            (K, E), P(feature | arm).
        bandwidth, kernel: for prices, dollars, and "gaussian" or "epanechnikov".
        support: "refuse" or "drop" choices that the log's `probabilities` say were impossible.
        w_max: a public bound on weights, not read off the log.
        law: for "weighted", the logging policy of row i at earlier contexts, a function of i and
            (s, d) that gives (s, K), or a `TypeLaw`.
        seed: of folds and resamples.

    Returns:
        One row for each estimator: estimator, estimate, low, high, interval (what it is), se (to
        first order, for independent rows), ess (effective sample size), max_weight, mean_weight,
        refused (the interval that was asked for and does not hold, with the reason) and note.

    Raises:
        InputError: a learner, arrays of other shapes, probabilities that do not sum to 1, rewards
            outside the spec's bounds, an argument that an estimator or interval needs and that is
            missing, or choices that were impossible.

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
        raise InputError(f"Expected log={shown(log)} to be Logged, LoggedPrices or LoggedLists.")
    names = _names(estimators, case)
    if intervals.startswith("weighted"):
        if rows is None or names != ["dr"]:
            raise InputError(
                f"Expected estimators=['dr'] of a log of arms for intervals={intervals!r}."
            )
        return pd.DataFrame([_weighted_answer(case, rows, log, settings)])
    return pd.DataFrame([_answer(name, case, settings) for name in names])


def _names(estimators: str | Sequence[str] | None, case: Case) -> list[str]:
    if estimators is None:
        return [name for name in _USUAL if name in case.estimators]
    names = [estimators] if isinstance(estimators, str) else estimators
    if not isinstance(names, Iterable) or not (names := list(names)):
        raise InputError(
            f"Expected estimators={shown(estimators)} to name some of {', '.join(case.estimators)}."
        )
    for name in names:
        one_of("estimators", name, case.estimators)
    return names


def _answer(name: str, case: Case, settings: Settings) -> dict[str, Any]:
    terms = case.estimators[name]()
    found = interval_of(name, terms, case, settings)
    note = case.notes.get(name, "")
    said = note(terms) if callable(note) else note
    return _row(name, terms, terms.estimate, standard_error(terms), found, said)


def _weighted_answer(case: Case, rows: ArmRows, log: Any, settings: Settings) -> dict[str, Any]:
    terms = case.estimators["dr"]()
    h = stable(settings.law, log.context, rows.policy)
    h = h**2 if settings.intervals == "weighted-minvar" else h
    v = weighted(terms.values, h, settings.alpha)
    found = Interval(v.low, v.high, settings.intervals, "", ())
    if few := too_few(terms):
        found = interval_of("dr", terms, case, replace(settings, intervals="betting"))
        found = found._replace(refused=f"{settings.intervals}: {few}")
    return _row("dr", terms, v.estimate, v.se, found, "the weighted mean of dr's terms")


def _row(
    name: str, terms: Terms, estimate: float, se: float, found: Interval, said: str
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
        "note": "; ".join(filter(None, (*found.notes, said, _of_numbers(estimate, se, found)))),
    }


def _of_numbers(estimate: float, se: float, found: Interval) -> str:
    """What a reader would ask of them."""
    if isnan(estimate):
        return "no row agrees with the policy"
    if found.low <= found.high and not found.low <= estimate <= found.high:
        return "this estimate lies outside its interval"
    return "one row has no standard error" if isnan(se) else ""
