"""Estimate what a frozen policy would have earned on the users of a log, with intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    abbrev,
    by_index,
    by_name,
    columns_of,
    flag,
    inside,
    one_of,
    positive,
    shaped,
    takes,
    whole,
)
from dpbandit.offline.estimators import (
    ARMS,
    KERNELS,
    LISTS,
    PRICES,
    ArmRows,
    Embedding,
    ListRows,
    Parts,
    PriceModel,
    PriceRows,
    Terms,
    arm_model,
    blocks_of,
    folds_of,
    weights_of,
)
from dpbandit.offline.intervals import (
    BY_STAKES,
    Gain,
    Law,
    Stakes,
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
from dpbandit.offline.logs import (
    MAX_SIZE,
    Logged,
    LoggedLists,
    LoggedPrices,
    Observed,
    in_order_of,
    is_law,
    numbers_in,
    refuse_row,
)
from dpbandit.offline.policies import arm_policy, list_law, price_policy

if TYPE_CHECKING:
    import pandas as pd


Intervals = Literal[
    "auto",
    "t",
    "bootstrap",
    "empirical-bernstein",
    "betting",
    "betting-cv",
    "sequence",
    "weighted",
    "weighted-minvar",
]
INTERVALS: tuple[str, ...] = Intervals.__args__  # type: ignore[attr-defined]  # names of intervals


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """Checked settings of `evaluate`, which documents each of them."""

    intervals: str
    level: float
    q: Any
    q_is_honest: bool
    folds: int
    clip: float | None
    shrinkage: float | None
    features: Any
    feature_law: Any
    bandwidth: float | None
    kernel: str
    support: str
    w_max: float | None
    law: Any
    seed: int

    def __post_init__(self) -> None:
        one_of("intervals", self.intervals, INTERVALS)
        inside("level", self.level, 0, 1, ends=False)
        flag("q_is_honest", self.q_is_honest)
        whole("folds", self.folds, 2)
        whole("seed", self.seed, 0)
        one_of("support", self.support, ("refuse", "drop"))
        if self.w_max is not None:
            positive("w_max", self.w_max)
        if self.intervals in ("betting-cv", "empirical-bernstein") and self.w_max is None:
            raise InputError(
                f"Expected w_max=, a public bound on weights, for intervals={self.intervals!r}."
            )
        if self.intervals.startswith("weighted") and self.law is None:
            raise InputError(
                f"Expected law=, the logging policy of each row at earlier contexts, for "
                f"intervals={self.intervals!r}."
            )
        if self.q is not None and not self.q_is_honest:
            raise InputError(
                "Expected q_is_honest=True beside q=: a model that has seen the row it is used on "
                "makes its own errors look small."
            )

    @property
    def alpha(self) -> float:
        """Probability with which an interval may miss the true value, 1 - `level`."""
        return 1 - self.level

    def model_of(self, log: Logged | LoggedLists, shape: tuple[int, ...]) -> Floats:
        """Return the given reward model, an array or a function of contexts, as an array."""
        is_function = callable(self.q)
        if is_function:
            takes("q", self.q, "contexts")
        values = self.q(log.context) if is_function else self.q
        values = log.by_arm("q", values) if isinstance(log, Logged) else values
        q = in_order_of(log, "q", values, counted=is_function)
        shaped("q", q, shape)
        refuse_row(
            f"q up to {MAX_SIZE:g} in size", (np.abs(q) <= MAX_SIZE).reshape(len(q), -1).all(axis=1)
        )
        return q

    def parts(self, n: int, adaptive: bool) -> Parts:
        """Split n rows for cross-fitting: random folds, or blocks of an adaptive log."""
        return blocks_of(n) if adaptive else folds_of(n, self.folds, self.seed)


_REWARD_TOLERANCE = 1e-6
"""Largest distance of a reward to its public range, as a share of the width of the range."""


@dataclass(frozen=True, eq=False)
class Case:
    """A policy and a log, ready for evaluation whether rows are of arms, prices or lists."""

    estimators: Mapping[str, Callable[[], Terms]]
    bounds: tuple[float, float]
    """public bounds of a row's reward"""
    adaptive: bool
    reward: Floats
    """reward of each row, (n,), which the log's own policy earned"""
    stakes: Mapping[str, Callable[[], Stakes]] = field(default_factory=dict)
    """weighted rewards, by estimator, for betting intervals; other estimators use those of ips"""
    notes: Mapping[str, str | Callable[[Terms], str]] = field(default_factory=dict)
    """note on each estimator, or a function that makes one from the terms"""
    dropped: float = 0.0
    """share of the policy's choices that were impossible when the log was recorded"""


def scaled(reward: Floats, weight: Floats, bounds: tuple[float, float]) -> Stakes:
    """Return weighted rewards as `Stakes`, after scaling rewards to [0, 1] by public bounds."""
    low, high = bounds
    share = ((reward - low) / (high - low)).clip(0, 1)
    return Stakes(weight * share, weight * (1 - share))


