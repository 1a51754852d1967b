"""Checks of lab 2: a poll, audits, and an agent of which more is claimed than it has."""

from math import exp

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_MEAN_BOUNDS = (0.861, 0.919, 0.986)  # of 2,000 audits each

CHECKS: Checks = {
    "2.1": [
        (
            lambda spread: sorted(spread) == [0.1, 0.3, 1, 3],
            "Give a dict with the four epsilons as its keys.",
        ),
        (
            lambda spread: abs(spread[0.1] - 0.10) < 0.02,
            "At the smallest epsilon estimates are far apart: did you solve for s, and divide?",
        ),
        (
            lambda spread: abs(spread[1] - 0.0103) < 0.002,
            "At epsilon 1 the deviation is ten times smaller than at a tenth of it.",
        ),
    ],
    "2.2": [
        (
            lambda surest: abs(surest[0.5, 1] - exp(1) / (1 + exp(1))) < 1e-3,
            "From even odds, at epsilon 1: the odds grow by a factor of e.",
        ),
        (
            lambda surest: abs(surest[0.01, 3] - exp(3) / (99 + exp(3))) < 1e-3,
            "From 1 in 100 the odds begin at 1 to 99.",
        ),
    ],
    "2.3": [
        (lambda mean_bounds: np.shape(mean_bounds) == (3,), "Give one mean for each size."),
        (
            lambda mean_bounds: np.allclose(mean_bounds, _MEAN_BOUNDS, atol=0.02),
            "Every audit compares two counts of the same number of runs; the means grow towards "
            "the truth and stay below it.",
        ),
    ],
    "2.4": [
        (
            lambda caught_share: 0.1 < caught_share[1_000] < 0.5,
            "With the fewest runs it is caught less often than not, but sometimes.",
        ),
        (
            lambda caught_share: caught_share[10_000] > 0.9 and caught_share[20_000] > 0.9,
            "With twice and four times 5,000 runs it is nearly always caught.",
        ),
    ],
    "2.5": [
        (
            lambda same, fresh: 0.9 < same <= 1,
            "On the same runs the false alarm is the rule.",
        ),
        (
            lambda same, fresh: 0 <= fresh <= 0.05,
            "On fresh runs it is rarer than the audit's error allows.",
        ),
    ],
    "2.6": [
        (
            lambda from_on: len(from_on) == 2 and from_on[0] < from_on[1],
            "Give two numbers, as a list; the second is larger.",
        ),
        (
            lambda from_on: list(from_on) == [19, 35],
            "Find the first k at which the zCDP bound is below k epsilon: below, not equal.",
        ),
    ],
    "2.7": "separates what a user is shown herself from what others are shown, finds the exact "
    "data that reach others in two of the four, and asks for one of them whether the *number* of "
    "updates can be seen.",
    "2.8": [
        (
            lambda proven: 1.1 < proven < 1.5 and proven != round(proven, 3),
            "It is more than the seller says, which refutes him, and less than the agent has: give "
            "`eps_lower` of the report itself, not rounded.",
        ),
    ],
}
