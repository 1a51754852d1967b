"""Every table of a paper that is reproduced row by row, by name."""

from collections.abc import Callable
from functools import partial

from dpbandit.experiments.reproduce import PaperTable, Reproduce


def _table_5_1() -> Reproduce:
    from dpbandit.experiments.sgd.figures import reproduce

    return reproduce


def _table_1() -> Reproduce:
    from dpbandit.experiments.window.table_1 import reproduce

    return reproduce


def _figure_5_2() -> Reproduce:
    from dpbandit.experiments.sgd.figures import figure_5_2

    return figure_5_2


def _figure_5_3() -> Reproduce:
    from dpbandit.experiments.sgd.figures import figure_5_3

    return figure_5_3


def _theorem_4_2() -> Reproduce:
    from dpbandit.experiments.estimation import reproduce

    return reproduce


def _rates(name: str) -> Callable[[], Reproduce]:
    def load() -> Reproduce:
        from dpbandit.experiments.rates import reproduce

        return partial(reproduce, name)

    return load


def _table_of_rates(name: str, summary: str, last: int) -> PaperTable:
    return PaperTable(
        name=name,
        summary=f"{summary}: printed exponents beside measured ones",
        readings={
            "certified": "noise that is certified at epsilon and delta = 1e-6",
            "printed": "noise and parameters of the paper, where it has others",
            "public": "no privacy",
        },
        rows=f"numbers from 1 to {last} (1-3,5), and the longest horizon: T=4096",
        reproduce=_rates(name),
    )


_THETAS = {
    "equal": "theta* with equal entries, as the program that made the table had",
    "stated": "theta* with normal entries, scaled to l_p norm 1, as Section 5.3 says",
}
_CURVES = {
    "printed": "the laws of the program that made Table 5.1, NoisySGD with 10 T of its T^2 steps",
    "certified": "truly (1, 1/T)-DP",
}
TABLES = {
    table.name: table
    for table in (
        PaperTable(
            name="sgd/table-5-1",
            summary="private stochastic optimisation in l_p, SubOpt: printed beside measured",
            readings={
                "printed": "the laws of the program that made the table, misprints and all",
                "stated": "the laws that the theorems need, at the stated constants",
                "public": "no privacy",
                "certified": "truly (1, 1/T)-DP, one configuration for all rows",
            },
            rows="numbers from 1 to 47 (1-6,9), or values of T, d, p and algo (p=inf,T=2000)",
            reproduce=_table_5_1,
            thetas=_THETAS,
        ),
        PaperTable(
            name="sgd/figure-5-2",
            summary="training curves of four agents by step scale, T = 2,000, d = 10",
            readings=_CURVES,
            rows="all, or fewer users: T=200",
            reproduce=_figure_5_2,
            thetas=_THETAS,
        ),
        PaperTable(
            name="sgd/figure-5-3",
            summary="SubOpt against seconds, DP-TOFW beside NoisySFW at p = 1.5",
            readings=_CURVES,
            rows="all, or fewer users: T=200",
            reproduce=_figure_5_3,
            thetas=_THETAS,
        ),
        PaperTable(
            name="window/table-1",
            summary="privacy expiration, Table I: printed bounds beside regret and operations",
            readings={
                "printed": "noise, steps and trees as printed, certified as what they are",
                "certified": "truly (epsilon, delta), for the window where there is one",
                "public": "no privacy, and players that learn nothing",
            },
            rows="numbers from 1 to 7 (4-7), and sizes: T=1024, W=16, epsilon=1, delta=1e-6",
            reproduce=_table_1,
        ),
        PaperTable(
            name="contextual/theorem-4-2",
            summary="the error of DP-HDB's parameters in t, and its regret, with three links",
            readings={
                "printed": "choices with the paper's noise",
                "certified": "choices and sums, certified at (1, 1/T), beside FADE",
                "public": "online Frank-Wolfe, no privacy",
            },
            rows="links, identity, logistic and probit, and the horizon: T=4096",
            reproduce=_theorem_4_2,
        ),
        _table_of_rates("sgd/table-1-1", "excess risk of private stochastic optimisation", 14),
        _table_of_rates("sgd/table-1-2", "regret of private online optimisation", 5),
        _table_of_rates("convex/table-1", "regret of leaders with full information", 6),
        _table_of_rates("convex/table-2", "regret of leaders told values alone", 4),
        _table_of_rates("experts/table-1", "regret with and without a perfect expert", 7),
    )
}
"""By name."""