def refuse_rewards(reward: Floats, bounds: tuple[float, float]) -> None:
    """Raise `InputError` if a reward lies outside its public bounds, on which intervals rest."""
    low, high = bounds
    room = _REWARD_TOLERANCE * (high - low)
    fine = (reward >= low - room) & (reward <= high + room)
    refuse_row(f"rewards from {low:g} to {high:g}, the spec's", fine)


_CLIPPING_NOTE = "the bias of weights that are cut off is in no interval"  # note on an estimator
_ARM_NOTES = {  # note on each estimator, in results for logs of arms
    "clipped-ips": _CLIPPING_NOTE,
    "clipped-dr": _CLIPPING_NOTE,
    "switch-dr": _CLIPPING_NOTE,
    "dros": _CLIPPING_NOTE,
    "dm": "the model's error is in no interval",
    "mips": "holds only where the reward depends on the arm through its feature alone",
}


def case_of_arms(policy: Any, log: Logged, settings: Settings) -> tuple[Case, ArmRows]:
    """Prepare the evaluation of a policy of arms: its `Case`, and the rows of its estimators."""
    spec, pi = log.spec, arm_policy(policy, log)
    bounds = spec.reward_low, spec.reward_high
    refuse_rewards(log.reward, bounds)
    rows = ArmRows(
        action=log.action,
        reward=log.reward,
        propensity=np.asarray(log.propensity),
        policy=pi,
        model=_arm_model(log, settings),
        clip=settings.clip,
        shrinkage=settings.shrinkage,
        probabilities=log.probabilities,
        embedding=_embedding(log, settings),
    )
    case = Case(
        estimators={name: partial(terms, rows) for name, terms in ARMS.items()},
        bounds=bounds,
        adaptive=log.adaptive,
        reward=log.reward,
        stakes={"ips": lambda: scaled(log.reward, rows.weight, bounds)},
        notes=_ARM_NOTES,
        dropped=_dropped(pi, log, settings.support),
    )
    return case, rows


def _dropped(pi: Floats, log: Logged, support: str) -> float:
    """Return the share of the policy's choices that were impossible; raise unless "drop" is set."""
    if log.probabilities is None:
        return 0.0
    lost = np.where(log.probabilities > 0, 0.0, pi).sum(axis=1)
    if lost.any() and support != "drop":
        raise InputError(
            f"Expected every arm of the policy to have been possible: in {np.count_nonzero(lost)} "
            f"rows, the first of them row {int((lost > 0).argmax())}, it was not, for "
            f"{100 * lost.mean():.3g} % of the policy's choices; support='drop' leaves them out."
        )
    return float(lost.mean())


def _arm_model(log: Logged, settings: Settings) -> Callable[[], Floats]:
    """Return a function that predicts rewards (n, K), by the given model or ridge regressions."""
    spec, n = log.spec, len(log.action)

    def supplied() -> Floats:
        return settings.model_of(log, (n, spec.n_actions))

    if settings.q is not None:
        return supplied
    return lambda: fitted_rewards(log, settings.parts(n, log.adaptive))


def fitted_rewards(log: Observed, parts: Parts) -> Floats:
    """Predict the rewards (n, K) of all arms; no row's ridge regressions are fitted to that row."""
    spec = log.spec
    middle = (spec.reward_low + spec.reward_high) / 2  # the prediction without any row
    found = arm_model(log.context, log.action, log.reward - middle, spec.n_actions, parts)
    return np.clip(found + middle, spec.reward_low, spec.reward_high)


def _embedding(log: Logged, settings: Settings) -> Embedding | None:
    if settings.features is None and settings.feature_law is None:
        return None
    if settings.features is None or settings.feature_law is None:
        raise InputError("Expected features= and feature_law=, P(feature | arm), together.")
    table = log.by_arm("feature_law", settings.feature_law, axis=0)
    names = range(len(columns_of(table) or ()))
    law = numbers_in("feature_law", by_name("feature_law", table, names, "the features"))
    if law.ndim != 2 or len(law) != log.spec.n_actions:
        raise InputError(f"Expected feature_law of shape (n_actions, E), got {law.shape}.")
    if not is_law(law).all():
        raise InputError("Expected every row of feature_law to sum to 1.")
    logged = in_order_of(log, "features", settings.features)
    shaped("features", logged, log.action.shape)
    refuse_row(
        f"features that are whole numbers below {law.shape[1]}",
        np.isin(logged, range(law.shape[1])),
    )
    kind = logged.astype(np.int64)
    refuse_row("features that the logged arm may have", law[log.action, kind] > 0)
    return Embedding(kind, law)


_CASCADE_NOTE = "holds only where a click depends on nothing below it"  # note on an estimator
_LIST_NOTES = {  # note on each estimator, in results for logs of lists
    "independent-ips": "holds only where a click depends on nothing but its own item and position",
    "interaction-ips": _CASCADE_NOTE,
    "cascade-dr": _CASCADE_NOTE,
}


