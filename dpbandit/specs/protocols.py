"""Public facts of a problem, and of contextual bandits with arms or prices from an interval."""

from collections.abc import Callable
from dataclasses import dataclass, fields
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
    """Return `action` as floats (R,); raise `InputError` if it is anything else or out of range."""
    price = _numbers(action, replicas)
    fine = (price >= low) & (price <= high)
    if not fine.all():
        raise InputError(f"Expected prices in [{low}, {high}], got {price[~fine][0]}.")
    return price


def arms_in_range(action: Any, replicas: int, n_actions: int) -> Ints:
    """Return `action` as integers (R,) in [0, K); raise `InputError` for anything else."""
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
    """Return `values`; raise `InputError` unless it is an array of finite numbers of this shape."""
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
    """Return a function that draws uniform arms in [0, K), (R,) or, if called with (n, R), (n, R).

    With `mask=` (..., K) it draws arms that the mask allows.
    """
    return partial(_arms, streams.uniforms("exploration"), n_actions)  # which copies and pickles


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
"""Default of the largest share of contexts, and of rewards, that may lie outside their bounds."""


Masks: TypeAlias = Literal["none", "public", "user"]
"""Owner of a round's mask of available actions; "none" if all actions are always available."""


BOUND_SLACK = 1e-6
"""Relative excess over a bound that is ignored, since float32 contexts of norm 1 are inexact."""


class Step(NamedTuple):
    """Outcome of one round, in arrays (R,)."""

    reward: Floats
    """observed reward, of the round `spec.delay` rounds ago"""
    expected: Floats
    """mean reward of the action just taken"""
    oracle: Floats
    """mean reward of the best action for this context; 0 if regret is measured in hindsight"""
    regret: Floats
    """oracle - expected"""
    datum: Floats | None = None
    """feedback in place of the reward, `(R, *datum_shape)`; None if agents observe the reward"""


@dataclass(frozen=True)
class Bound:
    """Public bound on the contexts, data or rewards of a round, `(R, *shape)`."""

    array: Callable[[Floats, Step], Any]
    """function that picks the array from a round's context and step"""
    shape: tuple[int, ...]
    size: Callable[[Floats], Floats]
    """function from arrays `(n, R, *shape)` to sizes (n, R), such as norms; valid in [low, high]"""
    low: float
    high: float
    kind: str
    """name of the bounded data for messages, such as rewards"""
    where: str
    """words for data beyond the bound, for messages, such as "outside [0, 1]" """
    advice: str
    delayed: bool = True
    """True for rewards, which are observed `spec.delay` rounds later; False for contexts"""


def _contexts(context: Floats, step: Step) -> Floats:
    return context


def _rewards(context: Floats, step: Step) -> Floats:
    return step.reward


def _longest(order: float, contexts: Floats) -> Floats:
    """Return the largest norm of a row of features in each context (n, R, ..., d), (n, R)."""
    lengths = norms(contexts, order)
    return lengths.reshape(*lengths.shape[:2], -1).max(axis=-1)


