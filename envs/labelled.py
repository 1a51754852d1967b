"""Labelled tables that packages bring, by word, each with a public range of its features.

Ranges are those that descriptions of the sets print, rounded, or assumptions. They count as public,
and what lies outside is clipped.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError


class Labelled(NamedTuple):
    """Features, classes and the range of each feature."""

    features: Floats
    """(n, d)"""
    labels: Any
    """(n,)"""
    low: Floats | float
    high: Floats | float


def _bundled(word: str) -> tuple[Floats, Any]:
    """Of scikit-learn."""
    found = getattr(_package(word, "sklearn.datasets", "scikit-learn"), f"load_{word}")()
    return np.asarray(found.data, np.float64), found.target


def _streamed(word: str) -> tuple[Floats, Any]:
    """Of river, whose rows are dictionaries."""
    rows = list(getattr(_package(word, "river.datasets", "river"), word)())
    return np.array([[*x.values()] for x, _ in rows], np.float64), np.array([y for _, y in rows])


def _package(word: str, module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"Expected {package}, which brings the set {word}, to be installed: "
            f"pip install {package}, or take other data."
        ) from None


def _breast_cancer() -> Labelled:
    """Cells of 569 patients, and whether a tumour is malignant: 30 features."""
    low = [7, 9.7, 43, 143, 0.05, 0.01, 0, 0, 0.1, 0.04]  # means, then errors, then the worst
    low += [0.1, 0.3, 0.7, 6.8, 0.001, 0.002, 0, 0, 0.007, 0]
    low += [7.9, 12, 50, 185, 0.07, 0.02, 0, 0, 0.15, 0.05]
    high = [29, 40, 189, 2502, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1]
    high += [2.9, 4.9, 22, 543, 0.032, 0.14, 0.4, 0.054, 0.08, 0.031]
    high += [37, 50, 252, 4255, 0.23, 1.06, 1.26, 0.3, 0.67, 0.21]
    return Labelled(*_bundled("breast_cancer"), np.array(low), np.array(high))


def _wine() -> Labelled:
    """178 wines of three growers: 13 measurements."""
    low = [11, 0.7, 1.3, 10, 70, 0.9, 0.3, 0.1, 0.4, 1.2, 0.4, 1.2, 278]
    high = [15, 5.9, 3.3, 30, 162, 3.9, 5.1, 0.7, 3.6, 13, 1.8, 4, 1680]
    return Labelled(*_bundled("wine"), np.array(low), np.array(high))


def _friedman() -> Labelled:
    """Friedman's function of 5 of 10 uniform features, with noise: above its mean or not.

    40,768 rows, as the set 901 of OpenML has, drawn anew with a fixed seed.
    """
    made = _package("friedman", "sklearn.datasets", "scikit-learn").make_friedman1
    x, y = made(40_768, n_features=10, noise=1.0, random_state=901)
    return Labelled(x, y > 14.413, 0.0, 1.0)  # E y = 10 E sin(pi u v) + 20 / 12 + 7.5


def _phishing() -> Labelled:
    """1,250 web pages, and whether they phish: 9 marks."""
    return Labelled(*_streamed("Phishing"), 0.0, 1.0)


def _segments() -> Labelled:
    """2,310 squares of seven outdoor images: 18 features of pixels of 0 to 255."""
    low = [0.0] * 7 + [-1.0] + [0.0] * 4 + [-60, -20, -40, 0, 0, -np.pi]
    high = [256, 256, 0.4, 0.4, 30, 400, 45, 400, 151, 151, 151, 151, 20, 90, 40, 151, 1, np.pi]
    return Labelled(*_streamed("ImageSegments"), np.array(low), np.array(high))


def _bananas() -> Labelled:
    """5,300 points of two intertwined clouds, which no line parts."""
    return Labelled(*_streamed("Bananas"), -3.5, 3.5)


def _shuttle() -> Labelled:
    """49,097 moments of a space shuttle's radiator, and whether they are unusual: 9 sensors."""
    low = np.array([20, -60, 20, -30, -100, -100, -50, -50, -50.0])
    high = np.array([130, 60, 150, 30, 100, 100, 110, 150, 150.0])
    return Labelled(*_streamed("Shuttle"), low, high)


_SETS: dict[str, Callable[[], Labelled]] = {
    "breast-cancer": _breast_cancer,
    "wine": _wine,
    "friedman": _friedman,
    "phishing": _phishing,
    "segments": _segments,
    "bananas": _bananas,
    "shuttle": _shuttle,
}
WORDS = tuple(_SETS)
"""All of them"""


@cache
def labelled(word: str) -> Labelled:
    """The set of that word; raises `InputError` without the package. Treat as read-only."""
    return _SETS[word]()
