"""What a user was offered, as rows of features in at most S places."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.specs.choice import AssortmentSpec


class Offer(NamedTuple):
    """Of users (..., R): the rows of what they were offered, and which they bought."""

    rows: Floats
    """(..., S, D), 0 in places where nothing is"""
    there: npt.NDArray[np.bool_]
    """(..., S), where something is"""
    bought: Ints
    """(...,), the place of what was bought, S for nothing, or for what was not offered"""


def offer_of(spec: AssortmentSpec, context: Floats, action: Ints, choice: Floats) -> Offer:
    """Contexts `(..., *context_shape)`, sets (..., N) and choices (...) as offers."""
    S = spec.at_most
    product = np.argsort(action == 0, axis=-1, kind="stable")[..., :S]  # those offered first
    level = np.take_along_axis(action, product, axis=-1)
    rows = spec.rows(context)  # (..., N, P, D)
    flat = rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])
    place = product * spec.levels + np.maximum(level - 1, 0)
    there = level > 0
    x = np.take_along_axis(flat, place[..., None], axis=-2) * there[..., None]
    hers = (product == np.asarray(choice)[..., None]) & there
    return Offer(x, there, np.where(hers.any(axis=-1), hers.argmax(axis=-1), S))


def items_of(spec: AssortmentSpec, action: Ints) -> npt.NDArray[np.bool_]:
    """Sets (..., N) as masks of products at prices, (..., N P)."""
    chosen = action[..., None] == np.arange(1, spec.levels + 1)
    return chosen.reshape(*action.shape[:-1], -1)


def item_bought(spec: AssortmentSpec, action: Ints, choice: Floats) -> Ints:
    """Which product at which price was bought, (...), in [0, N P); N P for nothing."""
    known = (choice >= 0) & (choice < spec.n_products) & (choice == np.floor(choice))
    product = np.where(known, choice, 0).astype(np.int64)
    level = np.take_along_axis(action, product[..., None], axis=-1)[..., 0]
    item = product * spec.levels + level - 1
    return np.where(known & (level > 0), item, spec.n_products * spec.levels)
