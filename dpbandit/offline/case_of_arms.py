"""Logs of finitely many arms, made ready: support, the model, what arms are like."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, shaped
from dpbandit.offline.arm_estimators import ARMS, ArmRows, Embedding
from dpbandit.offline.cases import Case, refuse_rewards, scaled
from dpbandit.offline.logs import Logged
from dpbandit.offline.policies import arm_policy
from dpbandit.offline.reward_models import Parts, arm_model
from dpbandit.offline.rows import is_law, numbers_in, refuse_row
from dpbandit.offline.settings import Settings

_CUT = "the bias of weights that are cut off is in no interval"
_NOTES = {
    "clipped-ips": _CUT,
    "clipped-dr": _CUT,
    "switch-dr": _CUT,
    "dros": _CUT,
    "dm": "the model's error is in no interval",
    "mips": "holds only where the reward depends on the arm through its feature alone",
}


def case_of_arms(policy: Any, log: Logged, settings: Settings) -> tuple[Case, ArmRows]:
    """What can be said of a policy of arms."""
    spec, pi = log.spec, arm_policy(policy, log)
    bounds = spec.reward_low, spec.reward_high
    refuse_rewards(log.reward, bounds)
    rows = ArmRows(
        action=log.action,
        reward=log.reward,
        propensity=np.asarray(log.propensity),
        policy=pi,
        model=_model(log, settings),
        clip=settings.clip,
        shrinkage=settings.shrinkage,
        probabilities=log.probabilities,
        embedding=_embedding(log, settings),
    )
    case = Case(
        estimators={name: partial(terms, rows) for name, terms in ARMS.items()},
        bounds=bounds,
        adaptive=log.adaptive,
        stakes={"ips": lambda: scaled(log.reward, rows.weight, bounds)},
        notes=_NOTES,
        dropped=_dropped(pi, log, settings.support),
    )
    return case, rows


def _dropped(pi: Floats, log: Logged, support: str) -> float:
    """The share of the policy's choices that the log cannot hold; refused unless "drop"."""
    if log.probabilities is None:
        return 0.0
    lost = np.where(log.probabilities > 0, 0.0, pi).sum(axis=1)
    if lost.any() and support != "drop":
        raise InputError(
            f"Expected every arm of the policy to have been possible: in {np.count_nonzero(lost)} "
            f"rows, the first of them row {int((lost > 0).argmax())}, it was not, for "
            f"{100 * lost.mean():.3g} % of the policy's choices; support='drop' leaves them out."
        )
    return float(lost.mean())


def _model(log: Logged, settings: Settings) -> Callable[[], Floats]:
    """q, (n, K), when it is asked for: given, or ridge regressions that have not seen the row."""
    spec, n = log.spec, len(log.action)

    def given() -> Floats:
        return settings.model_of(log.context, (n, spec.n_actions))

    def fitted() -> Floats:
        parts: Parts = settings.parts(n, log.adaptive)
        middle = (spec.reward_low + spec.reward_high) / 2  # what is predicted before any row
        found = arm_model(log.context, log.action, log.reward - middle, spec.n_actions, parts)
        return np.clip(found + middle, spec.reward_low, spec.reward_high)

    return fitted if settings.q is None else given


def _embedding(log: Logged, settings: Settings) -> Embedding | None:
    if settings.features is None and settings.feature_law is None:
        return None
    if settings.features is None or settings.feature_law is None:
        raise InputError("Expected features= and feature_law=, P(feature | arm), together.")
    law = numbers_in("feature_law", settings.feature_law)
    if law.ndim != 2 or len(law) != log.spec.n_actions:
        raise InputError(f"Expected feature_law of shape (n_actions, E), got {law.shape}.")
    if not is_law(law).all():
        raise InputError("Expected every row of feature_law to sum to 1.")
    logged = numbers_in("features", settings.features)
    shaped("features", logged, log.action.shape)
    refuse_row(
        f"features that are whole numbers below {law.shape[1]}",
        np.isin(logged, range(law.shape[1])),
    )
    kind = logged.astype(np.int64)
    refuse_row("features that the logged arm may have", law[log.action, kind] > 0)
    return Embedding(kind, law)
