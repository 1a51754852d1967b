"""Classification as a bandit: choose a class, observe only whether it is right."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    Streams,
    abbrev,
    by_index,
    by_name,
    columns_of,
    index_of,
    not_installed,
    one_of,
    reals,
    whole,
)
from dpbandit.envs.contextual.problems import ContextualProblem, Users, row_of
from dpbandit.envs.tables import images
from dpbandit.offline.columns import one_kind
from dpbandit.specs import MOST_OUTSIDE, ContextualSpec, Outside, scaled


@dataclass(kw_only=True, eq=False)
class ClassificationBandit(ContextualProblem):
    """Choose the class of each arriving example; the reward is 1 if it is right.

    Description:
        Examples are rows of a labelled table, drawn with replacement, so that any horizon is
        possible and users are independent; a row drawn twice is two users. By default they are
        scikit-learn's 1,797 images of handwritten digits. Feedback is bandit feedback: after a
        wrong answer the agent does not learn the right one. No class has a mean reward linear in
        the features, so even the best linear agent has linear regret.

    Action space:
        `Discrete(n_actions)`: the class. `env.unwrapped.classes[action]` is its label.

    Observation space:
        `Box`, shape (1 + features,): 1 and the features, clipped to the public range from `low` to
        `high` and scaled to [-1, 1], all divided by sqrt(1 + features); Euclidean norm at most 1.

    Rewards:
        1 for the right class, else 0. The oracle is always right; the best fixed action is the most
        frequent class.

    Arguments:
        * `data`: the data set if `features` are not given: `"digits"`, `"breast-cancer"`, `"wine"`
          or `"friedman"` (they need scikit-learn), `"phishing"`, `"segments"`, `"bananas"` or
          `"shuttle"` (they need river).
        * `pool`: for digits, the side (1, 2 or 4) of the squares of pixels that are averaged, which
          gives 64, 16 or 4 features.
        * `features`, `labels`: a table of your own, (n, d) and (n,), with at least two classes.
          The list of classes is taken as public.
        * `low`, `high`: the public range of your features, a number or one for each. A range
          computed from the table would be data that no certificate covers. The sets of `data` have
          their own.
        * `most_outside`: largest share of rows that may lie outside the range and be clipped, else
          `InputError` is raised. `env.unwrapped.outside` has the number of rows outside.
        * `horizon`: rounds. `delay`: rounds until a reward is seen; the reward is 0 until then.
    """

    data: Literal[
        "digits", "breast-cancer", "wine", "friedman", "phishing", "segments", "bananas", "shuttle"
    ] = "digits"
    pool: int = 2
    features: Any = None
    labels: Any = None
    low: Any = None
    high: Any = None
    most_outside: float = MOST_OUTSIDE
    horizon: int = 10_000
    delay: int = 0

    def __post_init__(self) -> None:
        x, labels, low, high = self._data()
        low, high = _range(x, low, high)
        names = [f"feature {j}" for j in range(x.shape[1])]
        x, beyond = scaled(x, low, high, names, most_outside=self.most_outside)
        self._beyond = np.asarray(beyond.any(axis=1))
        self.outside = Outside(contexts=int(self._beyond.sum()), rewards=0, users=len(x))
        x = np.column_stack([np.ones(len(x)), x])
        self._examples = x / np.sqrt(x.shape[1])
        self.classes, self._class = np.unique(labels, return_inverse=True)
        if len(self.classes) < 2:
            raise InputError(f"Expected labels of at least two classes, got {self.classes} only.")
        self._right: Floats = 1.0 * (self._class[:, None] == np.arange(len(self.classes)))
        self.spec = ContextualSpec(
            n_actions=len(self.classes),
            dim=x.shape[1],
            horizon=self.horizon,
            link="other",
            delay=self.delay,
            reward_unit="right answers",
        )

    def _data(self) -> tuple[Floats, Any, Any, Any]:
        """Return features (n, d), labels (n,), and the lower and upper ends of the public range."""
        names = [name for name in _REQUIRED if getattr(self, name) is not None]
        if not names:
            one_of("data", self.data, ("digits", *LABELLED_SETS))
            if self.data != "digits":
                return labelled(self.data)
            pixels, digits = images()
            return _pooled(pixels, self.pool), digits, 0.0, 1.0
        if len(names) < len(_REQUIRED):
            missing = ", ".join(name for name in _REQUIRED if name not in names)
            raise InputError(f"Expected {missing} beside {', '.join(names)}.")
        named, index = columns_of(self.features), index_of(self.features)
        listed = by_index("labels", self.labels, index, "features")
        x, labels = _numbers("features", self.features), np.array(one_kind("labels", listed))
        if x.ndim != 2 or not x.size or labels.shape != x.shape[:1]:
            raise InputError(
                f"Expected features (n, d) and labels (n,), got {x.shape} and {labels.shape}."
            )
        if not np.isfinite(x).all():
            row = int((~np.isfinite(x).all(axis=1)).argmax())
            raise InputError(f"Expected finite features, got {x[row]} in row {row}.")
        low, high = self.low, self.high
        if named is not None:
            low, high = (
                by_name(name, end, named, "the columns of features", axis=0)
                for name, end in (("low", low), ("high", high))
            )
        return x, labels, low, high

    def clipped(self) -> Floats:
        served = self._row[: self._next]
        clips = self._clips + self._beyond[served].sum(axis=0)
        return np.asarray(clips / max(1, self._rounds + len(served)))

    def _start(self, streams: Streams) -> None:
        self._rows = streams.uniforms("examples")
        self._row = np.zeros((0, len(streams)), np.int64)  # rows of the users drawn last
        self._clips, self._rounds = np.zeros(len(streams), np.int64), 0  # of users before them

    def _users(self, count: int) -> Users:
        self._clips += self._beyond[self._row].sum(axis=0)
        self._rounds += len(self._row)
        row = self._row = row_of(self._rows.take(count), len(self._class))
        right = self._right[row]
        return Users(self._examples[row], right, right)


_REQUIRED = ("features", "labels", "low", "high")  # arguments of a user's own table


def _pooled(pixels: Floats, side: int) -> Floats:
    """Average 8 x 8 images over squares of `side` x `side` pixels, (n, 64) -> (n, (8 / side)^2)."""
    whole("pool", side, 1, 4)
    if side not in (1, 2, 4):
        raise InputError(f"Expected pool={side!r} to be 1, 2 or 4.")
    squares = pixels.reshape(-1, 8 // side, side, 8 // side, side)
    return squares.mean(axis=(2, 4)).reshape(len(pixels), -1)


def _range(x: Floats, low: Any, high: Any) -> tuple[Floats, Floats]:
    """Check the public range of the columns of `x`; return lower and upper ends, (d,) each."""
    low, high = _numbers("low", low), _numbers("high", high)
    fits = not {low.shape, high.shape} - {(), x.shape[1:]}
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low if fits else np.zeros(1)
    if not ((width > 0) & (width < np.inf)).all():
        raise InputError(
            f"Expected low={low} below high={high}, finite numbers or one for each feature."
        )
    return np.broadcast_to(low, x.shape[1:]), np.broadcast_to(high, x.shape[1:])


def _numbers(name: str, values: Any) -> Floats:
    try:
        return reals(values)
    except ValueError:
        raise InputError(f"Expected {name} to be numbers, got {abbrev(values)}.") from None


class Labelled(NamedTuple):
    """A table of labelled examples with the public range `low` to `high` of its features."""

    features: Floats
    """Features of the examples, (n, d)"""
    labels: Any
    """Class labels of the examples, (n,)"""
    low: Floats | float
    high: Floats | float


def _bundled(word: str) -> tuple[Floats, Any]:
    """Load features (n, d) and labels (n,) of a data set of scikit-learn."""
    found = getattr(_package(word, "sklearn.datasets", "scikit-learn"), f"load_{word}")()
    return np.asarray(found.data, np.float64), found.target


def _streamed(word: str) -> tuple[Floats, Any]:
    """Load features (n, d) and labels (n,) of a data set of river, whose rows are dicts."""
    rows = list(getattr(_package(word, "river.datasets", "river"), word)())
    return np.array([[*x.values()] for x, _ in rows], np.float64), np.array([y for _, y in rows])


def _package(word: str, module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        extra = "data" if package == "scikit-learn" else None
        raise not_installed(package, f"the set {word}", extra) from None


def _breast_cancer() -> Labelled:
    """Load 30 features of cells of 569 patients; the label tells whether a tumour is malignant."""
    low = [7, 9.7, 43, 143, 0.05, 0.01, 0, 0, 0.1, 0.04]  # means, then errors, then the worst
    low += [0.1, 0.3, 0.7, 6.8, 0.001, 0.002, 0, 0, 0.007, 0]
    low += [7.9, 12, 50, 185, 0.07, 0.02, 0, 0, 0.15, 0.05]
    high = [29, 40, 189, 2502, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1]
    high += [2.9, 4.9, 22, 543, 0.032, 0.14, 0.4, 0.054, 0.08, 0.031]
    high += [37, 50, 252, 4255, 0.23, 1.06, 1.26, 0.3, 0.67, 0.21]
    return Labelled(*_bundled("breast_cancer"), np.array(low), np.array(high))


def _wine() -> Labelled:
    """Load 13 measurements of 178 wines; the label is one of three growers."""
    low = [11, 0.7, 1.3, 10, 70, 0.9, 0.3, 0.1, 0.4, 1.2, 0.4, 1.2, 278]
    high = [15, 5.9, 3.3, 30, 162, 3.9, 5.1, 0.7, 3.6, 13, 1.8, 4, 1680]
    return Labelled(*_bundled("wine"), np.array(low), np.array(high))


def _friedman() -> Labelled:
    """Draw 10 uniform features; the label tells if Friedman's noisy function is above its mean.

    There are 40,768 rows, as in data set 901 of OpenML, but drawn here with a fixed seed.
    """
    made = _package("friedman", "sklearn.datasets", "scikit-learn").make_friedman1
    x, y = made(40_768, n_features=10, noise=1.0, random_state=901)
    return Labelled(x, y > 14.413, 0.0, 1.0)  # E y = 10 E sin(pi u v) + 20 / 12 + 7.5


def _phishing() -> Labelled:
    """Load 9 features of 1,250 web pages; the label tells whether a page is phishing."""
    return Labelled(*_streamed("Phishing"), 0.0, 1.0)


def _segments() -> Labelled:
    """Load 18 features of 2,310 image regions; the label is one of seven outdoor materials."""
    low = [0.0] * 7 + [-1.0] + [0.0] * 4 + [-60, -20, -40, 0, 0, -np.pi]
    high = [256, 256, 0.4, 0.4, 30, 400, 45, 400, 151, 151, 151, 151, 20, 90, 40, 151, 1, np.pi]
    return Labelled(*_streamed("ImageSegments"), np.array(low), np.array(high))


def _bananas() -> Labelled:
    """Load 5,300 points of the plane, of two banana-shaped classes that no line separates."""
    return Labelled(*_streamed("Bananas"), -3.5, 3.5)


def _shuttle() -> Labelled:
    """Load 49,097 rows of 9 sensors of a space shuttle; the label tells normal from anomaly."""
    low = np.array([20, -60, 20, -30, -100, -100, -50, -50, -50.0])
    high = np.array([130, 60, 150, 30, 100, 100, 110, 150, 150.0])
    return Labelled(*_streamed("Shuttle"), low, high)


_SETS: dict[str, Callable[[], Labelled]] = {  # name of a data set -> function that loads it
    "breast-cancer": _breast_cancer,
    "wine": _wine,
    "friedman": _friedman,
    "phishing": _phishing,
    "segments": _segments,
    "bananas": _bananas,
    "shuttle": _shuttle,
}
LABELLED_SETS = tuple(_SETS)
"""Names of the data sets that the function `labelled` loads"""


@cache
def labelled(word: str) -> Labelled:
    """Load the data set named `word` from scikit-learn or river; treat it as read-only.

    Raises `InputError` if the package is not installed.
    """
    return _SETS[word]()
