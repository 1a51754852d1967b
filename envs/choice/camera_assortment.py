"""Assortments of cameras for customers who answered a short questionnaire."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from dpbandit.base import AnyArray, Bools, Floats, Ints, Streams, whole
from dpbandit.envs.choice.assortments import (
    ChoiceProblem,
    Crowd,
    ExhaustiveSearch,
    SetSearch,
    every_set,
)
from dpbandit.envs.contextual.camera import CameraContext, camera, camera_people
from dpbandit.specs.choice import AssortmentSpec, best_levels, chances

PRODUCTS = (
    (("canon", "pixels"), 1.29),
    (("canon", "pixels", "zoom", "video", "swivel", "wifi"), 2.79),
    (("sony", "zoom", "video"), 1.79),
    (("sony", "pixels", "zoom", "video", "wifi"), 2.29),
    (("nikon",), 0.79),
    (("nikon", "pixels", "zoom", "wifi"), 2.29),
    (("panasonic", "zoom", "swivel"), 1.29),
    (("panasonic", "pixels", "zoom", "video"), 1.79),
)
"""Attributes and price of each camera, in hundreds of dollars"""
_BASE_COST, _FEATURE_COST = 0.40, 0.10
"""Assumed unit cost of a camera, and of each of its features, in hundreds of dollars"""
_NEWTON_STEPS = 30  # largest number of steps of the fit of one logit


class Misfit(NamedTuple):
    """Error of one multinomial logit that is fitted to the exact choices of all people."""

    offered: tuple[int, ...]
    """indices of the products of the best set under the logit"""
    expected: float
    """mean margin per customer of that set under the logit, in hundreds of dollars"""
    earned: float
    """true mean margin per customer of that set"""
    best: float
    """true mean margin per customer of the best fixed set"""


@dataclass(kw_only=True, eq=False)
class CameraAssortment(ChoiceProblem):
    """Show up to 3 of 8 cameras to customers whose answers to four questions are known.

    Description:
        The people and the questionnaire of `dpbandit/CameraPricing-v0`. A customer is a pattern of
        answers; of the cameras shown she buys one, or none, with the probabilities that people with
        these answers have on average, exact finite sums over 4,096 people. In hundreds of dollars
        per customer, a random set earns 0.702, all eight cameras 0.883, the best fixed three (1, 3
        and 5) 1.017, the best set for each pattern of answers 1.0715, found by enumeration: regret
        is measured against this last one, and a regret of 0 is attainable. An agent that knew each
        person exactly would earn 1.153. "Best" means under the fitted model, not in the real world;
        the survey left people out. See `envs/data/camera.md`.

        People differ, so choices follow a mixture of logits, and one logit is biased. A logit
        without contexts, fitted to the exact choices from random sets of three, finds the same best
        three but predicts 1.136 where they earn 1.017 (`env.unwrapped.misfit()`); a logit whose
        utilities are linear in the context earns 1.064, the best set for each pattern 1.0715.

    Action space:
        `MultiBinary(8)`: 1 for each of 1 to `at_most` cameras that are shown. Samples of the space
        are uniform over such sets.

    Observation space:
        `Box`, shape (11,), Euclidean norm at most 1: (1, t) / sqrt(2), t the posterior mean of her
        ten part-worths given her answers, divided by its largest norm over all patterns. With
        `contexts="answers"` shape (17,): (1, an indicator of each camera in each task) / sqrt(5).
        With `contexts="score"` shape (11,), t one Newton step from the mean to the posterior mode.

    Rewards:
        Hundreds of dollars: the margin of the camera bought, 0 if none was; in [0, 1.89].
        `info["choice"]` is the camera, 8 for none. Margins are prices minus assumed unit costs of
        0.40 and 0.10 for each feature.

    Arguments:
        * `at_most`: cameras that can be shown at a time, 1 to 8.
        * `contexts`: encoding of answers: posterior, answers or score. `tasks`: tasks answered, 1
          to 5.
        * `horizon`: rounds. `delay`: rounds until a choice is seen; until then the agent observes
          camera 0 and a reward of 0.
    """

    at_most: int = 3
    contexts: CameraContext = "posterior"
    tasks: int = 4
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        whole("tasks", self.tasks, 1, 5)
        self._people = camera_people(self.tasks)
        self._known = self._people.context(self.contexts)  # (C, d)
        margins = [round(p - _BASE_COST - _FEATURE_COST * (len(a) - 1), 2) for a, p in PRODUCTS]
        self.spec = AssortmentSpec(
            n_products=len(PRODUCTS),
            at_most=self.at_most,
            margins=tuple(margins),
            dim=self._known.shape[1],
            shared=False,
            horizon=self.horizon,
            delay=self.delay,
            reward_unit="hundreds of dollars",
        )
        self._margins = np.array(margins)
        self._sets = every_set(len(PRODUCTS), self.at_most)
        self._buys = _buys(self.tasks, self.at_most)
        self._values = self._buys @ self._margins  # (C, n_sets)
        self._best = self._values.max(axis=1)

    def misfit(self) -> Misfit:
        """Fit a multinomial logit without contexts to people's exact choice probabilities from
        sets of `at_most` cameras, and compare its best set with the truth."""
        full = self._sets.sum(axis=1) == self.at_most
        buys = np.tensordot(self._people.weights, self._buys, axes=1)  # (n_sets, N)
        utility = _logit(self._sets[full] > 0, buys[full])
        best, expected = best_levels(np.exp(utility)[:, None], self._margins[:, None], self.at_most)
        earned = buys @ self._margins
        return Misfit(
            offered=tuple(np.flatnonzero(best).tolist()),
            expected=float(expected),
            earned=float(earned[(self._sets == best).all(axis=1)][0]),
            best=float(earned.max()),
        )

    def _start(self, streams: Streams) -> None:
        self._who = streams.uniforms("customers")

    def _users(self, count: int) -> Crowd:
        pattern = self._people.drawn(self._who.take(count))
        return Crowd(self._known[pattern], pattern, self._best[pattern])

    def _sales(self, taste: Ints, action: AnyArray) -> tuple[Floats, Floats]:
        offered = (action[:, None] == self._sets).all(axis=2).argmax(axis=1)
        chance = self._buys[taste, offered]
        return chance, np.broadcast_to(self._margins, chance.shape)

    def _search(self, replicas: int) -> SetSearch:
        return ExhaustiveSearch(self._sets, self._revenues, replicas)

    def _revenues(self, taste: Ints) -> Floats:
        return np.asarray(self._values[taste].sum(axis=0))


@lru_cache(maxsize=2)
def _buys(tasks: int, at_most: int) -> Floats:
    """Return P(camera is bought | pattern, set) by pattern, set and camera, (C, n_sets, N)."""
    people = camera_people(tasks)
    cameras = np.array([camera(*attributes) for attributes, _ in PRODUCTS])
    utility = people.utility(cameras, np.array([price for _, price in PRODUCTS]))  # (M, N)
    sets = every_set(len(PRODUCTS), at_most)
    found = np.zeros((len(people.weights), *sets.shape))
    for place, members in enumerate(map(np.flatnonzero, sets)):
        none = np.zeros((len(utility), 1))
        chosen = softmax(np.hstack([utility[:, members], none]), axis=1)[:, :-1]
        found[:, place, members] = people.expected(chosen)
    found.flags.writeable = False
    return found


def _logit(offered: Bools, buys: Floats) -> Floats:
    """Return maximum likelihood utilities (N,), given n sets and P(buy) in each of them, (n, N)."""
    utility = np.zeros(offered.shape[1])
    for _ in range(_NEWTON_STEPS):
        p = chances(np.exp(utility), offered)
        H = np.diag(p.sum(axis=0)) - p.T @ p
        utility = utility + np.linalg.solve(H, (buys - p).sum(axis=0))
    return utility
