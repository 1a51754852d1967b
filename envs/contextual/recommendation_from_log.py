"""Recommendation of items, simulated by a model of clicks that is fitted once to a log.

The model is a logit of clicks on items and features; `InputError` is raised if it is unidentified.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit

from dpbandit.base import MOST_ACTIONS, Floats, InputError, Ints, abbrev, flag
from dpbandit.envs.contextual.logs import (
    CHOSEN,
    FUNCTION,
    NO_RIDGE,
    WHO_IS_PROTECTED,
    HeldOut,
    Log,
    covariance,
    enough_answers,
    explained,
    fit_logit,
    fitted_once,
    hold_out,
    read,
    ridge_of,
    separation,
)
from dpbandit.envs.contextual.problems import ResampledChoices
from dpbandit.offline.columns import Levels, column, levels_in, one_kind, places
from dpbandit.specs import ContextualSpec

_MAX_P_VALUE = 0.05
"""p-value of the test that items differ, above which the log is refused"""

WHY_ITEMS = (  # assumption printed with the diagnostics
    "A log does not record why an item was shown to a person. If items were shown to people who "
    "liked them, for reasons in no column, the rates below are wrong and no diagnostic finds it."
)


class Impressions(NamedTuple):
    """Public list of all items, and the item displayed in each row of a log."""

    items: tuple[str | float, ...]
    item: Ints
    """Index in `items` of the item displayed in each row, (n,)"""


@dataclass(frozen=True, kw_only=True)
class ClickDiagnostics:
    """Diagnostics of a model of clicks; exact functions of the log, so not private."""

    rows: int
    clicks: int
    impressions: tuple[int, ...]
    """number of rows in which each item was displayed"""
    chi_squared: float
    """Wald statistic of the hypothesis that the item makes no difference, from a sandwich
    covariance (clustered if `clusters` are given)"""
    freedom: int
    p_value: float
    r_squared: float
    """largest R2, over items, of a regression of "this item was displayed" on the features"""
    r_squared_p: float
    """smallest p-value of these regressions' F tests, times the number of items (at most 1)"""
    held_out: HeldOut
    outside: Mapping[str, float]
    """share of rows outside the public bounds of each feature, which were clipped"""
    rates: Mapping[str | float, float]
    """fitted click rate of each item, averaged over all people"""
    oracle: float
    """fitted click rate, averaged over all people, if each is shown the best item for her"""
    cautions: tuple[str, ...]
    """sentences of the warnings that were given"""

    def __str__(self) -> str:
        uniform = sum(self.rates.values()) / len(self.rates)
        best = max(self.rates, key=lambda item: self.rates[item])
        outside = ", ".join(f"{name} {100 * s:.2g} %" for name, s in self.outside.items() if s)
        counts = zip(self.rates.items(), self.impressions, strict=True)
        return "\n".join(
            [
                WHO_IS_PROTECTED,
                WHY_ITEMS,
                f"{self.rows} rows, {self.clicks} clicks, {len(self.rates)} items",
                f"items differ: chi-squared {self.chi_squared:.1f} of {self.freedom} "
                f"(p = {self.p_value:.2g})",
                f"largest R2 of an item on features {self.r_squared:.3f} (F tests p = "
                f"{self.r_squared_p:.2g})",
                str(self.held_out),
                f"clipped to public bounds: {outside or 'nothing'}",
                *(f"Caution: {caution}" for caution in self.cautions),
                f"clicks a person, fitted: random item {uniform:.3f}, best fixed item "
                f"{self.rates[best]:.3f} ({best}), best for each {self.oracle:.3f}",
                *(f"    {item}: {rate:.3f}, shown {count} times" for (item, rate), count in counts),
            ]
        )


class FrozenClicks(NamedTuple):
    """Click model of a log, with its contexts and diagnostics."""

    context: Floats
    """Contexts of the people of the log, (n, 1 + d)"""
    chances: Floats
    """P(the person of a row clicks) for each item, (n, K)"""
    diagnostics: ClickDiagnostics


