"""Checks of lab 14: what is paid for less trust, epsilon 1 and delta 1e-5."""

from math import exp, sqrt

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_P = exp(1) / (1 + exp(1))  # probability of a true answer

CHECKS: Checks = {
    "14.1": [
        (
            lambda local_noise: np.isclose(local_noise(200), 10 * local_noise(2)),
            "It grows with the root of n.",
        ),
        (
            lambda local_noise: np.isclose(
                local_noise(2_000), sqrt(2_000 * _P * (1 - _P)) / (2 * _P - 1)
            ),
            "The root of n variances, over the correction.",
        ),
    ],
    "14.2": [
        (
            lambda coins_each: (coins_each(1.0), coins_each(0.5)) == (2, 4),
            "Whole coins, rounded up, of `least_coins` for ten sums: honest ones bring all.",
        )
    ],
    "14.3": [
        (
            lambda people: 1.0e5 < people < 1.15e5,
            "Set the error of the mean of n messages equal to the server's, and solve for n.",
        )
    ],
    "14.4": [
        (lambda answer: answer in ("a", "b", "c"), "Write one of the letters."),
        (lambda answer: answer == "b", "What does a fading sum do with a user?"),
    ],
    "14.5": [
        (lambda further: len(further(1, 1)) == 3, "Return three numbers."),
        (
            lambda further: np.allclose(further(20, 4), (1, 2, 20)),
            "She comes more often than there are batches: in (b) she is in each of them.",
        ),
        (
            lambda further: np.allclose(further(2, 9), (1, sqrt(2), 2)),
            "She comes less often than there are batches: in (b) she is in as many as visits.",
        ),
    ],
}
