"""Checks of lab 5: exponential mechanisms, and units of a published figure."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "5.1": [
        (lambda predicted: np.shape(predicted) == (2,), "Give two numbers, as a list."),
        (
            lambda predicted: np.allclose(predicted, [7.09, 12.48], atol=0.05),
            "Scale log(d) + 0.577 to a standard deviation of 1.",
        ),
    ],
    "5.2": [
        (
            lambda EACH: 0.025 < EACH < 0.1,
            "The epsilon of one step is more than a fortieth, as the ledger composes better.",
        ),
        (lambda EACH: EACH < 0.0685, "The forty steps together have more than epsilon 1."),
        (lambda EACH: EACH > 0.06, "The ledger allows more: its epsilon is below 1 by far."),
    ],
    "5.3": "says how the slope changes with an agent that learns, and with one that does not, and "
    "names a baseline that cannot have learned anything, and is private at no cost.",
    "5.4": [
        (
            lambda size_ratio: size_ratio > 1,
            "Divided by the largest entry the products are the larger ones.",
        ),
        (
            lambda size_ratio: 15.5 < size_ratio < 17.2,
            "The sum of all sizes over the largest: less than the number of features, as not all "
            "are large.",
        ),
    ],
    "5.5": [
        (
            lambda short_share: short_share["FADE"] < short_share["DP-HDB"] < 1,
            "Both beat uniform play, FADE by more.",
        ),
        (
            lambda short_share: short_share["FADE"] > 0,
            "Divide by the regret of uniform play in the same short run.",
        ),
    ],
}
