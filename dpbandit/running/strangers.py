"""Foreign agents: any class, object or function with `act` and `update`."""

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

# attributes of a spec that a foreign agent's constructor may take
_OF_SPEC = ("n_actions", "dim", "horizon", "reward_low", "reward_high", "context_shape", "prices")
FACT_NAMES = ("spec", "seed", "replicas", *_OF_SPEC)
"""Arguments of a foreign agent's constructor that receive public facts; others are settings."""
_SETTING_TYPES = (bool, int, float, str, type(None))  # of defaults that declare a setting


@dataclass(frozen=True)
class Stranger:
    """Config of a foreign agent MODULE:NAME: a class, an object, or a function that makes one::

        class Mine:                                      # in mine.py: --agents mine:Mine:rate=0.2
            def __init__(self, n_actions, seed, rate=0.1): ...
            def act(self, context): ...                  # (d,) floats -> arm, 0 to K - 1
            def update(self, context, action, reward): ...

    A class or function is called once for each replica. Its argument `spec` receives the public
    facts of the problem, `seed` a seed of the replica, and `n_actions`, `dim`, `horizon`,
    `reward_low`, `reward_high`, `context_shape` and `prices` receive those facts; other arguments
    are settings. If it takes `replicas`, or its object has `vectorised = True`, it is called once
    for all replicas of a block, and `act` and `update` receive arrays (R, ...): random numbers then
    depend on how replicas are split into blocks. An object is copied for each replica, with the
    state of its random numbers. `act` returns an action of the problem, such as an arm, a price, a
    list of items or a point. If actions may be unavailable, `act` has to take `mask`.

    Subclasses are made by `stranger`, with a field for each setting.

    Guarantee:
        There is none (epsilon is infinite), as it is not known what foreign code stores.

    Raises:
        InputError: in `make`, an argument has the name of a fact that the problem lacks; in a
            round, `act` returned no valid action.
    """

    hint_on_settings: ClassVar[str] = f" Arguments named {', '.join(FACT_NAMES)} are filled in."
    """advice that ends the message about a setting without a value"""
    code: ClassVar[str] = ""
    """module and name of the foreign agent, separated by a colon"""
    thing: ClassVar[Any] = None
    """class, object or function that is the foreign agent"""

    def __reduce__(self) -> Any:
        return _again, (self.code, {one.name: getattr(self, one.name) for one in fields(self)})

    def make(self, spec: Spec, streams: Streams) -> Agent:
        seeds = (streams.uniforms("seed")() * 2**31).astype(np.int64).tolist()
        first = self._one(spec, seeds[0], len(seeds))
        if not hasattr(first, "act") and hasattr(first, "make"):  # a config, not an agent
            made: Agent = first.make(spec, streams)
            return made
        act_arguments = ("context",) if spec.masks == "none" else ("context", "mask")
        update_arguments = ("context", "action", "reward")
        has_methods(
            f"what {self.code} is or returns", first, act=act_arguments, update=update_arguments
        )
        if getattr(first, "vectorised", False) or "replicas" in _parameters(self.thing):
            return VectorisedPolicy(first, spec)
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
                    f"{self.code} takes {name}, which {type(spec).__name__} lacks: give this "
                    "argument a default, or choose another agent or environment."
                )
        return self.thing(**arguments)


def _again(code: str, settings: Mapping[str, Any]) -> Stranger:
    return stranger(code)(**settings)


@cache
def stranger(code: str) -> type[Stranger]:
    """Make the config class of the foreign agent MODULE:NAME, see `Stranger`.

    Raises:
        InputError: the object has neither `act` and `update` nor `make`, and is no function.
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
        elif isinstance(default, _SETTING_TYPES):
            settings.append((key, type(default) if default is not None else Any, default))
    space = {"code": code, "thing": staticmethod(thing) if isroutine(thing) else thing}
    kind = make_dataclass(
        name, settings, bases=(Stranger,), namespace=space, frozen=True, kw_only=True
    )
    kind.__module__, kind.__doc__ = module, thing.__doc__ or Stranger.__doc__
    found: type[Stranger] = kind
    return found


def is_foreign(thing: Any) -> bool:
    """Return True if an object has `act` and `update`, or may make foreign agents that do."""
    if isclass(thing):
        return hasattr(thing, "act") and hasattr(thing, "update")
    runs = hasattr(thing, "act") and hasattr(thing, "update")
    return isroutine(thing) or runs or callable(getattr(thing, "make", None))


def _is_maker(thing: Any) -> bool:
    return isclass(thing) or isroutine(thing)


def _parameters(thing: Any) -> Mapping[str, Parameter]:
    """Return the parameters of a class or function that can be passed by name."""
    if not _is_maker(thing):
        return {}
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    try:
        parameters = signature(thing).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return {}
    return {name: one for name, one in parameters.items() if one.kind in named}


def _act(policy: Any, context: Floats, **mask: Any) -> Any:
    return policy.act(context, **mask)


def _update(policy: Any, context: Floats, action: Any, reward: Any) -> Any:
    return policy.update(context, action, reward)


class OneByOne:
    """Agent made of foreign objects, one for each replica, that play one user at a time.

    Args:
        policies: objects, one for each replica.
        spec: public facts of the problem.
        act: function of (policy, context), and `mask=` if it takes one, that returns an action.
        update: function of (policy, context, action, reward).
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
        """Choose actions that the mask (R, K) allows."""
        return self._answers(context, [{"mask": there.copy()} for there in mask])

    def _answers(self, context: Floats, masks: list[dict[str, Any]]) -> AnyArray:
        self._round += 1
        users = zip(self._policies, context, masks, strict=True)
        answers = [self._read(self._act(policy, x.copy(), **mask)) for policy, x, mask in users]
        return _allowed(answers, self._spec, self._round, self.called)

    def update(self, context: Floats, action: AnyArray, reward: Floats) -> None:
        """Pass each replica's object the context, action and reward of its user."""
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


class VectorisedPolicy:
    """Agent made of a foreign object that plays all replicas at once, with arrays (R, ...)."""

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
        """Choose actions that the mask (R, K) allows."""
        return self._read(self._policy.act(context.copy(), mask=mask.copy()))

    def update(self, context: Floats, action: AnyArray, reward: Floats) -> None:
        """Pass the object contexts, actions and rewards of all replicas."""
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
    """Return actions as an array (R, ...); raise `InputError` unless the spec allows them."""
    try:
        return spec.validate(np.array(answers), len(answers))
    except InputError as mistake:
        why = str(mistake).removesuffix(".")
    except (TypeError, ValueError):  # ragged, or something else than numbers
        why = f"Expected numbers as actions, got {of_kind(answers[0])}"
    raise InputError(f"In round {round}: {why}, from act of {called}.")


def _each(values: AnyArray) -> Iterator[Any]:
    """Iterate over replicas' values, each a Python number or a copied array."""
    return iter(values.tolist() if values.ndim == 1 else values.copy())
