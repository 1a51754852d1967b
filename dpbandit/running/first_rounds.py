"""The form of what problem and agent hand over: told in the first rounds, before it broadcasts."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import BadInput
from dpbandit.specs.actions import finite_array
from dpbandit.specs.protocols import Spec, Step

FIRST_ROUNDS = 10
"""Rounds that are looked at."""


def check_context(spec: Spec, context: Any, replicas: int, t: int) -> None:
    """Raise `BadInput` unless it is finite numbers of the spec's shape."""
    finite_array(f"contexts in round {t}", context, (replicas, *spec.context_shape))


def check_step(spec: Spec, step: Any, replicas: int) -> None:
    """Raise `BadInput` unless it is a `Step` of finite numbers, with a datum where one is told."""
    if not isinstance(step, Step):
        raise BadInput(f"Expected step to return a Step, got a {type(step).__name__}.")
    for name in ("reward", "expected", "oracle", "regret"):
        finite_array(name, getattr(step, name), (replicas,))
    if spec.datum_shape is not None:
        finite_array("datum", step.datum, (replicas, *spec.datum_shape))


def check_untouched(context: Floats, shown: Floats) -> None:
    """Raise `BadInput` unless the context is still what was `shown`: an agent learns from it."""
    if not np.array_equal(context, shown):
        raise BadInput(
            "Expected act and step to leave the array of contexts alone, it was overwritten: hand "
            "out a new one every round."
        )
