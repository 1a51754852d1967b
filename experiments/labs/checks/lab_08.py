"""Checks of lab 8: windows, with lazy trees unless an exercise says otherwise."""

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "8.1": [
        (lambda exact_from: len(exact_from) == 2, "Give two rounds, as a list."),
        (
            lambda exact_from: exact_from[0] > exact_from[1],
            "Lazy trees keep a noise longer than exact ones.",
        ),
        (
            lambda exact_from: list(exact_from) == [8, 5],
            "It is the first t whose picture begins without a bracket.",
        ),
    ],
    "8.2": [
        (
            lambda first_better, until_80: first_better == 32,
            "W = 16: not before lazy trees let go of her; is yours an index that begins with 0?",
        ),
        (
            lambda first_better, until_80: until_80 == 6,
            "W = 1: few releases are enough; is yours an index that begins with 0?",
        ),
    ],
    "8.3": [
        (lambda refusals: len(refusals) == 2, "Both are refused: keep both sentences, in a list."),
        (
            lambda refusals: all(isinstance(text, str) for text in refusals),
            "Keep the text of an error, `str(mistake)`.",
        ),
        (
            lambda refusals: "Expected window=" in refusals[0] and "window" in refusals[1][9:],
            "Each sentence says why: let the ledger and the audit refuse, in this order.",
        ),
    ],
    "8.4": [
        (
            lambda pure_share: 0.2 < pure_share < 0.4 and pure_share != round(pure_share, 3),
            "It is less than for Gaussian noise: a loss over a loss, the longer window's below, "
            "not rounded.",
        ),
    ],
    "8.5": "turns days into customers, and notes that days are not equally busy, tells customers "
    "that somebody may find out exactly after the window, and separates prices that were released "
    "during the window from those released after it.",
}
