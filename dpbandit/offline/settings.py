"""What `evaluate` is told beside the policy and the log, checked."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.fields import takes
from dpbandit.base.inputs import InputError, flag, inside, one_of, positive, shaped, whole
from dpbandit.offline.reward_models import Parts, blocks_of, folds_of
from dpbandit.offline.rows import MOST, numbers_in, refuse_row

Intervals = Literal[
    "auto",
    "t",
    "bootstrap",
    "empirical-bernstein",
    "betting",
    "betting-cv",
    "sequence",
    "weighted",
    "weighted-minvar",
]
INTERVALS: tuple[str, ...] = Intervals.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """See `evaluate`."""

    intervals: str
    level: float
    q: Any
    q_is_honest: bool
    folds: int
    clip: float | None
    shrinkage: float | None
    features: Any
    feature_law: Any
    bandwidth: float | None
    kernel: str
    support: str
    w_max: float | None
    law: Any
    seed: int

    def __post_init__(self) -> None:
        one_of("intervals", self.intervals, INTERVALS)
        inside("level", self.level, 0, 1, ends=False)
        flag("q_is_honest", self.q_is_honest)
        whole("folds", self.folds, 2)
        whole("seed", self.seed, 0)
        one_of("support", self.support, ("refuse", "drop"))
        if self.w_max is not None:
            positive("w_max", self.w_max)
        if self.intervals in ("betting-cv", "empirical-bernstein") and self.w_max is None:
            raise InputError(
                f"Expected w_max=, a public bound on weights, for intervals={self.intervals!r}."
            )
        if self.intervals.startswith("weighted") and self.law is None:
            raise InputError(
                f"Expected law=, the logging policy of each row at earlier contexts, for "
                f"intervals={self.intervals!r}."
            )
        if self.q is not None and not self.q_is_honest:
            raise InputError(
                "Expected q_is_honest=True beside q=: a model that has seen the row it is used on "
                "makes its own errors look small."
            )

    @property
    def alpha(self) -> float:
        """What may fail."""
        return 1 - self.level

    def model_of(self, context: Floats, shape: tuple[int, ...]) -> Floats:
        """q as it was given, or as a function gives it at these contexts (n, d)."""
        if callable(self.q):
            takes("q", self.q, "contexts")
        q = numbers_in("q", self.q(context) if callable(self.q) else self.q)
        shaped("q", q, shape)
        refuse_row(f"q up to {MOST:g} in size", (np.abs(q) <= MOST).reshape(len(q), -1).all(axis=1))
        return q

    def parts(self, n: int, adaptive: bool) -> Parts:
        """Which rows may teach the model of which."""
        return blocks_of(n) if adaptive else folds_of(n, self.folds, self.seed)
