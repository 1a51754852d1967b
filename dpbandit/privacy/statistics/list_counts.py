"""How often each item was looked at and clicked in a cascade."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from dpbandit.base.arrays import Floats, rows
from dpbandit.base.inputs import whole
from dpbandit.losses.click_models import Cascade
from dpbandit.privacy.statistics.list_clicks import possible_clicks


@dataclass(frozen=True)
class ListCounts:
    """(looks, clicks) of every item, from lists of m items that a user reads down to a click.

    Guarantee:
        A list is a function of releases, so replacing a user moves the counts of her m items alone.
        Clicks at k < j differ by 2 + (j - k) ones, a click at k and none by 1 + (m - k), and from
        answers that are no numbers, nobody's, who looks at nothing, she differs by m looks and a
        click: at most m + 1 in L1, sqrt(m + 1) in L2. It is less than sqrt(2 m) and 2 m, which m
        pairs of counters on their own would need, and m + 1 times what each alone is moved by.
        Beyond nobody, who may be shown another list, nobody else adds more.

    >>> counts = ListCounts(3, 2)
    >>> counts.total(np.array([[[2, 0]]]), np.array([[[1, 0]]]))
    array([[[0., 0., 1.],
            [0., 0., 1.]]])
    """

    n_items: int
    length: int
    """m, of a list"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 1)
        whole("length", self.length, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """(2, N)."""
        return (2, self.n_items)

    @property
    def l1_sensitivity(self) -> float:
        """m + 1."""
        return self.length + 1.0

    @property
    def sensitivity(self) -> float:
        """sqrt(m + 1)."""
        return sqrt(self.l1_sensitivity)

    @property
    def moved(self) -> float:
        """sqrt(2 m + 2), as counts are at least 0."""
        return sqrt(2) * self.sensitivity

    def total(self, *batch: Any) -> Floats:
        """Lists (n, R, m), clicks (n, R, m) -> (R, 2, N)."""
        lists, said = batch
        model, R = Cascade(self.length), lists.shape[1]
        clicks = possible_clicks(model, said)
        somebody = np.isfinite(said).all(axis=-1, keepdims=True)
        place = rows(R)[:, None] * self.n_items + lists.astype(np.int64)
        found = [
            np.bincount(place.ravel(), weights=values.ravel(), minlength=R * self.n_items)
            for values in (model.looked_at(clicks) * somebody, clicks * somebody)
        ]
        return np.stack([counts.reshape(R, self.n_items) for counts in found], axis=1)
