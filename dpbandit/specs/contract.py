"""The contract with the code of others: protocols of problems, agents and their configs.

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
    """Interface of a config: a frozen, keyword-only dataclass that makes running agents.

    Subclasses of `dpbandit.Agent` have it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def make(self, spec: Any, streams: Streams) -> Agent:
        """An agent for `spec`; raises `InputError` where it does not fit."""
        ...


def is_running(agent: object) -> bool:
    """Whether it was made for a problem and promises something."""
    return hasattr(agent, "act") and hasattr(agent, "ledger")


def check_config(config: object) -> None:
    """Raise `InputError` unless `config` is one: neither its class, nor its name, nor an agent."""
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
    """Mark of a config that may ask what was best in hindsight: an oracle, not an agent."""

    def with_answer(self, action: AnyArray) -> AgentConfig:
        """The config that plays `action` (R,) all along."""
        raise NotImplementedError


def gaussian(config: AgentConfig, spec: Any) -> AgentConfig:
    """The agent with Gaussian noise alone on `spec`, where it says what that is, else itself."""
    found: AgentConfig = getattr(config, "gaussian", lambda spec: config)(spec)
    return found


def matrix_entries(config: Any, spec: Any) -> int:
    """Numbers in the matrices that the agent of `config` may keep for one replica on `spec`.

    They are `spec.matrix_entries`, unless the config, or one that it wraps, has a method
    `matrix_entries(spec)` that says otherwise.
    """
    if hasattr(config, "matrix_entries"):
        return int(config.matrix_entries(spec))
    inner = getattr(config, "agent", None)
    return matrix_entries(inner, spec) if hasattr(inner, "make") else int(spec.matrix_entries)


def acted(agent: Any, context: Floats, mask: Bools | None) -> AnyArray:
    """Actions of the agent; where actions come and go, among those of the `mask`."""
    action: AnyArray = agent.act(context) if mask is None else agent.act_among(context, mask)
    return action


def made_agent(config: AgentConfig, spec: Spec, streams: Streams) -> Agent:
    """`config.make(spec, streams)`; raises `InputError` unless that has the methods of an agent.

    What `make` raises besides becomes an `AgentError`, which tells it in a sentence.
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
        f"the agent of {owner}",
        agent,
        act=("context",),
        update=("context", "action", "feedback"),
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
    """Raise `InputError` where the ledger drops what the ledger of something held rests on."""
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
