"""Checks of lab 3: noise of trees and of factors."""

from math import sqrt

import numpy as np

from dpbandit.experiments.labs.checks import Checks
from dpbandit.privacy.curves import mu_of

CHECKS: Checks = {
    "3.1": "counts in how many published numbers one customer is, in (a) and in (b), finds errors "
    "of the last count that grow with the same power of T in both, and names the customer of (a) "
    "by the number of counts she is in.",
    "3.2": [
        (
            lambda noises, scale: list(noises) == [t.bit_count() for t in range(1, 256)],
            "(a) Write t in binary: which digits are blocks of its sum?",
        ),
        (
            lambda noises, scale: abs(scale - sqrt(8) / mu_of(1.0, 1e-4)) < 1e-6,
            "(b) She is in one block of each length: how far does she move all nodes together?",
        ),
    ],
    "3.3": [
        (
            lambda root, last_errors: np.allclose(root @ root, np.tril(np.ones((64, 64)))),
            "The square of `root` is not A.",
        ),
        (
            lambda root, last_errors: np.allclose(last_errors, [8, 8, 2.39], atol=0.01),
            "The first two errors are equal, the third is less than a third of them.",
        ),
    ],
    "3.4": [
        (
            lambda last_error: last_error[100] < last_error[10] < last_error[1],
            "Give a dict with the three k as its keys; fewer counts have less noise.",
        ),
        (
            lambda last_error: np.allclose(
                [last_error[k] for k in (1, 10, 100)], [12.78, 10.44, 8.09], rtol=0.02
            ),
            "Ask `stddev` after the last of T / k calls, with noise for that many counts.",
        ),
    ],
    "3.5": [
        (lambda factors: np.shape(factors) == (9, 2), "Give nine pairs, T by T."),
        (
            lambda factors: np.allclose(
                [factors[0], factors[7]], [[9.0, 4.6], [19.0, 9.6]], atol=0.1
            ),
            "Printed noise over the least, with m levels and delta / m for each; log2 rounded up.",
        ),
    ],
    "3.6": [
        (
            lambda printed_over_least: printed_over_least > 1,
            "Printed noise is the larger one: is yours upside down?",
        ),
        (
            lambda printed_over_least: 13 < printed_over_least < 14.5,
            "It is somewhat above the factor of the bars.",
        ),
    ],
}
