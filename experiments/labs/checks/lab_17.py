"""Checks of lab 17."""

import numpy as np

from dpbandit.experiments.labs.checks import Checks
from dpbandit.privacy import ALL_FACTS, Fact

_NAMES = {"FADE", "DP-UCB", "AllocationTS", "kl-UCB on sums"}

CHECKS: Checks = {
    "17.1": [
        (
            lambda rests_on: set(rests_on) == {"rows", "batches", "slopes"},
            "Give a dict with the three keys.",
        ),
        (
            lambda rests_on: all(isinstance(fact, Fact) for fact in rests_on.values()),
            "The values are facts of the list, such as `Fact.ONCE`.",
        ),
        (
            lambda rests_on: rests_on["rows"] == Fact.CONTEXT,
            "For the rows: what does an agent see of a user before it acts?",
        ),
        (
            lambda rests_on: rests_on["batches"] == Fact.CLOCK,
            "For the batches: what has to be fixed, so that their ends are?",
        ),
        (
            lambda rests_on: rests_on["slopes"] == Fact.LOSS,
            "For the slopes: of what is a gradient the gradient?",
        ),
    ],
    "17.2": [
        (
            lambda least_delta: least_delta > 0,
            "Put the world in which the event is frequent on the left.",
        ),
        (
            lambda least_delta: 0.57 < least_delta < 0.69,  # without e^epsilon 0.70 to 0.75
            "A frequency, minus e^epsilon times the other frequency.",
        ),
    ],
    "17.3": [
        (
            lambda released, violated: all(
                isinstance(released[world], list | tuple | set | np.ndarray)
                for world in ("not dish 1", "not dish 0")
            ),
            'Give a dict of two lists of dishes, `{"not dish 1": [...], "not dish 0": [...]}`.',
        ),
        (
            lambda released, violated: [*released["not dish 1"]] == [],
            "Where guest 1 must not get dish 1, each dish was played once: is that often enough?",
        ),
        (
            lambda released, violated: [*released["not dish 0"]] == [1],
            "Where guest 1 must not get dish 0, count again: what did both guests get?",
        ),
        (
            lambda released, violated: isinstance(violated, Fact),
            "The lists are right. Give a fact, such as `Fact.ONCE`, as `violated`.",
        ),
        (
            lambda released, violated: violated == Fact.CELL,
            "Of the four that the mechanism needs: which one does a guest decide here?",
        ),
    ],
    "17.4": [
        (
            lambda passes: not isinstance(passes, str | dict) and {*passes} <= _NAMES,
            "Give a set of names, written as in `inside`.",
        ),
        (
            lambda passes: set(passes) == {"FADE", "DP-UCB"},
            "Run `leaks` with each of them in the wrapper: a pair passes if the list is empty.",
        ),
    ],
    "17.5": [
        (
            lambda TrueRule, refusal, with_fade: TrueRule.hands_on < ALL_FACTS,
            "The class hands on fewer facts than all.",
        ),
        (
            lambda TrueRule, refusal, with_fade: TrueRule.hands_on == ALL_FACTS - {Fact.AS_CHOSEN},
            "One fact alone is taken away: a guest may get something else than what?",
        ),
        (
            lambda TrueRule, refusal, with_fade: "Laplace sums released by counts" in refusal,
            "`str(error)` of the error that `certify` raises with the learner inside.",
        ),
        (
            lambda TrueRule, refusal, with_fade: abs(with_fade - 0.5) < 0.01,
            "`certify(...)` with FADE inside has an `epsilon`.",
        ),
    ],
    "17.6": [
        (
            lambda refused, missing: not any(isinstance(p, str) or len(p) != 2 for p in refused),
            'Give a set of pairs of an agent and a pattern, as in `{("FADE", "public")}`.',
        ),
        (
            lambda refused, missing: {*map(tuple, refused)} == {("AllocationTS", "private")},
            "Certify all four. Who counts plays exactly, and when does a count tell of a person?",
        ),
        (
            lambda refused, missing: isinstance(missing, Fact),
            "The pairs are right. Give a fact, such as `Fact.ONCE`, as `missing`.",
        ),
        (
            lambda refused, missing: missing == Fact.PRESENCE,
            "A null round says that in this slot there was what?",
        ),
    ],
    "17.7": (
        "changes what counts depend on, makes them noisy, or lets a clock decide; says for each "
        "what is paid, such as budget, noise for rare arms, or a longer proof; and does not "
        "just declare the fact."
    ),
}