def fit_clicks(
    log: Log, yes: Floats, impressions: Impressions, penalty: Floats, *, click: str
) -> FrozenClicks:
    """Fit a logit of clicks `yes` on features, with each item's difference to the first item.

    Raises:
        InputError: the log does not identify differences between items.
    """
    F, K = log.design, len(impressions.items)
    n, k = F.shape
    counts = np.bincount(impressions.item, minlength=K)
    if not counts.all():
        raise InputError(
            "Expected every item of items= in the log, "
            f"got {impressions.items[int(counts.argmin())]!r} in no row."
        )
    G = F if len(penalty) == K * k else np.ones((n, 1))  # features with coefficients by item
    which = np.eye(K)[impressions.item]  # (n, K)
    x = np.column_stack([F, *(G * which[:, [j]] for j in range(1, K))])
    known = ("1", *log.features.names)[: G.shape[1]]
    names = ("1", *log.features.names, *_names(impressions.items[1:], known))
    lone = {f"item is {item}": impressions.item == j for j, item in enumerate(impressions.items)}
    lone |= log.levels
    apart = separation(x, yes, names, name=click, lone=lone, penalty=penalty)
    followed = [explained(which[:, j], log.features.rows) for j in range(K)]
    share, p_displayed = max(r for r, _ in followed), min(1.0, K * min(p for _, p in followed))
    if share > FUNCTION:
        raise InputError(
            f"Expected items that differ where features do not, got R2 = {share:.5f} of an item on "
            "the features: its effect cannot be separated from theirs."
        )
    b = fit_logit(x, yes, penalty)
    V = covariance(x, yes, penalty, b, log.groups)[k:, k:]
    freedom = len(b) - k
    chi_squared = float(b[k:] @ np.linalg.lstsq(V, b[k:], rcond=None)[0])
    p_value = float(chdtrc(freedom, chi_squared))
    if not p_value < _MAX_P_VALUE:
        raise InputError(
            f"Expected items to differ, got chi-squared {chi_squared:.1f} of {freedom} "
            f"(p = {p_value:.2g}): the log does not show that they do."
        )
    differences = np.column_stack([np.zeros(n), G @ b[k:].reshape(K - 1, -1).T])  # (n, K)
    chances = expit((F @ b[:k])[:, None] + differences)
    held = hold_out(x, yes, penalty, log.groups)
    warned = [*log.cautions(), *apart]
    if p_displayed < CHOSEN:
        warned.append(
            f"Items were not randomised: they follow features (R2 = {share:.3f}, p = "
            f"{p_displayed:.1g}), and perhaps what was not recorded."
        )
    if not held.calibrated:
        warned.append(held.caution)
    diagnostics = ClickDiagnostics(
        rows=n,
        clicks=int(yes.sum()),
        impressions=tuple(counts.tolist()),
        chi_squared=chi_squared,
        freedom=freedom,
        p_value=p_value,
        r_squared=share,
        r_squared_p=p_displayed,
        held_out=held,
        outside={name: count / n for name, count in log.features.outside.items()},
        rates=dict(zip(impressions.items, chances.mean(axis=0).tolist(), strict=True)),
        oracle=float(chances.max(axis=1).mean()),
        cautions=tuple(warned),
    )
    return FrozenClicks(log.features.context, chances, diagnostics)


def _names(items: Sequence[str | float], known: Sequence[str]) -> Iterator[str]:
    """Yield names of the design's columns, for each item and each feature in `known`."""
    for item in items:
        yield from (f"item {item}" if name == "1" else f"item {item} x {name}" for name in known)


