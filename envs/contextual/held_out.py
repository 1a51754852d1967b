"""How well a logit of a log says what it has not seen: five folds, likelihood and calibration."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dpbandit.base.arrays import Floats, Ints
from dpbandit.envs.contextual.log_fits import covariance, fit_logit, log_likelihoods

_FOLDS, _SEED, _BINS = 5, 20_221, 10
_ERRORS = 3.0
"""Standard errors that a calibration may be away from 1"""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What five fits, each without a fifth of the rows (or groups of rows), say of that fifth."""

    log_likelihood: float
    """a row"""
    constant: float
    """the same of a model that knows the mean alone"""
    slope: float
    """of the answers' logit on the held-out logit, 1 where that is calibrated"""
    slope_error: float
    """its standard error"""
    predicted: tuple[float, ...]
    """mean probability held out in each of 10 bins with as many rows"""
    observed: tuple[float, ...]
    """the share that answered yes there"""

    @property
    def calibrated(self) -> bool:
        """Whether the slope is within three standard errors of 1."""
        return abs(self.slope - 1) <= _ERRORS * self.slope_error

    @property
    def caution(self) -> str:
        """What is to be said where it is not."""
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
        """The calibration plot: observed shares against held-out probabilities; returns the axes.

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
    """Five folds with a fixed seed; rows of one group (n,) are in one fold."""
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
