"""Base classes of agents, with settings and steps in one class; a started copy of a config plays.

An algorithm is read top to bottom in one class::

    class Greedy(Arms):
        turns: Count0 = 1              a setting: its range is its type, its docstring stands below
        def start(self): ...           builds mechanisms and `ledger`; `spec`, `streams`, `R` exist
        def scores(self, context): ... steps read settings as `self.turns`

`Greedy(turns=2)` is a config, frozen and checked; `Greedy(turns=2).make(spec, streams)` plays.
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    best_allowed,
    flag,
    gaussian_target,
    inside,
    one_of,
    positive,
    privacy_target,
    rounds_in,
    share,
    whole,
)
from dpbandit.privacy.ledger import Ledger, no_data
from dpbandit.specs import (
    AgentConfig,
    ContextualSpec,
    ConvexSpec,
    Feedback,
    Masks,
    Spec,
    check_config,
    fits,
)

__all__ = [
    "Agent",
    "Arms",
    "Around",
    "Chance",
    "Count",
    "Count0",
    "Delta",
    "Epsilon",
    "Inner",
    "Inside01",
    "Least0",
    "Points",
    "Positive",
    "PrivateAgent",
    "Share",
    "started",
]

SpecT = TypeVar("SpecT", bound=Spec)
T = TypeVar("T")  # class of a started attribute

Positive: TypeAlias = Annotated[float, positive]
Least0: TypeAlias = Annotated[float, lambda name, value: at_least(name, value, 0)]
Chance: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 1, ends=True)]
Inside01: TypeAlias = Annotated[float, lambda name, value: inside(name, value, 0, 1, ends=False)]
Share: TypeAlias = Annotated[float, share]
Count: TypeAlias = Annotated[int, lambda name, value: whole(name, value, 1)]
Count0: TypeAlias = Annotated[int, lambda name, value: whole(name, value, 0)]
Epsilon: TypeAlias = Annotated[float, lambda name, value: privacy_target(value, 0.0)]
Delta: TypeAlias = Annotated[float, lambda name, value: privacy_target(1.0, value)]
Inner: TypeAlias = Annotated[AgentConfig, lambda name, value: check_config(value)]


def started(kind: type[T]) -> T:
    """Declare an attribute that `start` sets, not a setting, as in `ridge = started(Ridge)`."""
    return cast(T, None)


@dataclass_transform(
    eq_default=False, kw_only_default=True, frozen_default=True, field_specifiers=(field,)
)
class Agent(Generic[SpecT]):
    """Base class of algorithms; its annotated attributes are settings, its methods are steps.

    A subclass is a keyword-only dataclass without a decorator. Every setting is checked against its
    type when a config is made; `check` refuses combinations of settings. `make` returns a copy that
    plays: it has the settings, `spec`, `streams` and `R`, and `start` sets the rest.

    >>> from dpbandit.privacy import no_privacy
    >>> class Always(Agent):
    ...     arm: Count0 = 0
    ...     def start(self): self.ledger = no_privacy("an example")
    ...     def act(self, context): return np.full(self.R, self.arm)
    ...     def update(self, context, action, feedback): pass
    >>> Always(arm=1) == Always(arm=1), Always(arm=1) == Always()
    (True, False)
    >>> spec = ContextualSpec(n_actions=2, dim=3, horizon=10)
    >>> Always(arm=1).make(spec, Streams([0, 1])).act(np.zeros((2, 3)))
    array([1, 1])
    """

    plays: ClassVar[type[Spec]] = Spec
    """class of the specs of the problems that the agent can play"""
    masks: ClassVar[tuple[Masks, ...]] = ()
    """kinds of masks ("public", "user") that `act_among` respects; other masks are refused"""
    ledger: Ledger
    """privacy spends of the agent's mechanisms, set by `start`"""
    spec: SpecT
    """public facts of the problem that the agent plays"""
    streams: Streams
    """random streams, one for each replica and each name of a place in the code that draws"""
    R: int
    """number of replicas"""
    _frozen: ClassVar[frozenset[str]] = frozenset()
    """names of the settings"""

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):  # its attributes would be lost in the copy that plays
            raise InputError(
                f"Expected {cls.__name__} to have no __init__: annotate settings in the class, as "
                "in `share: float = 0.1`, and set what changes in start(self)."
            )
        dataclass(kw_only=True, eq=False)(cls)
        cls._frozen = frozenset(one.name for one in fields(cast(Any, cls)))

    def __eq__(self, other: object) -> bool:
        """Compare configs by class and settings, running agents by identity."""
        if type(other) is not type(self):
            return NotImplemented
        if "spec" in vars(self) or "spec" in vars(other):
            return self is other
        return _setting_values(self) == _setting_values(other)

    def __hash__(self) -> int:
        return id(self) if "spec" in vars(self) else hash((type(self), *_setting_values(self)))

    def __delattr__(self, name: str) -> None:
        if name in self._frozen:
            raise FrozenInstanceError(f"Expected {name} of {self!r} to stay as it was made.")
        object.__delattr__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._frozen and "_checked" in vars(self):
            raise FrozenInstanceError(f"Expected {name} of {self!r} to stay as it was made.")
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        for name, check in _settings(cast(Any, type(self))).items():
            if check is not None:
                check(name, getattr(self, name))
        self.check()
        self._checked = True

    def check(self) -> None:
        """Raise `InputError` unless the settings are compatible with each other."""

    @final
    def make(self, spec: Spec, streams: Streams) -> Self:
        fitting = fits(self, spec, self.plays, shared=True)
        agent = self.chosen(fitting)
        if agent is not self:
            return cast(Self, agent.make(fitting, streams))
        player = object.__new__(type(self))
        settings = {one.name: getattr(self, one.name) for one in fields(cast(Any, self))}
        vars(player).update(settings, _checked=True, spec=fitting, streams=streams, R=len(streams))
        player.start()
        return player

    def chosen(self, spec: Any) -> Any:
        """Return the agent that plays a problem, self unless a subclass delegates to another."""
        return self

    def start(self) -> None:
        """Build mechanisms and `ledger` before the first round."""
        raise _undefined(self, "start(self), which sets self.ledger")

    def act(self, context: Floats) -> AnyArray:
        # Choose actions (R, ...); reads the context and stores nothing of it
        raise _undefined(self, "act(self, context)")

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        """Choose actions that `mask` (R, K) allows; store nothing of the context."""
        raise _undefined(self, "act_among(self, context, mask)")

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        raise _undefined(self, "update(self, context, action, feedback)")


