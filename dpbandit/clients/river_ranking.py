"""river's models of clicks as agents of ordered lists."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandit.agents.lists.ranking import ListPlayer, best_lists
from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.calls import of_kind, takes
from dpbandit.base.inputs import InputError, inside, shown
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.clicks import features
from dpbandit.privacy.ledger import no_privacy
from dpbandit.specs.lists import ListSpec
from dpbandit.specs.protocols import BanditSpec, fits


@dataclass(frozen=True)
class RiverRanking:
    """A river model that predicts clicks, as an agent of ordered lists::

        RiverRanking(lambda seed: linear_model.LogisticRegression())

    It predicts from the features (1, u * v) / sqrt(2) of an item for a user whether she clicks, and
    learns of every item that was looked at; the m items with the best predictions are shown. A
    model does not know what it does not know: with probability `explore` a list is random. Slow by
    design: one Python call for each replica, round and item.

    Guarantee:
        None: what foreign code keeps is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: a model in place of a function; a model that cannot `learn_one` or predict;
            `explore` outside [0, 1]; anything but ordered lists.
    """

    model: Callable[[int], Any]
    """seed -> a new model, called once for each replica"""
    explore: float = 0.05
    """probability of a random list, in [0, 1]"""

    def __post_init__(self) -> None:
        if not callable(self.model) or hasattr(self.model, "learn_one"):
            raise InputError(
                f"Expected model={shown(self.model)} to be a function that returns a new model: "
                f"lambda seed: {type(self.model).__name__}(...)."
            )
        takes("model", self.model, "seed")
        inside("explore", self.explore, 0, 1, ends=True)

    def make(self, spec: BanditSpec, streams: Streams) -> "RiverRanker":
        """A running agent, with one model for each replica."""
        return RiverRanker(self, fits(self, spec, ListSpec), streams)


class RiverRanker(ListPlayer):
    """The models, their predictions and their lessons."""

    def __init__(self, config: RiverRanking, spec: ListSpec, streams: Streams) -> None:
        super().__init__(spec, no_privacy("foreign code, which claims nothing"))
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        self._models = [config.model(seed) for seed in seeds]
        for model in self._models:
            if not hasattr(model, "learn_one"):
                raise InputError(f"Expected a model from every call, got {of_kind(model)}.")
        if len({id(model) for model in self._models}) < len(seeds):
            raise InputError("Expected a new model from every call, got one twice.")
        self._explore, self._coins = config.explore, streams.uniforms("explore")
        self._random = spec.uniform(streams)
        self._names = tuple(f"x{j}" for j in range(spec.features))

    def _choose(self, u: Floats) -> Ints:
        R, N = len(u), self._spec.n_items
        everything = np.broadcast_to(rows(N), (R, N))
        phi = features(u, self._spec.catalogue.vectors(everything))
        asked = zip(self._models, phi.tolist(), strict=True)
        scores = [[self._predicted(model, row) for row in items] for model, items in asked]
        random = (self._coins() < self._explore)[:, None]
        lists: Ints = np.where(
            random, self._random(), best_lists(np.array(scores), self._spec.clicks)
        )
        return lists

    def _learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        phi, looked = features(u, vectors), self._spec.clicks.looked_at(clicks)
        for model, items, seen, said in zip(
            self._models, phi.tolist(), looked, clicks, strict=True
        ):
            for row, at, click in zip(items, seen, said, strict=True):
                if at > 0:
                    model.learn_one(self._named(row), bool(click))

    def _predicted(self, model: Any, row: list[float]) -> float:
        if hasattr(model, "predict_proba_one"):
            return float(model.predict_proba_one(self._named(row)).get(True, 0.0))
        return float(model.predict_one(self._named(row)) or 0.0)

    def _named(self, row: list[float]) -> dict[str, float]:
        return dict(zip(self._names, row, strict=True))
