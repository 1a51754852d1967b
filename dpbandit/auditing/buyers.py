"""Users for audits of assortment problems, who buy one product of a set, or none."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpbandit.auditing.small_problems import SMALL_PROBLEMS
from dpbandit.auditing.users import (
    Always,
    Answer,
    ContextUsers,
    Pair,
    random_round,
    users_by_spec,
)
from dpbandit.base import AnyArray, Floats, Ints
from dpbandit.specs.choice import AssortmentSpec, ChoiceSpec


@dataclass(frozen=True, eq=False)
class BuysFirst:
    """An answer to assortments: the purchase of the first offered product in a fixed order."""

    order: Ints
    """all N products, (N,), most preferred first"""

    def __call__(self, action: AnyArray) -> Floats:
        """Return the products (R,) bought from assortments (R, N)."""
        offered = np.asarray(action)[:, self.order] > 0
        return self.order[offered.argmax(axis=1)].astype(float)


class Buyers(ContextUsers):
    """Users of assortment problems, each with a context and her choice from every set."""

    _spec: ChoiceSpec

    def extreme_pairs(self, rng: np.random.Generator) -> Iterator[Pair]:
        yield from super().extreme_pairs(rng)
        buys, nothing, *_ = self._answers.values()
        context = np.zeros(self._spec.context_shape)
        t = random_round(self._spec.horizon, rng)
        background = self._background(context)
        worlds = (background.with_user(t, context, answer) for answer in (buys, nothing))
        yield Pair(f"round {t + 1}, from buying to nothing", t, *worlds)

    def _extremes(self) -> dict[str, Answer]:
        N = self._spec.n_products
        return {
            "the first product offered": BuysFirst(np.arange(N)),
            "nothing": Always(self._silence()),
            "the last product offered": BuysFirst(np.arange(N)[::-1]),
            "the first product, offered or not": Always(np.array(0.0)),
        }

    def _silence(self) -> Floats:
        return np.array(float(self._spec.n_products))

    def _ordinary_answer(self, rng: np.random.Generator) -> Answer:
        N = self._spec.n_products
        return BuysFirst(rng.permutation(N)) if rng.random() < 0.5 else Always(self._silence())


users_by_spec.register(ChoiceSpec, Buyers)
SMALL_PROBLEMS.append(
    AssortmentSpec(n_products=2, at_most=2, dim=2, horizon=24, margins=(0.5, 1.0))
)
