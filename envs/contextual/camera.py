"""Pricing cameras for customers who answered a short questionnaire.

There are 4,096 people, with fixed tastes. A customer answers m questions (tasks), each by one of
four cameras or none, so her answers are one of 5^m patterns. People and patterns are finitely many,
so every expectation given her answers is an exact finite sum.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit, ndtri, softmax

from dpbandit.base import Floats, InputError, Ints, at_least, norms, one_of, whole
from dpbandit.envs.contextual.problems import TidalChoices, UserTable
from dpbandit.specs import OfferSpec, PriceListSpec

CameraContext: TypeAlias = Literal["posterior", "answers", "score"]
CONTEXTS = ("posterior", "answers", "score")  # encodings, see `CameraPeople.context`
_BRANDS = ("canon", "sony", "nikon", "panasonic")  # attributes; a camera has exactly one of them
_ALTERNATIVES = 5
"""Number of answers to a task: four cameras, and none"""


@cache
def frozen() -> dict[str, Any]:
    """Read the population in `envs/data/camera_population.json`, see `envs/data/camera.md`."""
    text = (files("dpbandit.envs") / "data" / "camera_population.json").read_text()
    population: dict[str, Any] = json.loads(text)
    return population


def camera(*attributes: str) -> Floats:
    """Return indicators of a camera's nine attributes, (9,); exactly one is a brand.

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
    """M = 4,096 people and the C = 5^m patterns of answers that they may give to m tasks.

    A customer is a pattern c, drawn with its weight w(c). In the expectation of f(person), given
    the pattern, person i has as weight the probability P(c | i) that she answers c::

        w(c) = mean_i P(c | i),     E[f | c] = mean_i P(c | i) f(i) / w(c)

    Patterns are in lexicographic order (the last task varies fastest, none is last): pattern 0
    takes the first camera in every task, pattern C - 1 takes none in every task.
    """

    tasks: int
    """Number m of tasks answered"""
    part_worths: Floats
    """Utilities of nine attributes and, negative, of 100 dollars of price, (M, 10)"""
    standardised: Floats
    """Part-worths (for the price, their log) minus their mean, divided by their stddev, (M, 10)"""
    answers: Floats
    """P(pattern | person) for all persons and patterns, (M, C)"""
    weights: Floats
    """P(pattern), averaged over persons, (C,)"""

    def __reduce__(self) -> tuple[Any, ...]:
        return camera_people, (self.tasks,)  # so that copies and pickles share the 20 MB

    def utility(self, cameras: Floats, price: Floats) -> Floats:
        """Return all people's utilities (M, J) of J cameras (J, 9) at prices (J,).

        Prices are in hundreds of dollars. The utility of taking none is 0.
        """
        return np.asarray(np.column_stack([cameras, price]) @ self.part_worths.T).T

    def expected(self, values: Floats) -> Floats:
        """Return expected values given each pattern, (C, K), from values of each person, (M, K)."""
        return (self.answers.T @ values) / (len(values) * self.weights[:, None])

    def drawn(self, uniform: Floats) -> Ints:
        """Return a pattern, drawn with probabilities `weights`, for each uniform on [0, 1)."""
        found = np.searchsorted(self.weights.cumsum(), uniform, side="right")
        return np.minimum(found, len(self.weights) - 1)

    def context(self, kind: CameraContext = "posterior") -> Floats:
        """Encode the C patterns of answers to m tasks as contexts, (C, d), Euclidean norm <= 1.

        Args:
            kind: `"posterior"`: (1, t) / sqrt(2), t the posterior mean of the ten part-worths in
                standard deviations, divided by the largest `|t|` of all patterns. `"answers"`: (1,
                one indicator for each camera of each task) / sqrt(1 + m). `"score"`: as the
                posterior, with t one Newton step from the population's mean.
        """
        one_of("contexts", kind, CONTEXTS)
        one = np.ones((len(self.weights), 1))
        if kind == "answers":
            chosen = patterns(self.tasks)[..., None] == np.arange(_ALTERNATIVES - 1)
            return np.hstack([one, chosen.reshape(len(one), -1)]) / np.sqrt(1 + self.tasks)
        t = self.expected(self.standardised) if kind == "posterior" else _score(self.tasks)
        return np.hstack([one, t / norms(t).max()]) / np.sqrt(2)


