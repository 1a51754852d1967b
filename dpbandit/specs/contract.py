"""What the code and the data of others are held to: protocols, and the bounds of a spec.

One round::

    context --> agent.act(context) --> action --> problem.step(action) --> reward, regret
                reads, writes nothing             agent.update(context, action, feedback)
                                                  clip -> mechanism -> released state

Data from outside are held against public bounds: what lies beyond is counted, said, and refused if
it is much. A bound is public or worth nothing, so none is ever read off the data. One that does not
fit is no breach of privacy, since agents clip, but clipped data teach little: ages from 20 to 60
under a bound of 1 are all alike. The count is a diagnostic of the simulator: made of raw data, not
private, outside every certificate.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial
from math import inf, prod
from typing import Any, ClassVar, Protocol, get_args, runtime_checkable

import numpy as np

from dpbandit.base import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Source,
    Streams,
    has_methods,
    inside,
    norms,
    of_kind,
    reached,
    shown,
    takes,
)
from dpbandit.privacy.ledger import OWN_DATA, Ledger, Trust
from dpbandit.privacy.mechanism import Mechanism, enrol
from dpbandit.specs.premises import Premises
from dpbandit.specs.protocols import ROUNDING, BanditSpec, Spec, Step


@dataclass(frozen=True)
class Outside:
    """How much lay outside its public bounds.

    These are exact counts of private data: no certificate covers them, nor a refusal or a warning
    that follows from them.

    >>> print(Outside(contexts=3, rewards=0, users=1000))
    3 of 1000 contexts (0.3 %) and 0 rewards (0 %) outside their bounds
    """

    contexts: int
    rewards: int
    users: int

    def __bool__(self) -> bool:
        return bool(self.contexts or self.rewards)

    def __str__(self) -> str:
        contexts, rewards = (_percent(n, self.users) for n in (self.contexts, self.rewards))
        return (
            f"{self.contexts} of {self.users} contexts ({contexts}) and {self.rewards} rewards "
            f"({rewards}) outside their bounds"
        )


class Tally:
    """Counts one kind of data in R streams of `users`; each stream may have a share of it outside.

    Warns at the first that it counts. Raises `InputError` once more than `most_outside` of a
    stream's `users`, those that are still to come among them, lie outside.
    """

    def __init__(
        self, kind: str, where: str, advice: str, *, users: int, most_outside: float
    ) -> None:
        inside("most_outside", most_outside, 0, 1, ends=True)
        self._kind, self._where, self._advice = kind, where, advice
        self._users, self._most = users, most_outside
        self._seen = 0
        self.counts: Ints = np.zeros(1, dtype=np.int64)
        """(R,)"""

    def add(self, beyond: Bools, values: Floats) -> None:
        """`beyond` (n, R): which of n users' `values` (n, R) lie outside."""
        self._seen += len(beyond)
        if not beyond.any():
            return
        first = not self.counts.any()
        self.counts = self.counts + beyond.sum(axis=0)
        count, such = int(self.counts.max()), _largest(values[beyond])
        if count / self._users > self._most:
            raise InputError(
                f"Expected at most {100 * self._most:.3g} % of {self._users} {self._kind} "
                f"{self._where}, got {count} of {self._seen}, such as {such:.4g}: {self._advice}, "
                "or allow more to be clipped by most_outside=."
            )
        if first:
            share = _percent(count, self._seen)
            warnings.warn(
                f"{count} of {self._seen} {self._kind} ({share}) lie {self._where}, such as "
                f"{such:.4g}: private agents clip them.",
                stacklevel=2,
            )


class Watch:
    """Holds R streams of `users` against the bounds of a spec, as they come."""

    def __init__(self, spec: BanditSpec, users: int) -> None:
        self._spec, self._users, self._rounds = spec, 0, 0
        self._either: Ints | int = 0
        low, high, order = spec.reward_low, spec.reward_high, spec.context_order
        tally = partial(Tally, users=users, most_outside=spec.most_outside)
        self._contexts = tally(
            "contexts",
            f"beyond context_bound={spec.context_bound:.4g} in the l_{order:g} norm",
            "scale features by public ranges, or say a larger public bound",
        )
        self._rewards = tally(
            "rewards",
            f"outside reward_low={low:.4g} to reward_high={high:.4g}",
            "say a wider public range of rewards",
        )

    @property
    def outside(self) -> Outside:
        """The counts so far, of all streams together."""
        contexts, rewards = (int(t.counts.sum()) for t in (self._contexts, self._rewards))
        return Outside(contexts, rewards, self._users)

    @property
    def share(self) -> Floats:
        """Of the users so far of each stream, (R,), those of whom anything lay outside."""
        return np.asarray(self._either / max(1, self._rounds))

    def see(self, context: Floats, reward: Floats) -> Bools:
        """Count contexts `(n, R, *context_shape)`, rewards (n, R); which contexts are outside."""
        self._users += reward.size
        self._rounds += len(reward)
        spec = self._spec
        with np.errstate(over="ignore", invalid="ignore"):
            length = norms(context, spec.context_order).reshape(*reward.shape, -1).max(axis=2)
        beyond = np.logical_not(length <= spec.context_bound * (1 + ROUNDING))  # also NaNs
        self._contexts.add(beyond, length)
        room = ROUNDING * spec.reward_bound
        low, high = spec.reward_low - room, spec.reward_high + room
        outside = np.logical_not((low <= reward) & (reward <= high))
        self._rewards.add(outside, reward)
        self._either = self._either + np.asarray(beyond | outside).sum(axis=0)
        return beyond


