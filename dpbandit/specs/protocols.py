"""The public facts of a problem, and of contextual bandits: arms, and prices."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import gymnasium as gym
import numpy as np

from dpbandit.base import (
    MOST_ACTIONS,
    MOST_DIM,
    MOST_ROUNDS,
    AnyArray,
    Bools,
    Draws,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    clip_norm,
    inside,
    norms,
    one_of,
    positive,
    random_allowed,
    reals,
    rows,
    shaped,
    whole,
)
from dpbandit.domains import Domain
from dpbandit.privacy.notion import LATER_ACTIONS, Covered, Round, Unit


def prices_in_range(action: Any, replicas: int, low: float, high: float) -> Floats:
    """`action` as floats (R,); raises `InputError` where it is anything else or out of range."""
    price = _numbers(action, replicas)
    fine = (price >= low) & (price <= high)
    if not fine.all():
        raise InputError(f"Expected prices in [{low}, {high}], got {price[~fine][0]}.")
    return price


def arms_in_range(action: Any, replicas: int, n_actions: int) -> Ints:
    """`action` as whole numbers (R,) in [0, K); raises `InputError` where it is anything else."""
    original = action
    if not (isinstance(action, np.ndarray) and action.dtype == np.int64):
        numbers = original = _numbers(action, replicas)
        fine = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not fine.all():
            raise InputError(f"Expected whole numbers as actions, got {numbers[~fine][0]}.")
        action = numbers.clip(-1, n_actions).astype(np.int64)
    shaped("actions", action, (replicas,))
    if action.view(np.uint64).max() >= n_actions:  # negative numbers are huge
        wrong = original[(original < 0) | (original >= n_actions)][0]
        raise InputError(f"Expected actions in [0, {n_actions}), got {wrong:g}.")
    return action


def finite_array(name: str, values: Any, shape: tuple[int, ...]) -> AnyArray:
    """`values`, if it is an array of finite numbers of that shape; else `InputError`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        kind = f"one of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"Expected {name} to be an array of numbers, got {kind}.")
    if values.shape != shape:
        raise InputError(f"Expected {name} of shape {shape}, got {values.shape}.")
    finite = np.isfinite(values)
    if not finite.all():
        raise InputError(f"Expected finite {name}, got {values[~finite][0]}.")
    return values


def uniform_arms(streams: Streams, n_actions: int) -> Callable[..., Ints]:
    """Draws arms (R,) in [0, K), fresh ones at every call; of several rounds if told (n, R).

    With `mask=` (..., K) they are drawn from those allowed.
    """
    return partial(_arms, streams.uniforms("exploration"), n_actions)  # which copies and pickles


def uniform_prices(streams: Streams, low: float, high: float) -> Callable[[], Floats]:
    """Draws prices (R,) in [low, high), fresh ones at every call."""
    return partial(_prices, streams.uniforms("exploration"), low, high)


def _arms(
    uniforms: Draws, n_actions: int, lead: tuple[int, ...] = (1,), *, mask: Bools | None = None
) -> Ints:
    if mask is not None:
        return random_allowed(uniforms.over(mask.shape[:-1]), mask)
    return (uniforms.over(lead) * n_actions).astype(np.int64)


def _prices(uniforms: Draws, low: float, high: float) -> Floats:
    return low + (high - low) * uniforms()


def _numbers(action: Any, replicas: int) -> Floats:
    try:
        numbers = reals(action)
    except ValueError:
        raise InputError(f"Expected numbers as actions, got {abbrev(action)}.") from None
    shaped("actions", numbers, (replicas,))
    return numbers


MOST_OUTSIDE = 0.01
"""The share of what users show and give that may lie outside its bounds if nothing else is said."""


Masks: TypeAlias = Literal["none", "public", "user"]
"""Whose data it is which actions there are in a round, if not all of them are."""


ROUNDING = 1e-6
"""Relative excess over a bound that is ignored, because contexts of norm 1 may come as float32."""