@lru_cache(maxsize=2)  # 5 tasks take 100 MB
def camera_people(tasks: int = 4) -> CameraPeople:
    """Return the people and their answers to the questionnaire's first `tasks` (1 to 5) tasks.

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
    """Return each pattern's choice (camera 0 to 3, or 4 for none) in each of m tasks, (5^m, m)."""
    return np.indices((_ALTERNATIVES,) * tasks).reshape(tasks, -1).T


def _design(tasks: int) -> Floats:
    """Return attributes and price of the four cameras in each of the first m tasks, (m, 4, 10)."""
    design = np.array(frozen()["questionnaire"]["design"])
    whole("tasks", tasks, 1, len(design))
    return design[:tasks]


def _choices(design: Floats, part_worths: Floats) -> Sequence[Floats]:
    """Return each person's choice probabilities, (M, 5), in each task; none is last."""
    utility = (np.pad(part_worths @ task.T, ((0, 0), (0, 1))) for task in design)
    return [np.asarray(softmax(u, axis=1)) for u in utility]


def _score(tasks: int) -> Floats:
    """Return one Newton step from the mean person for each pattern, (C, 10), in stddevs.

    The step is (P + H)^-1 g with the population's precision P, and the score g and information H of
    the answers at the mean person, whose last part-worth is the log of the price sensitivity.
    """
    mean, covariance = (np.array(frozen()[name]) for name in ("mean", "covariance"))
    slope = -np.exp(mean[-1])
    design = _design(tasks)
    design[..., -1] *= slope  # so that rows are derivatives of the utility
    chances = _choices(design, np.append(mean[:-1], 1.0)[None])
    g, H = np.zeros((_ALTERNATIVES**tasks, len(mean))), np.linalg.inv(covariance)
    for task, chance, taken in zip(design, chances, patterns(tasks).T, strict=True):
        x, p = np.vstack([task, np.zeros(len(mean))]), chance[0]
        H = H + (x.T * p) @ x - np.outer(p @ x, p @ x)
        g += x[taken] - p @ x
    return np.linalg.solve(H, g.T).T / np.sqrt(np.diag(covariance))


_UNIT = "hundreds of dollars"  # unit of prices and rewards
_N_PRICES = 9  # number of prices of `CameraPricing`, in equal steps
_OFFERED_CAMERAS = (  # attributes of the cameras of `CameraOffer`
    ("canon", "video", "wifi"),
    ("sony", "zoom", "video", "wifi"),
    ("panasonic", "pixels"),
)
_BASE_COST, _FEATURE_COST = 0.40, 0.10
"""Assumed unit cost of a camera, and of each of its features, in hundreds of dollars"""


@dataclass(kw_only=True, eq=False)
class _CameraSales(TidalChoices):
    """Base of problems whose arms are cameras at prices; a customer buys the offered one, or none.

    Subclasses set `spec`, and call `_set_arms` to set the arms.
    """

    contexts: CameraContext = "posterior"
    tasks: int = 4
    horizon: int = 20_000
    delay: int = 0

    def _set_arms(self, cameras: Floats, price: Floats, margins: Floats) -> None:
        """Set arms, cameras (K, 9) at prices (K,) with `margins` (K,), in hundreds of dollars."""
        whole("tasks", self.tasks, 1, 5)
        self._people = camera_people(self.tasks)
        self._known = self._people.context(self.contexts)  # (C, d)
        self._margins = margins
        self._chances = self._people.expected(expit(self._people.utility(cameras, price)))

    @property
    def user_table(self) -> UserTable | None:  # type: ignore[override]
        table = super().user_table
        return None if table is None else table._replace(weight=self._people.weights)

    def _rows_from(self, uniforms: Floats) -> Ints:
        return self._people.drawn(uniforms)


