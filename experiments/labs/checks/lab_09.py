"""Checks of lab 9: agents of students, with the tests that all agents of dpbandit have."""

from math import inf
from typing import Any

import numpy as np

from dpbandit.experiments.labs.checks import Checks

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)


def _tested(kind: Any) -> tuple[bool, list[str]]:
    """Return whether inputs keep their sensitivity, and what the billboard test finds."""
    from dpbandit.specs import ContextualSpec
    from dpbandit.testing.checks import billboard_differences, two_worlds

    spec = ContextualSpec(n_actions=2, dim=2, horizon=24, reward_low=-1.0, reward_high=1.0)
    one, two, t = two_worlds(kind(epsilon=1.0, delta=1e-4, share=0.5), spec)
    calls = zip(one.mechanisms, one.queries, two.queries, strict=True)
    moves = [
        np.linalg.norm((a - b).reshape(len(a), -1), axis=1).max() / mechanism.sensitivity
        for mechanism, a, b in calls
    ]
    return bool(max(moves) <= 1 + 1e-9), billboard_differences(one, two, t)


def _mu(kind: Any) -> float:
    """Return the privacy of such an agent at the prices of the notebook."""
    from dpbandit.envs import OJPricing
    from dpbandit.running.compare import certify

    found = certify(kind(epsilon=1.0), OJPricing(horizon=3_000).spec, accountants=False).mu
    return inf if found is None else found


def _honest_mu() -> float:
    """Return the privacy of normal noise at the epsilon and delta of the notebook's agents."""
    from dpbandit.privacy.curves import mu_of

    return mu_of(1.0, 1e-5)


CHECKS: Checks = {
    "9.1": "gives a length for a fixed arm, in terms of high and low, gives one for an arm that "
    "may change, by Pythagoras, and says for which ranges of rewards the middle makes a "
    "difference.",
    "9.2": [
        (
            lambda loss_of: sorted(loss_of) == list(_SHARES),
            "Give a dict with the five shares as keys.",
        ),
        (
            lambda loss_of: all(270 < loss_of[share] < 370 for share in _SHARES[1:]),
            "Means over runs after all rounds, in dollars: but for the smallest share the loss is "
            "rather flat.",
        ),
        (lambda loss_of: len({*loss_of.values()}) == 5, "Five shares have five different losses."),
    ],
    "9.3": "says what 4,000 runs can see at so small a delta, names the assumption of the second "
    "number, and says which certificates the second number can refute, and which not.",
    "9.4": "sends two of the four to the sensitivity test and one to the billboard, finds one that "
    "neither can see, and says why.",
    "9.5": [
        (
            lambda proved: 1 < proved < 7.6,
            "It is far above the certificate, and no more than so many runs can prove, ln(n / 3).",
        ),
        (
            lambda proved: 6.2 < proved < 6.6,
            "Does the event never happen in the other world, and nearly always in this one?",
        ),
    ],
    "9.6": [
        (
            lambda Peeking, billboard_found: "remember" in " ".join(billboard_found),
            "What does the billboard test find, of sums that are kept?",
        ),
        (
            lambda Peeking, billboard_found: _tested(Peeking)[0],
            "`Peeking` should pass the sensitivity test.",
        ),
        (
            lambda Peeking, billboard_found: _tested(Peeking)[1],
            "The billboard finds nothing here: does `Peeking` keep exact data?",
        ),
    ],
    "9.7": [
        (
            lambda Halving: _mu(Halving) > 0,
            "`Halving(epsilon=...)` makes an agent that can be certified.",
        ),
        (
            lambda Halving: _mu(Halving) <= _honest_mu() + 1e-9,
            "A user is in one stage only: nobody pays twice.",
        ),
        (
            lambda Halving: _tested(Halving) == (True, []),
            "`Halving` should pass both tests of honesty.",
        ),
    ],
}