class Step(NamedTuple):
    """Outcome of one round, each (R,)."""

    reward: Floats
    """what the agent is told, that of `spec.delay` rounds ago"""
    expected: Floats
    """mean reward of the action just taken"""
    oracle: Floats
    """mean reward of the best action for this context; 0 where there is only hindsight"""
    regret: Floats
    """oracle - expected"""
    datum: Floats | None = None
    """with full information, what the agent is told in place of the reward, `(R, *datum_shape)`"""


@dataclass(frozen=True)
class Bound:
    """What one kind of array is held against, `(R, *shape)` in a round."""

    array: Callable[[Floats, Step], Any]
    """out of a round's context and step"""
    shape: tuple[int, ...]
    size: Callable[[Floats], Floats]
    """`(n, R, *shape)` -> (n, R), by which it is judged"""
    low: float
    high: float
    kind: str
    """name of what is held against it, such as rewards"""
    where: str
    """where what is counted lies, such as "outside [0, 1]" """
    advice: str
    delayed: bool = True
    """seen `spec.delay` rounds later, as rewards are; contexts are seen at once"""


def _contexts(context: Floats, step: Step) -> Floats:
    return context


def _rewards(context: Floats, step: Step) -> Floats:
    return step.reward


def _longest(order: float, contexts: Floats) -> Floats:
    """The norms (n, R) of the longest rows of contexts (n, R, ..., d)."""
    lengths = norms(contexts, order)
    return lengths.reshape(*lengths.shape[:2], -1).max(axis=-1)


