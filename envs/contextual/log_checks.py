"""What environments made of a user's own log share: how it is read, what is refused and said."""

import warnings
from collections.abc import Callable
from hashlib import sha256
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, at_least, inside, shown, vector
from dpbandit.offline.columns import (
    Bounds,
    Features,
    answers,
    column,
    features,
    file_digest,
    is_range,
    table_of,
)

_LEAST_ROWS = 200
_A_COEFFICIENT = 5
"""So many of the rarer answer for each coefficient"""
_FEW_CLUSTERS, _LEAST_CLUSTERS = 30, 5
_MUCH_OUTSIDE = 0.05
_MOST_PRICE, _LONGEST_UNIT = 1e50, 60
_MOST_KEPT = 8
"""Fits in memory"""
CHOSEN = 1e-4
"""p-value below which what was offered is said to have followed features"""
FUNCTION = 0.999
"""R2 on features above which it cannot be told apart from them"""

WHO_IS_PROTECTED = (
    "Customers are rows of the log drawn with replacement, so in T rounds one of n real rows "
    "occurs about T/n times. A certificate protects one simulated customer of one round, never a "
    "row of your log. The curve, the diagnostics and stored contexts are functions of the log: do "
    "not publish them as private."
)


class Log(NamedTuple):
    """A table, and what of it was said to be known of people."""

    table: Any
    features: Features
    groups: Ints | None
    """(n,), numbers of clusters"""
    levels: dict[str, Any]
    """masks of rows (n,) of each level, by words"""

    @property
    def design(self) -> Floats:
        """(1, features), (n, 1 + d)."""
        n = len(self.features.rows)
        return np.column_stack([np.ones(n), self.features.rows])

    def cautions(self) -> list[str]:
        """What may be wrong with it, in sentences."""
        n = len(self.features.rows)
        said = [
            f"{count} of {n} rows ({100 * count / n:.2g} %) lie outside the bounds of feature "
            f"{name!r} and are clipped: are these its public bounds?"
            for name, count in self.features.outside.items()
            if count > _MUCH_OUTSIDE * n
        ]
        if self.groups is not None and (count := int(self.groups.max()) + 1) < _FEW_CLUSTERS:
            said.append(f"{count} clusters are few: errors by cluster may be too small.")
        return said


def read(
    frame: Any,
    modelled: tuple[str, ...],
    bounds: Any,
    clusters: str | None,
    digest: str | None,
    *,
    filled: Callable[[Any], Any] = lambda table: table,
) -> Log:
    """A DataFrame, a mapping of columns or a path, with `bounds` of its features.

    `modelled` are columns that cannot be features: of answers, and of what was offered. A file
    whose SHA-256 is not `digest` is refused. `filled` says what missing entries mean.
    """
    if frame is None:
        raise InputError("Expected frame=, a DataFrame or the path of a .csv or .parquet file.")
    if bounds is None:
        raise InputError(
            "Expected features= with public bounds, such as features={'age': (18, 90), 'shop': "
            "('A', 'B')}, or {} for none: a range read off the log would be data that no "
            "certificate covers."
        )
    if digest is not None and not isinstance(frame, str | PathLike):
        raise InputError("Expected sha256 with the path of a file only, got a table.")
    if digest is not None and (found_digest := file_digest(frame)) != digest:
        raise InputError(
            f"Expected the file {frame} to be as it was, with sha256={digest[:12]}..., got "
            f"{found_digest[:12]}...: fit it again."
        )
    table = filled(table_of(frame))
    lengths = [len(column(table, name)) for name in modelled]
    n = lengths[0]
    if set(lengths) != {n}:
        raise InputError(f"Expected columns {shown(modelled)} of one length, got {lengths}.")
    found = features(table, bounds, called="features", rows=n)
    for name in modelled:
        if name in bounds:
            raise InputError(f"Expected features without {name!r}, the column that is modelled.")
    groups = None
    if clusters is not None:
        words = np.array([str(entry) for entry in column(table, clusters)])
        groups = np.unique(words, return_inverse=True)[1].astype(np.int64)
        if n and len(groups) == n and groups.max() + 1 < _LEAST_CLUSTERS:
            raise InputError(
                f"Expected at least {_LEAST_CLUSTERS} clusters in {clusters!r}, one for each fold "
                f"that is held out, got {int(groups.max()) + 1}."
            )
    return Log(table, found, groups, dict(_level_masks(table, bounds)))


