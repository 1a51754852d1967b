"""Logs of a known random policy: the data of offline evaluation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    abbrev,
    by_index,
    by_name,
    clip_norm,
    flag,
    index_of,
    inside,
    reals,
    shaped,
    whole,
)
from dpbandit.offline.columns import MAX_SIZE, MIN_DIVISOR, is_wide
from dpbandit.specs import (
    BanditSpec,
    Bounds,
    ContextualSpec,
    Outside,
    PriceSpec,
    Spec,
    answered,
    spec_of_kind,
)

_SUM_TOLERANCE = 1e-6
"""Largest distance to 1 of the sum of a row of probabilities."""


def numbers_in(name: str, values: Any) -> Floats:
    """Convert `values` to an array of doubles; raise `InputError` if any is no real number."""
    try:
        return reals(values)
    except ValueError:
        raise InputError(f"Expected {name} to be an array of numbers.") from None


def rows_in(log: Any, name: str, values: Any) -> Floats:
    """Convert `values` to an array with rows in the order of the log's index.

    A log without an index takes the index of the first values that have one.
    """
    if log.index is None:
        log.index = index_of(values)
    elif np.ndim(values) and len(log.index) != len(values):
        raise InputError(
            f"Expected as many {name} as the index has rows, {len(log.index)}, got {len(values)}."
        )
    return numbers_in(name, by_index(name, values, log.index, "the log"))


def in_order_of(log: Any, name: str, values: Any, *, counted: bool = False) -> Floats:
    """Convert `values` to an array with rows in the order of the log's index.

    The index is 0, 1, ... if the log has none, or if `values` are `counted`, that is already in the
    order of the rows, such as the results of a function of the log's contexts.
    """
    index = range(len(log.reward)) if log.index is None or counted else log.index
    return numbers_in(name, by_index(name, values, index, "the log"))


def refuse_row(what: str, fine: npt.ArrayLike, of: str = "a log") -> None:
    """Raise `InputError` with the number of the first row that is not `fine`, a mask (n,)."""
    fine = np.asarray(fine)
    if not fine.all():
        raise InputError(f"Expected {of} of {what}, got another in row {int((~fine).argmax())}.")


def refuse_spec(spec: Any, kind: type[Spec]) -> None:
    """Raise `InputError` unless a spec is of class `kind` and its rewards have a proper range."""
    spec_of_kind(spec, kind)
    low, high = spec.reward_low, spec.reward_high
    if not is_wide(low, high):
        raise InputError(
            f"Expected reward_low={low:g} to be below reward_high={high:g}, both at most "
            f"{MAX_SIZE:g} in size."
        )


def arrays_at(log: Any, rows: slice, names: Iterable[str]) -> dict[str, Any]:
    """Return the named arrays of a log at some of its rows, None where an array is None.

    Raises:
        InputError: `rows` is no slice such as `[:100]`, or runs backwards.
    """
    arrays = {name: getattr(log, name) for name in names}
    n = max(len(array) for array in arrays.values() if array is not None)
    try:
        forward = isinstance(rows, slice) and rows.indices(n)[2] > 0
    except (TypeError, ValueError):  # no whole numbers, a step of 0
        forward = False
    if not forward:
        raise InputError(
            f"Expected rows of a log as a slice, such as log[:100], forward, got {abbrev(rows)}."
        )
    return {name: None if array is None else array[rows] for name, array in arrays.items()}


def is_law(probabilities: Floats) -> Bools:
    """Return a mask (n,) of the rows of a matrix (n, K) that are probabilities and sum to 1."""
    fine = (probabilities >= 0).all(axis=1)  # False if a row has a NaN
    return np.asarray(fine & (np.abs(probabilities.sum(axis=1) - 1) <= _SUM_TOLERANCE))


def within(spec: BanditSpec, context: Floats, reward: Floats) -> tuple[Floats, Outside]:
    """Clip contexts `(n, ...)` to the spec's bound; count contexts and rewards out of bounds."""
    bounds = Bounds(spec, 1, len(reward), at_door=True)
    _, beyond = bounds.see_several(context[:, None], answered(reward[:, None]))
    if beyond.any():
        context = context.copy()  # the caller's array does not change
        beyond = beyond[:, 0]
        context[beyond] = clip_norm(context[beyond], spec.context_bound, spec.context_order)
    return context, bounds.outside