class PrivateAgent(Agent[SpecT]):
    """Base class of agents that meet a target (epsilon, delta) with Gaussian noise."""

    epsilon: float = 1.0
    """target epsilon, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target delta, in (0, 1)"""

    def check(self) -> None:
        gaussian_target(self.epsilon, self.delta)


class Around(Agent[SpecT]):
    """Base class of agents that wrap another one, `agent`, and claim its epsilon and delta."""

    agent = cast(AgentConfig, None)

    @property
    def epsilon(self) -> float | None:
        """Epsilon that `agent` claims, None if it claims none."""
        return getattr(self.agent, "epsilon", None)

    @property
    def delta(self) -> float:
        """Delta that `agent` claims, 0 if it claims none."""
        return getattr(self.agent, "delta", 0.0)


class Arms(Agent[ContextualSpec]):
    """Base class of agents that play the arm with the largest score.

    In the first `turns_first` rounds arms are played in turn. While `rounds_to_release` is n > 1,
    `act` and `update` may receive up to n rounds at once, as arrays (n, R, ...).
    """

    plays: ClassVar[type[ContextualSpec]] = ContextualSpec
    round = 0
    turns_first = 0.0

    @property
    def rounds_to_release(self) -> int:
        """Number of rounds until the policy may change next; 1 unless a subclass defines it."""
        return 1

    def act(self, context: Floats) -> Ints:
        # Arms (R,); ties go to the lowest
        if self.round < self.turns_first:
            return np.full(self.R, self.round % self.spec.n_actions)
        return self.scores(context).argmax(axis=-1)

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        # Among available arms; the turn of a missing arm goes to the next available one
        if self.round < self.turns_first:
            turn = self.round % self.spec.n_actions
            return (np.roll(mask, -turn, axis=-1).argmax(axis=-1) + turn) % self.spec.n_actions
        return best_allowed(self.scores(context), mask)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.round += 1 if action.ndim == 1 else rounds_in(action.shape)
        self.learn(context, action, feedback)

    def scores(self, context: Floats) -> Floats:
        raise _undefined(self, "scores(self, context)")

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from arrays (R, ...) of one round, or (n, R, ...) of n rounds of one policy."""
        raise _undefined(self, "learn(self, context, action, feedback)")


def with_feedback(config: object, spec: Spec, feedback: Feedback) -> ConvexSpec:
    """Return `spec` if it is a convex problem with this feedback; otherwise raise `InputError`."""
    spec = fits(config, spec, ConvexSpec)
    if spec.feedback != feedback:
        raise InputError(
            f"{type(config).__name__} learns from feedback={feedback!r}, this problem tells "
            f"{spec.feedback!r}: choose another agent or environment, or, where it can be set, "
            f"feedback={feedback!r}."
        )
    return spec


class Points(Agent[ConvexSpec]):
    """Base class of agents that play points of a convex domain.

    If all points have equal loss, the agent plays the centre of the domain and uses no data.
    """

    plays = ConvexSpec
    feedback: ClassVar[Feedback] = "datum"
    resting = False

    @final
    def start(self) -> None:
        with_feedback(self, self.spec, self.feedback)
        self.loss, self.domain = self.spec.loss, self.spec.loss.domain
        self.fit()
        self.point: Floats = np.tile(self.domain.centre, (self.R, 1))
        self.resting = self.flat()
        if self.resting:
            self.ledger = no_data()
        else:
            self.begin()

    def fit(self) -> None:
        """Raise `InputError` if the algorithm cannot play the problem's loss and domain."""

    def flat(self) -> bool:
        """Return True if all points have the same loss."""
        return self.loss.lipschitz == 0

    def begin(self) -> None:
        """Build mechanisms and `ledger` before the first round, unless the loss is constant."""
        raise _undefined(self, "begin(self), which sets self.ledger")

    def act(self, context: Floats) -> Floats:
        return self.point

    @final
    def update(self, context: Floats, action: Floats, feedback: Floats) -> None:
        if not self.resting:
            self.learn(context, action, feedback)

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        """Learn from one round."""
        raise _undefined(self, "learn(self, context, action, feedback)")