def scaled(
    x: Floats, low: Floats, high: Floats, names: Sequence[str], *, most_outside: float | None
) -> tuple[Floats, Bools]:
    """Columns (n, d) from public ranges, (d,) each, to [-1, 1], clipped; where they had to be.

    Raises `InputError` where more than a share `most_outside` of rows had to be, and warns of
    fewer; with None neither.
    """
    room = ROUNDING * (high - low)
    out = np.logical_or(x < low - room, x > high + room)
    onto = 2 * ((x.clip(low, high) - low) / (high - low)) - 1
    if most_outside is None:
        return onto, out
    worst = int(out.sum(axis=0).argmax())
    tally = Tally(
        "rows",
        f"outside their public ranges, above all {names[worst]} outside "
        f"[{low[worst]:.4g}, {high[worst]:.4g}]",
        "say wider ranges that are public",
        users=len(x),
        most_outside=most_outside,
    )
    tally.add(np.asarray(out.any(axis=1))[:, None], np.where(out, x, 0.0)[:, [worst]])
    return onto, out


def _largest(values: Floats) -> float:
    """In size; NaN if there is one."""
    return float(values[np.abs(values).argmax()])


def _percent(count: int, users: int) -> str:
    return f"{100 * count / max(1, users):.3g} %"


CLIPPED = (
    "clipped: the share of rounds whose context, datum or reward lay beyond the bounds that agents "
    "clip to; counted on raw data, so not private, and outside every certificate."
)
"""What is said below a table."""
_ROUNDS, _VALUES = 64, 1 << 15
"""Kept until they are looked at together, at most. Changes speed, never counts."""


@runtime_checkable
class Clips(Protocol):
    """A problem that clips data from outside before it shows them, and counts where it did."""

    def clipped(self) -> Floats:
        """The share of the rounds since `reset`, (R,), in which anything lay beyond a bound."""
        ...


