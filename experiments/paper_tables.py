"""Every table of a paper that is reproduced row by row, by name."""

from dpbandit.experiments.paper_table import PaperTable, Reproduce


def _table_5_1() -> Reproduce:
    from dpbandit.experiments.sgd.command import reproduce

    return reproduce


def _table_1() -> Reproduce:
    from dpbandit.experiments.window.command import reproduce

    return reproduce


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
            thetas={
                "equal": "theta* with equal entries, as the program that made the table had",
                "stated": "theta* with normal entries, scaled to l_p norm 1, as Section 5.3 says",
            },
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
    )
}
"""By name."""