_BERNSTEIN_EXPONENT = 18.0
"""Minus log of half the probability, 2 exp(-18), that an arm's true propensities are refused."""


@dataclass(kw_only=True, eq=False)
class Observed:
    """A log of n rounds whose arms were chosen with probabilities that nobody recorded.

    Contexts beyond the bound of the spec are clipped to the bound; rewards are not clipped. Raises
    `InputError` where shapes do not fit, and where a share of contexts or rewards above the spec's
    `most_outside` lies outside its bounds; for a smaller share there is a warning.

    >>> spec = ContextualSpec(n_actions=2, dim=1, horizon=2)
    >>> print(Observed(spec=spec, context=np.ones((2, 1)), action=[0, 1], reward=[0.5, 0.0]))
    2 rounds with 2 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """

    spec: ContextualSpec
    """public facts of the problem, such as bounds, not read off the log; `horizon` is not used"""
    context: Floats
    """contexts, `(n, *spec.context_shape)`"""
    action: Ints
    """arms that were played, (n,)"""
    reward: Floats
    """rewards of the arms played, (n,)"""
    arms: Sequence[Any] | None = None
    """names of the arms in order, (n_actions,), by which columns of DataFrames are found; if None,
    0, 1, ..."""
    index: Any = None
    """pandas index of the rows, by which rows of Series and DataFrames are found; if None, the
    index of the first argument that has one"""
    outside: Outside = field(init=False)
    """numbers of contexts and rewards outside the spec's bounds"""

    def __post_init__(self) -> None:
        refuse_spec(self.spec, ContextualSpec)
        action = rows_in(self, "actions", self.action)
        self.context = rows_in(self, "contexts", self.context)
        self.reward = rows_in(self, "rewards", self.reward)
        spec, n = self.spec, action.size
        if self.arms is not None and len(self.arms) != spec.n_actions:
            raise InputError(
                f"Expected arms={abbrev(self.arms)} to name n_actions={spec.n_actions} arms."
            )
        if n == 0:
            raise InputError("Expected at least one logged round.")
        if spec.masks != "none" and getattr(self, "probabilities", None) is None:
            raise InputError(f"Expected probabilities= of all arms with masks={spec.masks!r}.")
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged actions", action, (n,))
        shaped("logged rewards", self.reward, (n,))
        refuse_row("whole numbers below n_actions", np.isin(action, np.arange(spec.n_actions)))
        refuse_row("finite contexts", np.isfinite(self.context.reshape(n, -1)).all(axis=1))
        refuse_row("finite rewards", np.isfinite(self.reward))
        self.action = action.astype(np.int64)
        self.context, self.outside = within(spec, self.context, self.reward)

    @property
    def mask(self) -> Bools | None:
        """Mask of the available arms of each row, (n, K); None if all arms are always available."""
        return None

    def __getitem__(self, rows: slice) -> Self:
        """Return the log of some rows, such as `log[1000:]`: train and evaluate on others."""
        return replace(self, **arrays_at(self, rows, ("context", "action", "reward", "index")))

    def name_of(self, arm: int) -> Any:
        """Return the name of an arm, or its number if arms have no names."""
        return arm if self.arms is None else self.arms[arm]

    def by_arm(self, name: str, values: Any, *, axis: int = 1) -> Any:
        """Return `values`, a DataFrame with its columns (axis=0: its rows) in the arms' order."""
        arms = range(self.spec.n_actions) if self.arms is None else self.arms
        return by_name(name, values, arms, "the arms", axis=axis)

    def __str__(self) -> str:
        return f"{len(self.action)} rounds with {self.spec.n_actions} arms, {self.outside}"


