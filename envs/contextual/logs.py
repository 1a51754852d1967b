"""Helpers of environments that are fitted to a user's log: reading, fitting, diagnostics.

A logit of answers yes or no is fitted to rows of a log, with standard errors; separated rows, which
have no fit, raise `InputError`. Cross-validation measures held-out likelihood and calibration.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from numbers import Real
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import expit, fdtrc

from dpbandit.base import Bools, Floats, InputError, Ints, abbrev, at_least, inside, vector
from dpbandit.offline.columns import (
    Bounds,
    Features,
    answers,
    as_long,
    column,
    counts,
    features,
    is_range,
    one_kind,
    places,
)
from dpbandit.offline.tables import file_digest, read_table

_LEAST_ROWS, _LEAST_Z = 200, 2.0  # rows of a log; z of minus the price slope
_LEAST_ANSWERS = 5
"""Smallest number of rows with the rarer answer, per coefficient of the logit"""
_FEW_CLUSTERS, _LEAST_CLUSTERS = 30, 5  # fewer give a warning; an error
_MAX_OUTSIDE_SHARE = 0.05  # share of rows clipped to a feature's bounds above which to warn
_MAX_PRICE = 1e50  # largest absolute value of an end of price_range
_CACHED_FITS = 8
"""Number of fits that stay in memory, the latest ones"""
NO_RIDGE = 1e-6
"""Default ridge penalty, for good conditioning only; larger ones permit rows without finite fit"""
CHOSEN = 1e-4
"""p-value of the F test of a regression of offers on features, below which a warning is given"""
FUNCTION = 0.999
"""R2 of a regression of offers on features, above which their effects cannot be told apart"""

WHO_IS_PROTECTED = (  # explanation printed with the diagnostics
    "Customers are rows of the log drawn with replacement, so in T rounds one of n real rows "
    "occurs about T/n times. A certificate protects one simulated customer of one round, never a "
    "row of your log. The curve, the diagnostics and stored contexts are functions of the log: do "
    "not publish them as private."
)
WHICH_PERSON_IS = (  # explanation printed with the diagnostics if people come back
    "People are simulated: their tastes are drawn anew from a population that was fitted to the "
    "log, their features are those of people of the log. A certificate protects one simulated "
    "person in all her visits, never a person of your log: the population (which agents also get "
    "as a public survey), the diagnostics and stored contexts are functions of the log. Do "
    "not publish them as private."
)


class Log(NamedTuple):
    """A log given by the caller, read and checked: table, features, clusters of rows."""

    table: Any
    features: Features
    groups: Ints | None
    """Index of the cluster of each row, (n,); None without clusters"""
    notes: tuple[str, ...]
    """Sentences on rows that were dropped or are repeated"""
    levels: dict[str, Any]
    """Mask of the rows (n,) with a level of a feature, by texts such as "shop is A\""""

    @property
    def design(self) -> Floats:
        """Design matrix (1, features), (n, 1 + d)."""
        n = len(self.features.rows)
        return np.column_stack([np.ones(n), self.features.rows])

    def cautions(self) -> list[str]:
        """Return warnings about the log, in sentences."""
        n = len(self.features.rows)
        warned = list(self.notes)
        warned += [
            f"{count} of {n} rows ({100 * count / n:.2g} %) lie outside the bounds of feature "
            f"{name!r} and are clipped: are these its public bounds?"
            for name, count in self.features.outside.items()
            if count > _MAX_OUTSIDE_SHARE * n
        ]
        if self.groups is not None and (count := int(self.groups.max()) + 1) < _FEW_CLUSTERS:
            warned.append(f"{count} clusters are few: errors by cluster may be too small.")
        return warned


class _OfLog(Protocol):
    """A problem that is made from a log; its class documents these arguments."""

    frame: Any
    features: Any
    clusters: str | None
    sha256: str | None
    reading: Mapping[str, Any]


