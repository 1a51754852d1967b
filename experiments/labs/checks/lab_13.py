"""Checks of lab 13: clicks on lists."""

from math import sqrt

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_NAIVE = (0.0987, 0.2542, 0.0668, 0.2006)
_CORRECTED = (0.2527, 0.2975, 0.2018, 0.3955)  # of the 20,000 lists of section 5

CHECKS: Checks = {
    "13.1": [
        (
            lambda any_click: np.isclose(any_click([0.5, 0.5]), 0.75),
            "Of two items that attract every second user, one is clicked by three of four.",
        ),
        (
            lambda any_click: np.isclose(any_click([0.1, 0.5, 0.2, 0.4]), 0.784),
            "For the list above it is what the cascade says.",
        ),
    ],
    "13.2": [
        (
            lambda bound: all(np.isclose(bound(g), sqrt(2 + 2 * g**2)) for g in (0.5, 0, 2)),
            "z moves by sqrt(2) at most, and g G by that times g: how far do both together?",
        )
    ],
    "13.3": [
        (
            lambda more: abs(more - sqrt(10)) < 0.02,
            "Weight over sensitivity of one, over that of the other.",
        )
    ],
    "13.4": [
        (
            lambda real_mu, real_epsilon: abs(real_mu - 2 / sqrt(2.5)) < 0.01,
            "It is the real move over the bound.",
        ),
        (
            lambda real_mu, real_epsilon: 1.2 < real_epsilon < 1.4,
            "Noise of mu_of(1, delta), with a mu that is larger by the same factor.",
        ),
    ],
    "13.5": [
        (
            lambda naive, corrected: np.shape(naive) == np.shape(corrected) == (4,),
            "Give four numbers twice, one for each item.",
        ),
        (
            lambda naive, corrected: np.allclose(naive, _NAIVE, atol=0.003),
            "Naive: all clicks on an item over all lists, as each list has every item.",
        ),
        (
            lambda naive, corrected: np.allclose(corrected, _CORRECTED, atol=0.003),
            "Corrected: divide by the sum of chi over the places where the item stood.",
        ),
    ],
    "13.6": [
        (
            lambda times_more: 3.6 < times_more < 3.9,
            "The square of the ratio of two chances, each 1 minus a product over places.",
        )
    ],
}
