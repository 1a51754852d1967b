"""Checks of lab 11: sets of products, and a shelf that runs empty."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_Offer = tuple[int, ...]


def _value(weights: Sequence[float], margins: Sequence[float], offer: _Offer) -> float:
    """Return what a customer brings who is offered these products."""
    v, r = np.array(weights)[[*offer]], np.array(margins)[[*offer]]
    return float((v * r).sum() / (1 + v.sum()))


def _best(weights: Sequence[float], margins: Sequence[float], size: int) -> _Offer:
    """Return the best set of so many of three products."""
    return max(combinations(range(3), size), key=lambda offer: _value(weights, margins, offer))


def _added(weights: Sequence[float], margins: Sequence[float]) -> _Offer:
    """Return the best pair that has the product which earns most alone."""
    (first,) = _best(weights, margins, 1)
    pairs = [(first, other) for other in range(3) if other != first]
    return max(pairs, key=lambda offer: _value(weights, margins, offer))


CHECKS: Checks = {
    "11.1": [
        (
            lambda least_margin: abs(least_margin - 6.3) < 0.1,
            "Product 3 belongs into the set if it brings more than a customer brings without it.",
        )
    ],
    "11.2": [
        (
            lambda weights, margins: (
                np.shape(weights) == np.shape(margins) == (3,)
                and np.isfinite([*weights, *margins]).all()
                and min(*weights, *margins) > 0
            ),
            "Give two lists of three positive numbers.",
        ),
        (
            lambda weights, margins: (
                _best(weights, margins, 1)[0] not in _best(weights, margins, 2)
            ),
            "The one that earns most alone is in the best pair.",
        ),
        (
            lambda weights, margins: (
                _value(weights, margins, _added(weights, margins))
                <= 0.98 * _value(weights, margins, _best(weights, margins, 2))
            ),
            "Right, but the manager's pair earns nearly as much as the best one.",
        ),
    ],
    "11.3": "says that the length of an epoch depends on single answers, that the next customer "
    "sees it, and that noise on sums inside epochs changes neither.",
    "11.4": [
        (lambda least_delta: least_delta in ("a", "b", "c", "d"), "Write one of the letters."),
        (
            lambda least_delta: least_delta == "c",
            "Compare the probabilities of the sign in the two cases; one is multiplied.",
        ),
    ],
    "11.5": [
        (
            lambda ordered, break_even: 500 < ordered < 580,
            "Earned is the fluid bound of each shop minus what is lost there, and the two costs "
            "differ by 2 dollars, or by what you chose.",
        ),
        (
            lambda ordered, break_even: 0.9 < break_even < 1.1,
            "By how much does a free delivery earn more than the sign? Each carton may cost its "
            "share of that.",
        ),
    ],
    "11.6": [
        (
            lambda held_back: 117 < held_back < 121.5,
            "So many standard deviations of the sales as the probability asks for.",
        )
    ],
}
