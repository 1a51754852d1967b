"""Any object with `act` and `update` as an agent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import cache
from inspect import Parameter, isclass, isroutine, signature
from typing import Any, ClassVar

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Streams,
    abbrev,
    has_methods,
    imported,
    of_kind,
    reals,
)
from dpbandit.privacy import no_privacy
from dpbandit.specs import Agent, Masks, Spec

_OF_SPEC = ("n_actions", "dim", "horizon", "reward_low", "reward_high", "context_shape", "prices")
FACT_NAMES = ("spec", "seed", "replicas", *_OF_SPEC)
"""Arguments by these names are told what is public of a problem; all others are settings"""
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Stranger:
    """A config of what somebody names by MODULE:NAME: a class, an object, or a function of one::

        class Mine:                                      # in mine.py: --agents mine:Mine:rate=0.2
            def __init__(self, n_actions, seed, rate=0.1): ...
            def act(self, context): ...                  # (d,) floats -> arm, 0 to K - 1
            def update(self, context, action, reward): ...

    A class or function is called once for each replica. Of its arguments `spec` is told the public
    facts of the problem, `seed` a seed of the replica's own, and `n_actions`, `dim`, `horizon`,
    `reward_low`, `reward_high`, `context_shape` and `prices` are told those facts; all others are
    settings. One that takes `replicas`, or whose object says `vectorised = True`, is called once,
    and is told contexts, actions and rewards of all replicas of a block, (R, ...): numbers that it
    draws from one generator depend on how replicas are split into blocks. An object is copied for
    each replica, with the state of its random numbers. `act` answers as the problem's actions are:
    an arm, a price, a list of items, a point. Where actions come and go, `act` has to take `mask`.

    Subclasses are made by `stranger`, with a field for each setting.

    Guarantee:
        None: what foreign code keeps is not known, so it claims nothing (epsilon infinity).

    Raises:
        InputError: in `make`, an argument by the name of a fact that the problem lacks; in its
            round, an answer that is no action.
    """

    hint: ClassVar[str] = f" What is called {', '.join(FACT_NAMES)} is told."
    """for whoever leaves a setting without a value"""
    code: ClassVar[str] = ""
    """the words that name it"""
    thing: ClassVar[Any] = None

    def __reduce__(self) -> Any:
        return _again, (self.code, {one.name: getattr(self, one.name) for one in fields(self)})

    def make(self, spec: Spec, streams: Streams) -> Agent:
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        first = self._one(spec, seeds[0], len(seeds))
        if not hasattr(first, "act") and hasattr(first, "make"):  # of a config
            made: Agent = first.make(spec, streams)
            return made
        act_arguments = ("context",) if spec.masks == "none" else ("context", "mask")
        update_arguments = ("context", "action", "reward")
        has_methods(
            f"what {self.code} is or returns", first, act=act_arguments, update=update_arguments
        )
        if getattr(first, "vectorised", False) or "replicas" in _parameters(self.thing):
            return Together(first, spec)
        others = [self._one(spec, seed, len(seeds)) for seed in seeds[1:]]
        return OneByOne([first, *others], spec)

    def _one(self, spec: Spec, seed: int, replicas: int) -> Any:
        if not _is_maker(self.thing):
            return self.thing if hasattr(self.thing, "make") else deepcopy(self.thing)
        facts = {"spec": spec, "seed": seed, "replicas": replicas}
        arguments: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, parameter in _parameters(self.thing).items():
            if name in facts or (name in FACT_NAMES and hasattr(spec, name)):
                arguments[name] = facts[name] if name in facts else getattr(spec, name)
            elif name in FACT_NAMES and parameter.default is Parameter.empty:
                raise InputError(
                    f"{self.code} takes {name}, which a {type(spec).__name__} lacks: choose "
                    "another agent or environment."
                )
        return self.thing(**arguments)


def _again(code: str, settings: Mapping[str, Any]) -> Stranger:
    return stranger(code)(**settings)


@cache
def stranger(code: str) -> type[Stranger]:
    """The configs of what MODULE:NAME names, see `Stranger`.

    Raises:
        InputError: it has neither `act` and `update` nor `make`, and is no function.
    """
    module, _, name = code.partition(":")
    thing = getattr(imported(module, f"agent {code!r}"), name)
    if not is_foreign(thing):
        raise InputError(
            f"Expected {name} of {module} to have methods act(context) and update(context, action, "
            f"reward), or to be a subclass of dpbandit.Agent, got {abbrev(thing)}."
        )
    settings: list[Any] = []
    for key, parameter in _parameters(thing).items() if _is_maker(thing) else ():
        if key in FACT_NAMES:
            continue
        default = parameter.default
        if default is Parameter.empty:
            settings.append((key, Any, field(default=MISSING)))
        elif isinstance(default, _PLAIN):
            settings.append((key, type(default) if default is not None else Any, default))
    space = {"code": code, "thing": staticmethod(thing) if isroutine(thing) else thing}
    kind = make_dataclass(
        name, settings, bases=(Stranger,), namespace=space, frozen=True, kw_only=True
    )
    kind.__module__, kind.__doc__ = module, thing.__doc__ or Stranger.__doc__
    found: type[Stranger] = kind
    return found


def is_foreign(thing: Any) -> bool:
    """Whether it is something that `stranger` takes."""
    if isclass(thing):
        return hasattr(thing, "act") and hasattr(thing, "update")
    runs = hasattr(thing, "act") and hasattr(thing, "update")
    return isroutine(thing) or runs or callable(getattr(thing, "make", None))


def _is_maker(thing: Any) -> bool:
    return isclass(thing) or isroutine(thing)


def _parameters(thing: Any) -> Mapping[str, Parameter]:
    """Those that can be given by name."""
    if not _is_maker(thing):
        return {}
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    try:
        parameters = signature(thing).parameters
    except (TypeError, ValueError):  # of a builtin
        return {}
    return {name: one for name, one in parameters.items() if one.kind in named}


def _act(policy: Any, context: Floats, **mask: Any) -> Any:
    return policy.act(context, **mask)


def _update(policy: Any, context: Floats, action: Any, reward: Any) -> Any:
    return policy.update(context, action, reward)


class OneByOne:
    """Objects that play one user at a time, one for each replica.

    Args:
        policies: as many as there are replicas.
        spec: the public facts of the problem.
        act: of (policy, context), and `mask=` where it takes one.
        update: of (policy, context, action, reward).
    """

    masks: tuple[Masks, ...] = ()

    def __init__(
        self,
        policies: Sequence[Any],
        spec: Spec,
        act: Callable[..., Any] = _act,
        update: Callable[..., Any] = _update,
    ) -> None:
        self.ledger = no_privacy("foreign code, which claims nothing")
        self.called = type(policies[0]).__name__
        self._policies, self._spec, self._round = policies, spec, 0
        self._act, self._update = act, update
        self._length = getattr(spec, "length", None)
        takes_it: Any = policies[0].act if act is _act else act
        if "mask" in signature(takes_it).parameters:
            self.masks = ("public", "user")

    def act(self, context: Floats) -> AnyArray:
        return self._answers(context, [{}] * len(context))

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        """The same of what is there."""
        return self._answers(context, [{"mask": there.copy()} for there in mask])

    def _answers(self, context: Floats, masks: list[dict[str, Any]]) -> AnyArray:
        self._round += 1
        users = zip(self._policies, context, masks, strict=True)
        answers = [self._read(self._act(policy, x.copy(), **mask)) for policy, x, mask in users]
        return _allowed(answers, self._spec, self._round, self.called)

    def update(self, context: Floats, action: AnyArray, reward: Floats) -> None:
        """Tell every replica's object its own user."""
        rounds = zip(self._policies, context, _each(action), _each(reward), strict=True)
        for policy, x, a, r in rounds:
            self._update(policy, x.copy(), a, r)

    def _read(self, answer: Any) -> Any:
        if self._length is not None:
            return self._list(answer)
        return self._arm(answer) if hasattr(self._spec, "n_actions") else answer

    def _arm(self, answer: Any) -> int:
        try:
            if np.ndim(answer) or int(answer) != answer:
                raise ValueError
            return int(answer)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"In round {self._round}: Expected an arm, a whole number, got {abbrev(answer)}, "
                f"from act of {self.called}."
            ) from None

    def _list(self, answer: Any) -> AnyArray:
        try:
            items = reals(answer)
            if items.shape != (self._length,) or (items != np.floor(items)).any():
                raise ValueError
        except ValueError:
            raise InputError(
                f"In round {self._round}: Expected a list of {self._length} item numbers, got "
                f"{abbrev(answer)}, from act of {self.called}."
            ) from None
        return items.astype(np.int64)