def datum_of(context: Floats, step: Step) -> Any:
    """What was told of a round in place of its reward."""
    return step.datum


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Public facts of a problem; a user's round is all that is private."""

    horizon: int
    """rounds T"""
    reward_low: float = 0.0
    reward_high: float = 1.0
    delay: int = 0
    """rounds until a reward is seen; the last `delay` rewards never are"""
    most_outside: float = MOST_OUTSIDE
    """share of contexts, and of rewards, that may lie outside their bounds, to which agents clip"""
    reward_unit: str = "reward"
    """what a reward of 1 is, for axes"""
    masks: Masks = "none"
    """whether some actions are not there in some rounds, by a "public" schedule or for a "user",
    whose mask is then part of her round"""
    kind: ClassVar[str] = "any problem"
    may_be_masked: ClassVar[bool] = False
    """whether actions can be numbered and be missing in a round"""
    visited_as: ClassVar[str] = ""
    """the kind of problem where its rounds are visits of people who return, if they may be"""
    nouns: ClassVar[tuple[str, str]] = ("rounds", "action")
    """who comes, and what is chosen for them"""
    priced: ClassVar[bool] = False
    """whether actions are places on a list of prices whose margins are known"""
    sells: ClassVar[bool] = False
    """whether a reward is units sold times a margin that is a public function of the context"""
    returning: ClassVar[bool] = False
    """whether a person may come several times, as `visits` says"""
    covers: ClassVar[frozenset[Covered]] = LATER_ACTIONS
    """what privacy covers of actions; a user's own action may fit her own context"""
    in_hindsight: ClassVar[bool] = False
    """regret is measured against the best fixed action, not round by round"""

    def __post_init__(self) -> None:
        for name, low in (("horizon", 1), ("delay", 0)):
            whole(name, getattr(self, name), low, MOST_ROUNDS)
            object.__setattr__(self, name, int(getattr(self, name)))  # NumPy's lack `bit_length`
        if self.delay > self.horizon:
            raise InputError(f"Expected delay={self.delay} to be at most horizon={self.horizon}.")
        inside("most_outside", self.most_outside, 0, 1, ends=True)
        one_of("masks", self.masks, get_args(Masks))
        if self.masks != "none" and (not self.may_be_masked or self.in_hindsight or self.carries):
            raise InputError(
                f"Expected a {type(self).__name__} without masks: actions come and go among arms "
                "or on lists, where each round has a best action of its own."
            )

    @property
    def measured_as(self) -> str:
        """The kind of problem in the table of measured answers."""
        return "other"

    @property
    def context_shape(self) -> tuple[int, ...]:
        """The shape of one replica's context."""
        raise NotImplementedError

    @property
    def n_arms(self) -> int | None:
        """K, of finitely many arms of which only the one that is chosen answers; else None."""
        return None

    @property
    def mask_size(self) -> tuple[int, int]:
        """How many entries a mask has, and how many actions there are at least in any round."""
        raise NotImplementedError

    @property
    def domain(self) -> Domain | None:
        """The convex set whose points are actions; None where they are none."""
        return None

    @property
    def matrix_entries(self) -> int:
        """Numbers in the matrices that a learner may keep for one replica."""
        return self.context_shape[-1] ** 2

    @property
    def reward_bound(self) -> float:
        """The largest `|reward|`."""
        return max(abs(self.reward_low), abs(self.reward_high))

    @property
    def datum_shape(self) -> tuple[int, ...] | None:
        """Of what one replica is told in place of the reward; None is the reward alone."""
        return None

    @property
    def feedback_name(self) -> str | None:
        """Key of `info` for feedback other than a reward; None without such feedback."""
        return None

    @property
    def full_information(self) -> bool:
        """Whether a user's whole datum is told, and shown as the next context."""
        return self.datum_shape is not None and self.feedback_name is None

    @property
    def unit(self) -> Unit:
        return Round()

    @property
    def carries(self) -> bool:
        # Whether what one user does changes what the world answers later ones, so that privacy of
        # actions alone protects nobody
        return False

    @property
    def operator_sees_round(self) -> bool:
        """True if the operator must see action and answer, as a seller does, so that no device can
        choose and keep its user's answer to itself, and local trust is impossible."""
        return False

    @property
    def default_action(self) -> Any:
        """What somebody plays who does nothing."""
        raise NotImplementedError

    @property
    def answers(self) -> tuple[float, ...]:
        """The most extreme of what a user may say to an action."""
        return (self.reward_low, self.reward_high)

    def validate(self, action: Any, replicas: int) -> AnyArray:
        """`action` as an array (R, ...); `InputError` in one sentence where it is not allowed."""
        raise NotImplementedError

    def uniform(self, streams: Streams) -> Callable[[], AnyArray]:
        """Draws uniformly random actions (R, ...), fresh ones at every call.

        Where actions come and go, of those that a `mask=` allows.
        """
        raise NotImplementedError

    def stand_in(self, action: AnyArray, mask: Bools, random: AnyArray) -> AnyArray:
        """`action` (R, ...), with what a mask (R, K) forbids replaced by what is in `random`."""
        raise NotImplementedError

    def action_space(self) -> gym.Space[Any]:
        """Of one replica, for Gymnasium."""
        raise NotImplementedError

    def observation_space(self) -> gym.Space[Any]:
        """What one replica is shown: every coordinate within its bound, float64."""
        raise NotImplementedError

    def bounds(self) -> list[Bound]:
        """What rewards, and contexts or else data, are held against."""
        low, high = self.reward_low, self.reward_high
        slack = ROUNDING * (high - low)
        where = f"outside reward_low={low:.4g} to reward_high={high:.4g}"
        words = "rewards", where, "say a wider public range, by reward_range="
        return [Bound(_rewards, (), np.positive, low - slack, high + slack, *words)]

    def with_few_people(self) -> Self:
        """The same, with as many people who return as can come, and one more."""
        return self

    def repaired(self, action: Any, mask: Bools | None = None) -> Any:
        """The nearest action (R, ...), of samples of `action_space` that are none."""
        return action

    def answer_to(self, potential: Floats, action: AnyArray) -> Floats:
        """Select the answers to `action` (R, ...) from potential answers (R, K, ...)."""
        return potential[:, 0]


