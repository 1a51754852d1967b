"""The form of what problem and agent hand over: told in the first rounds, before it broadcasts."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import BadInput
from dpbandit.specs.actions import arms_in_range, prices_in_range
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import ContextualSpec, PriceSpec, Spec, Step

FIRST_ROUNDS = 10
"""Rounds that are looked at."""


def check_context(spec: Spec, context: Any, replicas: int, t: int) -> None:
    """Raise `BadInput` unless it is finite numbers of the spec's shape."""
    _check(f"contexts in round {t}", context, (replicas, *spec.context_shape))


def check_action(spec: Spec, action: Any, replicas: int) -> None:
    """Raise `BadInput` unless it is an action for each replica, as the spec has it."""
    if isinstance(spec, ContextualSpec | ExpertsSpec):
        arms_in_range(action, replicas, spec.n_actions)
    elif isinstance(spec, PriceSpec):
        prices_in_range(action, replicas, spec.low, spec.high)
    elif isinstance(spec, ConvexSpec):
        _check("actions", action, (replicas, spec.loss.domain.dim))


def check_step(spec: Spec, step: Any, replicas: int) -> None:
    """Raise `BadInput` unless it is a `Step` of finite numbers, with a datum where one is told."""
    if not isinstance(step, Step):
        raise BadInput(f"Expected step to return a Step, got a {type(step).__name__}.")
    for name in ("reward", "expected", "oracle", "regret"):
        _check(name, getattr(step, name), (replicas,))
    if isinstance(spec, ExpertsSpec):
        _check("datum", step.datum, (replicas, spec.n_actions))
    elif isinstance(spec, ConvexSpec) and spec.feedback == "datum":
        _check("datum", step.datum, (replicas, *spec.loss.datum_shape))


def check_untouched(context: Floats, shown: Floats) -> None:
    """Raise `BadInput` unless the context is still what was `shown`: an agent learns from it."""
    if not np.array_equal(context, shown):
        raise BadInput(
            "Expected act and step to leave the array of contexts alone, it was overwritten: hand "
            "out a new one every round."
        )


def _check(name: str, values: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        kind = f"one of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise BadInput(f"Expected {name} to be an array of numbers, got {kind}.")
    if values.shape != shape:
        raise BadInput(f"Expected {name} of shape {shape}, got {values.shape}.")
    finite = np.isfinite(values)
    if not finite.all():
        raise BadInput(f"Expected finite {name}, got {values[~finite][0]}.")
