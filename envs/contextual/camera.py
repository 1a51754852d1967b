"""Selling cameras to people of whom the answers to a short questionnaire are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, at_least, whole
from dpbandit.envs.contextual.camera_people import (
    CameraContext,
    camera,
    camera_people,
    frozen,
)
from dpbandit.envs.contextual.resampled import TidalChoices
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec

_UNIT = "hundreds of dollars"
_PRICES = 9
_OFFERED = (("canon", "video", "wifi"), ("sony", "zoom", "video", "wifi"), ("panasonic", "pixels"))
_BASE_COST, _COST_OF_FEATURE = 0.40, 0.10
"""Of a unit of what is offered, an assumption."""


@dataclass(kw_only=True, eq=False)
class _CameraSales(TidalChoices):
    """Arms are cameras at prices; the customer buys the one that she is offered, or nothing.

    Subclasses set `spec` and say what the arms are (`_stock`).
    """

    contexts: CameraContext = "posterior"
    tasks: int = 4
    horizon: int = 20_000
    delay: int = 0

    def _stock(self, cameras: Floats, price: Floats, margins: Floats) -> None:
        """Arms: cameras (K, 9) at prices (K,) in hundreds of dollars, and what a sale earns."""
        whole("tasks", self.tasks, 1, 5)
        self._people = camera_people(self.tasks)
        self._known = self._people.context(self.contexts)  # (C, d)
        self._worth = margins
        self._chances = self._people.expected(expit(self._people.utility(cameras, price)))

    def _who_comes(self, uniforms: Floats) -> Ints:
        return self._people.drawn(uniforms)


@dataclass(kw_only=True, eq=False)
class CameraPricing(_CameraSales):
    """Choose one of 9 prices for a camera, for people whose answers to four questions are known.

    Description:
        4,096 frozen people drawn from a mixed logit of 332 real ones, who chose among digital
        cameras and none in a survey that left out whoever always chose none, one brand or the
        highest price (see `envs/data/camera.md`). Each customer has answered four public tasks of
        four cameras and none, in one of 625 patterns; she buys with the probability that people
        with these answers have on average, an exact finite sum. In hundreds of dollars a customer,
        a random price earns 0.556, the best fixed one (2.54) 0.693, the best for each pattern of
        answers 0.810: that is the oracle of regret, and a regret of 0 is attainable. Who knew each
        person exactly would earn 0.935, which no answers tell. "Best" means under the fitted model,
        never in the world. How much utility a price costs differs between customers, as it does not
        in `dpbandit/OJPricing-v0`.

    Action space:
        `Discrete(9)`: `env.unwrapped.spec.prices[action]` hundreds of dollars, 0.79 to 2.79 in
        steps of 0.25, the survey's range.

    Observation space:
        `Box`, shape (11,), Euclidean norm at most 1: (1, t) / sqrt(2), t the posterior mean of her
        ten part-worths given her answers, over the largest there is. With `contexts="answers"`
        shape (17,): (1, an indicator of each camera in each task) / sqrt(5). With
        `contexts="score"` shape (11,), t one Newton step from the average person.

    Rewards:
        Hundreds of dollars: (price - unit cost) if the customer buys, else 0; in [0, 2.29].

    Starting state:
        The first customer.

    Episode end:
        Truncation after `horizon` customers; never terminates.

    Arguments:
        * `attributes`: the camera: names from canon, sony, nikon, panasonic; pixels, zoom, video,
          swivel, wifi.
        * `unit_cost`: hundreds of dollars, below 0.79. An assumption: the survey has no costs.
        * `contexts`: how answers are shown: posterior, answers or score. `tasks`: how many of them
          there are, 1 to 5.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; 0 is handed out before.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`; the logit of a
          pattern's chance to buy is what moves.

    Version history:
        * v0: first release.
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
        prices = np.linspace(levels[0], levels[-1], _PRICES).round(2)
        product = np.tile(camera(*self.attributes), (_PRICES, 1))
        self._stock(product, prices, prices - self.unit_cost)
        self.spec = PriceListSpec(
            n_actions=_PRICES,
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(prices.tolist()),
            unit_cost=self.unit_cost,
            reward_high=float(self._worth.max()),
            link="other",
            delay=self.delay,
            reward_unit=_UNIT,
        )


@dataclass(kw_only=True, eq=False)
class CameraOffer(_CameraSales):
    """Offer one of three cameras at one of five prices to people whose answers are known.

    Description:
        The people and the questionnaire of `dpbandit/CameraPricing-v0`; what is offered is a Canon
        with video and wifi (unit cost 0.60), a Sony with zoom, video and wifi (0.70) or a Panasonic
        with pixels (0.50), and the customer buys it or nothing. Unit costs are assumed, 0.40 and
        0.10 for each feature. In hundreds of dollars a customer, a random offer earns 0.377, the
        best fixed one (the Sony at 2.79) 0.628, the best for each pattern of answers 0.744: that is
        the oracle of regret, and a regret of 0 is attainable. Who knew each person exactly would
        earn 0.932. "Best" means under the fitted model, never in the world; the survey left people
        out. See `envs/data/camera.md`.

    Action space:
        `Discrete(15)`: 5 (place of the camera) + place of the price among 0.79, 1.29, 1.79, 2.29
        and 2.79 hundreds of dollars.

    Observation space:
        `Box`, shape (11,), as in `dpbandit/CameraPricing-v0`; with `contexts="answers"` (17,).

    Rewards:
        Hundreds of dollars: (price - unit cost) if the customer buys, else 0; in [0, 2.29].

    Starting state:
        The first customer.

    Episode end:
        Truncation after `horizon` customers; never terminates.

    Arguments:
        * `contexts`: how answers are shown: posterior, answers or score. `tasks`: how many of them
          there are, 1 to 5.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; 0 is handed out before.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`; the logit of a
          pattern's chance to buy is what moves.

    Version history:
        * v0: first release.
    """

    def __post_init__(self) -> None:
        levels = np.array(frozen()["price_levels"])
        costs = [_BASE_COST + _COST_OF_FEATURE * (len(names) - 1) for names in _OFFERED]
        products = np.repeat([camera(*names) for names in _OFFERED], len(levels), axis=0)
        self._stock(
            products,
            np.tile(levels, len(_OFFERED)),
            (levels - np.array(costs)[:, None]).ravel(),
        )
        self.spec = ContextualSpec(
            n_actions=len(products),
            dim=self._dim(),
            horizon=self.horizon,
            reward_high=float(self._worth.max()),
            link="other",
            delay=self.delay,
            reward_unit=_UNIT,
        )