def datum_of(context: Floats, step: Step) -> Any:
    """Return a round's feedback in place of the reward."""
    return step.datum


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Public facts of a problem; only the users' rounds are private."""

    horizon: int
    """number T of rounds"""
    reward_low: float = 0.0
    reward_high: float = 1.0
    delay: int = 0
    """rounds until a reward is observed; the last `delay` rewards never are"""
    most_outside: float = MOST_OUTSIDE
    """largest share of contexts, and of rewards, that may be out of bounds; agents clip them"""
    reward_unit: str = "reward"
    """unit of rewards, for axes of plots"""
    masks: Masks = "none"
    """owner of masks of available actions, "none" (all available), a "public" schedule, or the
    "user", whose mask is then private"""
    kind: ClassVar[str] = "any problem"
    may_be_masked: ClassVar[bool] = False
    """True if actions are numbered and may be unavailable in a round"""
    visited_as: ClassVar[str] = ""
    """kind of problem (`measured_as`) if people return for these rounds; "" if they cannot"""
    nouns: ClassVar[tuple[str, str]] = ("rounds", "action")
    """words for rounds (or users) and for an action in messages"""
    priced: ClassVar[bool] = False
    """True if actions are prices or premiums, and a reward is units sold times a margin that is a
    public function of action and context"""
    returning: ClassVar[bool] = False
    """True if a person may come several times, up to the limit in `visits`"""
    covers: ClassVar[frozenset[Covered]] = LATER_ACTIONS
    """actions that privacy covers; a user's own action may depend on her context"""
    in_hindsight: ClassVar[bool] = False
    """True if regret is measured against the best fixed action, not round by round"""
    feedback_name: ClassVar[str | None] = None
    """key in Gymnasium's `info` of feedback other than a reward; None if there is none"""
    operator_sees_round: ClassVar[bool] = False
    """True if the operator must see action and answer, as a seller does; local trust is then
    impossible, as no device can choose and hide its user's answer"""

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
        """Kind of problem in the table of agents measured on the suite."""
        return "other"

    @property
    def context_shape(self) -> tuple[int, ...]:
        """Shape of one replica's context."""
        raise NotImplementedError

    @property
    def n_arms(self) -> int | None:
        """Number of arms, of which only the chosen one gives feedback; None for other actions."""
        return None

    @property
    def mask_size(self) -> tuple[int, int]:
        """Number of entries of a mask, and smallest number of available actions in a round."""
        raise NotImplementedError

    @property
    def domain(self) -> Domain | None:
        """Convex set whose points are the actions; None if actions are not points."""
        return None

    @property
    def matrix_entries(self) -> int:
        """Number of entries of the matrices that a learner may store for one replica."""
        return self.context_shape[-1] ** 2

    @property
    def reward_bound(self) -> float:
        """Largest `|reward|`."""
        return max(abs(self.reward_low), abs(self.reward_high))

    @property
    def datum_shape(self) -> tuple[int, ...] | None:
        """Shape of one replica's feedback, if it is not the reward; None if it is."""
        return None

    @property
    def full_information(self) -> bool:
        """True if a user's complete datum is observed; it is then the next round's context."""
        return self.datum_shape is not None and self.feedback_name is None

    @property
    def unit(self) -> Unit:
        return Round()

    @property
    def carries(self) -> bool:
        # True if a user's round changes the world that later users meet: then privacy of actions
        # protects nobody
        return False

    @property
    def default_action(self) -> Any:
        """Action that is played if a player makes no choice."""
        raise NotImplementedError

    @property
    def answers(self) -> tuple[float, ...]:
        """Smallest and largest feedback that a user may give to an action."""
        return (self.reward_low, self.reward_high)

    def validate(self, action: Any, replicas: int) -> AnyArray:
        """Return `action` as an array (R, ...); raise `InputError` if it is not allowed."""
        raise NotImplementedError

    def uniform(self, streams: Streams) -> Callable[[], AnyArray]:
        """Return a function that draws uniformly random actions (R, ...) at each call.

        If actions may be unavailable, it takes a `mask=` and draws from the available ones.
        """
        raise NotImplementedError

    def stand_in(self, action: AnyArray, mask: Bools, random: AnyArray) -> AnyArray:
        """Replace parts of `action` (R, ...) that `mask` (R, K) forbids by parts of `random`."""
        raise NotImplementedError

    def action_space(self) -> gym.Space[Any]:
        """Return one replica's space of actions, for Gymnasium."""
        raise NotImplementedError

    def observation_space(self) -> gym.Space[Any]:
        """Return one replica's Gymnasium space of contexts, with bounded float64 coordinates."""
        raise NotImplementedError

    def bounds(self) -> list[Bound]:
        """Return the public bounds of rewards, and of contexts or data."""
        low, high = self.reward_low, self.reward_high
        slack = BOUND_SLACK * (high - low)
        where = f"outside reward_low={low:.4g} to reward_high={high:.4g}"
        words = "rewards", where, "say a wider public range, by reward_range="
        return [Bound(_rewards, (), np.positive, low - slack, high + slack, *words)]

    def with_few_people(self) -> Self:
        """Return the spec with at most `horizon` + 1 people; unchanged if people cannot return."""
        return self

    def repaired(self, action: Any, mask: Bools | None = None) -> Any:
        """Turn a sample of `action_space` into an allowed action (R, ...), as near as possible."""
        return action

    def answer_to(self, potential: Floats, action: AnyArray) -> Floats:
        """Pick the feedback to `action` (R, ...) from the feedback (R, K, ...) to all K actions."""
        return potential[:, 0]


@dataclass(frozen=True, kw_only=True)
class BanditSpec(Spec):
    """Public facts of a contextual bandit.

    A round's datum is the user's context and her potential feedback to every action. Contexts
    have l_order norm at most `context_bound`, rewards lie in [reward_low, reward_high].
    """

    kind: ClassVar[str] = "a contextual bandit"
    dim: int
    """number d of features of a context"""
    context_bound: float = 1.0
    context_order: float = 2
    """order of the norm that `context_bound` bounds, 1, 2 or inf"""

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
        """Bound on the Euclidean norm of a context, or of each arm's row of it."""
        growth = self.dim**0.5 if self.context_order == np.inf else 1.0
        return self.context_bound * growth

    @property
    def half_range(self) -> float:
        """Half the width of the range of rewards, their sub-Gaussian scale by Hoeffding's lemma."""
        return (self.reward_high - self.reward_low) / 2

    @property
    def parameter_norm(self) -> float:
        """Bound on `|theta|` that holds if x . theta is a possible reward for all contexts x."""
        growth = self.dim**0.5 if self.context_order == 1 else 1.0
        return growth * self.reward_bound / self.context_bound

    def observation_space(self) -> gym.Space[Any]:
        bound = self.context_bound
        return gym.spaces.Box(-bound, bound, self.context_shape, np.float64)

    def bounds(self) -> list[Bound]:
        most, size = self.context_bound * (1 + BOUND_SLACK), partial(_longest, self.context_order)
        where = (
            f"beyond context_bound={self.context_bound:.4g} in the l_{self.context_order:g} norm"
        )
        advice = "scale features by public ranges, or say a larger public bound"
        words = "contexts", where, advice
        contexts = Bound(_contexts, self.context_shape, size, 0.0, most, *words, delayed=False)
        return [*super().bounds(), contexts]