def read(
    problem: _OfLog,
    modelled: tuple[str, ...],
    *,
    answer: str | None = None,
    also: Any = (),
    visit: str | None = None,
    filled: Callable[[Any], Any] | None = None,
) -> Log:
    """Read and check the log from which a problem is made.

    `modelled` are columns of answers and offers, which cannot be features; `answer` is that of yes
    and no, `also` has other columns that are used, `visit` is that of rows that are dropped
    together. The function `filled` replaces missing entries of the modelled columns.
    """
    frame, bounds, clusters, digest = (
        problem.frame, problem.features, problem.clusters, problem.sha256,
    )  # fmt: skip
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
    used = [bounds, clusters, also, () if filled else modelled]
    table, notes = read_table(frame, problem.reading, columns=used, answers=[answer], visit=visit)
    if filled is not None:
        table = filled(table)
    lengths = [len(column(table, name)) for name in modelled]
    n = lengths[0]
    if set(lengths) != {n}:
        raise InputError(f"Expected columns {abbrev(modelled)} of one length, got {lengths}.")
    found = features(table, bounds, called="features", rows=n)
    for name in modelled:
        if name in bounds:
            raise InputError(f"Expected features without {name!r}, the column that is modelled.")
    groups = None
    if clusters is not None:
        groups = numbered(table, clusters, n)
        if n and groups.max() + 1 < _LEAST_CLUSTERS:
            raise InputError(
                f"Expected at least {_LEAST_CLUSTERS} clusters in {clusters!r}, one for each fold "
                f"that is held out, got {int(groups.max()) + 1}."
            )
    return Log(table, found, groups, tuple(notes), dict(_level_masks(table, bounds)))


def numbered(table: Any, name: str, n: int) -> Ints:
    """Number the entries of a column, (n,); raise `InputError` if it has both 1 and text "1"."""
    entries = as_long(column(table, name), n, name)
    entries = entries.tolist() if hasattr(entries, "tolist") else entries
    if any(isinstance(entry, Real) for entry in entries):
        first: dict[Any, Any] = {}  # 1 and 1.0 are equal, and get the text of the first
        entries = [first.setdefault(e, e) for e in one_kind(f"column {name!r}", entries)]
    words = np.array([str(entry) for entry in entries])
    return np.unique(words, return_inverse=True)[1].astype(np.int64)


def _level_masks(table: Any, bounds: Bounds) -> Any:
    for name, levels in bounds.items():
        if not is_range(levels):
            taken = places(one_kind(f"column {name!r}", column(table, name)), levels, name)
            for k, level in enumerate(levels):
                yield f"{name} is {level}", taken == k


def check_slope(slope: float, z: float) -> None:
    """Raise `InputError` unless demand falls significantly with the price."""
    if slope >= 0:
        raise InputError(
            "Expected demand to fall with the price, it rises in this log: prices were confounded "
            "with demand, or there is a sign error."
        )
    if z > -_LEAST_Z:
        raise InputError(
            f"Expected a price slope with z at most -{_LEAST_Z:g}, got {z:.2f}: the effect of the "
            "price does not differ significantly from 0."
        )


def check_within(price: Floats, outside: Bools, low: float, high: float) -> None:
    """Raise `InputError` if prices of a log, (n,) or (n, K), lie outside their public range."""
    if outside.any():
        rows = int(outside.reshape(len(outside), -1).any(axis=1).sum())
        raise InputError(
            f"Expected every price in price_range=({low:g}, {high:g}), got "
            f"{price[outside][0]:g}, and {rows} of {len(price)} rows outside."
        )


def enough_answers(table: Any, name: str, parameters: int, *, units: bool = False) -> Floats:
    """Read a column of 0 and 1 (n,); raise `InputError` if `parameters` are too many to fit.

    With `units` the column holds units sold, and the answer is 1 where there are any.
    """
    yes = 1.0 * (counts(table, name) > 0) if units else answers(table, name)
    n, rarer = len(yes), int(min(yes.sum(), (1 - yes).sum()))
    if n < _LEAST_ROWS:
        raise InputError(f"Expected at least {_LEAST_ROWS} rows, got {n}.")
    if rarer == 0:
        raise InputError(
            f"Expected {name!r} to be both 0 and 1, {name} is always {int(yes[0])}: one row is one "
            "offer to one customer, also when nothing came of it."
        )
    if rarer < _LEAST_ANSWERS * parameters:
        raise InputError(
            f"Expected at least {_LEAST_ANSWERS * parameters} rows of either answer in {name!r}, "
            f"{_LEAST_ANSWERS} for each of {parameters} coefficients, got {rarer}: leave out "
            "features, or interactions=False."
        )
    return yes