@dataclass(kw_only=True, eq=False)
class Logged(Observed):
    """A log of n rounds, whose arms were chosen at random with known probabilities.

    Contexts beyond the bound of the spec are clipped to the bound; rewards are not clipped, but
    private agents clip what they learn from.

    Raises `InputError` as `Observed` does, where the actions were not randomised (a propensity of
    1), and where some arm was logged far more or less often than the propensities say (a true log
    is refused with probability at most 4e-8 for each arm, by Bernstein). `probabilities` show which
    arms could not be drawn at all. If arms come and go, as the spec's `masks` say, `probabilities`
    are required, with 0 for each unavailable arm, and policies receive the `mask`.
    """

    propensity: Floats | float
    """probability with which `action` was drawn, given the context, (n,) or one number for all"""
    lowest: float | None = None
    """lower bound on the probability of every arm, logged or not; if None, the least of
    `probabilities` or else the least propensity, read off the log, hence not public unless
    `propensity` is one number for all and there are no `probabilities`"""
    lowest_is_public: bool = field(init=False)
    """True if `lowest` was given, or `propensity` was one number, without `probabilities`"""
    adaptive: bool = False
    """True if rows are in order of collection and propensities may depend on earlier rows"""
    probabilities: Floats | None = None
    """probabilities of all arms, (n, K), 0 for arms that could not be drawn; None if not known"""

    def __post_init__(self) -> None:
        super().__post_init__()
        chance = rows_in(self, "propensities", self.propensity)
        uniform = not chance.ndim and self.probabilities is None
        self.lowest_is_public = self.lowest is not None or uniform
        if self.lowest is not None:
            inside("lowest", self.lowest, MIN_DIVISOR, 1, ends=True)
        spec, n = self.spec, len(self.action)
        shaped("propensities", chance, (n,) if chance.ndim else ())
        chance = np.broadcast_to(chance, n)
        refuse_row("propensities in (0, 1]", (chance >= MIN_DIVISOR) & (chance <= 1))
        self.propensity = chance
        flag("adaptive", self.adaptive)
        least = float(chance.min())
        if self.probabilities is not None:
            self.probabilities = self._checked(self.probabilities)
            available = np.s_[:] if self.mask is None else self.mask
            least = float(self.probabilities[available].min())
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

    def __getitem__(self, rows: slice) -> Self:
        names = ("context", "action", "reward", "propensity", "probabilities", "index")
        lowest = self.lowest if self.lowest_is_public else None
        return replace(self, **arrays_at(self, rows, names), lowest=lowest)

    def to_frame(self) -> Any:
        """Return a DataFrame with columns action, reward, propensity, x0, x1, ... (the context).

        Probabilities of all arms are p0, p1, ..., if known. `dpbandit.clients.read_log` reads the
        table.
        """
        import pandas as pd  # not before: slow to import

        flat = self.context.reshape(len(self.action), -1)
        columns = {"action": self.action, "reward": self.reward, "propensity": self.propensity}
        columns |= {f"x{j}": flat[:, j] for j in range(flat.shape[1])}
        if self.probabilities is not None:
            columns |= {f"p{k}": self.probabilities[:, k] for k in range(self.spec.n_actions)}
        return pd.DataFrame(columns)

    @property
    def mask(self) -> Bools | None:
        if self.spec.masks == "none" or self.probabilities is None:
            return None
        return self.probabilities > 0

    @property
    def uniform_share(self) -> float:
        """Share of rounds, `lowest`, that `replay` keeps; thinning makes it the same for all arms.

        Raises:
            InputError: some arm could not be drawn in some row.
        """
        if not self.lowest:
            raise InputError("Expected a log in which every arm could be drawn in every row.")
        return self.lowest

    def _checked(self, probabilities: Any) -> Floats:
        law = rows_in(self, "probabilities", self.by_arm("probabilities", probabilities))
        shaped("probabilities", law, (len(self.action), self.spec.n_actions))
        refuse_row("probabilities that sum to 1", is_law(law))
        logged = np.take_along_axis(law, self.action[:, None], axis=1)[:, 0]
        fine = np.abs(logged - self.propensity) <= 1e-6 * logged
        refuse_row("propensities that are the logged arm's entry of `probabilities`", fine)
        return law

    def _refuse_false_propensities(self, lowest: float) -> None:
        """Raise `InputError` if an arm was logged far more or less often than propensities say."""
        # The sum of 1 / propensity over an arm's rounds has as mean the number n of rounds in which
        # the arm could be drawn, a variance of at most n (1 / lowest - 1) and terms up to
        # 1 / lowest: Bernstein's inequality at exp(-18).
        n, K = len(self.action), self.spec.n_actions
        found = np.bincount(self.action, 1 / self.propensity, minlength=K)
        possible = np.full(K, n) if self.probabilities is None else (self.probabilities > 0).sum(0)
        L = _BERNSTEIN_EXPONENT
        slack = np.sqrt(2 * L * possible * (1 / lowest - 1)) + L / (3 * lowest)
        for arm in np.flatnonzero(np.abs(found - possible) > slack)[:1].tolist():
            raise InputError(
                f"Expected the propensities to be true: by them arm {self.name_of(arm)} was logged "
                f"as in {found[arm]:.0f} of n={possible[arm]} rounds, more than {slack[arm]:.0f} "
                "away; where nobody recorded them, dpbandit evaluate --unrecorded (in Python, "
                "dpbandit.offline.assess) says what is left to say."
            )


