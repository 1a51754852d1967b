"""Checks of lab 13: clicks on lists."""

from math import sqrt

import numpy as np

from dpbandit.experiments.labs.checks import Checks

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
            lambda real_mu: abs(real_mu - 2 / sqrt(2.5)) < 0.01,
            "It is the real move over the bound.",
        )
    ],
}