def price_range_of(ends: Any) -> tuple[float, float]:
    """Check and return the public range of prices, (low, high)."""
    if ends is None:
        raise InputError(
            "Expected price_range=, such as (1.0, 3.0): a range read off the log would be data "
            "that no certificate covers."
        )
    low, high = vector("price_range", ends, 2).tolist()
    for end in (low, high):
        inside("an end of price_range", end, -_MAX_PRICE, _MAX_PRICE, ends=True)
    if not (high - low) > 1e-9 * max(abs(low), abs(high)):
        raise InputError(f"Expected price_range={abbrev(ends)} to be (low, high).")
    return low, high


def unit_cost_of(cost: Any) -> float:
    """Check and return the cost of a sale to the seller."""
    if cost is None:
        raise InputError("Expected unit_cost=, the cost of a sale to you, such as 0.8.")
    at_least("unit_cost", cost, 0)
    return float(cost)


def ridge_of(ridge: float, parameters: int) -> Floats:
    """Return penalties (p,): `ridge` for all coefficients but the first, the constant."""
    at_least("ridge", ridge, 0)
    return np.where(np.arange(parameters) == 0, 0.0, ridge)


class _Diagnosed(Protocol):
    """A fit with the attribute `diagnostics`, which has `cautions`, sentences of warnings."""

    @property
    def diagnostics(self) -> Any: ...


Fit = TypeVar("Fit", bound=_Diagnosed)
_cached_fits: dict[str, Any] = {}


def fitted_once(make: Callable[[], Fit], *of: Any) -> Fit:
    """Return the fit that `make` returns, called only once for the same arrays and settings `of`.

    Warnings are given at the first call only, as a comparison makes its problem anew for every
    agent.
    """
    digest = sha256()
    for part in of:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        digest.update(b"|")
    key = digest.hexdigest()
    if key not in _cached_fits:
        fit = make()
        for caution in fit.diagnostics.cautions:
            warnings.warn(caution, stacklevel=5)
        while len(_cached_fits) >= _CACHED_FITS:
            _cached_fits.pop(next(iter(_cached_fits)))
        _cached_fits[key] = fit
    found: Fit = _cached_fits[key]
    return found


_NEWTON_STEPS = 200  # largest number of steps of a fit
_STEP_TOLERANCE = 1e-10  # Newton's method stops when no coordinate of a step is larger
_PROGRAM_TOLERANCE = 1e-7
"""Optimum of the linear program in `separation`, per square root of its rows, that counts as 0"""


def fit_logit(x: Floats, yes: Floats, penalty: Floats) -> Floats:
    """Return the coefficients b (p,) that maximise mean log-likelihood - sum penalty b^2 / 2.

    Newton's method stops at a step of 1e-10; steps that lower the objective are halved.
    """
    b = np.zeros(x.shape[1])
    value = _objective(x, yes, penalty, b)
    for _ in range(_NEWTON_STEPS):
        s = expit(x @ b)
        slope = x.T @ (yes - s) / len(x) - penalty * b
        step = np.linalg.lstsq(_information(x, s, penalty), slope, rcond=None)[0]
        while (new := _objective(x, yes, penalty, b + step)) < value - 1e-14:
            step = step / 2
        b, value = b + step, new
        if np.abs(step).max() < _STEP_TOLERANCE:
            break
    return b


def _objective(x: Floats, yes: Floats, penalty: Floats, b: Floats) -> float:
    return float(log_likelihoods(x @ b, yes).mean() - (penalty * b * b).sum() / 2)


def _information(x: Floats, s: Floats, penalty: Floats) -> Floats:
    return np.asarray((x * (s * (1 - s))[:, None]).T @ x / len(x) + np.diag(penalty))


