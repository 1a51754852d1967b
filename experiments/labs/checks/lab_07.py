"""Checks of lab 7: experts of whom one never errs, 256 of them, 2,500 rounds."""

from dpbandit.experiments.labs.checks import Checks

_DRAW, _VECTOR = "a draw a round, epsilon 2", "sparse vector, epsilon 2"

CHECKS: Checks = {
    "7.1": [
        (
            lambda first_rounds: len(first_rounds) == 2,
            "Give two whole numbers, as a list.",
        ),
        (
            lambda first_rounds: first_rounds[1] < first_rounds[0],
            "Fewer wrong experts have less weight together.",
        ),
        (
            lambda first_rounds: list(first_rounds) == [21, 15],
            "Solve for t, where the d - 1 wrong ones have weight exp(-t/2) each and a hundredth "
            "of all weight together; then take the next whole number.",
        ),
    ],
    "7.2": "says which noise hides the shift in *all* no's, and at what price, says what happens "
    "in the round that fires, and by how much both sides of its test may move, and adds the two "
    "up to epsilon.",
    "7.3": [
        (
            lambda guesses: abs(guesses["uniform play"] - 1_250) < 20,
            "Uniform play errs in every second round.",
        ),
        (
            lambda guesses: abs(guesses[_DRAW] - 663) < 15,
            "A draw a round is Hedge at the rate `each_round`.",
        ),
        (
            lambda guesses: abs(guesses[_VECTOR] - 483) < 15,
            "The sparse vector's plan has a `bound`.",
        ),
        (
            lambda guesses: abs(guesses["Hedge, not private"] - 8.8) < 0.7,
            "Hedge loses about as little as in section 1.",
        ),
    ],
    "7.4": [
        (
            lambda grew_by: 1.7 < grew_by[_DRAW] < 2.6,
            "A draw a round: about the square root of the factor of rounds; after over before.",
        ),
        (
            lambda grew_by: 0.8 < grew_by[_VECTOR] < 1.5,
            "The sparse vector: next to nothing.",
        ),
        (lambda grew_by: grew_by[_VECTOR] != 1, "Measure the sparse vector's, too."),
    ],
    "7.5": [
        (
            lambda friendly, fierce: (
                friendly["sparse vector, L* = 0"]
                < min(friendly["shrinking dartboard"], friendly["sparse vector, L* = 200"])
            ),
            "(a) On coins the false belief does not hurt.",
        ),
        (
            lambda friendly, fierce: (
                fierce["sparse vector, L* = 0"] > 1.5 * fierce["shrinking dartboard"]
            ),
            "(b) On your table it should lose far more than the dartboard.",
        ),
    ],
}
