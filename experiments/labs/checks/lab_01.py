"""Checks of lab 1, with the seeds of its notebook."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_MEAN_REGRETS = (0.0971, 0.0913, 0.0873, 0.0868, 0.0946, 0.1219)  # dollars
_RUNS = 100  # of the world of section 4

CHECKS: Checks = {
    "1.1": [
        (
            lambda best_price: abs(best_price - 1.69) < 0.001,
            "It is one of the twelve prices, in dollars, neither the lowest nor the highest.",
        )
    ],
    "1.2": [
        (
            lambda mean_regrets: np.shape(mean_regrets) == (6,),
            "Give a list of six numbers, one for each exploration.",
        ),
        (
            lambda mean_regrets: np.argmin(mean_regrets) in (1, 2, 3),
            "The least is neither at 0 nor where every third customer is explored.",
        ),
        (
            lambda mean_regrets: np.allclose(mean_regrets, _MEAN_REGRETS, rtol=0.06),
            "Oracle minus expected, in dollars a customer, averaged over rounds and shops, in the "
            "order of the exercise.",
        ),
    ],
    "1.3": [
        (
            lambda learning_cost: np.size(learning_cost) == 1,
            "Give one number: the mean over shops at the end.",
        ),
        (
            lambda learning_cost: 40.5 < learning_cost < 44,
            "The learner's regret (not the noisy one) minus that of the best single price, same "
            "customers: it is a small part of the learner's regret.",
        ),
    ],
    "1.4": [
        (
            lambda measured_exponent: 0.5 < measured_exponent < 1,
            "It lies between that of exploring by t^(-1/2) and that of random play.",
        ),
        (
            lambda measured_exponent: abs(measured_exponent - 0.63) < 0.025,
            "Near to what you guessed, but measure it: `slope` of a curve of `ridge_greedy`.",
        ),
    ],
    "1.5": [
        (lambda greedy_end: np.shape(greedy_end) == (_RUNS,), "Give one number for each run."),
        (
            lambda greedy_end: np.median(greedy_end) < 50 and np.max(greedy_end) > 150,
            "In the last row most runs lose little, and the worst several times as much.",
        ),
    ],
}
