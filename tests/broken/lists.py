"""Agents of lists whose users move sums further than they claim, which the door must see."""

from math import sqrt
from typing import Any
from unittest.mock import patch

import numpy as np

from dpbandit.agents import ListExperts, ListFADE, PrivateCascade
from dpbandit.base.arrays import clip_norm
from dpbandit.privacy.clicks import (
    ListClicks,
    ListCounts,
    ListResiduals,
    ListStatistic,
    PolicyClicks,
)


class SumsOfSigns(ListClicks):
    """1 or -1 times the features of every position that was looked at, claimed at 2: it is 2 m."""

    needs = ListClicks.needs

    sensitivity = 2.0

    def _weights(self, clicks: Any) -> Any:
        f = self.model.looked_at(clicks)
        return f * (2 * clicks - 1), f / self.model.length

    def total(self, *batch: Any) -> Any:
        with patch("dpbandit.privacy.clicks.clip_norm", lambda x, bound: x):
            return super().total(*batch)


class FeaturesAsSent(ListClicks):
    """Features of unclipped tastes, at most 1 long but in no cone: they may be opposite."""

    needs = ListClicks.needs

    def total(self, *batch: Any) -> Any:
        with patch("dpbandit.privacy.clicks.features", sent):
            return super().total(*batch)


def sent(u: Any, v: Any) -> Any:
    """(1, u * v) / sqrt(2), clipped to length 1, as contexts are."""
    products = u[..., None, :] * v
    return clip_norm(
        np.concatenate([np.ones((*products.shape[:-1], 1)), products], -1) / sqrt(2), 1.0
    )


class CountsAtRootM(ListCounts):
    """Clicks alone cost sqrt(m) where looks are public; in a cascade looks tell as much."""

    needs = ListCounts.needs

    @property
    def sensitivity(self) -> float:
        return sqrt(self.length)


class ImpossibleClicks(ListCounts):
    """Counts clicks below the first: of all clicks and of none they are 2 m - 1 ones apart."""

    needs = ListCounts.needs

    def total(self, *batch: Any) -> Any:
        with patch("dpbandit.privacy.clicks.Cascade.possible", lambda self, clicks: clicks):
            return super().total(*batch)


class EachForItsItem(ListCounts):
    """Pays for one counter, though a user moves those of all her items: m + 1 times as much."""

    l1_sensitivity = 1.0


class ResidualsInTheCone(ListResiduals):
    """Claimed as clicks are, though what is below its prediction points the other way."""

    needs = ListResiduals.needs

    @property
    def sensitivity(self) -> float:
        return sqrt(2 + 2 * self.gram_weight**2)


class AllClicks(PolicyClicks):
    """Every click that is told counts, though a cascade has one, and what is claimed is 1."""

    needs = PolicyClicks.needs

    def total(self, *batch: Any) -> Any:
        shown, said = batch
        ones = shown[..., None] == np.arange(self.n_policies)
        return (np.nan_to_num(said).clip(0, 1).sum(axis=-1)[..., None] * ones).sum(axis=0)


class Fades(ListFADE):
    """FADE for lists that sums another statistic."""

    summed: Any

    def added(self) -> Any:
        return self.summed(model=self.spec.clicks, taste=self.spec.dim)


class Counts(PrivateCascade):
    """Counters of another statistic."""

    summed: Any

    def start(self) -> None:
        with patch("dpbandit.agents.lists.cascade.ListCounts", self.summed):
            super().start()


class Policies(ListExperts):
    """Policies whose clicks are counted another way."""

    summed: Any

    def start(self) -> None:
        with patch("dpbandit.agents.lists.list_fade.PolicyClicks", self.summed):
            super().start()


BROKEN = {
    kind.__name__: (Fades if issubclass(kind, ListStatistic) else Counts)(summed=kind)
    for kind in (
        SumsOfSigns,
        FeaturesAsSent,
        ResidualsInTheCone,
        CountsAtRootM,
        ImpossibleClicks,
        EachForItsItem,
    )
} | {"AllClicks": Policies(summed=AllClicks)}
"""By name of what each sums."""
