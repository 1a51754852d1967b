"""Checks of lab 15, on orange juice with 500 customers."""

from dpbandit.experiments.labs.checks import Checks

_CLOSE_AGENTS = ["fade", "fade:features=interactions", "fade:features=shrunk", "fade:growth=0.3"]


def _is_interval(answer: tuple[float, float, float]) -> bool:
    """Return True for a number and the ends of an interval around it."""
    value, low, high = answer
    return low < value < high


CHECKS: Checks = {
    "15.1": [
        (
            lambda winner, promised: winner in _CLOSE_AGENTS,
            "The winner is a name of the list; the last two of it lose far more.",
        ),
        (
            lambda winner, promised: 29 < promised < 36.5,
            "The mean of the winner's first eight runs, in dollars.",
        ),
    ],
    "15.2": [
        (
            lambda flattery: abs(flattery(_CLOSE_AGENTS[:1], 8)) < 0.4,
            "With a single name there is no choice, and the average over choices is near zero.",
        ),
        (
            lambda flattery: 1.2 < flattery(_CLOSE_AGENTS, 8) < 3.8,
            "All runs minus the eight that chose, for the winner of these eight, averaged over "
            "the choices.",
        ),
        (
            lambda flattery: (
                flattery(_CLOSE_AGENTS, 32)
                < flattery(_CLOSE_AGENTS, 8)
                < flattery(_CLOSE_AGENTS, 3)
            ),
            "More runs leave less luck: does your function use its second argument?",
        ),
    ],
    "15.3": [
        (lambda close, clear: clear < close, "Who can win by luck, and who cannot?"),
        (
            lambda close, clear: 1.2 < close < 3.8 and abs(clear) < 0.7,
            "Eight runs, the first four names, then the first name with the last two.",
        ),
    ],
    "15.4": [
        (
            lambda times, weak: _is_interval(times) and _is_interval(weak),
            "Give the ratio and the two ends of its interval, for both.",
        ),
        (
            lambda times, weak: weak[0] < times[0],
            "The better the zero, the larger the ratio: which agent of the list loses least?",
        ),
        (
            lambda times, weak: 1.8 < times[0] < 2.8 and 0.8 < weak[0] < 1.15,
            "Means of the fresh runs, private over public.",
        ),
        (
            lambda times, weak: 0.3 < times[2] - times[1] < 1.1 and weak[2] - weak[1] < 0.3,
            "Draw the same runs for both, as many as there are, and take quantiles of the ratios "
            "of their means.",
        ),
    ],
    "15.5": [
        (
            lambda saved, saved_public: _is_interval(saved),
            "Give the mean difference and the two ends of its interval.",
        ),
        (
            lambda saved, saved_public: -1 < saved[0] < 7 and 2 < saved[2] - saved[1] < 6,
            "Fixed minus private, run by run; then a mean and its standard error.",
        ),
        (
            lambda saved, saved_public: 17 < saved_public < 26,
            "Fixed minus the agent that you divided by, on the same customers.",
        ),
    ],
    "15.6": [
        (
            lambda allowed: "priced:ada-c-oful:calibration=paper" not in allowed,
            "Read the first line of each certificate to its end.",
        ),
        (
            lambda allowed: "shariff-sheffet-ucb:calibration=paper" in allowed,
            "More privacy than the column asks for is no reason to be left out.",
        ),
        (
            lambda allowed: (
                set(allowed) == {"priced:dp-ucb", "shariff-sheffet-ucb:calibration=paper"}
            ),
            "Both numbers count: the epsilon, and the delta at which it holds.",
        ),
    ],
}