class Numbered:
    """Mixin of specs whose actions are integers in [0, `n_actions`), such as arms or experts."""

    n_actions: int

    @property
    def default_action(self) -> int:
        """Action 0, which is played if a player makes no choice."""
        return 0

    def validate(self, action: Any, replicas: int) -> Ints:
        """Return `action` as integers (R,) in [0, K); raise `InputError` for anything else."""
        return arms_in_range(action, replicas, self.n_actions)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        """Return a function that draws uniformly random actions (R,) at each call."""
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        """Return the space of action numbers."""
        return gym.spaces.Discrete(self.n_actions)


@dataclass(frozen=True, kw_only=True)
class ContextualSpec(Numbered, BanditSpec):
    """Finitely many arms; contexts are (R, d), or (R, K, d) if all arms share one parameter."""

    kind: ClassVar[str] = "finitely many arms"
    visited_as: ClassVar[str] = "people"
    nouns: ClassVar[tuple[str, str]] = ("users", "action")
    may_be_masked: ClassVar[bool] = True
    n_actions: int
    constant_context: ClassVar[bool] = False
    """True if every context is 1 in all coordinates, and so reveals nothing about its user"""
    shared: bool = False
    """True if all arms share one parameter, each with its own row of features"""
    link: str = "identity"
    """mean reward is this function of x . theta, identity, logistic, probit, poisson or other"""

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
        """Return a `ContextualSpec` of these arms with `dim` new features, of norm at most 1."""
        values = {one.name: getattr(self, one.name) for one in fields(ContextualSpec)}
        values |= {"dim": dim, "context_bound": 1.0, "context_order": 2}
        return ContextualSpec(**values)


@dataclass(frozen=True, kw_only=True)
class ArmsSpec(ContextualSpec):
    """Arms for users without features: every context is 1."""

    constant_context: ClassVar[bool] = True

    def bounds(self) -> list[Bound]:
        words = "contexts", "other than 1 in some coordinate", "choose ContextualSpec"
        shape, most = self.context_shape, BOUND_SLACK
        constant = Bound(_contexts, shape, _distance_from_1, 0.0, most, *words, delayed=False)
        return [*super().bounds()[:-1], constant]


def _distance_from_1(contexts: Floats) -> Floats:
    """Return the largest distance of contexts `(n, R, *shape)` from 1, (n, R)."""
    off = np.abs(contexts - 1)
    return np.asarray(off.reshape(*off.shape[:2], -1).max(axis=-1))


@dataclass(frozen=True, kw_only=True)
class PriceSpec(BanditSpec):
    """Public facts of a problem whose action is a price in [low, high]; contexts are (R, d)."""

    nouns: ClassVar[tuple[str, str]] = ("customers", "price")
    operator_sees_round: ClassVar[bool] = True
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -np.inf < self.low < self.high < np.inf:
            raise InputError(f"Expected finite low={self.low} < high={self.high}.")

    @property
    def default_action(self) -> float:
        return self.low

    def validate(self, action: Any, replicas: int) -> Floats:
        return prices_in_range(action, replicas, self.low, self.high)

    def uniform(self, streams: Streams) -> Callable[[], Floats]:
        return partial(_prices, streams.uniforms("exploration"), self.low, self.high)

    def action_space(self) -> gym.Space[Any]:
        return gym.spaces.Box(self.low, self.high, (), np.float64)


SpecT = TypeVar("SpecT", bound=Spec)


def check_mask(spec: Spec, mask: Any, replicas: int) -> None:
    """Raise `InputError` unless a mask is boolean, (R, K), and allows enough actions."""
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
    """Raise `InputError` unless masks (..., K) allow these arms (...) or lists of m, (..., m)."""
    places = action.reshape(*mask.shape[:-1], -1)
    there = np.take_along_axis(mask, places, axis=-1)
    if not there.all():
        raise InputError(
            f"Expected an action that is there in this round, got {places[~there][0]}, which the "
            "mask forbids."
        )


def spec_of_kind(spec: Any, kind: type[SpecT]) -> SpecT:
    """Return `spec`; raise `InputError` unless it is an instance of `kind`."""
    if not isinstance(spec, kind):
        raise InputError(
            f"Expected spec={abbrev(spec)} to be a {kind.__name__}, as a problem has in .spec."
        )
    return spec


def fits(config: object, spec: Spec, kind: type[SpecT], *, shared: bool = False) -> SpecT:
    """Return `spec`; raise `InputError` unless it is of the kind that the config's agent plays.

    Arms with a row of features each, contexts (K, d), are another kind than arms with one context
    (d,) of the user; an agent plays both if `shared` is True.
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