def _undefined(agent: object, method: str) -> InputError:
    return InputError(f"Expected {type(agent).__name__} to define {method}.")


@cache
def _settings(kind: Any) -> dict[str, Callable[[str, Any], None] | None]:
    """Return the check of every setting of an agent class, None where its type allows any value."""
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: _check_of(hints[one.name]) for one in fields(kind)}


def _setting_values(agent: Any) -> tuple[Any, ...]:
    return tuple(getattr(agent, one.name) for one in fields(agent))


def _check_of(hint: Any) -> Callable[[str, Any], None] | None:
    """Return the check that a type makes by its words, range or flag, None if it has none of them.

    A range is the first argument of an `Annotated` type, a function of name and value.
    """
    parts = get_args(hint) if get_origin(hint) not in (Annotated, Literal) else (hint,)
    parts = parts or (hint,)
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    ranges = [part.__metadata__[0] for part in parts if get_origin(part) is Annotated]
    if not (ranges or words or bool in parts):
        return None

    def check(name: str, value: Any) -> None:
        if (value is None and NoneType in parts) or (isinstance(value, str) and value in words):
            return
        if ranges and not (words and isinstance(value, str)):
            ranges[0](name, value)
        elif words:
            one_of(name, value, words)
        else:
            flag(name, value)

    return check
