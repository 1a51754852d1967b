"""The form of what problem and agent hand over: told in the first rounds, before it broadcasts."""

from math import isfinite
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, shown
from dpbandit.specs.protocols import Agent, Spec, Step, finite_array

FIRST_ROUNDS = 10
"""Rounds that are looked at."""
_ROUNDING = 1e-6


def check_context(spec: Spec, context: Any, replicas: int, t: int) -> None:
    """Raise `InputError` unless it is finite numbers of the spec's shape."""
    finite_array(f"contexts in round {t}", context, (replicas, *spec.context_shape))


def check_action(spec: Spec, agent: Agent, action: Any, replicas: int) -> None:
    """Raise `InputError`, which names the agent's class, unless it may be played."""
    try:
        spec.validate(action, replicas)
    except InputError as mistake:
        told = str(mistake).removesuffix(".")
        raise InputError(f"{told}, from act of {type(agent).__name__}.") from mistake


def check_step(spec: Spec, step: Any, replicas: int) -> None:
    """Raise `InputError` unless it is a `Step` of finite numbers that fit each other.

    It has a datum where one is told.
    """
    if not isinstance(step, Step):
        raise InputError(f"Expected step to return a Step, got a {type(step).__name__}.")
    for name in ("reward", "expected", "oracle", "regret"):
        finite_array(name, getattr(step, name), (replicas,))
    missed = step.oracle - step.expected
    if not np.allclose(step.regret, missed, rtol=_ROUNDING, atol=_ROUNDING):
        raise InputError(f"Expected regret={step.regret} to be oracle - expected, {missed}.")
    estimated = np.array_equal(step.expected, step.reward)  # by what came, which luck may have made
    if not (spec.in_hindsight or estimated or (missed >= -_ROUNDING * (1 + abs(missed))).all()):
        raise InputError(f"Expected oracle={step.oracle} to be at least expected={step.expected}.")
    if not (spec.in_hindsight or estimated or spec.most_outside == 1):
        _check_means(spec, step.expected, step.oracle)
    if spec.datum_shape is not None:
        finite_array("datum", step.datum, (replicas, *spec.datum_shape))


def _check_means(spec: Spec, *means: Floats) -> None:
    low, high = spec.reward_low, spec.reward_high
    room = _ROUNDING * (high - low)
    for found in means:
        if far := [mean for mean in found.tolist() if not low - room <= mean <= high + room]:
            raise InputError(
                f"Expected mean rewards in [{low:g}, {high:g}], as rewards are, got {far[0]:g}."
            )


def check_hindsight(spec: Spec, lacks: Any, replicas: int) -> None:
    """Raise `InputError` unless it is one finite number, or one for each replica.

    Where every context has a best action of its own, regret lacks nothing.
    """
    if not (isinstance(lacks, int | float) and isfinite(lacks)):  # NumPy's doubles are floats
        finite_array("hindsight", lacks, (replicas,))
    if not spec.in_hindsight and np.any(lacks):
        raise InputError(
            f"Expected hindsight={shown(lacks)} to be 0: a {type(spec).__name__} measures regret "
            "round by round."
        )


def check_best_fixed(action: Any, replicas: int) -> None:
    """Raise `InputError` unless it is an array with an action for each replica."""
    if not isinstance(action, np.ndarray) or action.shape[:1] != (replicas,):
        raise InputError(
            f"Expected best_fixed to be an array of {replicas} actions, got {shown(action)}."
        )


def check_untouched(context: Floats, shown: Floats) -> None:
    """Raise `InputError` unless the context is still what was `shown`: an agent learns from it."""
    if not np.array_equal(context, shown):
        raise InputError(
            "Expected act and step to leave the array of contexts alone, it was overwritten: hand "
            "out a new one every round."
        )
