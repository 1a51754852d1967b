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
    "12.2": [
        (
            lambda ahead, users: abs(ahead - 0.0309) < 0.001,
            "The mean over `judged` of the terms of `policy` minus those of `early`.",
        ),
        (
            lambda ahead, users: 3_000 < users < 3_600,
            "Two standard errors are the mean: use the standard deviation of the differences.",
        ),
    ],
    "12.3": "says that weights are right on average whatever they multiply, and that nothing "
    "repairs wrong propensities.",
    "12.4": [
        (
            lambda off, ones: np.shape(ones) == (3,),
            "Give three numbers, one for each arm.",
        ),
        (
            lambda off, ones: np.allclose(ones, (1.82, 0.59, 0.59), atol=0.03),
            "For each arm: the sum of 1 / p over its rows, divided by the number of all rows.",
        ),
        (
            lambda off, ones: -0.07 < off < -0.02,
            "The estimate by hand, as in 12.1, minus the truth.",
        ),
    ],
    "12.5": [
        (
            lambda explore: np.isclose(explore(5), 0.6) and np.isclose(explore(10), 0.3),
            "The largest weight is 1 over the least propensity: solve for the share.",
        )
    ],
}