@dataclass(kw_only=True, eq=False)
class CameraPricing(_CameraSales):
    """Choose one of 9 prices for a camera; the customer's answers to four questions are known.

    Description:
        4,096 people, always the same, are drawn from a mixed logit of 332 real ones, who chose
        among digital cameras and none in a survey that left out people who always chose none, one
        brand or the highest price (see `envs/data/camera.md`). Each customer has answered four
        public tasks of four cameras and none, in one of 625 patterns; she buys with the probability
        that people with these answers have on average, an exact finite sum. In hundreds of dollars
        per customer, a random price earns 0.556, the best fixed one (2.54) 0.693, the best for each
        pattern of answers 0.810; regret is measured against this last one, and a regret of 0 is
        attainable. An agent that knew each person exactly would earn 0.935, but answers do not
        reveal her. "Best" means under the fitted model, not in the real world. Unlike in
        `dpbandit/OJPricing-v0`, price sensitivity differs between customers.

    Action space:
        `Discrete(9)`: `env.unwrapped.spec.prices[action]` hundreds of dollars, 0.79 to 2.79 in
        steps of 0.25, the survey's range.

    Observation space:
        `Box`, shape (11,), Euclidean norm at most 1: (1, t) / sqrt(2), t the posterior mean of her
        ten part-worths given her answers, divided by its largest norm over all patterns. With
        `contexts="answers"` shape (17,): (1, an indicator of each camera in each task) / sqrt(5).
        With `contexts="score"` shape (11,), t one Newton step from the mean to the posterior mode.

    Rewards:
        Hundreds of dollars: (price - unit cost) if the customer buys, else 0; in [0, 2.29].

    Arguments:
        * `attributes`: names of the camera's attributes: one brand (canon, sony, nikon or
          panasonic), and any of pixels, zoom, video, swivel, wifi.
        * `unit_cost`: hundreds of dollars, below 0.79. An assumption: the survey has no costs.
        * `contexts`: encoding of answers: posterior, answers or score. `tasks`: tasks answered, 1
          to 5.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`, on the logit of a
          pattern's probability to buy.
    """

    attributes: Sequence[str] = ("sony", "zoom", "video", "wifi")
    unit_cost: float = 0.50

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, tuple | list):
            raise InputError(
                f"Expected attributes={self.attributes!r} to be a list of names, such as "
                "('canon', 'video')."
            )
        at_least("unit_cost", self.unit_cost, 0)
        levels = frozen()["price_levels"]
        prices = np.linspace(levels[0], levels[-1], _N_PRICES).round(2)
        product = np.tile(camera(*self.attributes), (_N_PRICES, 1))
        self._set_arms(product, prices, prices - self.unit_cost)
        self.spec = PriceListSpec(
            n_actions=_N_PRICES,
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(prices.tolist()),
            unit_cost=self.unit_cost,
            reward_high=float(self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit=_UNIT,
        )


@dataclass(kw_only=True, eq=False)
class CameraOffer(_CameraSales):
    """Offer one of three cameras at one of five prices to customers whose answers are known.

    Description:
        The people and the questionnaire of `dpbandit/CameraPricing-v0`. The offer is a Canon with
        video and wifi (unit cost 0.60), a Sony with zoom, video and wifi (0.70) or a Panasonic with
        pixels (0.50), and the customer buys it or nothing. Unit costs are assumed, 0.40 and 0.10
        for each feature. In hundreds of dollars per customer, a random offer earns 0.377, the best
        fixed one (the Sony at 2.79) 0.628, the best for each pattern of answers 0.744; regret is
        measured against this last one, and a regret of 0 is attainable. An agent that knew each
        person exactly would earn 0.932. "Best" means under the fitted model, not in the real world;
        the survey left people out. See `envs/data/camera.md`.

    Action space:
        `Discrete(15)`: 5 (number of the camera) + number of the price, from 0 on, among 0.79, 1.29,
        1.79, 2.29 and 2.79 hundreds of dollars.

    Observation space:
        `Box`, shape (11,), as in `dpbandit/CameraPricing-v0`; with `contexts="answers"` (17,).

    Rewards:
        Hundreds of dollars: (price - unit cost) if the customer buys, else 0; in [0, 2.29]. Camera,
        price and unit cost of each offer are public: `env.unwrapped.spec`.

    Arguments:
        * `contexts`: encoding of answers: posterior, answers or score. `tasks`: tasks answered, 1
          to 5.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`, on the logit of a
          pattern's probability to buy.
    """

    def __post_init__(self) -> None:
        levels = frozen()["price_levels"]
        cameras = len(_OFFERED_CAMERAS)
        costs = [_BASE_COST + _FEATURE_COST * (len(names) - 1) for names in _OFFERED_CAMERAS]
        products = np.repeat([camera(*names) for names in _OFFERED_CAMERAS], len(levels), axis=0)
        prices, unit_costs = np.tile(levels, cameras), np.repeat(costs, len(levels)).round(2)
        self._set_arms(products, prices, prices - unit_costs)
        self.spec = OfferSpec(
            prices=tuple(prices.tolist()),
            unit_costs=tuple(unit_costs.tolist()),
            products=tuple(np.repeat(range(cameras), len(levels)).tolist()),
            n_actions=len(products),
            dim=self._dim(),
            horizon=self.horizon,
            reward_high=float(self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit=_UNIT,
        )
