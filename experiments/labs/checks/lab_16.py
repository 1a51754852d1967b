"""Checks of lab 16, on two shops with 1,000 customers."""

from dpbandit.experiments.labs.checks import Checks

CHECKS: Checks = {
    "16.1": [
        (
            lambda today, by_changing, beyond: abs(today - by_changing - beyond) < 1,
            "What is lost today is gained in two steps: together they are all of it.",
        ),
        (
            lambda today, by_changing, beyond: 102 < today < 109,
            "The mean over runs in the row of today's price.",
        ),
        (
            lambda today, by_changing, beyond: 30 < by_changing < 36,
            "Today's loss minus the least loss of a single price.",
        ),
    ],
    "16.2": [
        (
            lambda chosen, gain: chosen in range(5, 10),
            "Give an index from zero on, not dollars: of the price with the largest estimate.",
        ),
        (
            lambda chosen, gain: gain[1] < gain[0] < gain[2],
            "Give the gain and both ends of its interval.",
        ),
        (
            lambda chosen, gain: -0.08 < gain[0] < 0.15 and 0.08 < gain[2] - gain[1] < 0.2,
            "Let the second half alone judge the chosen price.",
        ),
    ],
    "16.3": [
        (
            lambda costs, pays_from: 20 < costs < 50,
            "FADE minus the agent without privacy at the last mark, averaged over runs.",
        ),
        (
            lambda costs, pays_from: 350 < pays_from < 800,
            "The mark after the last one at which the mean of FADE is not below.",
        ),
    ],
    "16.4": [
        (
            lambda pays_today, surely_from: pays_today < surely_from,
            "Which opponent is weaker, and which demand is stricter?",
        ),
        (
            lambda pays_today, surely_from: 100 < pays_today < 300,
            "As in 16.3, with the curve of today's price.",
        ),
        (
            lambda pays_today, surely_from: 400 < surely_from < 900,
            "Fixed minus FADE, run by run, at each mark; then its mean and its standard error.",
        ),
    ],
    "16.5": [
        (
            lambda good_enough: good_enough["orange juice"] == 0,
            "Orange juice: is any single price below what FADE loses?",
        ),
        (
            lambda good_enough: good_enough["flat shop"] in (4, 5),
            "Flat shop: count the prices whose mean loss is below FADE's.",
        ),
    ],
    "16.6": (
        "names the opponent of each number; tells the owner of the flat shop to keep one price, "
        "and how well it has to be known; says that customers were simulated from a fitted model; "
        "and says what would change the advice."
    ),
}