@dataclass(frozen=True, kw_only=True)
class BanditSpec(Spec):
    """Public facts of a contextual bandit.

    A round's datum is the user's context and what she would answer to every action. Contexts
    have l_order norm at most `context_bound`, rewards lie in [reward_low, reward_high].
    """

    kind: ClassVar[str] = "a contextual bandit"
    dim: int
    """features of a context"""
    context_bound: float = 1.0
    context_order: float = 2
    """1, 2 or inf"""

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1, MOST_DIM)
        super().__post_init__()
        positive("context_bound", self.context_bound)
        inside("context_order", self.context_order, 1, np.inf, ends=True)
        if self.context_order not in (1, 2, np.inf):
            raise InputError(f"Expected context_order={self.context_order} to be 1, 2 or inf.")
        if not -np.inf < self.reward_low < self.reward_high < np.inf:
            raise InputError(
                f"Expected finite reward_low={self.reward_low} < reward_high={self.reward_high}."
            )

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def context_norm(self) -> float:
        """A bound on the Euclidean norm of a context (of each arm's row, where arms have rows)."""
        growth = self.dim**0.5 if self.context_order == np.inf else 1.0
        return self.context_bound * growth

    @property
    def half_range(self) -> float:
        """Half the range of rewards; they are sub-Gaussian with it (Hoeffding's lemma)."""
        return (self.reward_high - self.reward_low) / 2

    @property
    def parameter_norm(self) -> float:
        """The largest Euclidean norm of a theta whose x . theta is a reward for every context x."""
        growth = self.dim**0.5 if self.context_order == 1 else 1.0
        return growth * self.reward_bound / self.context_bound

    def observation_space(self) -> gym.Space[Any]:
        bound = self.context_bound
        return gym.spaces.Box(-bound, bound, self.context_shape, np.float64)

    def bounds(self) -> list[Bound]:
        most, size = self.context_bound * (1 + ROUNDING), partial(_longest, self.context_order)
        where = (
            f"beyond context_bound={self.context_bound:.4g} in the l_{self.context_order:g} norm"
        )
        advice = "scale features by public ranges, or say a larger public bound"
        words = "contexts", where, advice
        contexts = Bound(_contexts, self.context_shape, size, 0.0, most, *words, delayed=False)
        return [*super().bounds(), contexts]


class Numbered:
    """Actions that are numbers in [0, `n_actions`): arms, experts."""

    n_actions: int

    @property
    def default_action(self) -> int:
        """Action where nothing else is known, the first one."""
        return 0

    def validate(self, action: Any, replicas: int) -> Ints:
        """Actions (R,), whole numbers in [0, K)."""
        return arms_in_range(action, replicas, self.n_actions)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        """Draws actions (R,)."""
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        """The numbers."""
        return gym.spaces.Discrete(self.n_actions)


@dataclass(frozen=True, kw_only=True)
class ContextualSpec(Numbered, BanditSpec):
    """Finitely many arms. Context (R, d), or (R, K, d) when the arms share one parameter."""

    kind: ClassVar[str] = "finitely many arms"
    visited_as: ClassVar[str] = "people"
    nouns: ClassVar[tuple[str, str]] = ("users", "action")
    may_be_masked: ClassVar[bool] = True
    n_actions: int
    constant_context: ClassVar[bool] = False
    """whether every context is 1 in all coordinates, so that there is nothing to see of a user"""
    shared: bool = False
    """one parameter for all arms, each with its own row of features"""
    link: str = "identity"
    """the mean reward is link(x . theta), of identity, logistic, probit, poisson or other"""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n_actions", self.n_actions, 2, MOST_ACTIONS)

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (self.n_actions, self.dim) if self.shared else (self.dim,)

    @property
    def measured_as(self) -> str:
        # what counts of arms tell of users is public, unless their masks are their own
        alone = self.context_shape[-1] == 1 and self.masks != "user"
        return "arms" if alone else "contextual arms"

    @property
    def n_arms(self) -> int:
        return self.n_actions

    @property
    def mask_size(self) -> tuple[int, int]:
        return self.n_actions, 1

    def stand_in(self, action: AnyArray, mask: Bools, random: AnyArray) -> AnyArray:
        there = np.take_along_axis(mask, action[..., None], axis=-1)[..., 0]
        return np.where(there, action, random)

    @property
    def matrix_entries(self) -> int:
        return (1 if self.shared else self.n_actions) * self.dim**2

    def answer_to(self, potential: Floats, action: AnyArray) -> Floats:
        return potential[rows(len(action)), action]

    def with_features(self, dim: int) -> "ContextualSpec":
        """The same with contexts of other features, no longer than 1, and no more public facts."""
        values = {one.name: getattr(self, one.name) for one in fields(ContextualSpec)}
        values |= {"dim": dim, "context_bound": 1.0, "context_order": 2}
        return ContextualSpec(**values)