class Bounds:
    """Counts each replica's rounds with a context, a datum or a reward beyond its bound.

    Data and bounds in different units are refused: once one kind is beyond in more of a replica's
    `rounds`, those that are still to come among them, than the spec's `most_outside`.
    """

    def __init__(self, spec: Spec, replicas: int, rounds: int) -> None:
        self._bounds, self._delay, self._most = spec.bounds(), spec.delay, spec.most_outside
        largest = replicas * max(prod(bound.shape) for bound in self._bounds)
        room = min(_ROUNDS, max(1, _VALUES // largest))
        self._kept = [np.empty((room, replicas, *bound.shape)) for bound in self._bounds]
        self._room, self._held, self._due, self._seen, self._rounds = room, 0, 1, 0, rounds
        self._beyond = np.zeros((len(self._bounds), replicas), np.int64)
        self._either = np.zeros(replicas, np.int64)
        self._first = [""] * len(self._bounds)

    def see(self, context: Floats, step: Step) -> None:
        """One more round. Small arrays are copied, for a problem may use its own again."""
        arrays = [bound.array(context, step) for bound in self._bounds]
        if self._room == 1:
            self._judge([array[None] for array in arrays])
            return
        for kept, array in zip(self._kept, arrays, strict=True):
            kept[self._held] = array
        self._held += 1
        if self._held == self._due:
            self._judge_kept()
            self._due = min(2 * self._due, self._room)

    def see_several(self, context: Floats, step: Step) -> None:
        """Several more rounds, all arrays (n, R, ...)."""
        if self._held:
            self._judge_kept()
        self._judge([bound.array(context, step) for bound in self._bounds])

    def share(self) -> Floats:
        """Of the rounds of each replica those with anything beyond, (R,); asked after the last."""
        if self._held:
            self._judge_kept()
        return self._either / self._seen

    def _judge_kept(self) -> None:
        n, self._held = self._held, 0
        self._judge([kept[:n] for kept in self._kept])

    def _judge(self, arrays: list[Floats]) -> None:
        """The next n rounds of every bound, `(n, R, *shape)`."""
        before, self._seen = self._seen, self._seen + len(arrays[0])
        either = np.zeros((len(arrays[0]), len(self._either)), np.bool_)
        for kind, (bound, rounds) in enumerate(zip(self._bounds, arrays, strict=True)):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = bound.size(rounds)
            broken = ~((sizes >= bound.low) & (sizes <= bound.high))  # true where there is a NaN
            broken[: max(0, self._delay - before) if bound.told else 0] = False
            if not broken.any():
                continue
            if not self._first[kind]:
                i, r = np.argwhere(broken)[0]
                self._first[kind] = f"In round {before + i + 1}: {bound.sentence} {sizes[i, r]:g}"
            self._beyond[kind] += broken.sum(axis=0)
            share, either = self._beyond[kind].max() / self._rounds, either | broken
            if share > self._most:
                raise InputError(
                    f"{self._first[kind]}, and so far {100 * share:.3g} % of {self._rounds} rounds "
                    f"are beyond, more than most_outside={self._most:g}: widen the bounds of the "
                    "problem's spec, scale or clip its data, or allow more to be clipped."
                )
        self._either += np.sum(either, axis=0)


class Problem(Protocol):
    """Dynamics of an environment, for R replicas at a time."""

    @property
    def spec(self) -> Any:
        """The public facts, a `Spec`."""
        ...

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        ...

    def context(self) -> Floats:
        """Contexts of the current users, `(R, *context_shape)`.

        Where `spec.masks` is not "none" there is `mask()`, too: which actions there are for them,
        truth values (R, K).
        """
        ...

    def step(self, action: AnyArray) -> Step:
        """Serve the current users with `action` (R,) and move on to the next."""
        ...

    def best_fixed(self) -> AnyArray:
        """The one action (R, ...) with the largest expected total over the rounds so far."""
        ...

    def hindsight(self) -> Floats | float:
        """What the sum of `Step.regret` so far lacks, (R,).

        That is the total reward of the best fixed action where regret is measured against it, and
        0 where every context has a best action of its own.
        """
        ...


class Agent(Protocol):
    """Interface of a running agent, made for one spec and R replicas."""

    @property
    def ledger(self) -> Ledger:
        """Ledger of privacy costs, complete before round 1."""
        ...

    def act(self, context: Floats) -> AnyArray:
        """Actions (R,). Reads the context and remembers nothing of it."""
        ...

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        """Learn from a round, through mechanisms if the agent is private."""
        ...


class ScoringAgent(Agent, Protocol):
    """An agent that plays the arm with the largest score."""

    def scores(self, context: Floats) -> Floats:
        """What it thinks of each arm, in units of the reward: (R, K). Remembers nothing."""
        ...


class AgentConfig(Protocol):
    """Interface of a config: a frozen, keyword-only dataclass that makes running agents."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def make(self, spec: Any, streams: Streams) -> Agent:
        """An agent for `spec`; raises `InputError` where it does not fit."""
        ...


def is_running(agent: object) -> bool:
    """Whether it was made for a problem and promises something."""
    return hasattr(agent, "act") and hasattr(agent, "ledger")


def check_config(config: object) -> None:
    """Raise `InputError` unless `config` is one: neither its class, nor its name, nor an agent."""
    name = type(config).__name__
    if isinstance(config, type) or not callable(getattr(config, "make", None)):
        right = "LinUCB(alpha=0.5), with make(spec, streams)"
        if isinstance(config, type) and is_dataclass(config) and hasattr(config, "make"):
            right = f"{config.__name__}()"
        elif hasattr(config, "act"):
            right += ", which returns it"
        raise InputError(f"Expected agent {shown(config)} to be a config, such as {right}.")
    if not is_dataclass(config):
        raise InputError(
            f"Expected {name}, which has make, to be a dataclass: write "
            f"@dataclass(frozen=True, kw_only=True) above class {name}."
        )


class Hindsight:
    """Mark of a config that may ask what was best in hindsight: an oracle, not an agent."""

    def with_answer(self, action: AnyArray) -> AgentConfig:
        """The config that plays `action` (R,) all along."""
        raise NotImplementedError


def gaussian(config: AgentConfig, spec: Any) -> AgentConfig:
    """The agent with Gaussian noise alone on `spec`, where it says what that is, else itself."""
    found: AgentConfig = getattr(config, "gaussian", lambda spec: config)(spec)
    return found


def acted(agent: Any, context: Floats, mask: Bools | None) -> AnyArray:
    """Actions of the agent; where actions come and go, among those of the `mask`."""
    action: AnyArray = agent.act(context) if mask is None else agent.act_among(context, mask)
    return action


def made_agent(config: AgentConfig, spec: Spec, streams: Streams) -> Agent:
    """`config.make(spec, streams)`; raises `InputError` unless that has the methods of an agent."""
    owner = type(config).__name__
    takes(f"make of {owner}", config.make, "spec", "streams")
    agent: Agent | None = config.make(spec, streams)
    if agent is None:
        raise InputError(
            f"Expected make of {owner} to return the running agent, with ledger, act and update, "
            "got None."
        )
    has_methods(
        f"the agent of {owner}",
        agent,
        act=("context",),
        update=("context", "action", "feedback"),
    )
    _check_masks(owner, agent, spec)
    _check_trust(owner, agent, spec)
    _check_facts(owner, agent)
    premises = Premises(owner, agent, spec)
    if premises.promises:
        premises.check()
        enrol(premises)
    return agent


def _check_masks(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` where actions come and go, and the agent may play what is not there."""
    if spec.masks == "none":
        return
    ways = [{"act", "act_among"} & vars(kind).keys() for kind in type(agent).__mro__]
    chosen = next(filter(None, ways), set())  # where `act` alone is new, `act_among` is of another
    if "act_among" in chosen and spec.masks in getattr(agent, "masks", ()):
        return
    raise InputError(
        f"Expected an agent that plays only what is there where actions come and go (linucb, "
        f"lints, dp-ucb, fade, allocation-ts, ranked-linucb, list-fade), got {owner}."
    )


def _check_trust(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` where more trust is promised than the agent, or what it holds, can keep.

    So it is for whatever stands around an agent, with the agent's ledger or with one of its own.
    """
    trust = getattr(getattr(agent, "ledger", None), "trust", "central")
    if trust == "central":
        return
    if spec.watched:
        raise InputError(
            f"Expected trust='central' of {owner} for {spec.kind}, got {trust!r}: choose that, as "
            "the seller names the price and watches the sale."
        )
    for _, held in reached(agent, Mechanism, Source, Streams):
        kept: tuple[Trust, ...] = get_args(Trust)
        if isinstance(held, Mechanism):
            kept, spent, what = held.trust, held.spend.pure, repr(held.spend.note)
        elif isinstance(inner := getattr(held, "ledger", None), Ledger):
            kept = kept[: kept.index(inner.trust) + 1]
            spent, what = inner.pure, f"the ledger of {type(held).__name__}"
        if trust not in kept and spent > 0:
            raise InputError(
                f"Expected the ledger of {owner} to promise what {what} can keep, "
                f"trust={' or '.join(kept)}, got trust={trust!r}."
            )


def _check_facts(owner: str, agent: Agent) -> None:
    """Raise `InputError` where the ledger drops what the ledger of something held rests on."""
    outer = getattr(agent, "ledger", None)
    if not isinstance(outer, Ledger):
        return
    for _, held in reached(agent, Mechanism, Source, Streams):
        inner = getattr(held, "ledger", None)
        if held is agent or not isinstance(inner, Ledger):
            continue
        for name, weaker in _WEAKER.items():
            promised, kept = getattr(outer, name), getattr(inner, name)
            if not weaker(promised, kept):
                raise InputError(
                    f"Expected the ledger of {owner} to promise what that of {type(held).__name__} "
                    f"can keep, {name}={kept!r}, got {name}={promised!r}."
                )


_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "scope": lambda promised, kept: kept != OWN_DATA or promised == kept,
    "adjacency": lambda promised, kept: kept in ("replace", promised),
    "public_contexts": lambda promised, kept: promised >= kept,
    "honest": lambda promised, kept: promised >= kept,
    "slip": lambda promised, kept: promised >= kept,
    "condition": lambda promised, kept: kept in promised,
    "window": lambda promised, kept: kept is None or (promised or inf) <= kept,
    "visits": lambda promised, kept: kept in (None, promised),
}
"""Facts of a ledger, and whether a promise rests on all that is kept below it."""


def checked_problem(name: str, problem: Any) -> Problem:
    """`problem`; raises `InputError` unless it has the spec and the methods of one."""
    spec = getattr(problem, "spec", None)
    if not isinstance(spec, Spec):
        raise InputError(
            f"Expected {name} to make a problem whose spec is a Spec, such as ContextualSpec, got "
            f"{of_kind(problem)}" + ("." if problem is None else f" with spec {of_kind(spec)}.")
        )
    has_methods(
        f"the problem of {name}",
        problem,
        reset=("streams",),
        context=(),
        step=("action",),
        best_fixed=(),
        hindsight=(),
    )
    made: Problem = problem
    return made


def begin(problem: Problem, streams: Streams) -> None:
    """Start an episode: in the world of the `world_seed` that `make_problem` was told, if any."""
    world_seed = getattr(problem, "world_seed", None)
    problem.reset(streams.child("environment").in_world(world_seed))