def case_of_lists(policy: Any, log: LoggedLists, settings: Settings) -> Case:
    """Prepare the evaluation of a policy of lists; a row's reward is its number of clicks."""
    rows = ListRows(
        items=log.items,
        clicks=log.clicks,
        prefix=log.prefix,
        marginal=log.marginal,
        policy=list_law(policy, log),
        q=None if settings.q is None else settings.model_of(log, (*log.items.shape, log.n_items)),
    )
    return Case(
        estimators={name: partial(terms, rows) for name, terms in LISTS.items()},
        bounds=(0.0, float(log.items.shape[1])),
        adaptive=log.adaptive,
        reward=1.0 * log.clicks.sum(axis=1),
        stakes={
            name: partial(_stakes, name, rows)
            for name in ("ips", "independent-ips", "interaction-ips")
        },
        notes=_LIST_NOTES,
    )


def _stakes(name: str, rows: ListRows) -> Stakes:
    """Return `Stakes` of lists: means over positions of weight x click and weight x (1 - click)."""
    w = weights_of(name, rows)  # every w_k has mean 1
    return Stakes((w * rows.clicks).mean(axis=1), (w * (1 - rows.clicks)).mean(axis=1))


_MIN_BANDWIDTH = 1e-9
"""Smallest bandwidth, as a share of the range of prices; below, squared distances overflow."""


def case_of_prices(policy: Any, log: LoggedPrices, settings: Settings) -> Case:
    """Prepare the evaluation of a policy of prices."""
    bounds = log.spec.reward_low, log.spec.reward_high
    refuse_rewards(log.reward, bounds)
    one_of("kernel", settings.kernel, KERNELS)
    positive("bandwidth", settings.bandwidth)
    if settings.bandwidth is None:  # for type checkers, `positive` refuses None
        raise InputError("Expected bandwidth=None to be a finite number > 0.")
    if settings.bandwidth < _MIN_BANDWIDTH * (log.spec.high - log.spec.low):
        raise InputError(
            f"Expected bandwidth={settings.bandwidth} to be at least {_MIN_BANDWIDTH:g} of the "
            f"range of prices, {log.spec.low:g} to {log.spec.high:g}."
        )
    rows = PriceRows(
        price=log.price,
        reward=log.reward,
        density=log.density,
        policy=price_policy(policy, log),
        model=_price_model(log, settings),
        bandwidth=settings.bandwidth,
        kernel=settings.kernel,
    )
    return Case(
        estimators={name: partial(terms, rows) for name, terms in PRICES.items()},
        bounds=bounds,
        adaptive=log.adaptive,
        reward=log.reward,
        notes={name: partial(_bandwidth_note, name, rows) for name in PRICES},
    )


def _bandwidth_note(name: str, rows: PriceRows, terms: Terms) -> str:
    """Return a note with the estimate at half the bandwidth, to show the bias of the kernel."""
    fine = replace(rows, bandwidth=rows.bandwidth / 2, model=lambda: rows.q)
    estimate, se = PRICES[name](fine).estimate, standard_error(terms.errors)
    note = f"{estimate:.4g} at bandwidth {fine.bandwidth:.3g}"
    if np.isnan(estimate):
        note = f"no price is near that of the policy at bandwidth {fine.bandwidth:.3g}"
    elif abs(estimate - terms.estimate) > se + 1e-9 * abs(estimate):
        note += ", more than a standard error away: the kernel's bias is in no interval"
    if terms.weights_are_off:
        note += (
            f"; mean weight {terms.weight.mean():.4g}: densities wrong, or the bandwidth reaches "
            "beyond the range of prices"
        )
    return note


def _price_model(log: LoggedPrices, settings: Settings) -> Callable[[], Callable[[Floats], Floats]]:
    """Return a function that makes the reward model, which maps prices (n,) to rewards (n,)."""
    spec, n, q = log.spec, len(log.price), settings.q

    def supplied() -> Callable[[Floats], Floats]:
        if not callable(q):
            raise InputError("Expected q to be a function of contexts (n, d) and prices (n,).")
        takes("q", q, "contexts", "prices")
        return at

    def at(price: Floats) -> Floats:
        found = in_order_of(log, "q", q(log.context, price), counted=True)
        shaped("q", found, (n,))
        refuse_row(f"q up to {MAX_SIZE:g} in size", np.abs(found) <= MAX_SIZE)
        return found

    def fitted() -> Callable[[Floats], Floats]:
        parts = settings.parts(n, log.adaptive)
        middle = (spec.reward_low + spec.reward_high) / 2  # the prediction without any row
        ends = np.array([spec.low, spec.high])
        model = PriceModel(log.context, log.price, log.reward - middle, ends, parts)
        return lambda price: np.clip(model(price) + middle, spec.reward_low, spec.reward_high)

    return fitted if q is None else supplied


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