@dataclass(frozen=True, kw_only=True)
class ArmsSpec(ContextualSpec):
    """Arms of users of whom nothing is seen: every context is 1."""

    constant_context: ClassVar[bool] = True

    def bounds(self) -> list[Bound]:
        words = "contexts", "other than 1 in some coordinate", "choose ContextualSpec"
        constant = Bound(_contexts, self.context_shape, _off, 0.0, ROUNDING, *words, delayed=False)
        return [*super().bounds()[:-1], constant]


def _off(contexts: Floats) -> Floats:
    """The largest distance of contexts `(n, R, *shape)` from 1, (n, R)."""
    off = np.abs(contexts - 1)
    return np.asarray(off.reshape(*off.shape[:2], -1).max(axis=-1))


@dataclass(frozen=True, kw_only=True)
class PriceListSpec(ContextualSpec):
    """Arms that are prices: the reward is the margin, price - unit cost, of a sale, and 0 without.

    An agent may ignore that and treat prices as unrelated arms; one that uses it learns demand.
    """

    kind: ClassVar[str] = "a list of prices"
    nouns: ClassVar[tuple[str, str]] = ("customers", "price")
    priced: ClassVar[bool] = True
    sells: ClassVar[bool] = True
    prices: tuple[float, ...]
    """dollars, one for each arm"""
    unit_cost: float = 0.0
    """dollars; below every price"""
    followed: bool = False
    """whether later customers' answers depend on the prices that earlier ones were asked"""

    @property
    def measured_as(self) -> str:
        return "prices"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prices) != self.n_actions:
            raise InputError(
                f"Expected {len(self.prices)} prices to be as many as n_actions={self.n_actions}."
            )
        if not (self.unit_cost < min(self.prices) and max(self.prices) < np.inf):
            raise InputError(
                f"Expected finite prices={self.prices} above unit_cost={self.unit_cost}."
            )

    @property
    def carries(self) -> bool:
        return self.followed

    @property
    def operator_sees_round(self) -> bool:
        return True

    @property
    def margins(self) -> Floats:
        """Dollars earned by a sale at each price, (K,)."""
        return np.array(self.prices) - self.unit_cost

    def with_features(self, dim: int) -> Self:
        # Margins do not depend on contexts: it stays a list of prices
        return replace(self, dim=dim, context_bound=1.0, context_order=2)

    @property
    def levels(self) -> tuple[float, ...]:
        """What makes one arm differ from another, its price."""
        return self.prices

    @property
    def most_units(self) -> int:
        """Number of units that a customer buys at most."""
        return 1

    def margins_at(self, context: Floats) -> Floats:
        """Dollars earned by a unit sold, contexts (..., d) -> (..., K); here one for everybody."""
        return np.tile(self.margins, (*context.shape[:-1], 1))


