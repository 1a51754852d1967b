"""Checks of lab 4: orange-juice prices, 2,000 customers, delta 1e-5."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks


def _certified(claim: float) -> float:
    """Return the epsilon of the printed agent that claims this much."""
    from dpbandit.agents import ShariffSheffetUCB
    from dpbandit.running.compare import certify

    printed = ShariffSheffetUCB(epsilon=float(claim), calibration="paper", refresh_every=20)
    return certify(printed, "OJPricing", horizon=2_000, accountants=False).epsilon


CHECKS: Checks = {
    "4.1": [
        (
            lambda claim: 2 < claim < 100,
            "The claim is a number, and much larger than what it is worth.",
        ),
        (lambda claim: abs(_certified(claim) - 1) < 0.01, "Certify it: its epsilon is not 1."),
    ],
    "4.2": [
        (
            lambda private: 135 < private < 165,
            "The mean regret of private DP-UCB with the model, same horizon, replicas and seed: "
            "far below DP-UCB without the model, and above LinUCB without it.",
        )
    ],
    "4.3": "says that epsilon itself was chosen by looking at data, notes that the curve shows "
    "runs at all epsilons, one of them without privacy, and says what could be done instead.",
    "4.4": [
        (
            lambda private_ends: (
                [len(private_ends[key]) for key in ("epsilon", "horizon", "dim")] == [5, 3, 3]
            ),
            "Give a dict of three lists, one share for each setting of the slider.",
        ),
        (
            lambda private_ends: all(
                private_ends[key][0] - private_ends[key][-1] > 0.2 for key in ("epsilon", "horizon")
            ),
            "The share falls with epsilon, and with the horizon.",
        ),
        (
            lambda private_ends: private_ends["dim"][-1] - private_ends["dim"][0] > 0.2,
            "The share grows with the dimension.",
        ),
    ],
    "4.5": [
        (
            lambda last_shares: np.shape(last_shares) == (4,),
            "Give four shares, each a mean over replicas.",
        ),
        (
            lambda last_shares: (
                len({*last_shares}) == 4
                and 0.1 < min(last_shares) < max(last_shares) < 1.7 * min(last_shares) < 0.6
            ),
            "The last private share of each pair, dimension 4: all four are near to each other.",
        ),
    ],
}