@dataclass(kw_only=True, eq=False)
class LoggedLists:
    """A log of n rounds with an ordered list of m different items, drawn with known probability.

    Raises `InputError` where shapes do not fit, an item is named twice, a click is neither 0 nor 1,
    a probability lies outside (0, 1], a prefix is more probable than a shorter prefix or
    than its last item alone at that position.

    >>> log = LoggedLists(n_items=3, items=[[2, 0], [1, 2]], clicks=[[0, 1], [0, 0]],
    ...                   prefix=[[0.5, 0.25], [0.3, 0.15]])
    >>> print(log)
    2 rounds with lists of 2 of 3 items
    """

    n_items: int
    """number N of items in the catalogue"""
    items: Ints
    """numbers of items below N, in the order in which they were displayed, (n, m)"""
    clicks: Floats
    """clicks, 0 or 1, (n, m)"""
    prefix: Floats
    """probability with which items 1..k were drawn, given the context, for each k, (n, m)"""
    marginal: Floats | None = None
    """probability of the displayed item at each position, whatever items stood above, (n, m)"""
    context: Floats | None = None
    """contexts from which lists were chosen, (n, d); None is the constant 1"""
    adaptive: bool = False
    """True if rows are in order of collection and probabilities may depend on earlier rows"""
    index: Any = None
    """pandas index of the rows, see `Observed`"""
    reward: Floats = field(init=False)
    """number of clicks on each list, (n,)"""

    def __post_init__(self) -> None:
        items = rows_in(self, "items", self.items)
        if items.ndim != 2 or not items.size:
            raise InputError(
                f"Expected items of shape (n, m), a list for each round, got {items.shape}."
            )
        n, m = items.shape
        whole("n_items", self.n_items, m)
        flag("adaptive", self.adaptive)
        fine = (items >= 0) & (items < self.n_items) & (items == np.floor(items))
        refuse_row(f"items that are whole numbers below n_items={self.n_items}", fine.all(axis=1))
        ordered = np.sort(items, axis=1)
        refuse_row("different items in a list", (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))
        self.items = items.astype(np.int64)
        self.clicks = rows_in(self, "clicks", self.clicks)
        shaped("clicks", self.clicks, (n, m))
        refuse_row("clicks that are 0 or 1", np.isin(self.clicks, (0, 1)).all(axis=1))
        self.prefix = self._chances("prefix", self.prefix)
        falling = self.prefix[:, 1:] <= self.prefix[:, :-1] * (1 + 1e-9)
        refuse_row("prefix probabilities that do not rise along a list", falling.all(axis=1))
        if self.marginal is not None:
            self.marginal = self._chances("marginal", self.marginal)
            refuse_marginal(self.marginal, self.prefix, "a log")
        contexts = (
            np.ones((n, 1)) if self.context is None else rows_in(self, "contexts", self.context)
        )
        if contexts.ndim != 2 or len(contexts) != n:
            raise InputError(f"Expected contexts of shape ({n}, d), got {contexts.shape}.")
        refuse_row("finite contexts", np.isfinite(contexts).all(axis=1))
        self.context = contexts
        self.reward = self.clicks.sum(axis=1)

    def __getitem__(self, rows: slice) -> "LoggedLists":
        """Return the log of some rows, such as `log[1000:]`."""
        names = ("items", "clicks", "prefix", "marginal", "context", "index")
        return replace(self, **arrays_at(self, rows, names))

    def __str__(self) -> str:
        n, m = self.items.shape
        return f"{n} rounds with lists of {m} of {self.n_items} items"

    def _chances(self, name: str, values: Floats) -> Floats:
        chance = rows_in(self, f"{name} probabilities", values)
        shaped(f"{name} probabilities", chance, self.items.shape)
        refuse_row(
            f"{name} probabilities in (0, 1]", ((chance >= MIN_DIVISOR) & (chance <= 1)).all(axis=1)
        )
        return chance


