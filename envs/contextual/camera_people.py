"""People who choose among cameras: 4,096 frozen ones, and what a short questionnaire says of them.

Whoever answers m tasks, each with one of four cameras or none, shows one of 5^m patterns of
answers. Patterns are finitely many and so are people, so whatever is expected of somebody given
her answers is a finite sum; no sampling, no model in between.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri, softmax

from dpbandit.base.arrays import Floats, Ints, norms
from dpbandit.base.inputs import InputError, one_of, whole

CameraContext: TypeAlias = Literal["posterior", "answers", "score"]
CONTEXTS = ("posterior", "answers", "score")
_BRANDS = ("canon", "sony", "nikon", "panasonic")
_CHOICES = 5
"""Four cameras of a task, and none"""


@cache
def frozen() -> dict[str, Any]:
    """The frozen numbers of `envs/data/camera_population.json`, see `envs/data/camera.md`."""
    text = (files("dpbandit.envs") / "data" / "camera_population.json").read_text()
    population: dict[str, Any] = json.loads(text)
    return population


def camera(*attributes: str) -> Floats:
    """The row of a camera, (9,): ones where it has an attribute, of which one is its brand.

    >>> camera("sony", "zoom").tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    names = frozen()["questionnaire"]["columns"][:-1]
    for name in attributes:
        one_of("attribute", name, names)
    if sum(name in _BRANDS for name in attributes) != 1:
        raise InputError(f"Expected attributes={attributes} to have one brand, of {_BRANDS}.")
    return np.isin(names, attributes).astype(float)


@dataclass(frozen=True, eq=False)
class CameraPeople:
    """M = 4,096 people and the C = 5^m patterns in which they answer m tasks.

    A customer is a pattern, drawn with its weight; what she does has the probabilities that
    people who answer so have on average, weighted by how likely each of them gives these answers::

        w(c) = mean_i P(c | i),     E[f | c] = mean_i P(c | i) f(i) / w(c)

    Patterns are in lexicographic order, the first task slowest, none last: 0 is whoever takes the
    first camera each time, C - 1 whoever takes none each time.
    """

    tasks: int
    """m, questions answered"""
    part_worths: Floats
    """(M, 10), of nine attributes and of 100 dollars, which is negative"""
    standardised: Floats
    """(M, 10), the normal part-worths less their mean, over their standard deviation"""
    answers: Floats
    """(M, C), P(pattern | person)"""
    weights: Floats
    """(C,), P(pattern)"""

    def __reduce__(self) -> tuple[Any, ...]:
        return camera_people, (self.tasks,)  # copies and pickles need no 20 MB of their own

    def utility(self, cameras: Floats, price: Floats) -> Floats:
        """Of cameras (J, 9) at prices (J,) in hundreds of dollars, to everybody: (M, J).

        None has utility 0, and differences to it are logits.
        """
        return np.asarray(np.column_stack([cameras, price]) @ self.part_worths.T).T

    def expected(self, values: Floats) -> Floats:
        """E[value | pattern] of something known for each person: (M, K) -> (C, K)."""
        return (self.answers.T @ values) / (len(values) * self.weights[:, None])

    def drawn(self, uniform: Floats) -> Ints:
        """Patterns with their weights, from uniforms on [0, 1): any shape."""
        found = np.searchsorted(self.weights.cumsum(), uniform, side="right")
        return np.minimum(found, len(self.weights) - 1)

    def context(self, kind: CameraContext = "posterior") -> Floats:
        """What is known of a customer, her answers in another form: (C, d), Euclidean norm <= 1.

        Args:
            kind: `"posterior"`: (1, t) / sqrt(2), t the posterior mean of her ten part-worths in
                standard deviations, over the largest `|t|` of all patterns. `"answers"`: (1, one
                indicator for each camera of each task) / sqrt(1 + m). `"score"`: as the posterior,
                with t one Newton step from the population's mean.
        """
        one_of("contexts", kind, CONTEXTS)
        one = np.ones((len(self.weights), 1))
        if kind == "answers":
            chosen = patterns(self.tasks)[..., None] == np.arange(_CHOICES - 1)
            return np.hstack([one, chosen.reshape(len(one), -1)]) / np.sqrt(1 + self.tasks)
        t = self.expected(self.standardised) if kind == "posterior" else _score(self.tasks)
        return np.hstack([one, t / norms(t).max()]) / np.sqrt(2)


@lru_cache(maxsize=2)  # 5 tasks take 100 MB
def camera_people(tasks: int = 4) -> CameraPeople:
    """The frozen people, with `tasks` of the questionnaire's tasks answered, 1 to 5.

    >>> camera_people().answers.shape
    (4096, 625)
    """
    from scipy.stats import qmc  # takes as long to import as all else together

    design = _design(tasks)
    mean, covariance = (np.array(frozen()[name]) for name in ("mean", "covariance"))
    points = qmc.Sobol(len(mean), scramble=False)
    z = ndtri(points.fast_forward(1).random(frozen()["population"]["size"]))
    theta = mean + z @ np.linalg.cholesky(covariance).T  # (M, 10)
    part_worths = np.column_stack([theta[:, :-1], -np.exp(theta[:, -1])])
    answers = np.ones((len(theta), 1))
    for choice in _choices(design, part_worths):  # (M, 5)
        answers = (answers[:, :, None] * choice[:, None]).reshape(len(theta), -1)
    return CameraPeople(
        tasks=tasks,
        part_worths=part_worths,
        standardised=(theta - mean) / np.sqrt(np.diag(covariance)),
        answers=answers,
        weights=answers.mean(axis=0),
    )


def patterns(tasks: int) -> Ints:
    """Which camera each pattern takes in each task, 4 for none: (5^m, m)."""
    return np.indices((_CHOICES,) * tasks).reshape(tasks, -1).T


def _design(tasks: int) -> Floats:
    """The cameras and prices of the first tasks, (m, 4, 10)."""
    design = np.array(frozen()["questionnaire"]["design"])
    whole("tasks", tasks, 1, len(design))
    return design[:tasks]


def _choices(design: Floats, part_worths: Floats) -> Sequence[Floats]:
    """P(each camera, and none) in each task, (M, 5) each."""
    utility = (np.pad(part_worths @ task.T, ((0, 0), (0, 1))) for task in design)
    return [np.asarray(softmax(u, axis=1)) for u in utility]


def _score(tasks: int) -> Floats:
    """One Newton step from the population's mean for each pattern, in standard deviations: (C, 10).

    (C^-1 + H)^-1 g with the score g and the information H of the answers at the mean person, of
    whom the last part-worth is the logarithm of her price sensitivity.
    """
    mean, covariance = (np.array(frozen()[name]) for name in ("mean", "covariance"))
    slope = -np.exp(mean[-1])
    design = _design(tasks)
    design[..., -1] *= slope  # now derivatives of the utility
    chances = _choices(design, np.append(mean[:-1], 1.0)[None])
    g, H = np.zeros((_CHOICES**tasks, len(mean))), np.linalg.inv(covariance)
    for task, chance, taken in zip(design, chances, patterns(tasks).T, strict=True):
        x, p = np.vstack([task, np.zeros(len(mean))]), chance[0]
        H = H + (x.T * p) @ x - np.outer(p @ x, p @ x)
        g += x[taken] - p @ x
    return np.linalg.solve(H, g.T).T / np.sqrt(np.diag(covariance))
