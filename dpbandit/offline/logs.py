"""What a known random policy did and what came of it: the data of offline evaluation."""

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError, flag, inside, shaped, shown
from dpbandit.offline.rows import (
    LEAST,
    arrays_at,
    is_law,
    numbers_in,
    refuse_row,
    refuse_spec,
    within,
)
from dpbandit.specs.contract import Outside
from dpbandit.specs.protocols import ContextualSpec

_RARE = 18.0
"""An arm's count misses what the propensities promise by more with probability 2 exp(-18)."""


@dataclass(kw_only=True, eq=False)
class Logged:
    """n rounds with finitely many arms, each arm chosen at random with a known probability.

    Contexts beyond the bound of the spec are clipped to it; rewards stay as they came, and private
    agents clip what they learn from.

    Raises `InputError` where shapes do not fit, where more of the contexts or of the rewards lie
    outside the bounds of the spec than its `most_outside` allows (less is said in a warning), where
    the actions were not randomised (a propensity of 1), and where some arm was logged far more or
    less often than the propensities say (a true log is refused with probability at most 4e-8 for
    each arm, by Bernstein). `probabilities` say where an arm could not be drawn at all.
    """

    spec: ContextualSpec
    """the public facts, its bounds above all, none of them read off the log; its horizon is not
    used"""
    context: Floats
    """`(n, *spec.context_shape)`"""
    action: Ints
    """(n,), the arms that were played"""
    reward: Floats
    """(n,), what they brought"""
    propensity: Floats | float
    """(n,) or one for all; the probability with which `action` was drawn, given the context"""
    lowest: float | None = None
    """a lower bound on the probability of every arm, logged or not; if None, the least of
    `probabilities` or else the least propensity, read off the log, hence not public unless
    `propensity` is one number for all and there are no `probabilities`"""
    lowest_is_public: bool = field(init=False)
    """whether `lowest` was given, or `propensity` was one number, without `probabilities`"""
    adaptive: bool = False
    """rows are in order of collection, and propensities may depend on earlier rows"""
    probabilities: Floats | None = None
    """(n, K), of every arm; known, they show which arms could not be drawn"""
    outside: Outside = field(init=False)
    """how much did lie outside"""

    def __post_init__(self) -> None:
        refuse_spec(self.spec, ContextualSpec)
        action = numbers_in("actions", self.action)
        chance = numbers_in("propensities", self.propensity)
        self.context = numbers_in("contexts", self.context)
        self.reward = numbers_in("rewards", self.reward)
        uniform = not chance.ndim and self.probabilities is None
        self.lowest_is_public = self.lowest is not None or uniform
        if self.lowest is not None:
            inside("lowest", self.lowest, LEAST, 1, ends=True)
        spec, n = self.spec, action.size
        if n == 0:
            raise InputError("Expected at least one logged round.")
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged actions", action, (n,))
        shaped("logged rewards", self.reward, (n,))
        shaped("propensities", chance, (n,) if chance.ndim else ())
        refuse_row("whole numbers below n_actions", np.isin(action, np.arange(spec.n_actions)))
        refuse_row("finite contexts", np.isfinite(self.context.reshape(n, -1)).all(axis=1))
        refuse_row("finite rewards", np.isfinite(self.reward))
        chance = np.broadcast_to(chance, n)
        refuse_row("propensities in (0, 1]", (chance >= LEAST) & (chance <= 1))
        self.action, self.propensity = action.astype(np.int64), chance
        flag("adaptive", self.adaptive)
        least = float(chance.min())
        if self.probabilities is not None:
            self.probabilities = self._checked(self.probabilities)
            least = float(self.probabilities.min())
        say = "" if self.lowest_is_public else ", so say the least probability of any arm"
        self.lowest = least if self.lowest is None else self.lowest
        most = min(1 / spec.n_actions, least)
        if not self.lowest <= most * (1 + 1e-9):
            raise InputError(
                f"Expected lowest={self.lowest:.4g} to be at most {most:.4g}, 1 / n_actions and "
                f"every propensity{say}: were these actions drawn at random?"
            )
        inside("lowest", self.lowest or float(chance.min()), 0, 1, ends=False)
        self._refuse_false_propensities(self.lowest or float(chance.min()))
        self.context, self.outside = within(spec, self.context, self.reward)

    def __getitem__(self, rows: slice) -> "Logged":
        """Some of the rows, such as `log[1000:]`: teach on others than those you evaluate on."""
        names = ("context", "action", "reward", "propensity", "probabilities")
        lowest = self.lowest if self.lowest_is_public else None
        return replace(self, **arrays_at(self, rows, names), lowest=lowest)

    def to_frame(self) -> Any:
        """A DataFrame of action, reward, propensity, contexts x0, x1, ... (of arms in a row).

        Probabilities are p0, p1, ..., if known. `dpbandit.clients.read_log` reads it back.
        """
        import pandas as pd  # not before: slow to import

        flat = self.context.reshape(len(self.action), -1)
        columns = {"action": self.action, "reward": self.reward, "propensity": self.propensity}
        columns |= {f"x{j}": flat[:, j] for j in range(flat.shape[1])}
        if self.probabilities is not None:
            columns |= {f"p{k}": self.probabilities[:, k] for k in range(self.spec.n_actions)}
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        return f"{len(self.action)} rounds with {self.spec.n_actions} arms, {self.outside}"

    @property
    def uniform_share(self) -> float:
        """`lowest`, the share of rounds that is left where arms are thinned to equally likely ones.

        Raises:
            InputError: some arm could not be drawn in some row.
        """
        if not self.lowest:
            raise InputError("Expected a log in which every arm could be drawn in every row.")
        return self.lowest

    def _checked(self, probabilities: Any) -> Floats:
        law = numbers_in("probabilities", probabilities)
        shaped("probabilities", law, (len(self.action), self.spec.n_actions))
        refuse_row("probabilities that sum to 1", is_law(law))
        logged = np.take_along_axis(law, self.action[:, None], axis=1)[:, 0]
        fine = np.abs(logged - self.propensity) <= 1e-6 * logged
        refuse_row("propensities that are the logged arm's entry of `probabilities`", fine)
        return law

    def _refuse_false_propensities(self, lowest: float) -> None:
        """Sums of 1 / propensity over an arm's rounds have as mean the number n of rounds in which
        it could be drawn, variance n (1 / lowest - 1) or less and terms up to 1 / lowest;
        Bernstein's inequality at exp(-18)."""
        n, K = len(self.action), self.spec.n_actions
        found = np.bincount(self.action, 1 / self.propensity, minlength=K)
        possible = np.full(K, n) if self.probabilities is None else (self.probabilities > 0).sum(0)
        slack = np.sqrt(2 * _RARE * possible * (1 / lowest - 1)) + _RARE / (3 * lowest)
        for arm in np.flatnonzero(np.abs(found - possible) > slack)[:1].tolist():
            raise InputError(
                f"Expected the propensities to be true: by them arm {arm} was logged as in "
                f"{found[arm]:.0f} of n={possible[arm]} rounds, more than {slack[arm]:.0f} away."
            )


def one_kind(name: str, names: Any) -> list[Any]:
    """A column of names, say of arms, as a list.

    Raises:
        InputError: it is no column, a name is missing (None, NaN) or neither text nor a number, or
            both occur: nobody shall guess whether 1 and "1" are the same.
    """
    try:
        column = np.asarray(names, dtype=object)
    except ValueError:  # ragged
        column = np.empty(())
    if column.ndim != 1:
        raise InputError(f"Expected {name} to hold one entry for each row.")
    found: list[Any] = column.tolist()
    for row, entry in enumerate(found):
        if not _kind(entry) or _kind(entry) != _kind(found[0]) or entry != entry:
            raise InputError(
                f"Expected {name} to be all text or all numbers, none missing, got "
                f"{shown(entry)} in row {row}."
            )
    return found


def _kind(entry: Any) -> str:
    if isinstance(entry, Real | np.bool_):
        return "number"
    return "text" if isinstance(entry, str) else ""
