"""Contexts from columns of a log, by public bounds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, shown
from dpbandit.offline.columns import Bounds, features, numbers


class Contexts(NamedTuple):
    """Contexts, and a public bound on their norm."""

    rows: Floats
    """(n, dim)"""
    bound: float
    clipped: int
    """rows that lay outside the ranges of their columns"""


def contexts_in(
    table: Any,
    context: Sequence[str] | Bounds,
    bound: float | None,
    n: int,
    most_outside: float,
) -> Contexts:
    """The columns that `context` names, as `read_log` explains, of n rows."""
    if not context:
        return Contexts(np.ones((n, 1)), 1.0 if bound is None else bound, 0)
    if isinstance(context, Mapping):
        if bound is not None:
            raise InputError(
                f"Expected no context_bound={shown(bound)} beside ranges, which have a bound."
            )
        found = features(table, context, called="context", rows=n, most_outside=most_outside)
        return Contexts(found.context, 1.0, found.any_outside)
    columns = stacked(table, context)
    if bound is None:
        raise InputError(
            f"Expected context={list(context)} to come with public ranges, as in context="
            f"{{{context[0]!r}: (low, high)}}, or context_bound=None to be a number > 0, a "
            "public bound on the norm of these columns."
        )
    return Contexts(columns, bound, 0)


def stacked(table: Any, names: Sequence[str]) -> Floats:
    """Columns of numbers, side by side, (n, len(names))."""
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or not len(names):
        raise InputError(f"Expected a list of names of columns, got {shown(names)}.")
    columns = [numbers(table, name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"Expected columns {shown(list(names))} to hold one entry for each row.")
    return np.stack(columns, axis=1)
