"""A logit of clicks on items and features: its fit to a log, what is refused, and what is said."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, expit

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.envs.contextual.held_out import HeldOut, hold_out
from dpbandit.envs.contextual.log_checks import CHOSEN, FUNCTION, WHO_IS_PROTECTED, Log
from dpbandit.envs.contextual.log_fits import covariance, explained, fit_logit, refuse_separated

_LEAST_SURE = 0.05
"""p-value above which items are not told apart"""

WHY_ITEMS = (
    "A log cannot show why items were shown to whom they were. If that followed what people liked, "
    "and is in no column, the rates below are wrong and no diagnostic here can tell."
)


class Shown(NamedTuple):
    """What was on offer, and what was shown."""

    items: tuple[str | float, ...]
    item: Ints
    """(n,), places in `items`"""


@dataclass(frozen=True, kw_only=True)
class ClickDiagnostics:
    """How well a log of clicks tells items apart; exact functions of the log, so not private."""

    rows: int
    clicks: int
    shown: tuple[int, ...]
    """rows of each item"""
    chi_squared: float
    """Wald's, of "which item it was made no difference", by a sandwich (by clusters if there are
    any)"""
    freedom: int
    p_value: float
    r_squared: float
    """the largest of an item's being shown on the features"""
    r_squared_p: float
    """the least p-value of those F tests, times the number of items"""
    held_out: HeldOut
    outside: Mapping[str, float]
    """share of rows outside the bounds of each feature, and clipped"""
    rates: Mapping[str | float, float]
    """share of all people who would click each item"""
    oracle: float
    """the same of the best item for each"""
    cautions: tuple[str, ...]
    """what was warned of"""

    def __str__(self) -> str:
        uniform = sum(self.rates.values()) / len(self.rates)
        best = max(self.rates, key=lambda item: self.rates[item])
        outside = ", ".join(f"{name} {100 * s:.2g} %" for name, s in self.outside.items() if s)
        counts = zip(self.rates.items(), self.shown, strict=True)
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
    """What a log became."""

    context: Floats
    """(n, 1 + d)"""
    chances: Floats
    """(n, K), P(the person of a row clicks an item)"""
    diagnostics: ClickDiagnostics


def fit_clicks(log: Log, yes: Floats, shown: Shown, penalty: Floats, *, click: str) -> FrozenClicks:
    """The logit of `yes`, fitted: 1, the features, and the difference of each item to the first.

    Raises:
        InputError: the log cannot tell items apart.
    """
    F, K = log.design, len(shown.items)
    n, k = F.shape
    counts = np.bincount(shown.item, minlength=K)
    if not counts.all():
        raise InputError(
            f"Expected every item of items= in the log, {shown.items[int(counts.argmin())]!r} was "
            "never shown."
        )
    G = F if len(penalty) == K * k else np.ones((n, 1))  # what differs between items
    which = np.eye(K)[shown.item]  # (n, K)
    x = np.column_stack([F, *(G * which[:, [j]] for j in range(1, K))])
    known = ("1", *log.features.names)[: G.shape[1]]
    names = ("1", *log.features.names, *_names(shown.items[1:], known))
    lone = {f"item is {item}": shown.item == j for j, item in enumerate(shown.items)}
    refuse_separated(x, yes, names, name=click, lone={**lone, **log.levels})
    followed = [explained(which[:, j], log.features.rows) for j in range(K)]
    share, p_shown = max(r for r, _ in followed), min(1.0, K * min(p for _, p in followed))
    if share > FUNCTION:
        raise InputError(
            f"Expected items that differ where features do not, got R2 = {share:.5f} of an item on "
            "the features: what it does cannot be told from what they do."
        )
    b = fit_logit(x, yes, penalty)
    V = covariance(x, yes, penalty, b, log.groups)[k:, k:]
    freedom = len(b) - k
    chi_squared = float(b[k:] @ np.linalg.lstsq(V, b[k:], rcond=None)[0])
    p_value = float(chdtrc(freedom, chi_squared))
    if not p_value < _LEAST_SURE:
        raise InputError(
            f"Expected items to differ, got chi-squared {chi_squared:.1f} of {freedom} "
            f"(p = {p_value:.2g}): they are not told apart from each other."
        )
    differences = np.column_stack([np.zeros(n), G @ b[k:].reshape(K - 1, -1).T])  # (n, K)
    chances = expit((F @ b[:k])[:, None] + differences)
    held = hold_out(x, yes, penalty, log.groups)
    said = log.cautions()
    if p_shown < CHOSEN:
        said.append(
            f"Items were not randomised: they follow features (R2 = {share:.3f}, p = "
            f"{p_shown:.1g}), and perhaps what was not recorded."
        )
    if not held.calibrated:
        said.append(held.caution)
    diagnostics = ClickDiagnostics(
        rows=n,
        clicks=int(yes.sum()),
        shown=tuple(counts.tolist()),
        chi_squared=chi_squared,
        freedom=freedom,
        p_value=p_value,
        r_squared=share,
        r_squared_p=p_shown,
        held_out=held,
        outside={name: count / n for name, count in log.features.outside.items()},
        rates=dict(zip(shown.items, chances.mean(axis=0).tolist(), strict=True)),
        oracle=float(chances.max(axis=1).mean()),
        cautions=tuple(said),
    )
    return FrozenClicks(log.features.context, chances, diagnostics)


def _names(items: Sequence[str | float], known: Sequence[str]) -> Iterator[str]:
    """Of the columns of items."""
    for item in items:
        yield from (f"item {item}" if name == "1" else f"item {item} x {name}" for name in known)