class Together:
    """One object that plays all replicas at once: contexts, actions and rewards are (R, ...)."""

    masks: tuple[Masks, ...] = ()

    def __init__(self, policy: Any, spec: Spec) -> None:
        self.ledger = no_privacy("foreign code, which claims nothing")
        self.called = type(policy).__name__
        self._policy, self._spec, self._round = policy, spec, 0
        if "mask" in signature(policy.act).parameters:
            self.masks = ("public", "user")

    def act(self, context: Floats) -> AnyArray:
        return self._read(self._policy.act(context.copy()))

    def act_among(self, context: Floats, mask: Bools) -> AnyArray:
        """The same of what is there."""
        return self._read(self._policy.act(context.copy(), mask=mask.copy()))

    def update(self, context: Floats, action: AnyArray, reward: Floats) -> None:
        """Tell it all users of the round."""
        self._policy.update(context.copy(), action.copy(), reward.copy())

    def _read(self, answer: Any) -> AnyArray:
        self._round += 1
        if answer is None or np.ndim(answer) == 0:
            raise InputError(
                f"In round {self._round}: Expected an action for each replica, got "
                f"{abbrev(answer)}, from act of {self.called}."
            )
        return _allowed(answer, self._spec, self._round, self.called)


def _allowed(answers: Any, spec: Spec, round: int, called: str) -> AnyArray:
    """Actions (R, ...); raises `InputError`, which names the round, unless the spec allows them."""
    try:
        return spec.validate(np.array(answers), len(answers))
    except InputError as mistake:
        why = str(mistake).removesuffix(".")
    except (TypeError, ValueError):  # ragged, or something else than numbers
        why = f"Expected numbers as actions, got {of_kind(answers[0])}"
    raise InputError(f"In round {round}: {why}, from act of {called}.")


def _each(values: AnyArray) -> Iterator[Any]:
    """What each replica is told: a number of Python's, or an array of its own."""
    return iter(values.tolist() if values.ndim == 1 else values.copy())
