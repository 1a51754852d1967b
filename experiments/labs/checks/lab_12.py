"""Checks of lab 12: estimates from a log of 400 users."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_IPS = 0.6293  # estimate from the log of seed 1

CHECKS: Checks = {
    "12.1": [
        (
            lambda by_hand: abs(by_hand - _IPS) < 0.001,
            "The mean over all rows of `judged`: weights are pi / p, of the arm that was logged.",
        )
    ],
    "12.2": "says that weights are right on average whatever they multiply, and that nothing "
    "repairs wrong propensities.",
    "12.3": [
        (
            lambda explore: np.isclose(explore(5), 0.6) and np.isclose(explore(10), 0.3),
            "The largest weight is 1 over the least propensity: solve for the share.",
        )
    ],
}
