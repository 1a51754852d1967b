"""Protocols of problems, agents and configs, and checks of those that users wrote.

One round::

    context --> agent.act(context) --> action --> problem.step(action) --> reward, regret
                reads, writes nothing             agent.update(context, action, feedback)
                                                  clip -> mechanism -> released state
"""

from dataclasses import is_dataclass, replace
from typing import Any, ClassVar, Protocol, get_args

from dpbandit.base import (
    RAISED,
    WATCH,
    AnyArray,
    Bools,
    Floats,
    InputError,
    OverTime,
    Source,
    Streams,
    abbrev,
    agent_error,
    has_methods,
    of_kind,
    reached,
    takes,
)
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import Mechanism, unused_call_log
from dpbandit.privacy.notion import TrustModel
from dpbandit.specs.premises import Premises
from dpbandit.specs.protocols import Spec, Step


class Problem(Protocol):
    """Dynamics of an environment, for R replicas at a time."""

    @property
    def spec(self) -> Any:
        """Public facts, a `Spec`."""
        ...

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        ...

    def context(self) -> Floats:
        """Return contexts of the current users, `(R, *context_shape)`.

        Where `spec.masks` is not "none", a method `mask()` returns which actions are available to
        these users, truth values (R, K).
        """
        ...

    def step(self, action: AnyArray) -> Step:
        """Serve the current users with `action` (R,) and move on to the next."""
        ...

    def best_fixed(self) -> AnyArray:
        """Return the fixed action (R, ...) with the largest expected total reward so far."""
        ...

    def hindsight(self) -> Floats | float:
        """Return the term that, added to the sum of `Step.regret` so far, gives the regret, (R,).

        It is the total reward of the best fixed action where regret is measured against that, and
        0 where every context has a best action of its own.
        """
        ...


class Agent(Protocol):
    """Interface of a running agent, made for one spec and R replicas."""

    @property
    def ledger(self) -> Ledger:
        """Ledger of the privacy costs of all rounds, complete before round 1."""
        ...

    def act(self, context: Floats) -> AnyArray:
        """Return actions (R,) for the current contexts; store nothing of the contexts."""
        ...

    def update(self, context: Floats, action: AnyArray, feedback: Floats) -> None:
        """Learn from a round, through mechanisms if the agent is private."""
        ...


class ScoringAgent(Agent, Protocol):
    """An agent that plays the arm with the largest score."""

    def scores(self, context: Floats) -> Floats:
        """Return scores of all arms, (R, K), in units of the reward; store nothing."""
        ...


class AgentConfig(Protocol):
    """Interface of a config: a frozen, keyword-only dataclass that makes running agents.

    Subclasses of `dpbandit.Agent` have it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def make(self, spec: Any, streams: Streams) -> Agent:
        """Return a running agent for `spec`; raise `InputError` if it cannot play that problem."""
        ...


def is_running(agent: object) -> bool:
    """Return True if `agent` has `act` and a ledger, as agents made by a config have."""
    return hasattr(agent, "act") and hasattr(agent, "ledger")


def check_config(config: object) -> None:
    """Raise `InputError` unless `config` is a config, not a class, a name or a running agent."""
    name, makes = type(config).__name__, callable(getattr(config, "make", None))
    # An object of somebody's own that returns itself from make, without streams, may be made again
    running = is_running(config) and (hasattr(config, "streams") or not makes)
    if isinstance(config, type) or running or not makes:
        right = "LinUCB(alpha=0.5), of a subclass of dpbandit.Agent"
        if isinstance(config, type) and is_dataclass(config) and hasattr(config, "make"):
            right = f"{config.__name__}()"
        elif running:
            right = "LinUCB(alpha=0.5), not the agent that its make returned"
        raise InputError(f"Expected agent {abbrev(config)} to be a config, such as {right}.")
    if not is_dataclass(config):
        raise InputError(
            f"Expected {name}, which has make, to be a subclass of dpbandit.Agent: write "
            f"class {name}(Agent), with settings, start, act and update in place of make."
        )


class Hindsight:
    """Base class of oracles: configs that play the best fixed action in hindsight."""

    def with_answer(self, action: AnyArray) -> AgentConfig:
        """Return a config that plays `action` (R,) in every round."""
        raise NotImplementedError


def gaussian(config: AgentConfig, spec: Any) -> AgentConfig:
    """Return the config's variant with Gaussian noise alone if it defines one, else the config."""
    found: AgentConfig = getattr(config, "gaussian", lambda spec: config)(spec)
    return found


def matrix_entries(config: Any, spec: Any) -> int:
    """Return the largest number of matrix entries that the config's agent stores per replica.

    The number is `spec.matrix_entries`, unless the config, or one that it wraps, has a method
    `matrix_entries(spec)`.
    """
    if hasattr(config, "matrix_entries"):
        return int(config.matrix_entries(spec))
    inner = getattr(config, "agent", None)
    return matrix_entries(inner, spec) if hasattr(inner, "make") else int(spec.matrix_entries)


