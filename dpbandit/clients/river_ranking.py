"""river's models of clicks as agents of ordered lists."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from dpbandit.agent import Chance
from dpbandit.agents.lists.ranked import Lists, best_lists
from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.fields import of_kind, takes
from dpbandit.base.inputs import InputError, shown
from dpbandit.privacy.clicks import features
from dpbandit.privacy.ledger import no_privacy


class RiverRanking(Lists):
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

    model: Callable[[int], Any] = field(kw_only=False)
    """seed -> a new model, called once for each replica"""
    explore: Chance = field(default=0.05, kw_only=False)
    """probability of a random list, in [0, 1]"""

    def check(self) -> None:
        """Whether the model is made by a function."""
        if not callable(self.model) or hasattr(self.model, "learn_one"):
            raise InputError(
                f"Expected model={shown(self.model)} to be a function that returns a new model: "
                f"lambda seed: {type(self.model).__name__}(...)."
            )
        takes("model", self.model, "seed")

    def start(self) -> None:
        """Make one model for each replica."""
        super().start()
        self.ledger = no_privacy("foreign code, which claims nothing")
        seeds = (self.streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        self.models = [self.model(seed) for seed in seeds]
        for model in self.models:
            if not hasattr(model, "learn_one"):
                raise InputError(f"Expected a model from every call, got {of_kind(model)}.")
        if len({id(model) for model in self.models}) < len(seeds):
            raise InputError("Expected a new model from every call, got one twice.")
        self.coins, self.random = self.streams.uniforms("explore"), self.spec.uniform(self.streams)
        self.names = tuple(f"x{j}" for j in range(self.spec.features))

    def choose(self, u: Floats) -> Ints:
        """The items with the best predictions, or a random list."""
        R, N = len(u), self.spec.n_items
        everything = np.broadcast_to(rows(N), (R, N))
        phi = features(u, self.spec.catalogue.vectors(everything))
        asked = zip(self.models, phi.tolist(), strict=True)
        scores = [[self._predicted(model, row) for row in items] for model, items in asked]
        best = best_lists(np.array(scores), self.spec.clicks)
        return np.where((self.coins() < self.explore)[:, None], self.random(), best)

    def learn(self, u: Floats, lists: Ints, vectors: Floats, clicks: Floats) -> None:
        """Tell the models of every item that was looked at."""
        phi, looked = features(u, vectors), self.spec.clicks.looked_at(clicks)
        for model, items, seen, said in zip(self.models, phi.tolist(), looked, clicks, strict=True):
            for row, at, click in zip(items, seen, said, strict=True):
                if at > 0:
                    model.learn_one(self._named(row), bool(click))

    def _predicted(self, model: Any, row: list[float]) -> float:
        if hasattr(model, "predict_proba_one"):
            return float(model.predict_proba_one(self._named(row)).get(True, 0.0))
        return float(model.predict_one(self._named(row)) or 0.0)

    def _named(self, row: list[float]) -> dict[str, float]:
        return dict(zip(self.names, row, strict=True))
