"""Cases of offline evaluation: a policy beside a log of arms, of lists or of prices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
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
from dpbandit.offline.columns import MAX_SIZE
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
from dpbandit.offline.intervals import Stakes, standard_error
from dpbandit.offline.logs import (
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
