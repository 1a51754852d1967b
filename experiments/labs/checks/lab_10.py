"""Checks of lab 10: a shop that is fitted to a table."""

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "10.1": [
        (lambda refused: isinstance(refused, str), "Keep the text of the error, `str(error)`."),
        (
            lambda refused: "always 1" in refused,
            "The sentence says what is wrong with the column of sales: hand over sales alone.",
        ),
    ],
    "10.2": [
        (
            lambda clustered: clustered.z_clustered < 0,
            "Give the diagnostics of the fit, which have `z_clustered`.",
        ),
        (
            lambda clustered: -7 < clustered.z_clustered < -6,
            "Fit the whole table by weeks: the slope is still far from 0, but less than by rows.",
        ),
    ],
    "10.3": [
        (
            lambda random_slope: -0.95 < random_slope < -0.4,
            "Demand falls with the price, but less than that of one customer: 1,000 offers at "
            "prices drawn at random, seed 1.",
        ),
    ],
    "10.4": [
        (
            lambda offers_needed: 1_700 < offers_needed < 3_300,
            "It is none of the four sizes. z grows like the root of the number of offers: how many "
            "would each of your four fits have needed for the z that you want?",
        ),
    ],
    "10.5": [
        (
            lambda rounds_a_row: 7.4 < rounds_a_row < 7.55,
            "Every round draws one of the rows of the log: divide all rounds by all rows.",
        )
    ],
}