def refuse_marginal(marginal: Floats, prefix: Floats, of: str) -> None:
    """Raise `InputError` if a marginal probability is below that of the prefix ending there."""
    fine = (marginal >= prefix * (1 - 1e-9)).all(axis=1)
    refuse_row("marginal probabilities at least those of the prefix", fine, of)


@dataclass(kw_only=True, eq=False)
class LoggedPrices:
    """A log of n rounds with prices drawn from a known density.

    Contexts beyond the bound of the spec are clipped to the bound, as in `Logged`. Raises
    `InputError` where shapes do not fit, a number is not finite, a price lies outside the spec's
    range, a density is not above 0, or more contexts or rewards lie outside their bounds than
    `most_outside` allows.

    >>> spec = PriceSpec(dim=1, low=1.0, high=3.0, horizon=2, reward_low=0.0, reward_high=3.0)
    >>> log = LoggedPrices(spec=spec, context=np.ones((2, 1)), price=[1.5, 2.0], reward=[1.5, 0.0],
    ...                    density=[0.5, 0.5])
    >>> print(log)
    2 rounds with prices from 1 to 3, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """

    spec: PriceSpec
    """public facts of the problem, such as bounds; `horizon` is not used"""
    context: Floats
    """contexts, (n, d)"""
    price: Floats
    """prices in dollars, (n,)"""
    reward: Floats
    """rewards at the prices, (n,)"""
    density: Floats
    """density per dollar of the logged price, given the context, (n,)"""
    adaptive: bool = False
    """True if rows are in order of collection and densities may depend on earlier rows"""
    index: Any = None
    """pandas index of the rows, see `Observed`"""
    outside: Outside = field(init=False)
    """numbers of contexts and rewards outside the spec's bounds"""

    def __post_init__(self) -> None:
        refuse_spec(self.spec, PriceSpec)
        self.price = rows_in(self, "prices", self.price)
        self.reward = rows_in(self, "rewards", self.reward)
        self.context = rows_in(self, "contexts", self.context)
        self.density = rows_in(self, "densities", self.density)
        spec, n = self.spec, self.price.size
        if n == 0:
            raise InputError("Expected at least one logged round.")
        flag("adaptive", self.adaptive)
        shaped("logged prices", self.price, (n,))
        shaped("logged contexts", self.context, (n, *spec.context_shape))
        shaped("logged rewards", self.reward, (n,))
        shaped("densities", self.density, (n,))
        refuse_row("finite contexts", np.isfinite(self.context).all(axis=1))
        refuse_row("finite rewards", np.isfinite(self.reward))
        offered = (self.price >= spec.low) & (self.price <= spec.high)
        refuse_row(f"prices from {spec.low:g} to {spec.high:g}", offered)
        fine = (self.density >= MIN_DIVISOR) & (self.density <= MAX_SIZE)
        refuse_row(f"densities > 0, up to {MAX_SIZE:g}", fine)
        self.context, self.outside = within(spec, self.context, self.reward)

    def __getitem__(self, rows: slice) -> "LoggedPrices":
        """Return the log of some rows, such as `log[1000:]`."""
        names = ("context", "price", "reward", "density", "index")
        return replace(self, **arrays_at(self, rows, names))

    def __str__(self) -> str:
        prices = f"prices from {self.spec.low:g} to {self.spec.high:g}"
        return f"{len(self.price)} rounds with {prices}, {self.outside}"