def _level_masks(table: Any, bounds: Bounds) -> Any:
    for name, levels in bounds.items():
        if not is_range(levels):
            for level in levels:
                mask = np.array([entry == level for entry in column(table, name)], dtype=bool)
                yield f"{name} is {level}", mask


def enough_answers(table: Any, name: str, parameters: int) -> Floats:
    """A column of 0 and 1 (n,), refused where there is too little of either to fit so many."""
    yes = answers(table, name)
    n, rarer = len(yes), int(min(yes.sum(), (1 - yes).sum()))
    if n < _LEAST_ROWS:
        raise InputError(f"Expected at least {_LEAST_ROWS} rows, got {n}.")
    if rarer == 0:
        raise InputError(
            f"Expected {name!r} to be both 0 and 1, {name} is always {int(yes[0])}: one row is one "
            "offer to one customer, also when nothing came of it."
        )
    if rarer < _A_COEFFICIENT * parameters:
        raise InputError(
            f"Expected at least {_A_COEFFICIENT * parameters} rows of either answer in {name!r}, "
            f"{_A_COEFFICIENT} for each of {parameters} coefficients, got {rarer}: leave out "
            "features, or interactions=False."
        )
    return yes


def price_range_of(ends: Any) -> tuple[float, float]:
    """The public range of prices."""
    if ends is None:
        raise InputError(
            "Expected price_range=, such as (1.0, 3.0): a range read off the log would be data "
            "that no certificate covers."
        )
    low, high = vector("price_range", ends, 2).tolist()
    for end in (low, high):
        inside("an end of price_range", end, -_MOST_PRICE, _MOST_PRICE, ends=True)
    if not (high - low) > 1e-9 * max(abs(low), abs(high)):
        raise InputError(f"Expected price_range={shown(ends)} to be (low, high).")
    return low, high


def unit_of(unit: Any) -> str:
    """What prices are in."""
    if not isinstance(unit, str) or not unit.strip() or len(unit) > _LONGEST_UNIT:
        raise InputError(f"Expected unit={shown(unit)} to be what prices are in, such as 'euros'.")
    return unit


def unit_cost_of(cost: Any) -> float:
    """What a sale costs the seller."""
    if cost is None:
        raise InputError("Expected unit_cost=, what a sale costs you, such as 0.8.")
    at_least("unit_cost", cost, 0)
    return float(cost)


def ridge_of(ridge: float, parameters: int) -> Floats:
    """`ridge` on all coefficients but the first, the constant, (p,)."""
    at_least("ridge", ridge, 0)
    return np.where(np.arange(parameters) == 0, 0.0, ridge)


class _Diagnosed(Protocol):
    """A fit that has diagnostics with cautions."""

    @property
    def diagnostics(self) -> Any:
        """What is known of it."""
        ...


Fit = TypeVar("Fit", bound=_Diagnosed)
_kept: dict[str, Any] = {}


def fitted_once(make: Callable[[], Fit], *of: Any) -> Fit:
    """What `make` fits of these arrays and settings: made, and warned of, the first time only.

    A comparison makes its problem anew for every agent.
    """
    digest = sha256()
    for part in of:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        digest.update(b"|")
    key = digest.hexdigest()
    if key not in _kept:
        fit = make()
        for caution in fit.diagnostics.cautions:
            warnings.warn(caution, stacklevel=5)
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = fit
    found: Fit = _kept[key]
    return found