@dataclass(frozen=True, kw_only=True)
class PremiumSpec(ContextualSpec):
    """Arms that are premiums over a price in the context; the reward is margin x units sold.

    The margin of a unit is premium + x . `base_margin`, a public function of the context x. An
    agent may ignore that and treat premiums as unrelated arms, or learn demand as on a price list.
    """

    sells: ClassVar[bool] = True
    premiums: tuple[float, ...]
    """dollars, one for each arm"""
    base_margin: tuple[float, ...]
    """coefficients of the margin without a premium, one for each feature"""
    least_margin: float
    """smallest margin of a unit in dollars, above 0"""
    most_units: int = 1
    """number of units that a customer buys at most"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared or len(self.base_margin) != self.dim:
            raise InputError(
                f"Expected base_margin={self.base_margin} to have a number for each of the "
                f"dim={self.dim} features of one context, shared=False."
            )
        if len(self.premiums) != self.n_actions or not np.isfinite(self.premiums).all():
            raise InputError(
                f"Expected premiums={self.premiums} to be n_actions={self.n_actions} finite "
                "numbers."
            )
        positive("least_margin", self.least_margin)
        whole("most_units", self.most_units, 1)

    @property
    def levels(self) -> tuple[float, ...]:
        """What makes one arm differ from another, its premium."""
        return self.premiums

    def margins_at(self, context: Floats) -> Floats:
        """Dollars earned by a unit sold, contexts (..., d) -> (..., K), at least `least_margin`.

        Contexts are clipped to their public bound first; no number stands for zeros.
        """
        base = np.vecdot(clip_norm(context, self.context_norm), np.array(self.base_margin))
        return np.maximum(base[..., None] + np.array(self.premiums), self.least_margin)


@dataclass(frozen=True, kw_only=True)
class PriceSpec(BanditSpec):
    """Public facts of a problem whose action is a price in [low, high]. Context (R, d)."""

    nouns: ClassVar[tuple[str, str]] = ("customers", "price")
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -np.inf < self.low < self.high < np.inf:
            raise InputError(f"Expected finite low={self.low} < high={self.high}.")

    @property
    def operator_sees_round(self) -> bool:
        return True

    @property
    def default_action(self) -> float:
        return self.low

    def validate(self, action: Any, replicas: int) -> Floats:
        return prices_in_range(action, replicas, self.low, self.high)

    def uniform(self, streams: Streams) -> Callable[[], Floats]:
        return uniform_prices(streams, self.low, self.high)

    def action_space(self) -> gym.Space[Any]:
        return gym.spaces.Box(self.low, self.high, (), np.float64)


SpecT = TypeVar("SpecT", bound=Spec)


def check_mask(spec: Spec, mask: Any, replicas: int) -> None:
    """Raise `InputError` unless a mask is of truth values (R, K), with as many as there must be."""
    size, least = spec.mask_size
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise InputError(f"Expected masks to be arrays of truth values, got {abbrev(mask)}.")
    shaped("masks", mask, (replicas, size))
    if np.count_nonzero(mask, axis=1).min() < least:
        raise InputError(
            f"Expected masks to allow {least} of {size} actions at least, got "
            f"{np.count_nonzero(mask, axis=1).min()}."
        )


def check_available(action: AnyArray, mask: Bools) -> None:
    """Raise `InputError` unless masks (..., K) allow arms (...), or all items of lists (..., m)."""
    places = action.reshape(*mask.shape[:-1], -1)
    there = np.take_along_axis(mask, places, axis=-1)
    if not there.all():
        raise InputError(
            f"Expected an action that is there in this round, got {places[~there][0]}, which the "
            "mask forbids."
        )


def spec_of_kind(spec: Any, kind: type[SpecT]) -> SpecT:
    """`spec`; raises `InputError` unless it is the public facts of a problem of that kind."""
    if not isinstance(spec, kind):
        raise InputError(
            f"Expected spec={abbrev(spec)} to be a {kind.__name__}, as a problem has in .spec."
        )
    return spec


def fits(config: object, spec: Spec, kind: type[SpecT], *, shared: bool = False) -> SpecT:
    """`spec`, if it is of the kind the agent plays; else `InputError` says what would be.

    Arms whose contexts are rows of features, (K, d), are of another kind than those of which a
    user has one context, (d,): only who says `shared` plays them, too.
    """
    if isinstance(spec, kind):
        if not shared and getattr(spec, "shared", False):
            raise InputError(
                f"{type(config).__name__} reads one context of a user, (d,), got a row of features "
                "for each arm, (K, d): choose another agent or environment."
            )
        return spec
    raise InputError(
        f"{type(config).__name__} plays {kind.kind}, got a {type(spec).__name__}: choose another "
        "agent or environment (see `dpbandit agents` and `dpbandit envs`)."
    )