def log_likelihoods(logits: Floats, yes: Floats) -> Floats:
    """Return the log-likelihood (n,) of each row's answer in `yes`, given its logit.

    Answers between 0 and 1, such as shares of units, have the quasi-likelihood of their mean.
    """
    missed = np.logaddexp(0, np.where(yes > 0, -logits, logits))
    return np.asarray(-(missed + (np.sign(yes) - yes) * logits))


def covariance(
    x: Floats, yes: Floats, penalty: Floats, b: Floats, groups: Ints | None = None
) -> Floats:
    """Return the sandwich covariance of coefficients b, of rows or of `groups` (n,) of rows."""
    s, n = expit(x @ b), len(x)
    scores = x * (yes - s)[:, None] / n
    if groups is not None:
        sums = np.zeros((groups.max() + 1, x.shape[1]))
        np.add.at(sums, groups, scores)
        scores = sums
    bread = np.linalg.pinv(_information(x, s, penalty))
    return np.asarray(bread @ (scores.T @ scores) @ bread)


def explained(target: Floats, x: Floats) -> tuple[float, float]:
    """Return R2 of a regression of `target` (n,) on `x` (n, d), and the p-value of its F test."""
    n, total = len(target), float(np.square(target - target.mean()).sum())
    design = np.column_stack([np.ones(n), x])
    coefficients, _, rank, _ = np.linalg.lstsq(design, target, rcond=None)
    left = float(np.square(target - design @ coefficients).sum())
    used, free = int(rank) - 1, n - int(rank)
    if total == 0 or used == 0 or free < 1:
        return 0.0, 1.0
    share = max(0.0, 1 - left / total)
    if left == 0:
        return share, 0.0
    return share, float(fdtrc(used, free, share / used / (left / total / free)))