def acted(agent: Any, context: Floats, mask: Bools | None) -> AnyArray:
    """Return the agent's actions, from those that `mask` allows unless `mask` is None."""
    action: AnyArray = agent.act(context) if mask is None else agent.act_among(context, mask)
    return action


def made_agent(config: AgentConfig, spec: Spec, streams: Streams) -> Agent:
    """Return `config.make(spec, streams)`; raise `InputError` unless its agent may play.

    An agent may play if it has an agent's methods and respects the problem's masks, and its ledger
    fits its mechanisms. Other errors of `make` become an `AgentError` that says them in a sentence.
    """
    owner = type(config).__name__
    takes(f"make of {owner}", config.make, "spec", "streams")
    call_log = unused_call_log()  # before `make`, which may call a mechanism
    WATCH.calls += 1
    try:
        agent: Agent | None = config.make(spec, streams)
    except (*RAISED, OverTime) as error:
        failure = agent_error(owner, "make", None, error)
        if failure is None:
            raise
        raise failure from error
    WATCH.calls += 1
    if agent is None:
        raise InputError(
            f"Expected make of {owner} to return the running agent, with ledger, act and update, "
            "got None."
        )
    has_methods(
        f"the agent of {owner}", agent, act=("context",), update=("context", "action", "feedback")
    )
    _check_masks(owner, agent, spec)
    _check_trust(owner, agent, spec)
    _check_notion(owner, agent)
    premises = Premises(owner, agent, spec)
    if premises.promises:
        premises.check()
        if call_log is not None:
            call_log.hold(premises, premises.known)
    return agent


def _check_masks(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` if actions may be unavailable and the agent does not respect masks."""
    if spec.masks == "none":
        return
    ways = [{"act", "act_among"} & vars(kind).keys() for kind in type(agent).__mro__]
    # A class that overrides `act` alone inherits an `act_among` that belongs to another `act`
    chosen = next(filter(None, ways), set())
    if "act_among" in chosen and spec.masks in getattr(agent, "masks", ()):
        return
    raise InputError(
        f"Expected an agent that plays only what is there where actions come and go (linucb, "
        f"lints, dp-ucb, fade, allocation-ts, ranked-linucb, list-fade), got {owner}."
    )


def _check_trust(owner: str, agent: Agent, spec: Spec) -> None:
    """Raise `InputError` if the ledger states a trust model that a part of the agent breaks.

    Parts are mechanisms, and agents inside the agent, with their ledgers.
    """
    ledger = getattr(agent, "ledger", None)
    trust = ledger.notion.trust.model if isinstance(ledger, Ledger) else "central"
    if trust == "central":
        return
    if spec.operator_sees_round:
        raise InputError(
            f"Expected trust='central' of {owner} for {spec.kind}, got {trust!r}: choose that, as "
            "the seller names the price and watches the sale."
        )
    for _, held in reached(agent, Mechanism, Source, Streams):
        promised: tuple[TrustModel, ...] = get_args(TrustModel)
        if isinstance(held, Mechanism):
            promised, spent, what = held.trust, held.spend.pure, repr(held.spend.note)
        elif isinstance(inner := getattr(held, "ledger", None), Ledger):
            promised = promised[: promised.index(inner.notion.trust.model) + 1]
            spent, what = inner.pure, f"the ledger of {type(held).__name__}"
        if trust not in promised and spent > 0:
            raise InputError(
                f"Expected the ledger of {owner} to promise what {what} can keep, "
                f"trust={' or '.join(promised)}, got trust={trust!r}."
            )


def _check_notion(owner: str, agent: Agent) -> None:
    """Raise `InputError` unless notions of inner ledgers, `covers` aside, imply the outer one's."""
    outer = getattr(agent, "ledger", None)
    if not isinstance(outer, Ledger):
        return
    for _, held in reached(agent, Mechanism, Source, Streams):
        inner = getattr(held, "ledger", None)
        if held is agent or not isinstance(inner, Ledger):
            continue
        if not (inner.notion.covers and outer.notion.covers):
            continue  # one of both promises nothing, and data pass through mechanisms
        promised, inner_notion = outer.notion, inner.notion
        if (
            promised.visits and not inner_notion.visits
        ):  # whoever promises more of either pays for it
            inner_notion = inner_notion.of_person(promised.visits)
        inner_notion = replace(inner_notion, covers=inner_notion.covers | promised.covers)
        for name in inner_notion.lacks(promised):
            raise InputError(
                f"Expected the ledger of {owner} to promise what that of {type(held).__name__} "
                f"can keep, {name}={getattr(inner_notion, name)!r}, got "
                f"{name}={getattr(promised, name)!r}."
            )


def checked_problem(name: str, problem: Any) -> Problem:
    """Return `problem`; raise `InputError` unless it has a `Spec` and the methods of a problem."""
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
    """Start an episode; its parameters are drawn from the problem's `world_seed`, if it has one."""
    world_seed = getattr(problem, "world_seed", None)
    problem.reset(streams.child("environment").in_world(world_seed))