@dataclass(eq=False, repr=False)
class RecommendationFromLog(ResampledChoices):
    """Choose items for people from your log; a model of their clicks is fitted once to it.

    Description:
        One row of the log is one item shown to one person, also when she did not click. A logit of
        clicks with coefficients for each item is fitted once; people are rows drawn with
        replacement, who click with the probability of that model. Regret is measured under the
        model, not in the real world. `diagnostics` measures the fit, `print(problem)` explains it;
        a log that does not identify differences between items raises `InputError`. No diagnostic
        detects items that were shown to people who like them for reasons that no column records. A
        certificate protects one simulated person of one round, never a row of the log. See
        `docs/howto/shop.md`.

    Action space:
        `Discrete(K)`: the index of an item, `env.unwrapped.items[action]`.

    Observation space:
        `Box`, shape (1 + d,): (1, features) / sqrt(1 + d), of norm at most 1. Numbers are scaled
        from their bounds to [-1, 1] and clipped; levels but the first have a column of 0 or 1.

    Rewards:
        1 for a click, else 0.

    Arguments:
        * `frame`: a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet
          file. Required.
        * `item`, `click`: names of columns: the item shown, and 1 if it was clicked, else 0.
        * `items`: all items that can be shown, a public list. Required.
        * `features`: names of columns and their public bounds: `{"age": (18, 90), "device":
          ("phone", "desk")}`, or `{}`. Required: a bound computed from the log would be data that
          no certificate covers.
        * `interactions`: True if each item has its own coefficients of features, else items share
          them.
        * `ridge`: L2 penalty of all coefficients but the constant.
        * `clusters`: a column, such as the day, within which errors may be correlated.
        * `sha256`: expected hash of the file `frame`; another file raises `InputError`.
        * `reading`: how the table is written: `{"sep": ";", "decimal": ",", "yes": ["ja"],
          "drop_missing": True}`, each optional; see `dpbandit.offline.tables`.
        * `horizon`: rounds. `delay`: rounds until a click is seen; the reward is 0 until then.
    """

    _stream_names = ("people", "clicks")
    frame: Any = None
    _: KW_ONLY
    item: str = "item"
    click: str = "click"
    items: Sequence[Any] | None = None
    features: Mapping[str, Sequence[Any]] | None = None
    interactions: bool = True
    ridge: float = NO_RIDGE
    clusters: str | None = None
    sha256: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        flag("interactions", self.interactions)
        fit = self._fit(self._catalogue())
        self.diagnostics, self._known, self._chances = fit.diagnostics, fit.context, fit.chances
        self._margins = np.ones(self._chances.shape[1])
        self.spec = ContextualSpec(
            n_actions=self._chances.shape[1],
            dim=self._known.shape[1],
            horizon=self.horizon,
            link="logistic",
            delay=self.delay,
            reward_unit="clicks",
        )

    def __repr__(self) -> str:
        return f"RecommendationFromLog: {self.diagnostics}"

    @property
    def segments(self) -> dict[str, Levels]:
        """Features with levels, by which results can be counted."""
        return levels_in(self.features or {})

    def _catalogue(self) -> tuple[Any, ...]:
        """Check and return the public list of items."""
        if self.items is None or isinstance(self.items, str):
            raise InputError(
                "Expected items=, such as ('news', 'sport'): a list read off the log would be data "
                "that no certificate covers."
            )
        items = tuple(one_kind("items", self.items))
        if not 2 <= len(items) <= MOST_ACTIONS or len(set(items)) < len(items):
            raise InputError(f"Expected items={abbrev(self.items)} to be two or more, each once.")
        return items

    def _fit(self, items: tuple[Any, ...]) -> FrozenClicks:
        log = read(self, (self.click, self.item), answer=self.click)
        listed = one_kind(f"column {self.item!r}", column(log.table, self.item))
        taken = places(listed, items, "items")
        if unknown := [name for name, k in zip(listed, taken, strict=True) if k < 0]:
            raise InputError(
                f"Expected column {self.item!r} to hold only items={abbrev(items)}, got "
                f"{unknown[0]!r} in {len(unknown)} rows: list every item that can be shown."
            )
        offered = Impressions(items, taken)
        K, k = len(items), log.design.shape[1]
        penalty = ridge_of(self.ridge, K * k if self.interactions else k + K - 1)
        yes = enough_answers(log.table, self.click, len(penalty))
        return fitted_once(
            lambda: fit_clicks(log, yes, offered, penalty, click=self.click),
            "clicks",
            log.design,
            log.groups,
            yes,
            *offered,
            penalty,
            (log.features.names, log.features.outside, tuple(log.levels), self.click, log.notes),
        )