def separation(
    x: Floats,
    yes: Floats,
    names: tuple[str, ...],
    *,
    name: str,
    lone: dict[str, Any],
    penalty: Floats,
) -> list[str]:
    """Return warnings if a linear function of the columns separates yes from no, else [].

    Separated rows have no fit without a penalty (Albert and Anderson, Biometrika 1984). For rows
    x_i with sign s_i = 1 for yes and -1 for no, the linear program max sum s_i x_i . b, subject to
    all s_i x_i . b >= 0 and |b_j| <= 1, is 0 unless rows are separated, wholly or in part (Konis
    2007). With a penalty there is a fit, whose coefficients depend on the penalty.

    Args:
        x, yes: rows (n, p) and their answers (n,).
        names: names of the p columns.
        name: name of the column of answers.
        lone: named masks of rows (n,), such as levels of features, to report if answers are equal.
        penalty: penalty of each coefficient, (p,).

    Raises:
        InputError: rows are separated, and the penalty is at most `NO_RIDGE`.
    """
    from scipy.optimize import linprog  # not before: slow to import

    signed = np.unique(x * np.where(yes > 0, 1, -1)[:, None], axis=0, return_counts=True)
    rows, counts = signed
    found: Any = linprog(-(counts @ rows), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    if -found.fun <= _PROGRAM_TOLERANCE * np.sqrt(len(x)):
        return []
    ridge = float(penalty.max())
    rest = f"(separation), so what is fitted there is ridge={ridge:g}, not the log."
    for words, mask in lone.items():
        if mask.any() and np.ptp(yes[mask]) == 0:
            answer, count = int(yes[mask][0]), int(mask.sum())
            if ridge > NO_RIDGE:
                return [f"{name!r} is {answer} in all {count} rows where {words} {rest}"]
            raise InputError(
                f"Expected {name!r} to be both 0 and 1 where {words}, got {answer} in all {count} "
                "rows (separation): no model can be fitted without a penalty, so merge it with "
                "another, leave it out, or set ridge=, such as 0.01."
            )
    used = ", ".join(
        dict.fromkeys(names[j] for j in np.flatnonzero(np.abs(found.x) > _PROGRAM_TOLERANCE))
    )
    if ridge > NO_RIDGE:
        return [f"{name!r} is determined by {used} {rest}"]
    raise InputError(
        f"Expected {name!r} not to be determined by {used} (separation): some rows are all 0 "
        "beyond a line and all 1 before it, and no model can be fitted without a penalty, so leave "
        "features out, merge their levels, or set ridge=, such as 0.01."
    )


_FOLDS, _SEED, _BINS = 5, 20_221, 10  # of the cross-validation and its plot
_MAX_SLOPE_ERRORS = 3.0
"""Largest distance of a calibration slope from 1 without a warning, in standard errors"""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out fit by 5-fold cross-validation over rows, or over groups of rows."""

    log_likelihood: float
    """mean log-likelihood of a held-out row"""
    constant: float
    """mean log-likelihood of a held-out row under the model that predicts the mean answer"""
    slope: float
    """slope of a logit of the answers on the held-out logit; 1 if calibrated"""
    slope_error: float
    """standard error of `slope`"""
    predicted: tuple[float, ...]
    """mean held-out probability of yes in each of 10 bins, of equally many rows"""
    observed: tuple[float, ...]
    """share of rows with answer yes in each bin, in the order of `predicted`"""

    @property
    def calibrated(self) -> bool:
        """True if the calibration slope is within three standard errors of 1."""
        return abs(self.slope - 1) <= _MAX_SLOPE_ERRORS * self.slope_error

    @property
    def caution(self) -> str:
        """Warning that the model is not calibrated, a sentence."""
        return (
            f"The held-out calibration slope {self.slope:.3f} +- {self.slope_error:.3f} is more "
            "than three standard errors from 1."
        )

    def __str__(self) -> str:
        return (
            f"held-out log-likelihood {self.log_likelihood:.4f} a row (a constant: "
            f"{self.constant:.4f}), calibration slope {self.slope:.3f} +- {self.slope_error:.3f}"
        )

    def plot(self, ax: Any = None, path: Any = None) -> Any:
        """Plot observed shares against held-out probabilities, and return the axes.

        Args:
            ax: Matplotlib axes to draw on; a new figure by default.
            path: a file to write, .png, .svg or .pdf.
        """
        if ax is None:
            from matplotlib.figure import Figure  # not before: slow to import

            ax = Figure(figsize=(4.5, 4.5), layout="constrained").subplots()
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
        ax.plot(self.predicted, self.observed, "o", label="tenths of the log, held out")
        most = 1.05 * max(*self.predicted, *self.observed)
        ax.set(xlabel="predicted probability", ylabel="observed share", aspect="equal")
        ax.set(xlim=(0, most), ylim=(0, most))
        ax.legend(frameon=False)
        if path is not None:
            ax.figure.savefig(path, dpi=150)
        return ax


def hold_out(x: Floats, yes: Floats, penalty: Floats, groups: Ints | None = None) -> HeldOut:
    """Cross-validate a logit in five folds with a fixed seed; a group's rows are in one fold."""
    groups = np.arange(len(x)) if groups is None else groups
    count = int(groups.max()) + 1
    fold = (np.random.default_rng(_SEED).permutation(count) % min(_FOLDS, count))[groups]
    logits, mean = np.zeros(len(x)), np.zeros(len(x))
    for k in range(fold.max() + 1):
        out = fold == k
        logits[out] = x[out] @ fit_logit(x[~out], yes[~out], penalty)
        share = yes[~out].mean().clip(1e-12, 1 - 1e-12)
        mean[out] = np.log(share / (1 - share))
    line, none = np.column_stack([np.ones(len(x)), logits]), np.zeros(2)
    b = fit_logit(line, yes, none)
    bins = np.array_split(logits.argsort(kind="stable"), min(_BINS, len(x)))
    return HeldOut(
        log_likelihood=float(log_likelihoods(logits, yes).mean()),
        constant=float(log_likelihoods(mean, yes).mean()),
        slope=float(b[1]),
        slope_error=float(np.sqrt(covariance(line, yes, none, b, groups)[1, 1])),
        predicted=tuple(float(expit(logits[part]).mean()) for part in bins),
        observed=tuple(float(yes[part].mean()) for part in bins),
    )
