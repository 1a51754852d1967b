"""Checks of lab 11: sets of products, and a shelf that runs empty."""

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "11.1": [
        (
            lambda least_margin: abs(least_margin - 6.3) < 0.1,
            "Product 3 belongs into the set if it brings more than a customer brings without it.",
        )
    ],
    "11.2": "says that the length of an epoch depends on single answers, that the next customer "
    "sees it, and that noise on sums inside epochs changes neither.",
    "11.3": [
        (lambda least_delta: least_delta in ("a", "b", "c", "d"), "Write one of the letters."),
        (
            lambda least_delta: least_delta == "c",
            "Compare the probabilities of the sign in the two cases; one is multiplied.",
        ),
    ],
    "11.4": [
        (
            lambda held_back: 117 < held_back < 121.5,
            "So many standard deviations of the sales as the probability asks for.",
        )
    ],
}
