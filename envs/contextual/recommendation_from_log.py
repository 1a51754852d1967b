"""Clicks of one's own: a model fitted once to a log of what was shown, then frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dpbandit.base.inputs import MOST_ACTIONS, InputError, flag, shown
from dpbandit.envs.contextual.click_fit import FrozenClicks, Shown, fit_clicks
from dpbandit.envs.contextual.log_checks import enough_answers, fitted_once, read, ridge_of
from dpbandit.envs.contextual.problems import ResampledChoices
from dpbandit.offline.columns import column
from dpbandit.offline.logs import one_kind
from dpbandit.specs.protocols import ContextualSpec


@dataclass(eq=False, repr=False)
class RecommendationFromLog(ResampledChoices):
    """Choose items for people of a log of your own, whose clicks are fitted once and frozen.

    Description:
        One row of the log is one item shown to one person, also when she did not click. A logit of
        clicks with coefficients of its own for each item is fitted once; people are rows drawn with
        replacement, who click with the probability of that model. Regret is under the model, never
        in the world. `diagnostics` says how well it fits, and `print(problem)` all that should be
        known; logs that cannot tell items apart are refused, each with its sentence. No diagnostic
        finds items that were shown to those who would like them, for reasons in no column. A
        certificate protects one simulated person of one round, never a row of the log. See
        `docs/howto/shop.md`.

    Action space:
        `Discrete(K)`: `env.unwrapped.items[action]`.

    Observation space:
        `Box`, shape (1 + d,): (1, features) / sqrt(1 + d), ranges scaled to [-1, 1] and clipped,
        levels one-hot (0 or 1) against the first; Euclidean norm at most 1.

    Rewards:
        1 for a click, else 0.

    Starting state:
        The first person.

    Episode end:
        Truncation after `horizon` people; never terminates.

    Arguments:
        * `frame`: a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet
          file. Required.
        * `item`, `click`: names of columns: what was shown, and 1 if it was clicked, else 0.
        * `items`: all that can be shown, a public list. Required.
        * `features`: names of columns and their public bounds: `{"age": (18, 90), "device":
          ("phone", "desk")}`, or `{}`. Required: a bound read off the log would be data that no
          certificate covers.
        * `interactions`: features work for each item in its own way, or for all alike.
        * `ridge`: penalty of all coefficients but the constant.
        * `clusters`: a column, such as the day, for errors.
        * `sha256`: of the file at the path `frame`, which is refused if it is another.
        * `horizon`: rounds. `delay`: rounds until a click is seen; 0 is handed out before.

    Version history:
        * v0: first release.
    """

    _random = ("people", "clicks")
    frame: Any = None
    _: KW_ONLY
    item: str = "item"
    click: str = "click"
    items: Sequence[Any] | None = None
    features: Mapping[str, Sequence[Any]] | None = None
    interactions: bool = True
    ridge: float = 1e-6
    clusters: str | None = None
    sha256: str | None = None
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        flag("interactions", self.interactions)
        fit = self._fit(self._catalogue())
        self.diagnostics, self._known, self._chances = fit.diagnostics, fit.context, fit.chances
        self._worth = np.ones(self._chances.shape[1])
        self.spec = ContextualSpec(
            n_actions=self._chances.shape[1],
            dim=self._known.shape[1],
            horizon=self.horizon,
            link="logistic",
            delay=self.delay,
            reward_unit="clicks",
        )

    def __repr__(self) -> str:
        return f"RecommendationFromLog: {self.diagnostics}"

    def _catalogue(self) -> tuple[Any, ...]:
        """The public list of items."""
        if self.items is None or isinstance(self.items, str):
            raise InputError(
                "Expected items=, such as ('news', 'sport'): a list read off the log would be data "
                "that no certificate covers."
            )
        items = tuple(one_kind("items", self.items))
        if not 2 <= len(items) <= MOST_ACTIONS or len(set(items)) < len(items):
            raise InputError(f"Expected items={shown(self.items)} to be two or more, each once.")
        return items

    def _fit(self, items: tuple[Any, ...]) -> FrozenClicks:
        log = read(self.frame, (self.click, self.item), self.features, self.clusters, self.sha256)
        place = {name: j for j, name in enumerate(items)}
        listed = one_kind(f"column {self.item!r}", column(log.table, self.item))
        if unknown := [name for name in listed if name not in place]:
            raise InputError(
                f"Expected column {self.item!r} to hold only items={shown(items)}, got "
                f"{unknown[0]!r} in {len(unknown)} rows: they are public, so say all there can be."
            )
        offered = Shown(items, np.array([place[name] for name in listed], dtype=np.int64))
        K, k = len(items), log.design.shape[1]
        penalty = ridge_of(self.ridge, K * k if self.interactions else k + K - 1)
        yes = enough_answers(log.table, self.click, len(penalty))
        return fitted_once(
            lambda: fit_clicks(log, yes, offered, penalty, click=self.click),
            "clicks",
            log.design,
            log.groups,
            yes,
            *offered,
            penalty,
            (log.features.names, log.features.outside, tuple(log.levels), self.click),
        )
