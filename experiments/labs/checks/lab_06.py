"""Checks of lab 6: four errors of papers, measured."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "6.1": [
        (
            lambda turned, appeared: abs(turned - 2) < 0.06,
            "Replaced, z moves twice as far as the noise was made for: logs, not ratios.",
        ),
        (
            lambda turned, appeared: abs(appeared - 1) < 0.06,
            "From 0 to 1, z moves by as much as the scale.",
        ),
    ],
    "6.2": [
        (
            lambda requested, by_length: abs(requested - 0.5) < 0.01,
            "(a) Certify it: the certificate should say 1.",
        ),
        (
            lambda requested, by_length: (
                abs(by_length[1000] - 2.0069) < 0.001 and abs(by_length[1024] - 2) < 0.001
            ),
            "(b) Certify a claim of 1 at both horizons: the two epsilons are near, and not equal.",
        ),
    ],
    "6.3": "bounds phi(t) from below by the term of the first expert, and so uses neither eta nor "
    "epsilon, and says whose losses the potential is about, and whose we suffer.",
    "6.4": [
        (lambda single_runs: np.shape(single_runs) == (20,), "Give one number for each run."),
        (
            lambda single_runs: np.min(single_runs) < 150 and np.max(single_runs) > 800,
            "Some runs lose little, some lose every second round, none is between.",
        ),
    ],
    "6.5": [
        (lambda shrinks_by: shrinks_by > 1, "The factor is above 1: is yours upside down?"),
        (
            lambda shrinks_by: 33 < shrinks_by < 36,
            "The ratio of the two mu is the ratio of lengths; is yours its square?",
        ),
    ],
    "6.6": [
        (
            lambda mean_regret: (
                mean_regret["corrected"] < mean_regret["uniform play"] < mean_regret["printed"]
            ),
            "Uniform play lies between the two.",
        ),
        (
            lambda mean_regret: mean_regret["corrected"] > 0 and mean_regret["printed"] > 1_000,
            "Means over runs of the regret after all rounds, in this order of size.",
        ),
    ],
}
